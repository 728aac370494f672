/* queue.c - the contended sides of the run queue's biased lock. cweft_fiber.h has the argument. */
#include "cweft_queue.h"
#include "cweft_system.h"

/* A thief waits this often for an owner that is inside; then it goes elsewhere. */
#define THIEF_ROUNDS_MAX 200

void weft_queue_lock_contended(weft_queue *queue) {
  if (queue->unbiased) {
    /* An ordinary spin lock: `thief` is the lock word, taken by owner and thief alike. */
    /* ORDERING: the CAS acquires what weft_queue_unlock or a thief's unlock released. */
    uint64_t expected = 0;
    for (int round = 1; !weft_word_compare_exchange(&queue->thief, &expected, 1); round++) {
      expected = 0;
      if (round % 64 == 0) weft_thread_yield();
      else weft_pause();
    }
    return;
  }
  do {
    /* ORDERING: release, so that the thief which waits for it sees all that was done before. */
    weft_word_store_release(&queue->busy, 0);
    /* The thief holds it for a microsecond or so, unless the kernel took its processor away. */
    for (int round = 1; weft_word_load_acquire(&queue->thief) != 0; round++) {
      if (round % 64 == 0) weft_thread_yield();
      else weft_pause();
    }
    /* ORDERING: the load acquired the thief's changes. The fence puts this store before the next
     * look at `thief`; paired with the CAS and membarrier of weft_queue_lock_thief. */
    weft_word_store_relaxed(&queue->busy, 1);
    /* This path is rare, so it pays for the real fence. */
    weft_fence_seq();
  } while (weft_word_load_acquire(&queue->thief) != 0);
}

bool weft_queue_lock_thief(weft_queue *queue) {
  /* ORDERING: the mark, then the membarrier, then the look at `busy`: cweft_fiber.h has the
   * argument. */
  uint64_t expected = 0;
  if (!weft_word_compare_exchange(&queue->thief, &expected, 1)) return false;
  if (queue->unbiased) return true;
  weft_membarrier();
  for (int round = 0; round < THIEF_ROUNDS_MAX; round++) {
    /* ORDERING: acquire, paired with the release in weft_queue_unlock. */
    if (weft_word_load_acquire(&queue->busy) == 0) return true;
    weft_pause();
  }
  weft_queue_unlock_thief(queue);
  return false;
}

static bool may_migrate(const weft_fiber *fiber, bool migrate_started) {
  if (fiber->flags & WEFT_FIBER_PINNED) return false;
  return migrate_started || (fiber->flags & WEFT_FIBER_STARTED) == 0;
}

weft_fiber *weft_queue_cut(weft_queue *queue, uint64_t most, bool migrate_started,
                           uint64_t *taken) {
  weft_fiber *first = NULL, *last = NULL;
  uint64_t count = 0, skipped = 0;
  *taken = 0;
  /* ORDERING: relaxed; under the lock. */
  if (weft_word_load_relaxed(&queue->stealable) == 0) return NULL;
  for (unsigned int class = 0; class < WEFT_QUEUE_CLASSES; class++) {
    weft_fiber *fiber = queue->head[class];
    /* The bound keeps the lock short. Until the first is found there is none: however many are
     * pinned in front of it, nobody else would ever get it. */
    while (fiber != NULL && count < most && (skipped < 64 || count == 0)) {
      weft_fiber *next = fiber->next;
      if (next != NULL) __builtin_prefetch(next->next, 1);
      if (!may_migrate(fiber, migrate_started)) {
        skipped++;
      } else {
        weft_queue_remove(queue, fiber);
        fiber->next = NULL;
        if (last == NULL) first = fiber;
        else last->next = fiber;
        last = fiber;
        count++;
      }
      fiber = next;
    }
  }
  *taken = count;
  return first;
}
