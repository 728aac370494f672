/* cweft_stack.h - stacks: where they come from, how big they are, how they go back.
 *
 * Stacks are cut from slabs. A slab is one large mapping of equal strides; addresses cost nothing
 * until they are touched, and a slab is one mapping however many stacks it holds.
 *
 *      low addresses                                                        high addresses
 *      |<------------------------- one stride, a power of two ------------------------->|
 *      +----------------+----------------------------------------+----------------------+
 *      | guard, 64 KiB  | usable, grows down                 <-- | block | colour gap   |
 *      +----------------+----------------------------------------+----------------------+
 *      ^ no access      ^ low                            first sp^                   top^
 *
 * The guard is wide because Swift emits no stack probes: a frame of 60 KB would step over a page.
 * The colour gap (0 to 1,920 bytes, by the stack's index) keeps the hot tops of a thousand stacks
 * from sharing the same few cache sets.
 */
#ifndef CWEFT_STACK_H
#define CWEFT_STACK_H

#include <stddef.h>
#include <stdint.h>

#include "cweft_switch.h"

#define WEFT_GUARD_BYTES ((size_t)64 << 10)
#define WEFT_STACK_BYTES_MIN ((size_t)16 << 10)
#define WEFT_STACK_BYTES_MAX ((size_t)64 << 30)
/* With the guard this is a stride of 256 KiB. */
#define WEFT_STACK_BYTES_DEFAULT ((size_t)192 << 10)

/* Why there is no stack. */
typedef enum weft_stack_failure {
  WEFT_STACK_OK = 0,
  WEFT_STACK_SIZE_OUT_OF_RANGE = 1,
  WEFT_STACK_OUT_OF_MEMORY = 2, /* the kernel refused memory or address space */
  WEFT_STACK_MAP_LIMIT = 3,     /* vm.max_map_count reached */
  WEFT_STACK_GUARD_REFUSED = 4, /* neither kind of guard could be installed */
} weft_stack_failure;

/* Whether a stack can have this size, memory aside. */
static inline _Bool weft_stack_size_is_possible(size_t bytes) {
  return bytes >= WEFT_STACK_BYTES_MIN && bytes <= WEFT_STACK_BYTES_MAX;
}

/* Sizes of one class share their stacks: the power of two that stack and guard take. */
static inline uint32_t weft_stack_class(size_t bytes) {
  return 64 - (uint32_t)__builtin_clzl(bytes + WEFT_GUARD_BYTES - 1);
}

/* A stack in use. */
typedef struct weft_stack {
  char *_Nullable low; /* lowest usable byte; the guard is below */
  char *_Nullable top; /* one past the highest byte */
  uint32_t stride_shift;
  int32_t error; /* errno, where acquiring failed; else 0 or WEFT_STACK_STAYS */
} weft_stack;

/* `error` of a stack in use that can't be given back while its user still stands on it. */
enum { WEFT_STACK_STAYS = -1 };

/* Takes a stack of at least `bytes` from this thread's cache, the pool or a new slab.
 * COST: warm, an array pop; no lock, no system call. */
weft_stack_failure weft_stack_acquire(size_t bytes, weft_stack *_Nonnull stack);

/* Gives a stack back. Nothing may be running on it. COST: an array push; every 32nd time a lock. */
void weft_stack_release(const weft_stack *_Nonnull stack);

/* Bytes between the top and the lowest page that was ever touched since the kernel last got this
 * stack's pages back: how deep its users went, to a page. COST: a system call. */
size_t weft_stack_high_water(const weft_stack *_Nonnull stack);

/* Gives this thread's cached stacks to the pool, and the pages of all idle ones to the kernel. */
void weft_stack_trim(void);
/* For workers with nothing to do: gives back what a large use left that is over, if it has been so
 * for a second, or `at_once`. True if something is left for later. COST: a load, if nothing is. */
_Bool weft_stack_settle(_Bool at_once);
/* Stacks in the cache of the calling thread. */
uint64_t weft_stack_cached(void);

typedef struct weft_stack_statistics {
  size_t live;          /* handed out and not given back */
  size_t idle_dirty;    /* in the pool with pages that were used */
  size_t idle_clean;    /* in the pool, pages given back to the kernel */
  size_t slabs;         /* mappings made */
  size_t mapped_bytes;  /* address space in them */
  const char *_Nonnull guard; /* "madvise", "mprotect", or "undecided" before the first stack */
} weft_stack_statistics;

weft_stack_statistics weft_stack_get_statistics(void);

/* If `address` lies in the guard of a stack whose stride also holds `sp`, fills `stack` and returns
 * true. Async-signal-safe. */
_Bool weft_stack_find_guard(uintptr_t address, uintptr_t sp, weft_stack *_Nonnull stack);

#endif
