/* virtual.c - the kernel threads of a simulated process: cweft_seam.h.
 *
 * A switch between two of them is what the kernel does when it takes a processor away from one
 * thread and gives it to another, as far as the runtime can see: registers, errno, the thread's
 * worker, the Swift runtime's thread words, and what the sanitizers keep. It may come while a fiber
 * of the one runs, and go to where a fiber of the other was:
 *
 *     thread A:  root ── fiber 1 ──┐               ┌── fiber 1 ...
 *                                  │ weft_virtual_switch
 *     thread B:  root ── fiber 2   └── fiber 2 ────┘
 */
#define WEFT_NO_SEAM 1
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "sanitizer.h"

#include "cweft_fiber.h"
#include "cweft_seam.h"

static void exchange_words(weft_virtual *from, weft_virtual *to) {
  const weft_words *words = weft_thread_words();
  if (words->access != NULL) {
    from->words[0] = *words->access;
    *words->access = to->words[0];
  } else {
    weft_words_exit_fallback(from->task_accesses);
    weft_words_enter_fallback(to->task_accesses);
  }
  /* Task, executor and task-locals stand in a row, or were not found. */
  for (int i = 0; words->task != NULL && i < 3; i++) {
    from->words[i + 1] = words->task[i];
    words->task[i] = to->words[i + 1];
  }
}

WEFT_UNINSTRUMENTED void weft_virtual_switch(weft_virtual *from, weft_virtual *to) {
  from->worker = weft_worker_current();
  from->saved_errno = errno;
  exchange_words(from, to);
  weft_worker_set_current(to->worker);
  weft_seam_current()->current = to;
  weft_fp_switch(&from->frame.fpctl, &to->frame.fpctl, false);
#if WEFT_ASAN
  __sanitizer_start_switch_fiber(from->has_ended ? NULL : &from->fake, to->low, to->bytes);
#endif
#if WEFT_TSAN
  from->tsan = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(to->tsan, 0);
#endif
  weft_virtual *previous = weft_switch_inline(&from->frame, &to->frame, from);
#if WEFT_ASAN
  /* What was left tells where its stack is: that of a fiber, perhaps. */
  size_t bytes = 0;
  __sanitizer_finish_switch_fiber(from->fake, &previous->low, &bytes);
  previous->bytes = bytes;
#else
  (void)previous;
#endif
  errno = from->saved_errno;
}

WEFT_UNINSTRUMENTED static void virtual_entry(weft_frame *own, void *value) {
  weft_virtual *thread = (weft_virtual *)own;
#if WEFT_ASAN
  weft_virtual *previous = value;
  size_t bytes = 0;
  __sanitizer_finish_switch_fiber(NULL, &previous->low, &bytes);
  previous->bytes = bytes;
#else
  (void)value;
#endif
  thread->run(thread->argument);
  thread->has_ended = 1;
  weft_seam *seam = weft_seam_current();
  weft_virtual_switch(thread, seam->ended(seam));
  abort();
}

/* For the report of an overflow: what stands at the top of a fiber's stack. Returns where the stack
 * begins below it. */
static char *lay_block(const weft_stack *stack) {
  static const char name[] = "a simulated thread, as of blocking { }";
  static const char file[] = "virtual.c";
  weft_coroutine *block = weft_stack_block(stack->top, stack->stride_shift);
  memset(block, 0, sizeof *block);
  block->site = (weft_site){.name = (const uint8_t *)name, .name_bytes = sizeof name - 1,
                            .file = (const uint8_t *)file, .file_bytes = sizeof file - 1,
                            .line = __LINE__};
  return (char *)((uintptr_t)block & ~(uintptr_t)15);
}

weft_virtual *weft_virtual_create(uint64_t stack_bytes, void (*run)(void *), void *argument) {
  weft_virtual *thread = weft_virtual_adopt();
  if (thread == NULL) return NULL;
  if (weft_stack_acquire(stack_bytes, &thread->stack) != WEFT_STACK_OK) {
    free(thread);
    return NULL;
  }
  thread->run = run;
  thread->argument = argument;
  weft_scope *scope = calloc(1, sizeof *scope);
  if (scope != NULL) scope->deadline = UINT64_MAX;
  thread->scope = scope;
  thread->low = thread->stack.low;
  thread->bytes = (uint64_t)(thread->stack.top - thread->stack.low);
  weft_frame_prepare(&thread->frame, lay_block(&thread->stack), virtual_entry);
#if WEFT_TSAN
  thread->tsan = __tsan_create_fiber(0);
#endif
  return thread;
}

weft_virtual *weft_virtual_adopt(void) {
  weft_virtual *thread = calloc(1, sizeof *thread);
  if (thread != NULL) weft_fp_store(&thread->frame.fpctl);
  return thread;
}

void weft_virtual_destroy(weft_virtual *thread) {
  if (thread->stack.low != NULL) {
    weft_stack_release(&thread->stack);
#if WEFT_TSAN
    __tsan_destroy_fiber(thread->tsan);
#endif
  }
  free(thread->scope);
  free(thread);
}
