/* debug.c - the debug modes: which there are, and what is done for them here. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE 1
#endif
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "debug.h"
#include "sanitizer.h"

#include "cweft_queue.h"

uint32_t weft_debug_flags;

/* ---- Which ---- */

static const struct {
  const char *word;
  uint32_t flag;
} modes[] = {
    {"migrate", WEFT_DEBUG_MIGRATE}, {"steal", WEFT_DEBUG_STEAL},   {"tiny", WEFT_DEBUG_TINY},
    {"queue", WEFT_DEBUG_QUEUE},     {"canary", WEFT_DEBUG_CANARY}, {"poison", WEFT_DEBUG_POISON},
    {"words", WEFT_DEBUG_WORDS},
};
#define MODES (sizeof modes / sizeof *modes)

static uint32_t mode_of(const char *word, size_t count) {
  for (size_t i = 0; i < MODES; i++) {
    if (strlen(modes[i].word) == count && memcmp(modes[i].word, word, count) == 0) {
      return modes[i].flag;
    }
  }
  return 0;
}

static void report_unknown(const weft_text *unknown) {
  weft_text text = {0};
  weft_text_add(&text, "weft: WEFT_DEBUG has unknown modes:");
  weft_text_add(&text, unknown->bytes);
  weft_text_add(&text, "\nweft: There are:");
  for (size_t i = 0; i < MODES; i++) {
    weft_text_add(&text, i == 0 ? " " : ", ");
    weft_text_add(&text, modes[i].word);
  }
  weft_text_add(&text, ".\n");
  weft_text_write(&text);
}

/* A list with commas; blanks do not count. */
static void read_modes(void) {
  const char *text = getenv("WEFT_DEBUG");
  weft_text unknown = {0};
  if (text == NULL) return;
  while (*text != 0) {
    text += strspn(text, ", ");
    size_t count = strcspn(text, ", ");
    uint32_t flag = mode_of(text, count);
    weft_debug_flags |= flag;
    if (flag == 0 && count > 0 && unknown.count + count + 2 < sizeof unknown.bytes) {
      weft_text_add(&unknown, " ");
      memcpy(unknown.bytes + unknown.count, text, count);
      unknown.count += count;
    }
    text += count;
  }
  if (unknown.count > 0) report_unknown(&unknown);
}

uint32_t weft_debug_modes(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, read_modes);
  return weft_debug_flags;
}

/* ---- Stacks ---- */

#define CANARY_WORDS (WEFT_DEBUG_CANARY_BYTES / sizeof(uint64_t))
#define CANARY UINT64_C(0xC0DEDBADCA4A12EE)
/* Of a stack that comes back, so many pages below its top are looked at. */
#define POISON_PAGES_MAX 256

/* volatile, here and below: whoever runs on the stack does not know of these words. */
static volatile uint64_t *canary_of(const weft_stack *stack) {
  return (volatile uint64_t *)stack->low;
}

static char *low_of(char *top, uint32_t stride_shift) {
  return top - ((size_t)1 << stride_shift) + WEFT_GUARD_BYTES;
}

size_t weft_debug_canary_page(size_t page) { return weft_debug_has(WEFT_DEBUG_CANARY) ? page : 0; }

WEFT_UNINSTRUMENTED void weft_debug_stack_taken(weft_stack *stack) {
  if (weft_debug_has(WEFT_DEBUG_CANARY)) {
    /* The index makes a copy of another word a different one. */
    for (uint64_t i = 0; i < CANARY_WORDS; i++) canary_of(stack)[i] = CANARY + i;
  }
  /* It does not go through this thread's cache, and what its user still stands on can't be filled.
   */
  stack->error = WEFT_STACK_STAYS;
}

WEFT_UNINSTRUMENTED void weft_debug_check_canary(const weft_stack *stack) {
  for (uint64_t i = 0; i < CANARY_WORDS; i++) {
    if (canary_of(stack)[i] == CANARY + i) continue;
    weft_fatal("the canary at the low end of a stack was overwritten",
               &weft_stack_block(stack->top, stack->stride_shift)->site,
               "Its code went past the end of its stack, or some code wrote to an address that is "
               "not its own.");
  }
}

/* How much of a stack was used: the pages in a row, from its top down, that are there. */
static size_t used_bytes(char *top, char *low) {
  unsigned char resident[POISON_PAGES_MAX];
  size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (size_t)(top - low) / page, used = 0;
  if (pages > POISON_PAGES_MAX) pages = POISON_PAGES_MAX;
  if (mincore(top - pages * page, pages * page, (void *)resident) != 0) return page;
  while (used < pages && (resident[pages - 1 - used] & 1) != 0) used++;
  return used * page;
}

WEFT_UNINSTRUMENTED void weft_debug_stack_given_back(char *top, uint32_t stride_shift) {
  weft_stack stack = {.low = low_of(top, stride_shift), .top = top, .stride_shift = stride_shift};
  if (weft_debug_has(WEFT_DEBUG_CANARY)) weft_debug_check_canary(&stack);
  if (weft_debug_has(WEFT_DEBUG_POISON)) {
    size_t used = used_bytes(top, stack.low);
    memset(top - used, WEFT_DEBUG_POISON_BYTE, used);
  }
}

/* ---- Switches between fibers ---- */

/* Whether a stack is left that will be gone on with. */
static bool goes_on(const weft_fiber *from, const weft_worker *worker) {
  return from->cold != NULL && worker->after != WEFT_AFTER_END;
}

WEFT_UNINSTRUMENTED void weft_debug_leave(weft_fiber *from, weft_worker *worker,
                                          weft_debug_left *left) {
  left->words[0] = *(void *volatile *)worker->access;
  for (int i = 0; i < 3; i++) left->words[i + 1] = *(void *volatile *)&worker->concurrency[i];
  if (weft_debug_has(WEFT_DEBUG_CANARY) && goes_on(from, worker) &&
      (from->flags & WEFT_FIBER_ROOT) == 0) {
    weft_debug_check_canary(&from->cold->stack);
  }
}

/* A fiber that waits is marked, so that whoever wakes it sends it elsewhere. One that yields is in
 * the queue, which is locked: it comes out again, and is sent off once it is left. */
void weft_debug_send_away(weft_fiber *from, weft_worker *worker) {
  weft_pool *pool = worker->pool;
  if (pool->moves == NULL || !goes_on(from, worker)) return;
  if ((from->flags & (WEFT_FIBER_ROOT | WEFT_FIBER_PINNED)) != 0) return;
  from->flags |= WEFT_FIBER_MIGRATES;
  if (worker->after != WEFT_AFTER_UNLOCK) return;
  weft_queue_remove(&worker->queue, from);
  weft_queue_unlock(&worker->queue);
  worker->previous = from;
  worker->after_argument = NULL;
  worker->after_function = pool->moves;
  worker->after = WEFT_AFTER_CALL;
}

WEFT_UNINSTRUMENTED void weft_debug_return(weft_worker *worker, const weft_debug_left *left) {
  static const char *const names[4] = {"open accesses", "task", "executor", "task-locals"};
  if (!weft_debug_has(WEFT_DEBUG_WORDS)) return;
  for (int i = 0; i < 4; i++) {
    void **word = i == 0 ? worker->access : &worker->concurrency[i - 1];
    if (*(void *volatile *)word == left->words[i]) continue;
    weft_text text = {0};
    weft_text_add(&text, "a fiber came back to other thread words than it had left with (");
    weft_text_add(&text, names[i]);
    weft_text_add(&text, ")");
    const weft_fiber *fiber = worker->current;
    const weft_stack *stack = &fiber->cold->stack;
    bool is_root = (fiber->flags & WEFT_FIBER_ROOT) != 0;
    weft_fatal(text.bytes,
               is_root ? NULL : &weft_stack_block(stack->top, stack->stride_shift)->site,
               "Weft, or code that ran meanwhile, changed what belongs to the fiber.");
  }
}
