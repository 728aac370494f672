/* deep_variants.c - yields from helpers three calls deep. Supports the claim that a jump-based
 * switch wins where coroutines are used in earnest: in recursion and behind helper functions. */
#include "pairing.h"

/* Keeps a call from becoming a tail call, so that there really is a return to predict. */
#define NO_TAIL_CALL __asm__ volatile("" : : : "memory")

/* Three levels down to `LEAF(context, value)` on the producer's side. */
#define THREE_DEEP(name, CONTEXT, LEAF)                                        \
  static BENCH_NOINLINE void name##_3(CONTEXT *context, uint64_t value) {      \
    LEAF(context, value);                                                      \
    NO_TAIL_CALL;                                                              \
  }                                                                            \
  static BENCH_NOINLINE void name##_2(CONTEXT *context, uint64_t value) {      \
    name##_3(context, value);                                                  \
    NO_TAIL_CALL;                                                              \
  }                                                                            \
  static BENCH_NOINLINE void name##_1(CONTEXT *context, uint64_t value) {      \
    name##_2(context, value);                                                  \
    NO_TAIL_CALL;                                                              \
  }

/* Three levels down to `LEAF(context)` on the consumer's side. */
#define THREE_DEEP_NEXT(name, CONTEXT, LEAF)                   \
  static BENCH_NOINLINE uint64_t name##_3(CONTEXT *context) {  \
    uint64_t value = LEAF(context);                            \
    NO_TAIL_CALL;                                              \
    return value;                                              \
  }                                                            \
  static BENCH_NOINLINE uint64_t name##_2(CONTEXT *context) {  \
    uint64_t value = name##_3(context);                        \
    NO_TAIL_CALL;                                              \
    return value;                                              \
  }                                                            \
  static BENCH_NOINLINE uint64_t name##_1(CONTEXT *context) {  \
    uint64_t value = name##_2(context);                        \
    NO_TAIL_CALL;                                              \
    return value;                                              \
  }

#define CONSUME(PAIR, PREPARE, BODY, NEXT)         \
  PAIR pair;                                       \
  PREPARE(&pair, bench_stack_top(), BODY);         \
  uint64_t sum = 0;                                \
  for (uint64_t i = 0; i < count; i++) sum += NEXT(&pair); \
  return sum;

#define JUMP_YIELD(frame, value) weft_switch_inline(frame, frame, (void *)(value))
#define JUMP_NEXT(frame) ((uint64_t)weft_switch_inline(frame, frame, NULL))

THREE_DEEP(jump_yield, weft_frame, JUMP_YIELD)
THREE_DEEP_NEXT(jump_next, weft_frame, JUMP_NEXT)

static void jump_body(weft_frame *frame, void *value) {
  (void)value;
  for (uint64_t i = 0;; i++) jump_yield_1(frame, i);
}

BENCH_NOINLINE uint64_t bench_deep_inline(uint64_t count) {
  CONSUME(weft_frame, weft_frame_prepare, jump_body, JUMP_NEXT)
}

BENCH_NOINLINE uint64_t bench_deep_both_inline(uint64_t count) {
  CONSUME(weft_frame, weft_frame_prepare, jump_body, jump_next_1)
}

#if defined(__x86_64__)
#define PAIR_YIELD(pair, value) bench_pair_yield(pair, (void *)(value))
#define PAIR_NEXT(pair) ((uint64_t)bench_pair_resume(pair))

THREE_DEEP(pair_yield, bench_pair, PAIR_YIELD)
THREE_DEEP_NEXT(pair_next, bench_pair, PAIR_NEXT)

static void pair_body(bench_pair *pair) {
  for (uint64_t i = 0;; i++) pair_yield_1(pair, i);
}

BENCH_NOINLINE uint64_t bench_deep_pairing(uint64_t count) {
  CONSUME(bench_pair, bench_pair_prepare, pair_body, PAIR_NEXT)
}

BENCH_NOINLINE uint64_t bench_deep_both_pairing(uint64_t count) {
  CONSUME(bench_pair, bench_pair_prepare, pair_body, pair_next_1)
}

static void flat_body(bench_pair *pair) {
  for (uint64_t i = 0;; i++) bench_pair_yield(pair, (void *)i);
}

BENCH_NOINLINE uint64_t bench_switch_pairing(uint64_t count) {
  CONSUME(bench_pair, bench_pair_prepare, flat_body, PAIR_NEXT)
}
#endif

/* The calls alone. */
typedef struct plain_value {
  uint64_t value;
} plain_value;

#define PLAIN_YIELD(plain, number) (plain)->value = (number)

THREE_DEEP(plain_yield, plain_value, PLAIN_YIELD)

BENCH_NOINLINE uint64_t bench_deep_calls(uint64_t count) {
  plain_value plain = {0};
  uint64_t sum = 0;
  for (uint64_t i = 0; i < count; i++) {
    plain_yield_1(&plain, i);
    sum += plain.value;
  }
  return sum;
}
