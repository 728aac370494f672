/* coroutine.c - making and ending coroutines, and the slow side of switching. */
#include <string.h>

#include "debug.h"
#include "internal.h"
#include "sanitizer.h"

/* ---- Slow switching ---- */

/* Tells the sanitizers about the switch, makes it, and tells them that it happened.
 *
 *   into the body:   stack = the body's (its bounds are in `other_*`), fiber = tsan_body
 *   out of the body: stack = the caller's (likewise), fiber = tsan_caller
 *
 * After arriving, other_* are the bounds of the stack that was left: next time's target. */
WEFT_UNINSTRUMENTED static uintptr_t annotated_switch(weft_coroutine *coroutine,
                                                      uintptr_t status, bool entering) {
#if WEFT_ASAN
  void *fake = NULL;
  bool last = !entering && status == WEFT_ENDED;
  /* A null place for the fake stack says that the frames of this stack are gone for good. */
  __sanitizer_start_switch_fiber(last ? NULL : &fake, coroutine->other_low,
                                 coroutine->other_bytes);
#endif
#if WEFT_TSAN
  if (entering) {
    coroutine->tsan_caller = __tsan_get_current_fiber();
    /* Not when the coroutine is made: it crashes over the end of one that never ran. */
    if (coroutine->tsan_body == NULL) coroutine->tsan_body = __tsan_create_fiber(0);
    __tsan_switch_to_fiber(coroutine->tsan_body, 0);
  } else {
    __tsan_switch_to_fiber(coroutine->tsan_caller, 0);
  }
#endif
  (void)entering;
  status = (uintptr_t)weft_switch_inline(&coroutine->frame, &coroutine->frame, (void *)status);
#if WEFT_ASAN
  __sanitizer_finish_switch_fiber(fake, &coroutine->other_low, &coroutine->other_bytes);
#endif
  return status;
}

WEFT_UNINSTRUMENTED uintptr_t weft_coroutine_switch_slow(weft_coroutine *coroutine,
                                                         uintptr_t status, bool entering) {
  void **word = weft_thread_words()->access;
  if (!entering && weft_debug_has(WEFT_DEBUG_CANARY)) weft_debug_check_canary(&coroutine->stack);
  if (entering) weft_fp_switch(&coroutine->caller_fpctl, &coroutine->frame.fpctl, false);
  else weft_fp_switch(&coroutine->frame.fpctl, &coroutine->caller_fpctl, false);
  if (word != NULL) {
    void *mine = *word;
    *word = coroutine->access;
    coroutine->access = mine;
    return annotated_switch(coroutine, status, entering);
  }
  /* The word was not found. The runtime's own pair, meant for its tasks, takes the body's accesses
   * in before and out after; only the resuming side calls it, on the thread that it stays on. */
  if (!entering) return annotated_switch(coroutine, status, false);
  /* The caller's own accesses are put aside first, as if it were a task that is left here: the pair
   * would join them to the body's, and crash when the body leaves one open. */
  void *mine[2] = {NULL, NULL};
  weft_words_exit_fallback(mine);
  weft_words_enter_fallback(coroutine->task_accesses);
  status = annotated_switch(coroutine, status, true);
  weft_words_exit_fallback(coroutine->task_accesses);
  weft_words_enter_fallback(mine);
  return status;
}

/* ---- Bindings left open ---- */

void weft_coroutine_note_resume(weft_coroutine *coroutine) {
  const weft_words *words = weft_thread_words();
  coroutine->seen_task = words->task == NULL ? NULL : *words->task;
  coroutine->seen_fallback = words->fallback == NULL ? NULL : *words->fallback;
}

void weft_coroutine_check_yield(const weft_coroutine *coroutine) {
  const weft_words *words = weft_thread_words();
  void *task = words->task == NULL ? NULL : *words->task;
  void *fallback = words->fallback == NULL ? NULL : *words->fallback;
  if (task == coroutine->seen_task && fallback == coroutine->seen_fallback) return;
  weft_fatal("a coroutine yielded inside a task-local `withValue` of its own", &coroutine->site,
             "Its caller would see the binding. Yield outside `withValue`, or use a fiber.");
}

/* ---- Life ---- */

/* The first C frame on a coroutine's stack. */
WEFT_UNINSTRUMENTED static void coroutine_main(weft_frame *own, void *status) {
  weft_coroutine *coroutine = (weft_coroutine *)own;
  (void)status; /* a fresh coroutine is never cancelled by running it */
#if WEFT_ASAN
  __sanitizer_finish_switch_fiber(NULL, &coroutine->other_low, &coroutine->other_bytes);
#endif
  coroutine->phase = WEFT_PHASE_STARTED;
  /* A call inherits floating-point control, so the first resume does. Storing it when the
   * coroutine is made would cost more than this compare. */
  if (coroutine->fp_load_is_cheap ||
      WEFT_UNLIKELY(weft_fp_differs(&coroutine->caller_fpctl, &coroutine->frame.fpctl))) {
    weft_fp_load(&coroutine->caller_fpctl);
  }
  coroutine->run(coroutine);
  coroutine->phase = WEFT_PHASE_FINISHED;
  /* Everything on this stack is released by now; whoever resumed gives it back. */
  weft_coroutine_switch(coroutine, WEFT_ENDED, false);
  weft_fatal("a coroutine was resumed after its end", &coroutine->site,
             "This is a bug in Weft: please report it.");
}

static inline __attribute__((always_inline)) weft_coroutine *lay_block(
    const weft_stack *stack, size_t slot_bytes, const weft_site *site, weft_body body) {
  weft_coroutine *coroutine = weft_stack_block(stack->top, stack->stride_shift);
  coroutine->access = NULL;
  coroutine->error = NULL;
#if WEFT_TSAN
  coroutine->tsan_body = NULL;
#endif
  coroutine->phase = WEFT_PHASE_FRESH;
  coroutine->running = 0;
  coroutine->cancel_rounds = 0;
  coroutine->stack = *stack;
  coroutine->site = *site;
  if (WEFT_UNLIKELY(weft_tls_access_word == NULL)) { /* the slow path may be taken */
    coroutine->task_accesses[0] = coroutine->task_accesses[1] = NULL;
    coroutine->other_low = stack->low;
    coroutine->other_bytes = (size_t)(stack->top - stack->low);
  }
  /* 128 bytes for over-aligned slots are part of slot_bytes; 16-alignment is kept throughout. */
  weft_frame_prepare(&coroutine->frame, (char *)coroutine - slot_bytes, body);
  coroutine->frame.fpctl = weft_fp_default();
  coroutine->fp_load_is_cheap = weft_fp_load_is_cheap();
  return coroutine;
}

weft_coroutine *weft_coroutine_create(size_t stack_bytes, size_t slot_bytes,
                                      const weft_site *site, weft_stack_failure *failure,
                                      int32_t *error) {
  weft_stack stack;
  /* Small slots are part of the 5 KiB that the runtime may take; large ones come on top, but not of
   * a size that would only come into the range by it. */
  bool addable = slot_bytes > 1024 && weft_stack_size_is_possible(stack_bytes);
  *failure = weft_stack_acquire(addable ? stack_bytes + slot_bytes : stack_bytes, &stack);
  if (WEFT_UNLIKELY(*failure != WEFT_STACK_OK)) {
    *error = stack.error;
    return NULL;
  }
  return lay_block(&stack, slot_bytes, site, coroutine_main);
}

void weft_coroutine_destroy(weft_coroutine *coroutine) {
  weft_stack stack = coroutine->stack;
#if WEFT_TSAN
  if (coroutine->tsan_body != NULL) __tsan_destroy_fiber(coroutine->tsan_body);
#endif
  weft_stack_release(&stack);
}

/* ---- A call on another stack ---- */

struct stack_call {
  void (*function)(void *);
  void *argument;
  weft_coroutine *block;
};

WEFT_UNINSTRUMENTED static void call_main(weft_frame *own, void *value) {
  struct stack_call *call = value;
#if WEFT_ASAN
  __sanitizer_finish_switch_fiber(NULL, &call->block->other_low, &call->block->other_bytes);
#endif
  call->function(call->argument);
#if WEFT_ASAN
  __sanitizer_start_switch_fiber(NULL, call->block->other_low, call->block->other_bytes);
#endif
  weft_switch_inline(own, own, NULL);
  __builtin_unreachable();
}

/* The accesses that are open here stay open while `function` runs, since it is a call and no
 * coroutine; thread sanitizer sees a call too. So only the stack is switched. */
WEFT_UNINSTRUMENTED weft_stack_failure weft_call_on_stack(size_t bytes, const weft_site *site,
                                                          void (*function)(void *),
                                                          void *argument, int32_t *error) {
  weft_stack stack;
  weft_stack_failure failure = weft_stack_acquire(bytes, &stack);
  if (failure != WEFT_STACK_OK) {
    *error = stack.error;
    return failure;
  }
  weft_coroutine *block = lay_block(&stack, 0, site, call_main);
  struct stack_call call = {function, argument, block};
#if WEFT_ASAN
  void *fake = NULL;
  __sanitizer_start_switch_fiber(&fake, block->other_low, block->other_bytes);
#endif
  weft_switch_inline(&block->frame, &block->frame, &call);
#if WEFT_ASAN
  __sanitizer_finish_switch_fiber(fake, NULL, NULL);
#endif
  weft_stack_release(&stack);
  return WEFT_STACK_OK;
}
