/* kept_variants.c - the inline switch with more of the thread kept. Supports the claim that the
 * floating-point control and the first thread word cost little more than the switch itself. */
#include "loop.h"

#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* A prepared producer starts with the control that its maker has. */
ALWAYS_INLINE void fp_prepare(weft_frame *frame, void *top, weft_body body) {
  weft_frame_prepare(frame, top, body);
  weft_fp_store(&frame->fpctl);
}

/* Each consumer's frame is filled by its first switch before anybody reads it. */
ALWAYS_INLINE void *fp_compare_switch(weft_frame *from, weft_frame *to, void *value) {
  weft_fp_switch(&from->fpctl, &to->fpctl, 0);
  return weft_switch_inline(from, to, value);
}

ALWAYS_INLINE void *fp_always_switch(weft_frame *from, weft_frame *to, void *value) {
  weft_fp_switch(&from->fpctl, &to->fpctl, 1);
  return weft_switch_inline(from, to, value);
}

BENCH_LOOP(bench_switch_fp_compare, weft_frame, fp_prepare, fp_compare_switch)
BENCH_LOOP(bench_switch_fp_always, weft_frame, fp_prepare, fp_always_switch)

#if defined(__x86_64__)
/* Half of it each, to see which half costs what. */
ALWAYS_INLINE void *mxcsr_compare_switch(weft_frame *from, weft_frame *to, void *value) {
  __asm__ volatile("stmxcsr %0" : "=m"(from->fpctl.x86.mxcsr));
  if (UNLIKELY((from->fpctl.x86.mxcsr ^ to->fpctl.x86.mxcsr) & 0xFFC0u)) {
    __asm__ volatile("ldmxcsr %0" : : "m"(to->fpctl.x86.mxcsr));
  }
  return weft_switch_inline(from, to, value);
}

ALWAYS_INLINE void *mxcsr_always_switch(weft_frame *from, weft_frame *to, void *value) {
  __asm__ volatile("stmxcsr %0" : "=m"(from->fpctl.x86.mxcsr));
  __asm__ volatile("ldmxcsr %0" : : "m"(to->fpctl.x86.mxcsr));
  return weft_switch_inline(from, to, value);
}

ALWAYS_INLINE void *x87_compare_switch(weft_frame *from, weft_frame *to, void *value) {
  __asm__ volatile("fnstcw %0" : "=m"(from->fpctl.x86.fcw));
  if (UNLIKELY(from->fpctl.x86.fcw != to->fpctl.x86.fcw)) {
    __asm__ volatile("fldcw %0" : : "m"(to->fpctl.x86.fcw));
  }
  return weft_switch_inline(from, to, value);
}

ALWAYS_INLINE void *x87_always_switch(weft_frame *from, weft_frame *to, void *value) {
  __asm__ volatile("fnstcw %0" : "=m"(from->fpctl.x86.fcw));
  __asm__ volatile("fldcw %0" : : "m"(to->fpctl.x86.fcw));
  return weft_switch_inline(from, to, value);
}

/* An idea to measure: the x87 control word as a witness for MXCSR. <fenv.h> changes both together
 * and fnstcw is cheap, while stmxcsr alone takes 5 ns on AMD Zen 3. Code that changes MXCSR only,
 * by _mm_setcsr, would not be noticed, so this does not keep what the ABI promises. */
ALWAYS_INLINE void *witness_switch(weft_frame *from, weft_frame *to, void *value) {
  __asm__ volatile("fnstcw %0" : "=m"(from->fpctl.x86.fcw));
  if (UNLIKELY(from->fpctl.x86.fcw != to->fpctl.x86.fcw)) {
    weft_fp_store(&from->fpctl);
    weft_fp_load(&to->fpctl);
  }
  return weft_switch_inline(from, to, value);
}

BENCH_LOOP(bench_switch_mxcsr_compare, weft_frame, fp_prepare, mxcsr_compare_switch)
BENCH_LOOP(bench_switch_mxcsr_always, weft_frame, fp_prepare, mxcsr_always_switch)
BENCH_LOOP(bench_switch_x87_compare, weft_frame, fp_prepare, x87_compare_switch)
BENCH_LOOP(bench_switch_x87_always, weft_frame, fp_prepare, x87_always_switch)
BENCH_LOOP(bench_switch_fp_witness, weft_frame, fp_prepare, witness_switch)
#endif

/* Stand-ins for the thread-local words of the Swift runtime, reached as the library reaches them
 * for fibers: through two cached pointers, to the first word and to the block of the others. */
static uint64_t runtime_access_word;
static uint64_t runtime_task_words[4];

typedef struct kept_frame {
  weft_frame frame;
  uint64_t saved[4];
  uint64_t *access_word;
  uint64_t *task_words;
  _Bool load_is_cheap;
} kept_frame;

ALWAYS_INLINE void kept_prepare(kept_frame *frame, void *top, weft_body body) {
  fp_prepare(&frame->frame, top, body);
  for (int i = 0; i < 4; i++) frame->saved[i] = 0;
  /* Through the optimiser's back, or it would fold the addresses into the loop. */
  frame->access_word = (uint64_t *)bench_opaque((uint64_t)&runtime_access_word);
  frame->task_words = (uint64_t *)bench_opaque((uint64_t)runtime_task_words);
  frame->load_is_cheap = weft_fp_load_is_cheap();
}

/* Zero on both sides is the common case: then nothing needs to be stored. */
ALWAYS_INLINE void swap_word(kept_frame *from, kept_frame *to) {
  uint64_t now = *from->access_word;
  if (UNLIKELY(now | to->saved[0])) {
    from->saved[0] = now;
    *from->access_word = to->saved[0];
  }
}

ALWAYS_INLINE void swap_words(kept_frame *from, kept_frame *to) {
  uint64_t *first = from->access_word, *rest = from->task_words;
  uint64_t now = *first | rest[1] | rest[2] | rest[3];
  uint64_t then = to->saved[0] | to->saved[1] | to->saved[2] | to->saved[3];
  if (UNLIKELY(now | then)) {
    swap_word(from, to);
    for (int i = 1; i < 4; i++) {
      from->saved[i] = rest[i];
      rest[i] = to->saved[i];
    }
  }
}

ALWAYS_INLINE void *word_switch(kept_frame *from, kept_frame *to, void *value) {
  swap_word(from, to);
  return weft_switch_inline(&from->frame, &to->frame, value);
}

ALWAYS_INLINE void *words_switch(kept_frame *from, kept_frame *to, void *value) {
  swap_words(from, to);
  return weft_switch_inline(&from->frame, &to->frame, value);
}

ALWAYS_INLINE void *fp_words_switch(kept_frame *from, kept_frame *to, void *value) {
  weft_fp_switch(&from->frame.fpctl, &to->frame.fpctl, from->load_is_cheap);
  swap_words(from, to);
  return weft_switch_inline(&from->frame, &to->frame, value);
}

/* Here the consumer's record has to be whole before the first switch. */
#define KEPT_LOOP(name, SWITCH)                                   \
  static void name##_body(weft_frame *own, void *consumer) {      \
    kept_frame *from = (kept_frame *)own;                         \
    for (uint64_t i = 0;; i++) SWITCH(from, consumer, (void *)i); \
  }                                                               \
                                                                  \
  BENCH_NOINLINE uint64_t name(uint64_t count) {                  \
    kept_frame consumer, producer;                                \
    kept_prepare(&consumer, bench_stack_top(), name##_body);      \
    kept_prepare(&producer, bench_stack_top(), name##_body);      \
    uint64_t sum = 0;                                             \
    for (uint64_t i = 0; i < count; i++) {                        \
      sum += (uint64_t)SWITCH(&consumer, &producer, &consumer);   \
    }                                                             \
    return sum;                                                   \
  }

KEPT_LOOP(bench_switch_word, word_switch)
KEPT_LOOP(bench_switch_words, words_switch)
KEPT_LOOP(bench_switch_fp_words, fp_words_switch)

/* The library's own exchange, as its Swift types inline it, over one of its own coroutines. */
static void coroutine_body(weft_coroutine *coroutine) {
  for (uint64_t i = 0;; i++) {
    coroutine->error = (void *)i; /* nobody else looks at it while no Swift body runs */
    if (weft_coroutine_yield(coroutine) != WEFT_GO) break;
  }
  coroutine->error = NULL;
}

BENCH_NOINLINE uint64_t bench_switch_coroutine(uint64_t count) {
  weft_stack_failure failure;
  int32_t error;
  const weft_site site = {0};
  weft_coroutine *coroutine =
      weft_coroutine_create(WEFT_STACK_BYTES_DEFAULT, 0, &site, &failure, &error);
  if (coroutine == NULL) return 0;
  coroutine->run = coroutine_body;
  uint64_t sum = 0;
  for (uint64_t i = 0; i < count; i++) {
    weft_coroutine_resume(coroutine, WEFT_GO);
    sum += (uint64_t)coroutine->error;
  }
  if (count > 0) weft_coroutine_resume(coroutine, WEFT_CANCEL);
  weft_coroutine_destroy(coroutine);
  return sum;
}
