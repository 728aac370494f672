/* thread.c - what Weft keeps per kernel thread, from its first switch to its end. */
#define WEFT_NO_SEAM 1
#include <stdlib.h>

#include "debug.h"
#include "internal.h"
#include "sanitizer.h"

#include "cweft_fiber.h"
#include "cweft_system.h"

__thread void **weft_tls_access_word WEFT_TLS_MODEL;
__thread weft_thread *weft_tls_thread WEFT_TLS_MODEL;

static pthread_key_t thread_key;
static pthread_once_t thread_key_once = PTHREAD_ONCE_INIT;

static __thread weft_scope thread_scope WEFT_TLS_MODEL = {.deadline = UINT64_MAX};

__attribute__((noinline)) weft_scope *weft_thread_scope(void) {
  if (weft_seam_is_open()) {
    weft_seam *seam = weft_seam_current();
    if (seam != NULL && seam->current->scope != NULL) return seam->current->scope;
  }
  return &thread_scope;
}

void weft_thread_keeps(const void *object) {
#if WEFT_ASAN
  __lsan_ignore_object(object);
#else
  (void)object;
#endif
}

/* Runs at the end of a thread. Should a later destructor use Weft again, a new record is made and
 * this runs once more. */
static void thread_ended(void *record) {
  weft_thread *thread = record;
  weft_tls_thread = NULL;
  weft_tls_access_word = NULL;
  weft_stack_flush_thread(thread);
  weft_record_flush_thread(thread);
  weft_overflow_release_thread(thread);
  free(thread);
}

static void make_thread_key(void) { pthread_key_create(&thread_key, thread_ended); }

__attribute__((noinline)) weft_thread *weft_thread_make(void) {
  pthread_once(&thread_key_once, make_thread_key);
  (void)weft_debug_modes();
  weft_thread *thread = calloc(1, sizeof *thread);
  if (thread == NULL) return NULL;
  weft_tls_thread = thread;
  pthread_setspecific(thread_key, thread);
  weft_overflow_prepare_thread(thread);
  return thread;
}

__attribute__((noinline)) void **weft_access_word_outlined(void) { return weft_tls_access_word; }

const weft_words *weft_thread_words(void) {
  static const weft_words none;
  weft_thread *thread = weft_thread_current();
  if (thread == NULL) return &none;
  if (!thread->words_sought) {
    weft_words_find_access(thread);
    thread->words_sought = true;
    /* Where the inline getter goes on finding null, every switch is slow. */
    bool slow = WEFT_SANITIZED || weft_debug_has(WEFT_DEBUG_CANARY);
    if (!slow) weft_tls_access_word = thread->words.access;
  }
  return &thread->words;
}
