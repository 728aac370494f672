/* seam.c - the runtime's side of a simulation. cweft_seam.h says what for. */
#define WEFT_NO_SEAM 1
#include "internal.h"

#include "cweft_queue.h"
#include "cweft_seam.h"

uint32_t weft_seam_open;
static __thread weft_seam *tls_seam WEFT_TLS_MODEL;

__attribute__((noinline)) weft_seam *weft_seam_current(void) { return tls_seam; }

void weft_seam_enter(weft_seam *seam) {
  tls_seam = seam;
  /* ORDERING: relaxed; this thread sees its own store. */
  __atomic_fetch_add(&weft_seam_open, 1, __ATOMIC_RELAXED);
}

void weft_seam_leave(void) {
  tls_seam = NULL;
  /* ORDERING: relaxed; as above. */
  __atomic_fetch_sub(&weft_seam_open, 1, __ATOMIC_RELAXED);
}

/* The simulator, where it may be asked. */
static weft_seam *listener(void) {
  weft_seam *seam = weft_seam_current();
  return seam != NULL && seam->holds == 0 ? seam : NULL;
}

WEFT_COLD void weft_seam_point(uint32_t kind, const volatile void *where) {
  weft_seam *seam = listener();
  if (seam == NULL) return;
  if (kind == WEFT_POINT_LOCK) {
    weft_worker *worker = weft_worker_current();
    if (worker != NULL && worker->current != &worker->root && weft_seam_preempts(worker)) {
      seam->yield();
      return;
    }
    kind = WEFT_POINT_WORD;
  }
  seam->point(seam, kind, where);
}

void weft_seam_note(uint32_t what, weft_fiber *fiber) {
  weft_seam *seam = listener();
  if (seam == NULL) return;
  seam->holds++;
  seam->note(seam, what, fiber);
  seam->holds--;
}

uint32_t weft_seam_choose(uint32_t kind, uint32_t count) {
  weft_seam *seam = listener();
  return seam != NULL ? seam->choose(seam, kind, NULL, count) : 0;
}

bool weft_seam_fails(uint32_t fault) {
  weft_seam *seam = listener();
  return seam != NULL && seam->fails(seam, fault);
}

uint64_t weft_word_peek(weft_word *word) {
  /* ORDERING: acquire, as a futex's own look. */
  return weft_word_load_acquire(word);
}

void weft_seam_count_stack(int64_t by) {
  weft_seam *seam = weft_seam_current();
  if (seam != NULL) seam->stacks += by;
}

/* More runnable fibers than these have to wait until it is their turn. */
#define CHOICES_MAX 64

/* Giving out a number is no point. */
static uint64_t name_of(weft_seam *seam, weft_fiber *fiber) {
  seam->holds++;
  uint64_t name = weft_fiber_id(fiber);
  seam->holds--;
  return name;
}

/* The names of the fibers that are in line, after `first` names that are there already. */
static uint32_t list_fibers(weft_seam *seam, const weft_queue *queue, weft_fiber **fibers,
                            uint64_t *names, uint32_t count) {
  for (weft_fiber *fiber = queue->head[WEFT_QUEUE_NORMAL]; fiber != NULL && count < CHOICES_MAX;
       fiber = fiber->next) {
    fibers[count] = fiber;
    names[count++] = name_of(seam, fiber);
  }
  return count;
}

/* Under the lock: makes `fiber`, which is in the queue, the first of its class. */
static void move_to_front(weft_queue *queue, weft_fiber *fiber) {
  weft_fiber *first = queue->head[WEFT_QUEUE_NORMAL];
  if (first == fiber) return;
  fiber->previous->next = fiber->next;
  if (fiber->next != NULL) fiber->next->previous = fiber->previous;
  else queue->tail[WEFT_QUEUE_NORMAL] = fiber->previous;
  fiber->previous = NULL;
  fiber->next = first;
  first->previous = fiber;
  queue->head[WEFT_QUEUE_NORMAL] = fiber;
}

/* The names are read, and the fiber moved, without the queue's lock: no other virtual thread runs
 * in between, and none is inside, since there is no point inside. */
static bool is_busy(weft_queue *queue) {
  return weft_word_load_acquire(&queue->busy) != 0 || weft_word_load_acquire(&queue->thief) != 0;
}

void weft_seam_look(weft_worker *worker, bool yields) {
  weft_seam *seam = listener();
  if (seam == NULL) return;
  weft_queue *queue = &worker->queue;
  if (seam->is_chosen) {
    seam->is_chosen = 0;
    return;
  }
  weft_fiber *fibers[CHOICES_MAX];
  uint64_t names[CHOICES_MAX];
  if (is_busy(queue)) return;
  uint32_t count = list_fibers(seam, queue, fibers, names, 0);
  if (count == 0 && yields) seam->point(seam, WEFT_POINT_PAUSE, NULL);
  if (count < 2) return;
  move_to_front(queue, fibers[seam->choose(seam, WEFT_CHOICE_FIBER, names, count)]);
}

bool weft_seam_preempts(weft_worker *worker) {
  weft_seam *seam = listener();
  weft_fiber *fibers[CHOICES_MAX];
  uint64_t names[CHOICES_MAX];
  if (seam == NULL || is_busy(&worker->queue)) return false;
  fibers[0] = worker->current;
  names[0] = name_of(seam, worker->current);
  uint32_t count = list_fibers(seam, &worker->queue, fibers, names, 1);
  if (count < 2) return false;
  uint32_t chosen = seam->choose(seam, WEFT_CHOICE_PREEMPT, names, count);
  if (chosen == 0) return false;
  move_to_front(&worker->queue, fibers[chosen]);
  seam->is_chosen = 1;
  return true;
}
