/* stack.c - the producer stack, and the yardstick for fresh pages. */
#include "stack.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void *bench_stack_base(void) {
  static void *base;
  if (!base) {
    base = mmap(NULL, BENCH_STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                0);
    if (base == MAP_FAILED) abort();
  }
  return base;
}

uint64_t bench_touch_pages(uint64_t count) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  for (uint64_t i = 0; i < count; i++) {
    char *bytes = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED) return i;
    *(volatile char *)bytes = 1;
    munmap(bytes, page);
  }
  return count;
}
