/* support.c - memory for Embedded Swift: a bump allocator that counts. */
#include "support.h"

#include <stdint.h>

static _Alignas(64) char heap[8 << 20];
static _Alignas(64) char stack[256 << 10];
static size_t used, in_use;

void *stack_top(void) { return stack + sizeof stack; }

size_t bytes_in_use(void) { return in_use; }

/* Each block is preceded by its size, so that free can count. */
int posix_memalign(void **result, size_t alignment, size_t bytes) {
  if (alignment < 16) alignment = 16;
  size_t start = (used + sizeof(size_t) + alignment - 1) & ~(alignment - 1);
  if (start + bytes > sizeof heap) return 12;
  ((size_t *)(void *)(heap + start))[-1] = bytes;
  used = start + bytes;
  in_use += bytes;
  *result = heap + start;
  return 0;
}

void free(void *block) {
  if (block != NULL) in_use -= ((size_t *)block)[-1];
}

void *memcpy(void *restrict to, const void *restrict from, size_t count) {
  volatile char *target = to;
  const char *source = from;
  for (size_t i = 0; i < count; i++) target[i] = source[i];
  return to;
}

void *memmove(void *to, const void *from, size_t count) {
  volatile char *target = to;
  const char *source = from;
  if ((uintptr_t)to < (uintptr_t)from) return memcpy(to, from, count);
  for (size_t i = count; i > 0; i--) target[i - 1] = source[i - 1];
  return to;
}

void *memset(void *to, int byte, size_t count) {
  volatile char *target = to;
  for (size_t i = 0; i < count; i++) target[i] = (char)byte;
  return to;
}

/* Hashing seeds, which nothing here uses. */
void arc4random_buf(void *to, size_t count) { memset(to, 4, count); }

/* For the message of a trap. */
int putchar(int character) {
  char byte = (char)character;
  write(1, &byte, 1);
  return character;
}
