/* fiber.c - the slow sides of switching between fibers, and binding them to stacks. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE 1
#endif
#include <stdlib.h>
#include <string.h>

#include "debug.h"
#include "internal.h"
#include "sanitizer.h"

#include "cweft_fiber.h"
#include "cweft_system.h"

__thread weft_worker *weft_tls_worker WEFT_TLS_MODEL;

__attribute__((noinline)) weft_worker *weft_worker_current_outlined(void) {
  return weft_tls_worker;
}

/* A plain thread is told apart by where its own copy of the variable lies. */
__attribute__((noinline)) uint64_t weft_owner_outlined(void) {
  weft_seam *seam = weft_seam_current();
  if (weft_tls_worker == NULL && seam != NULL) return (uint64_t)(uintptr_t)seam->current;
  if (weft_tls_worker != NULL) return (uint64_t)(uintptr_t)weft_tls_worker->current;
  return (uint64_t)(uintptr_t)&weft_tls_worker;
}

__attribute__((noinline)) void weft_worker_set_current(weft_worker *worker) {
  weft_tls_worker = worker;
}

/* A fiber that leaves in the middle of a Swift job stays on its thread until it has left the job:
 * the job writes through an address of this thread when it ends. A yield has queued it already, in
 * this worker's own queue and under its lock, which is held over the switch. */
static void pin_to_job(weft_fiber *fiber, bool in_job, weft_worker *worker) {
  bool pinned = (fiber->flags & WEFT_FIBER_IN_JOB) != 0;
  if (in_job == pinned || (in_job && (fiber->flags & WEFT_FIBER_PINNED) != 0)) return;
  fiber->flags ^= WEFT_FIBER_PINNED | WEFT_FIBER_IN_JOB;
  if (in_job) fiber->home = worker;
  if (fiber->queued != NULL) {
    /* ORDERING: relaxed; this worker holds the lock of its queue, others read a hint. */
    weft_word_bump(&fiber->queued->stealable, in_job ? (uint64_t)-1 : 1);
  }
}

void weft_fiber_swap_words(weft_fiber *from, weft_fiber *to, weft_worker *worker) {
  void **three = worker->concurrency;
  void *kept[4] = {*worker->access, three[0], three[1], three[2]};
  /* Words that a fiber left with are its words once: it may have ended what they were about when it
   * leaves next, on the fast path, which stores none. */
  bool brings = (to->flags & WEFT_FIBER_HAS_WORDS) != 0;
  *worker->access = brings ? to->cold->words[0] : NULL;
  for (int i = 0; i < 3; i++) three[i] = brings ? to->cold->words[i + 1] : NULL;
  to->flags &= ~(uint32_t)WEFT_FIBER_HAS_WORDS;
  /* One that is ending leaves nothing open, and its flags are its joiners' by now, even where its
   * stack is still its own: a change here that is not atomic could undo theirs. */
  if (worker->after == WEFT_AFTER_END) return;
  from->flags &= ~(uint32_t)WEFT_FIBER_HAS_WORDS;
  for (int i = 0; i < 4; i++) {
    from->cold->words[i] = kept[i];
    if (kept[i] != NULL) from->flags |= WEFT_FIBER_HAS_WORDS;
  }
  pin_to_job(from, kept[1] != NULL || kept[2] != NULL, worker);
}

/* Tells a simulator who is left, why, and who goes on. */
static void note_switch(weft_fiber *from, weft_fiber *to, const weft_worker *worker) {
  static const uint32_t notes[] = {
      [WEFT_AFTER_UNLOCK] = WEFT_NOTE_YIELD, [WEFT_AFTER_PARK] = WEFT_NOTE_PARK,
      [WEFT_AFTER_JOIN] = WEFT_NOTE_JOIN,    [WEFT_AFTER_END] = WEFT_NOTE_END,
      [WEFT_AFTER_CALL] = WEFT_NOTE_LEAVE,
  };
  weft_seam_point(WEFT_POINT_WORD, NULL);
  if ((from->flags & WEFT_FIBER_ROOT) == 0) weft_seam_note(notes[worker->after], from);
  if (worker->after == WEFT_AFTER_PARK &&
      ((uintptr_t)worker->after_argument & WEFT_WAIT_CANCELLABLE) != 0 &&
      weft_seam_fails(WEFT_FAULT_CANCEL)) {
    weft_seam_current()->cancel(from);
  }
  if ((to->flags & WEFT_FIBER_ROOT) == 0) weft_seam_note(WEFT_NOTE_RUN, to);
}

WEFT_UNINSTRUMENTED weft_worker *weft_fiber_switch_slow(weft_fiber *from, weft_fiber *to,
                                                        weft_worker *worker) {
  if (weft_seam_is_open()) note_switch(from, to, worker);
  bool fallback = weft_thread_words()->access == NULL;
  weft_debug_left left;
  if (weft_debug_has(WEFT_DEBUG_SWITCHES)) weft_debug_leave(from, worker, &left);
  /* A fiber's own accesses stay on its stack; the runtime's pair takes them off this thread and
   * puts the other's on. A root fiber has its list in the thread's own storage. */
  if (fallback && (from->flags & WEFT_FIBER_ROOT) == 0 && from->cold != NULL) {
    weft_words_exit_fallback(from->cold->task_accesses);
  }
  weft_fp_switch(&from->frame.fpctl, &to->frame.fpctl, worker->fp_load_is_cheap != 0);
  weft_fiber_swap_words(from, to, worker);
  if (weft_debug_has(WEFT_DEBUG_MIGRATE)) weft_debug_send_away(from, worker);
  if (fallback && (to->flags & WEFT_FIBER_ROOT) == 0) {
    weft_words_enter_fallback(to->cold->task_accesses);
  }
#if WEFT_ASAN
  void *fake = NULL;
  __sanitizer_start_switch_fiber(worker->after == WEFT_AFTER_END ? NULL : &fake,
                                 to->cold->stack.low,
                                 (size_t)(to->cold->stack.top - to->cold->stack.low));
#endif
#if WEFT_TSAN
  /* A fiber that is left inside a coroutine goes on there. */
  if (from->cold != NULL) from->cold->tsan = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(to->cold->tsan, 0);
#endif
  worker = (weft_worker *)weft_switch_inline(&from->frame, &to->frame, worker);
#if WEFT_ASAN
  __sanitizer_finish_switch_fiber(fake, NULL, NULL);
#endif
  if (weft_debug_has(WEFT_DEBUG_SWITCHES)) weft_debug_return(worker, &left);
  return worker;
}

/* The control block of a fiber's stack, where the overflow handler looks for the site. */
static weft_coroutine *block_of(const weft_fiber *fiber) {
  return weft_stack_block(fiber->cold->stack.top, fiber->cold->stack.stride_shift);
}

/* The first C frame of a fiber. `body` is what weft_fiber_bind was given; it never returns. */
WEFT_UNINSTRUMENTED static void fiber_entry(weft_frame *own, void *value) {
  weft_fiber *fiber = (weft_fiber *)own;
  void (*body)(weft_fiber *, weft_worker *) =
      (void (*)(weft_fiber *, weft_worker *))block_of(fiber)->body[0];
#if WEFT_ASAN
  __sanitizer_finish_switch_fiber(NULL, NULL, NULL);
#endif
  body(fiber, (weft_worker *)value);
  weft_fatal("a fiber was continued after its end", &fiber->site,
             "This is a bug in Weft: please report it.");
}

void weft_fiber_bind(weft_fiber *fiber, const weft_stack *stack,
                     void (*body)(weft_fiber *, weft_worker *)) {
  weft_coroutine *block = weft_stack_block(stack->top, stack->stride_shift);
  weft_fiber_cold *cold =
      (weft_fiber_cold *)((uintptr_t)((char *)block - sizeof *cold) & ~(uintptr_t)15);
  /* What ends the waits of a group's body ends those of its children. */
  uint64_t deadline = fiber->group != NULL ? fiber->group->deadline : UINT64_MAX;
  *cold = (weft_fiber_cold){.stack = *stack, .timer_slot = -1, .scope.deadline = deadline};
  fiber->cold = cold;
  fiber->flags |= WEFT_FIBER_BOUND;
  if (weft_seam_is_open() && weft_seam_current() != NULL) fiber->flags |= WEFT_FIBER_SIMULATED;
  block->site = fiber->site;
  block->body[0] = (void *)body;
  weft_frame_prepare(&fiber->frame, cold, fiber_entry);
#if WEFT_TSAN
  cold->tsan = __tsan_create_fiber(0);
#endif
}

/* More is cut off, at the beginning of a character. */
#define NAME_BYTES_MAX 256

static char *place_of_name(const weft_fiber *fiber, uint64_t bytes) {
  if (bytes > NAME_BYTES_MAX) bytes = NAME_BYTES_MAX;
  return (char *)(((uintptr_t)fiber->cold - bytes) & ~(uintptr_t)15);
}

void weft_fiber_reserve_name(weft_fiber *fiber, uint64_t bytes) {
  fiber->frame.sp = place_of_name(fiber, bytes);
}

void weft_fiber_name(weft_fiber *fiber, const char *name, uint64_t bytes) {
  char *copy = place_of_name(fiber, bytes);
  if (bytes > NAME_BYTES_MAX) {
    bytes = NAME_BYTES_MAX;
    while (bytes > 0 && ((unsigned char)name[bytes] & 0xC0) == 0x80) bytes--;
  }
  memcpy(copy, name, bytes);
  weft_coroutine *block = block_of(fiber);
  block->site.name = (const uint8_t *)copy;
  block->site.name_bytes = (uint16_t)bytes;
}

void *weft_fiber_unbind(weft_fiber *fiber) {
#if WEFT_TSAN
  void *left = __tsan_get_current_fiber(); /* its own: no coroutine is left around it */
#else
  void *left = NULL;
#endif
  /* A huge stack is unmapped when it is released: not from under the fiber. In a simulation another
   * thread, which shares this one's cache, could take it before the switch. */
  if (fiber->cold->stack.error != WEFT_STACK_STAYS && weft_seam_current() == NULL) {
    weft_fiber_release_stack(fiber);
  }
  return left;
}

void weft_fiber_release_stack(weft_fiber *fiber) {
  weft_stack stack = fiber->cold->stack;
  fiber->cold = NULL;
  weft_stack_release(&stack);
}

extern void *swift_nonatomic_retain(void *object) __attribute__((weak));

extern bool swift_isUniquelyReferenced_nonNull_native(void *object) __attribute__((weak));

bool weft_is_shared(void *object) { return !swift_isUniquelyReferenced_nonNull_native(object); }

void weft_retain_unshared(void *object) { swift_nonatomic_retain(object); }

uint64_t weft_fiber_id(weft_fiber *fiber) {
  static weft_word last;
  /* ORDERING: acquire and sequentially consistent, though a number that is all there is needs no
   * more than relaxed: this is rare. */
  uint64_t id = weft_word_load_acquire(&fiber->id);
  if (id != 0) return id;
  weft_seam *seam = weft_seam_current();
  if (seam != NULL) {
    /* The same ones in each run. */
    weft_word_store_release(&fiber->id, ++seam->fibers);
    return seam->fibers;
  }
  uint64_t mine = weft_word_add(&last, 1) + 1;
  /* Of two that ask at once, the first gives the number. */
  return weft_word_compare_exchange(&fiber->id, &id, mine) ? mine : id;
}

weft_word *weft_fiber_scopes_lock(weft_fiber *fiber) {
  static struct {
    weft_word word;
    char pad[64 - sizeof(weft_word)];
  } locks[64] __attribute__((aligned(64)));
  uintptr_t hash = (uintptr_t)fiber / 16 * (uintptr_t)0x9E3779B97F4A7C15u;
  return &locks[hash >> (sizeof hash * 8 - 6)].word;
}

void weft_fiber_destroy_sanitizer(void *left) {
#if WEFT_TSAN
  if (left != NULL) __tsan_destroy_fiber(left);
#else
  (void)left;
#endif
}

void weft_worker_prepare(weft_worker *worker) {
  const weft_words *words = weft_thread_words();
  worker->access = words->access != NULL ? words->access : &worker->dummies[0];
  /* The three stand in a row, or they were not found. */
  worker->concurrency = words->task != NULL ? words->task : &worker->dummies[1];
  weft_seam *seam = weft_seam_current();
  worker->slow = WEFT_SANITIZED || words->access == NULL || seam != NULL ||
                 weft_debug_has(WEFT_DEBUG_SWITCHES);
  worker->spend_mask = seam != NULL ? 0 : 255;
  worker->poll_mask = seam != NULL ? 0 : 15;
  worker->fp_load_is_cheap = weft_fp_load_is_cheap();
  weft_worker_set_thread(worker, weft_thread_id());
  worker->errno_address = weft_errno_address();
  memset(&worker->root, 0, sizeof worker->root);
  worker->root.flags = WEFT_FIBER_ROOT | WEFT_FIBER_PINNED | WEFT_FIBER_STARTED;
  worker->root.home = worker;
  memset(&worker->root_cold, 0, sizeof worker->root_cold);
  worker->root_cold.timer_slot = -1;
  worker->root_cold.scope.deadline = UINT64_MAX;
  worker->root.cold = &worker->root_cold;
  worker->current = &worker->root;
  weft_fp_store(&worker->root.frame.fpctl);
  if (seam != NULL) worker->root_cold.stack = seam->current->stack;
#if defined(__linux__) && WEFT_ASAN
  pthread_attr_t attributes;
  if (seam == NULL && pthread_getattr_np(pthread_self(), &attributes) == 0) {
    void *low = NULL;
    size_t bytes = 0;
    pthread_attr_getstack(&attributes, &low, &bytes);
    worker->root_cold.stack.low = low;
    worker->root_cold.stack.top = (char *)low + bytes;
    pthread_attr_destroy(&attributes);
  }
#endif
#if WEFT_TSAN
  worker->root_cold.tsan = __tsan_get_current_fiber();
#endif
}
