/* switch_variants.c - the bare switches. Supports the claim that the inline one is the fastest. */
#if defined(__APPLE__)
#define _XOPEN_SOURCE 700 /* ucontext */
#endif
#include <ucontext.h>

#include "loop.h"
#include "stack.h"

BENCH_LOOP(bench_switch_inline, weft_frame, weft_frame_prepare, weft_switch_inline)

/* One frame for both sides: it holds the suspended one. */
static void shared_body(weft_frame *frame, void *value) {
  (void)value;
  for (uint64_t i = 0;; i++) weft_switch_inline(frame, frame, (void *)i);
}

BENCH_NOINLINE uint64_t bench_switch_inline_shared(uint64_t count) {
  weft_frame frame;
  weft_frame_prepare(&frame, bench_stack_top(), shared_body);
  uint64_t sum = 0;
  for (uint64_t i = 0; i < count; i++) {
    sum += (uint64_t)weft_switch_inline(&frame, &frame, NULL);
  }
  return sum;
}

/* Out of line: the compiler sees a call, keeps callee-saved registers, and the loop goes on. */
static inline void context_prepare(weft_context *context, void *top, weft_body body) {
  weft_frame_prepare(&context->frame, top, body);
}

BENCH_LOOP(bench_switch_outofline, weft_context, context_prepare, weft_switch)

#if defined(__x86_64__)
/* REJECTED: stores first, then a jump through memory. The processor learns the target last. */
static inline __attribute__((always_inline)) void *memory_switch(weft_frame *from, weft_frame *to,
                                                                 void *value) {
  __asm__ volatile(
      "leaq 1f(%%rip), %%rax\n\t"
      "movq %%rax, %c[pc](%%rdi)\n\t"
      "movq %%rsp, %c[sp](%%rdi)\n\t"
      "movq %%rbp, %c[fp](%%rdi)\n\t"
      "movq %%rbx, %c[bx](%%rdi)\n\t"
      "movq %c[sp](%%rsi), %%rsp\n\t"
      "movq %c[fp](%%rsi), %%rbp\n\t"
      "movq %c[bx](%%rsi), %%rbx\n\t"
      "jmpq *%c[pc](%%rsi)\n"
      "1:\n\t"
      "endbr64\n\t"
      : "+D"(from), "+S"(to), "+d"(value)
      : [sp] "i"(WEFT_FRAME_SP), [fp] "i"(WEFT_FRAME_FP), [bx] "i"(WEFT_FRAME_BX),
        [pc] "i"(WEFT_FRAME_PC)
      : BENCH_CLOBBER_X86);
  return value;
}

BENCH_LOOP(bench_switch_memory, weft_frame, weft_frame_prepare, memory_switch)
#endif

/* The textbook switch carries no value: it goes through memory, as the textbooks have it. */
static void *textbook_consumer;
static void *textbook_producer;
static uint64_t textbook_value;

static void textbook_routine(void) {
  for (uint64_t i = 0;; i++) {
    textbook_value = i;
    weft_swapcontext(&textbook_producer, &textbook_consumer);
  }
}

BENCH_NOINLINE uint64_t bench_switch_textbook(uint64_t count) {
  textbook_producer = weft_textbook_prepare(bench_stack_top(), textbook_routine);
  uint64_t sum = 0;
  for (uint64_t i = 0; i < count; i++) {
    weft_swapcontext(&textbook_consumer, &textbook_producer);
    sum += textbook_value;
  }
  return sum;
}

#if defined(__GLIBC__)
static ucontext_t ucontext_consumer;
static ucontext_t ucontext_producer;

static void ucontext_routine(void) {
  for (uint64_t i = 0;; i++) {
    textbook_value = i;
    swapcontext(&ucontext_producer, &ucontext_consumer);
  }
}

BENCH_NOINLINE uint64_t bench_switch_ucontext(uint64_t count) {
  getcontext(&ucontext_producer);
  ucontext_producer.uc_stack.ss_sp = bench_stack_base();
  ucontext_producer.uc_stack.ss_size = BENCH_STACK_BYTES - 1024;
  ucontext_producer.uc_link = NULL;
  makecontext(&ucontext_producer, ucontext_routine, 0);
  uint64_t sum = 0;
  for (uint64_t i = 0; i < count; i++) {
    swapcontext(&ucontext_consumer, &ucontext_producer);
    sum += textbook_value;
  }
  return sum;
}
#endif
