/* pairing.h - the switch of Amanieu/corosensei's x86-64 kind, in our own code, to compare with.
 *
 * REJECTED: resume is a `call`, yield is the `ret` that the processor's return stack pairs with
 * it. Fastest while both sit directly in their loops; but once the producer yields from a few
 * calls deep, every `ret` on its way up finds the resume's entry on top of the return stack
 * instead of its own and mispredicts.
 *
 *   consumer's stack while it is suspended       pair, shared by both sides
 *
 *   |        ...           |                     caller_sp   consumer's rsp, at the return address
 *   | red zone, 128 bytes  |                     frame       the producer, as in weft_frame
 *   | rbp                  |
 *   | rbx                  |
 *   | return address       | <- caller_sp
 *   +----------------------+
 */
#ifndef BENCH_PAIRING_H
#define BENCH_PAIRING_H

#include "loop.h"

#if defined(__x86_64__)

typedef struct bench_pair {
  weft_frame frame;
  void *caller_sp;
} bench_pair;

_Static_assert(offsetof(bench_pair, caller_sp) == 40, "pairing.S has this number");

/* The first instructions on the producer's stack; never called from C. */
void bench_pair_entry(void);

static inline void bench_pair_prepare(bench_pair *pair, void *top, void (*body)(bench_pair *)) {
  pair->frame.sp = top;
  pair->frame.fp = NULL;
  pair->frame.bx = (void *)body;
  pair->frame.pc = (void *)bench_pair_entry;
}

/* Continues the producer and returns what it yields. */
static inline __attribute__((always_inline)) void *bench_pair_resume(bench_pair *pair) {
  void *value;
  __asm__ volatile(
      /* It pushes, so it has to step over the red zone of a leaf first. */
      "leaq -128(%%rsp), %%rsp\n\t"
      "pushq %%rbp\n\t"
      "pushq %%rbx\n\t"
      "callq *%c[pc](%%rdi)\n\t"
      "popq %%rbx\n\t"
      "popq %%rbp\n\t"
      "leaq 128(%%rsp), %%rsp\n\t"
      : "+D"(pair), "=d"(value)
      : [pc] "i"(WEFT_FRAME_PC)
      : "rsi", BENCH_CLOBBER_X86);
  return value;
}

/* Hands `value` to the consumer and comes back at the next resume. */
static inline __attribute__((always_inline)) void bench_pair_yield(bench_pair *pair, void *value) {
  __asm__ volatile(
      "leaq 1f(%%rip), %%rax\n\t"
      "movq %%rax, %c[pc](%%rdi)\n\t"
      "movq %%rsp, %c[sp](%%rdi)\n\t"
      "movq %%rbp, %c[fp](%%rdi)\n\t"
      "movq %%rbx, %c[bx](%%rdi)\n\t"
      "movq 40(%%rdi), %%rsp\n\t"
      "retq\n"
      "1:\n\t"
      "endbr64\n\t"
      "movq %%rsp, 40(%%rdi)\n\t"
      "movq %c[sp](%%rdi), %%rsp\n\t"
      "movq %c[fp](%%rdi), %%rbp\n\t"
      "movq %c[bx](%%rdi), %%rbx\n\t"
      : "+D"(pair), "+d"(value)
      : [sp] "i"(WEFT_FRAME_SP), [fp] "i"(WEFT_FRAME_FP), [bx] "i"(WEFT_FRAME_BX),
        [pc] "i"(WEFT_FRAME_PC)
      : "rsi", BENCH_CLOBBER_X86);
}

#endif
#endif
