/* cweft_queue.h - what is done with run queues and inboxes. cweft_fiber.h has their layout, and the
 * argument for the biased lock.
 */
#ifndef CWEFT_QUEUE_H
#define CWEFT_QUEUE_H

#include "cweft_fiber.h"

/* ---- The lock ---- */

void weft_queue_lock_contended(weft_queue *_Nonnull queue);

/* COST: two plain stores and a load; with `unbiased`, a locked instruction. */
WEFT_INLINE void weft_queue_lock(weft_queue *_Nonnull queue) {
  /* ORDERING: relaxed store, compiler fence, load: the store-load order that this needs is the
   * thief's membarrier's doing (see above). The load acquires what a thief's unlock released. */
  weft_word_store_relaxed(&queue->busy, 1);
  weft_fence_compiler();
  if (__builtin_expect(weft_word_load_acquire(&queue->thief) | queue->unbiased, 0)) {
    weft_queue_lock_contended(queue);
  }
}

WEFT_INLINE void weft_queue_unlock(weft_queue *_Nonnull queue) {
  if (__builtin_expect(queue->unbiased, 0)) {
    /* ORDERING: release, paired with the next taker's CAS. */
    weft_word_store_release(&queue->thief, 0);
  }
  /* ORDERING: release, paired with the acquire load in weft_queue_lock_thief. */
  weft_word_store_release(&queue->busy, 0);
}

/* For thieves: true if the lock was had within the bound. COST: a system call, 1 µs. */
bool weft_queue_lock_thief(weft_queue *_Nonnull queue);
WEFT_INLINE void weft_queue_unlock_thief(weft_queue *_Nonnull queue) {
  /* ORDERING: release, paired with the owner's acquire load of `thief`. */
  weft_word_store_release(&queue->thief, 0);
}

/* `by` is 1 or -1. Whether a fiber is pinned does not change while it is queued. */
WEFT_INLINE void weft_queue_counted(weft_queue *_Nonnull queue, weft_fiber *_Nonnull fiber,
                                    uint64_t by) {
  /* ORDERING: relaxed, under the lock; others read the counts as hints, or behind a barrier
   * (Idle.swift). */
  weft_word_bump(&queue->count, by);
  if (__builtin_expect((fiber->flags & WEFT_FIBER_PINNED) == 0, 1)) {
    weft_word_bump(&queue->stealable, by);
  }
}

WEFT_INLINE unsigned int weft_queue_class(const weft_fiber *_Nonnull fiber) {
  if (__builtin_expect((fiber->flags & (WEFT_FIBER_HIGH | WEFT_FIBER_DUE)) == 0, 1)) {
    return WEFT_QUEUE_NORMAL;
  }
  return (fiber->flags & WEFT_FIBER_HIGH) != 0 ? WEFT_QUEUE_HIGH : WEFT_QUEUE_DUE;
}

/* Under the lock. A list of records: first in, first out, with links both ways, so that a join can
 * take its fiber out of the middle. */
WEFT_INLINE void weft_queue_append(weft_queue *_Nonnull queue, weft_fiber *_Nonnull fiber) {
  unsigned int class = weft_queue_class(fiber);
  weft_fiber *last = queue->tail[class];
  fiber->next = NULL;
  fiber->previous = last;
  /* ORDERING: relaxed; the queue's lock orders it, and others take it for a hint. */
  __atomic_store_n(&fiber->queued, queue, __ATOMIC_RELAXED);
  if (last != NULL) last->next = fiber;
  else queue->head[class] = fiber;
  queue->tail[class] = fiber;
}

WEFT_INLINE void weft_queue_push(weft_queue *_Nonnull queue, weft_fiber *_Nonnull fiber) {
  weft_queue_append(queue, fiber);
  weft_queue_counted(queue, fiber, 1);
}

WEFT_INLINE void weft_queue_remove(weft_queue *_Nonnull queue, weft_fiber *_Nonnull fiber) {
  unsigned int class = weft_queue_class(fiber);
  weft_fiber *next = fiber->next, *previous = fiber->previous;
  if (previous != NULL) previous->next = next;
  else queue->head[class] = next;
  if (next != NULL) next->previous = previous;
  else queue->tail[class] = previous;
  /* ORDERING: relaxed; the queue's lock orders it, and others take it for a hint. */
  __atomic_store_n(&fiber->queued, NULL, __ATOMIC_RELAXED);
  weft_queue_counted(queue, fiber, (uint64_t)-1);
}

WEFT_INLINE weft_fiber *_Nullable weft_queue_pop_class(weft_queue *_Nonnull queue,
                                                       unsigned int class) {
  weft_fiber *fiber = queue->head[class];
  if (fiber == NULL) return NULL;
  weft_fiber *next = fiber->next;
  queue->head[class] = next;
  /* ORDERING: relaxed; the queue's lock orders it, and others take it for a hint. */
  __atomic_store_n(&fiber->queued, NULL, __ATOMIC_RELAXED);
  if (next != NULL) {
    next->previous = NULL;
    /* It runs after this one: its frames are wanted soon. */
    __builtin_prefetch(next->frame.sp);
  } else {
    queue->tail[class] = NULL;
  }
  return fiber;
}

/* High first, then those that are due; one pick in sixteen goes to a waiting normal fiber, and one
 * to a due one, so that neither is ever starved. */
WEFT_INLINE weft_fiber *_Nullable weft_queue_pick(weft_queue *_Nonnull queue) {
  weft_fiber *high = queue->head[WEFT_QUEUE_HIGH], *due = queue->head[WEFT_QUEUE_DUE];
  if (__builtin_expect(((uintptr_t)high | (uintptr_t)due) == 0, 1)) {
    return weft_queue_pop_class(queue, WEFT_QUEUE_NORMAL);
  }
  uint32_t turn = ++queue->turns & 15;
  if (turn == 0 && queue->head[WEFT_QUEUE_NORMAL] != NULL) {
    return weft_queue_pop_class(queue, WEFT_QUEUE_NORMAL);
  }
  if (high != NULL && (due == NULL || turn != 8)) {
    return weft_queue_pop_class(queue, WEFT_QUEUE_HIGH);
  }
  due = weft_queue_pop_class(queue, WEFT_QUEUE_DUE);
  due->flags &= ~(uint32_t)WEFT_FIBER_DUE;
  return due;
}

WEFT_INLINE weft_fiber *_Nullable weft_queue_pop(weft_queue *_Nonnull queue) {
  weft_fiber *fiber = weft_queue_pick(queue);
  if (fiber != NULL) weft_queue_counted(queue, fiber, (uint64_t)-1);
  return fiber;
}

/* A yield: takes the next fiber and puts the current one at the end. Null, and nothing changed, if
 * there is no other. The counts stay, unless one of the two is pinned. */
WEFT_INLINE weft_fiber *_Nullable weft_queue_rotate(weft_queue *_Nonnull queue,
                                                    weft_fiber *_Nonnull current) {
  weft_fiber *next = weft_queue_pick(queue);
  if (next == NULL) return NULL;
  weft_queue_append(queue, current);
  uint32_t differs = (next->flags ^ current->flags) & WEFT_FIBER_PINNED;
  if (__builtin_expect(differs != 0, 0)) {
    weft_word_bump(&queue->stealable,
                   (current->flags & WEFT_FIBER_PINNED) != 0 ? (uint64_t)-1 : 1);
  }
  return next;
}

/* For thieves, under the lock: moves up to `most` fibers that may migrate, oldest first, into a
 * chain. Skips 64 at most once it has one. `migrate_started` is false where thread words can't
 * be swapped.
 */
weft_fiber *_Nullable weft_queue_cut(weft_queue *_Nonnull queue, uint64_t most,
                                     bool migrate_started, uint64_t *_Nonnull taken);

/* An inbox: a stack of fibers that any thread pushes and one takes whole. True if it was empty. */
WEFT_INLINE bool weft_inbox_push(weft_link *_Nonnull inbox, weft_fiber *_Nonnull fiber) {
  /* ORDERING: relaxed; a guess that the CAS checks. */
  uintptr_t old = weft_link_load_relaxed(inbox);
  do {
    fiber->next = (weft_fiber *)old;
    /* ORDERING: release in the CAS, paired with the acquire exchange that takes the chain. */
  } while (!weft_link_compare_exchange(inbox, &old, (uintptr_t)fiber));
  return old == 0;
}

/* Takes all, oldest first. */
WEFT_INLINE weft_fiber *_Nullable weft_inbox_take(weft_link *_Nonnull inbox) {
  /* ORDERING: acquire; each push is part of the release sequence of those before it. */
  weft_fiber *chain = (weft_fiber *)weft_link_exchange(inbox, 0), *ordered = NULL;
  while (chain != NULL) {
    weft_fiber *next = chain->next;
    chain->next = ordered;
    ordered = chain;
    chain = next;
  }
  return ordered;
}

#endif
