/* cweft_sync.h - what the primitives of WeftSync keep in C layout: who waits, in which line.
 *
 * The logic is in Swift (WeftSync). A structure of C has a place in memory that Swift code can
 * point to, and the inline functions are the same machine code in every module that calls them.
 */
#ifndef CWEFT_SYNC_H
#define CWEFT_SYNC_H

#include "cweft_atomic.h"
#include "cweft_fiber.h"

/* One that waits for a primitive: on the stack of the fiber or thread that does. With `select`, one
 * for each case.
 *
 * GUARDED BY the lock of the primitive, once it is in a line. Whose wait was ended reads `outcome`
 * and `slot` without the lock: they were written before. Waiter.swift has the protocol. */
typedef struct weft_waiter {
  struct weft_waiter *_Nullable next; /* in the line; later among those that are to be let go */
  struct weft_waiter *_Nullable previous;
  struct weft_line *_Nullable line; /* the line that it is in; null: none */
  weft_fiber *_Nullable fiber;      /* null: a plain thread */
  weft_word *_Nullable thread;      /* where that sleeps */
  uint64_t number;                  /* of the fiber's wait */
  void *_Nullable slot;             /* what is handed over, of a type that the primitive knows */
  uint64_t amount;                  /* the primitive's own */
  uint32_t outcome;                 /* how it went, once the wait is ended; 0: not yet */
  uint32_t kind;                    /* the primitive's own */
  weft_word sleep;                  /* a plain thread's: WEFT_SLEEP_... */
} weft_waiter;

/* First come, first served. */
typedef struct weft_line {
  weft_waiter *_Nullable first;
  weft_waiter *_Nullable last;
} weft_line;

/* The states of a plain thread's wait. Between claimed and released it spins: whoever claimed it
 * still has to touch its waiter. */
enum {
  WEFT_SLEEP_WAITS = 0,
  WEFT_SLEEP_CLAIMED = 1,
  WEFT_SLEEP_RELEASED = 2,
  WEFT_SLEEP_GAVE_UP = 3, /* its time was up */
};

/* The first is read by those who look whether it is worth taking the lock. */
WEFT_INLINE void weft_line_set_first(weft_line *_Nonnull line, weft_waiter *_Nullable waiter) {
  /* ORDERING: relaxed; a hint for who has no lock. */
  __atomic_store_n(&line->first, waiter, __ATOMIC_RELAXED);
}
WEFT_INLINE bool weft_line_seems_empty(const weft_line *_Nonnull line) {
  /* ORDERING: relaxed; a hint, looked into under the lock. */
  return __atomic_load_n(&line->first, __ATOMIC_RELAXED) == NULL;
}

WEFT_INLINE void weft_line_append(weft_line *_Nonnull line, weft_waiter *_Nonnull waiter) {
  waiter->line = line;
  waiter->next = NULL;
  waiter->previous = line->last;
  if (line->last != NULL) line->last->next = waiter;
  else weft_line_set_first(line, waiter);
  line->last = waiter;
}

WEFT_INLINE void weft_line_prepend(weft_line *_Nonnull line, weft_waiter *_Nonnull waiter) {
  waiter->line = line;
  waiter->previous = NULL;
  waiter->next = line->first;
  if (line->first != NULL) line->first->previous = waiter;
  else line->last = waiter;
  weft_line_set_first(line, waiter);
}

/* Of a waiter that is in a line. */
WEFT_INLINE void weft_line_remove(weft_waiter *_Nonnull waiter) {
  weft_line *line = waiter->line;
  if (waiter->next != NULL) waiter->next->previous = waiter->previous;
  else line->last = waiter->previous;
  if (waiter->previous != NULL) waiter->previous->next = waiter->next;
  else weft_line_set_first(line, waiter->next);
  waiter->line = NULL;
}

WEFT_INLINE weft_word *_Nonnull weft_waiter_sleep(weft_waiter *_Nonnull waiter) {
  return &waiter->sleep;
}

/* A channel without its elements' type. GUARDED BY lock, but for `count` and `closed`, which
 * anybody reads, and the constants. Channel.swift draws it. */
typedef struct weft_channel {
  weft_word lock;
  weft_word count;            /* elements in the buffer */
  void *_Nullable buffer;     /* a ring of `room` places */
  uint64_t head;              /* the oldest is at head & (room - 1) */
  uint64_t room;              /* a power of two; 0: no buffer */
  uint64_t capacity;          /* a constant; UINT64_MAX: unbounded */
  weft_line senders;
  weft_line receivers;
  weft_word closed;
  uint32_t latest_first;      /* a constant */
} weft_channel;

WEFT_INLINE weft_word *_Nonnull weft_channel_lock(weft_channel *_Nonnull channel) {
  return &channel->lock;
}
WEFT_INLINE weft_word *_Nonnull weft_channel_count(weft_channel *_Nonnull channel) {
  return &channel->count;
}
WEFT_INLINE weft_word *_Nonnull weft_channel_closed(weft_channel *_Nonnull channel) {
  return &channel->closed;
}
WEFT_INLINE weft_line *_Nonnull weft_channel_senders(weft_channel *_Nonnull channel) {
  return &channel->senders;
}
WEFT_INLINE weft_line *_Nonnull weft_channel_receivers(weft_channel *_Nonnull channel) {
  return &channel->receivers;
}

/* One case of a select, on the stack of whoever selects. Select.swift. */
typedef struct weft_select_case {
  weft_waiter waiter;
  weft_word *_Nullable lock;    /* of its primitive; null: it has none */
  uint32_t kind;                /* WEFT_CASE_... */
  uint32_t turn;                /* which case is tried at this place of the random order */
  uint32_t by_address;          /* which case is locked at this place */
  uint32_t joins;               /* its node is in the list of joiners */
  uint64_t deadline;            /* of an `after` */
  weft_fiber *_Nullable target; /* of a join */
  weft_join_node node;
} weft_select_case;

enum {
  WEFT_CASE_WAITS = 0, /* for a primitive */
  WEFT_CASE_AFTER = 1,
  WEFT_CASE_OTHERWISE = 2,
  WEFT_CASE_JOIN = 3,
  WEFT_CASE_PERMITS = 4, /* waits for a semaphore, whose others may fit when it leaves */
};

WEFT_INLINE weft_waiter *_Nonnull weft_case_waiter(weft_select_case *_Nonnull one) {
  return &one->waiter;
}
WEFT_INLINE weft_join_node *_Nonnull weft_case_node(weft_select_case *_Nonnull one) {
  return &one->node;
}

/* Who runs, as a number that no other fiber or thread has at the same time: a fiber's record, or a
 * plain thread's own block. Never 0; its low three bits are. */
uint64_t weft_owner_outlined(void);
WEFT_INLINE uint64_t weft_owner_current(void) {
  weft_worker *worker = weft_worker_current();
  if (worker != NULL) return (uint64_t)(uintptr_t)worker->current;
  if (weft_seam_is_open()) return weft_owner_outlined();
#if defined(__ELF__) && defined(__x86_64__)
  /* The block begins with its own address. */
  uint64_t thread;
  __asm__ volatile("movq %%fs:0, %0" : "=r"(thread));
  return thread;
#elif defined(__ELF__) && defined(__aarch64__)
  uint64_t thread;
  __asm__ volatile("mrs %0, tpidr_el0" : "=r"(thread));
  return thread;
#else
  return weft_owner_outlined();
#endif
}

/* A lock with lines: what most primitives are made of. Its owner says what guards what. */
typedef struct weft_gate {
  weft_word lock;
  weft_word state;   /* the primitive's own; some change it without the lock */
  weft_line line;
  weft_line other;
  uint64_t count;
} weft_gate;

WEFT_INLINE weft_word *_Nonnull weft_gate_lock(weft_gate *_Nonnull gate) { return &gate->lock; }
WEFT_INLINE weft_word *_Nonnull weft_gate_state(weft_gate *_Nonnull gate) { return &gate->state; }
WEFT_INLINE weft_line *_Nonnull weft_gate_line(weft_gate *_Nonnull gate) { return &gate->line; }
WEFT_INLINE weft_line *_Nonnull weft_gate_other(weft_gate *_Nonnull gate) { return &gate->other; }

#endif
