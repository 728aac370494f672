/* pool.c - the pool of stacks, seen from outside. */
#if !defined(__APPLE__)
#define _POSIX_C_SOURCE 200809L
#endif
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cweft_debug.h"
#include "probe.h"

static bool acquire(size_t bytes, weft_stack *stack, weft_probe_report *report) {
  weft_stack_failure failure = weft_stack_acquire(bytes, stack);
  if (failure == WEFT_STACK_OK) return true;
  weft_probe_fail(report, "no stack of %zu bytes: failure %d, errno %d", bytes, (int)failure,
                  (int)stack->error);
  return false;
}

/* Where a stack may be written, under each of the debug modes. */
static char *low_end(const weft_stack *stack) { return stack->low + WEFT_DEBUG_CANARY_BYTES; }

/* Writes both ends of a stack. */
static void touch(const weft_stack *stack) {
  memset(low_end(stack), 0x5A, 64);
  memset(stack->top - 64, 0xA5, 64);
}

/* ---- sizes ---- */

void weft_probe_pool_sizes(weft_probe_report *report) {
  static const size_t sizes[] = {
      WEFT_STACK_BYTES_MIN,     WEFT_STACK_BYTES_MIN + 1, 65535,         65536,   65537,
      WEFT_STACK_BYTES_DEFAULT, 200000,                   (size_t)1 << 20, 1 << 24, (1 << 26) - 1,
      (size_t)1 << 26,          (size_t)1 << 28,          (size_t)1 << 33};
  for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    weft_stack stack;
    if (!acquire(sizes[i], &stack, report)) return;
    size_t bytes = (size_t)(stack.top - stack.low);
    if (bytes < sizes[i])
      weft_probe_fail(report, "%zu bytes were asked for, and %zu given", sizes[i], bytes);
    if ((uintptr_t)stack.top % 16 != 0 || (uintptr_t)stack.low % 16 != 0)
      weft_probe_fail(report, "a stack of %zu bytes is not 16-aligned", sizes[i]);
    touch(&stack);
    weft_stack_release(&stack);
  }
  static const size_t refused[] = {0, 1, WEFT_STACK_BYTES_MIN - 1, WEFT_STACK_BYTES_MAX + 1,
                                   SIZE_MAX - 70000, SIZE_MAX};
  for (unsigned i = 0; i < sizeof refused / sizeof refused[0]; i++) {
    weft_stack stack;
    if (weft_stack_acquire(refused[i], &stack) != WEFT_STACK_SIZE_OUT_OF_RANGE)
      weft_probe_fail(report, "a stack of %zu bytes was not refused", refused[i]);
  }
}

/* ---- reuse ---- */

enum { SOME = 300 };

static int by_top(const void *a, const void *b) {
  const weft_stack *left = a, *right = b;
  return (left->top > right->top) - (left->top < right->top);
}

/* More than a thread caches, so that the shared lists take part. */
void weft_probe_pool_reuse(weft_probe_report *report) {
  weft_stack stacks[SOME];
  for (unsigned round = 0; round < 3; round++) {
    for (unsigned i = 0; i < SOME; i++) {
      if (!acquire(WEFT_STACK_BYTES_DEFAULT, &stacks[i], report)) return;
      touch(&stacks[i]);
    }
    qsort(stacks, SOME, sizeof stacks[0], by_top);
    for (unsigned i = 1; i < SOME; i++) {
      if (stacks[i].low < stacks[i - 1].top + WEFT_GUARD_BYTES)
        weft_probe_fail(report, "two stacks are handed out with less than a guard between them");
    }
    for (unsigned i = 0; i < SOME; i++) weft_stack_release(&stacks[i]);
    if (round == 1) weft_stack_trim();
  }
  /* The one that went back last is the warmest. */
  weft_stack first, second;
  if (!acquire(WEFT_STACK_BYTES_DEFAULT, &first, report)) return;
  weft_stack_release(&first);
  if (!acquire(WEFT_STACK_BYTES_DEFAULT, &second, report)) return;
  if (first.top != second.top) weft_probe_fail(report, "the stack that went back last is not next");
  weft_stack_release(&second);
}

/* ---- threads ---- */

enum { THREADS = 4, HELD = 100, TURNS = 2000 };

typedef struct owner {
  pthread_t thread;
  uint64_t number;
  weft_probe_report report;
} owner;

/* Takes and gives back at random and marks what it holds: a stack with two owners loses a mark. */
static void *own_stacks(void *argument) {
  owner *self = argument;
  weft_stack held[HELD];
  unsigned count = 0;
  uint64_t random = self->number;
  for (unsigned turn = 0; turn < TURNS * 4 && !weft_probe_failed(&self->report); turn++) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    bool take = count == 0 || (count < HELD && (random >> 60) < 9);
    if (take) {
      if (!acquire(WEFT_STACK_BYTES_DEFAULT, &held[count], &self->report)) break;
      memcpy(held[count].top - 8, &self->number, 8);
      memcpy(low_end(&held[count]), &self->number, 8);
      count++;
    } else {
      count--;
      if (memcmp(held[count].top - 8, &self->number, 8) != 0 ||
          memcmp(low_end(&held[count]), &self->number, 8) != 0)
        weft_probe_fail(&self->report, "turn %u: somebody else wrote into a stack in use", turn);
      weft_stack_release(&held[count]);
    }
    if (turn % 1000 == 999 && self->number == 1) weft_stack_trim();
  }
  while (count > 0) weft_stack_release(&held[--count]);
  return NULL;
}

void weft_probe_pool_threads(weft_probe_report *report) {
  owner owners[THREADS];
  memset(owners, 0, sizeof owners);
  for (unsigned i = 0; i < THREADS; i++) {
    owners[i].number = i + 1;
    if (pthread_create(&owners[i].thread, NULL, own_stacks, &owners[i]) != 0) abort();
  }
  for (unsigned i = 0; i < THREADS; i++) {
    pthread_join(owners[i].thread, NULL);
    if (weft_probe_failed(&owners[i].report))
      weft_probe_fail(report, "%s", owners[i].report.text);
  }
}

/* ---- guards ---- */

typedef struct overrun {
  weft_stack stack;
  size_t below;
} overrun;

static void write_below(void *argument) {
  const overrun *o = argument;
  *(volatile char *)o->stack.low = 1;
  *(volatile char *)(o->stack.low - o->below) = 1;
}

/* Also on a stack that went back and was cleaned meanwhile: its guard has to have stayed. */
void weft_probe_pool_guard(size_t bytes, size_t below, weft_probe_report *report) {
  overrun o = {.below = below};
  if (!acquire(bytes, &o.stack, report)) return;
  weft_stack_release(&o.stack);
  weft_stack_trim();
  if (!acquire(bytes, &o.stack, report)) return;
  /* Nothing is acquired in the child: there, a lock may be held by a thread that is not there. */
  weft_probe_expect_death(write_below, &o, WEFT_PROBE_FAULT, report);
  weft_stack_release(&o.stack);
}

/* ---- how deep ---- */

void weft_probe_pool_high_water(weft_probe_report *report) {
  /* A size that nothing else here uses, so that the stack is a clean one. */
  size_t bytes = (size_t)3 << 20;
  weft_stack stack;
  weft_stack_trim();
  if (!acquire(bytes, &stack, report)) return;
  size_t depth = 700001;
  *(volatile char *)(stack.top - 1) = 1;
  size_t before = weft_stack_high_water(&stack);
  *(volatile char *)(stack.top - depth) = 1;
  size_t after = weft_stack_high_water(&stack);
  /* To a page, whose size is at most 64 KiB. */
  if (before > 65536) weft_probe_fail(report, "a fresh stack counts as %zu bytes deep", before);
  if (after < depth || after > depth + 65536)
    weft_probe_fail(report, "used %zu bytes deep, a stack counts as %zu", depth, after);
  weft_stack_release(&stack);
}

/* ---- many ---- */

/* More than the kernel's default limit on mappings would allow with one for each guard. Where only
 * mprotect can make guards (kernels before 6.13) the limit is real: it has to be named, but only
 * with `exhaust`, since stacks stay mapped and so nothing in the process can map any more. */
void weft_probe_pool_many(size_t count, bool exhaust, weft_probe_report *report) {
  weft_stack first;
  if (!acquire(WEFT_STACK_BYTES_MIN, &first, report)) return;
  weft_stack_release(&first);
  bool cheap = strcmp(weft_stack_get_statistics().guard, "madvise") == 0;
  if (!cheap && !exhaust && count > 10000) count = 10000;
  weft_stack *stacks = calloc(count, sizeof *stacks);
  size_t made = 0;
  while (made < count) {
    weft_stack_failure failure = weft_stack_acquire(WEFT_STACK_BYTES_MIN, &stacks[made]);
    if (failure == WEFT_STACK_MAP_LIMIT && !cheap) break;
    if (failure != WEFT_STACK_OK) {
      weft_probe_fail(report, "stack %zu of %zu: failure %d, errno %d", made, count, (int)failure,
                      (int)stacks[made].error);
      break;
    }
    *(volatile size_t *)(void *)(stacks[made].top - 8) = made;
    made++;
  }
  if (made < count && made < 10000)
    weft_probe_fail(report, "the limit on mappings came after %zu stacks", made);
  for (size_t i = 0; i < made; i++) {
    if (*(volatile size_t *)(void *)(stacks[i].top - 8) != i)
      weft_probe_fail(report, "stack %zu of %zu was written by another", i, made);
    weft_stack_release(&stacks[i]);
  }
  weft_stack_trim();
  free(stacks);
}
