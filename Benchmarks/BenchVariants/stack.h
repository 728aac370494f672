/* stack.h - a stack for the producer of a benchmark's loop. Internal to BenchVariants. */
#ifndef BENCH_STACK_H
#define BENCH_STACK_H

#include <stdint.h>

#include "bench_variants.h"

#define BENCH_NOINLINE __attribute__((noinline))
#define BENCH_STACK_BYTES (64 * 1024)

/* The lowest byte of the one producer stack. Loops take turns with it: a loop abandons its
 * producer, which owns nothing, and the next one prepares the stack anew. */
void *_Nonnull bench_stack_base(void);

/* Its 16-aligned top, 1 KiB below the end: the caller's frames and the producer's should not fall
 * on the same offset in their pages, where a load can falsely wait for the other side's store. */
static inline void *_Nonnull bench_stack_top(void) {
  return (char *)bench_stack_base() + BENCH_STACK_BYTES - 1024;
}

#endif
