/* references.c - what a reference costs that is counted atomically. */
#include "bench_variants.h"

extern void *swift_retain(void *object);
extern void swift_release(void *object);

void bench_retain_and_release(void *object, uint64_t times) {
  for (uint64_t i = 0; i < times; i++) {
    swift_retain(object);
    swift_release(object);
  }
}
