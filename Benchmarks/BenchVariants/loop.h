/* loop.h - the generator loop that every frame-based variant runs. Internal to BenchVariants. */
#ifndef BENCH_LOOP_H
#define BENCH_LOOP_H

#include "bench_variants.h"
#include "stack.h"

/* Defines `name`: a producer that hands over 0, 1, ... with `SWITCH(from, to, value)`, and its
 * consumer. The first value passed tells the producer where its consumer is. */
#define BENCH_LOOP(name, FRAME, PREPARE, SWITCH)                      \
  static void name##_body(weft_frame *own, void *consumer) {          \
    FRAME *from = (FRAME *)own;                                       \
    FRAME *to = consumer;                                             \
    for (uint64_t i = 0;; i++) SWITCH(from, to, (void *)i);           \
  }                                                                   \
                                                                      \
  BENCH_NOINLINE uint64_t name(uint64_t count) {                      \
    FRAME consumer, producer;                                         \
    PREPARE(&producer, bench_stack_top(), name##_body);               \
    uint64_t sum = 0;                                                 \
    for (uint64_t i = 0; i < count; i++) {                            \
      sum += (uint64_t)SWITCH(&consumer, &producer, &consumer);       \
    }                                                                 \
    return sum;                                                       \
  }

#if defined(__x86_64__)
/* Every register but rsp, rbp, rbx and the three operands, as in weft_switch_inline. */
#define BENCH_CLOBBER_X86                                                                        \
  "rax", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2",     \
      "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", \
      "xmm14", "xmm15", "mm0", "mm1", "mm2", "mm3", "mm4", "mm5", "mm6", "mm7", "st", "st(1)",    \
      "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)", "cc", "memory" WEFT_CLOBBER_AVX512
#endif

#endif
