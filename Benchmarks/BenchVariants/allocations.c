/* allocations.c - counts what malloc gives out.
 *
 * The executable defines malloc and its kin itself, so that the dynamic linker binds the Swift
 * runtime's calls to them, and passes each on to glibc. That costs about a nanosecond per call,
 * in every job alike. free() stays glibc's: the blocks are glibc's.
 *
 * PLATFORM: glibc only, which exports the names to pass on to. Elsewhere, and under a sanitizer
 * that replaces malloc too, nothing is counted and bench_allocations_are_counted() says so. So it
 * does in a static executable, where glibc's own definitions win over these weak ones.
 */
#include <errno.h>
#include <stdlib.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "bench_variants.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define BENCH_SANITIZED 1
#endif
#endif

#if defined(__GLIBC__) && !defined(BENCH_SANITIZED)

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

#define WEAK __attribute__((weak))

/* Each thread's own: a shared one would have its cache line go back and forth between workers that
 * allocate, and slow down what runs on two of them. */
static _Thread_local uint64_t allocation_count;

static inline void count_one(void) { allocation_count++; }

WEAK void *malloc(size_t size) {
  count_one();
  return __libc_malloc(size);
}

WEAK void *calloc(size_t count, size_t size) {
  count_one();
  return __libc_calloc(count, size);
}

WEAK void *realloc(void *block, size_t size) {
  count_one();
  return __libc_realloc(block, size);
}

WEAK void *memalign(size_t alignment, size_t size) {
  count_one();
  return __libc_memalign(alignment, size);
}

WEAK void *aligned_alloc(size_t alignment, size_t size) {
  count_one();
  return __libc_memalign(alignment, size);
}

WEAK int posix_memalign(void **block, size_t alignment, size_t size) {
  if (alignment % sizeof(void *) || !alignment || (alignment & (alignment - 1))) return EINVAL;
  count_one();
  void *memory = __libc_memalign(alignment, size);
  if (!memory) return ENOMEM;
  *block = memory;
  return 0;
}

bool bench_allocations_are_counted(void) {
  uint64_t before = bench_allocation_count();
  /* Through a pointer, or the compiler would drop both calls. */
  void *(*volatile allocate)(size_t) = malloc;
  free(allocate(1));
  return bench_allocation_count() != before;
}

uint64_t bench_allocation_count(void) { return allocation_count; }

#else

bool bench_allocations_are_counted(void) { return false; }
uint64_t bench_allocation_count(void) { return 0; }

#endif

void bench_release_free_memory(void) {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}
