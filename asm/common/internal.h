/* internal.h - what the C files share and Swift does not see. */
#ifndef WEFT_INTERNAL_H
#define WEFT_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cweft_atomic.h"
#include "cweft_coroutine.h"
#include "cweft_stack.h"
#include "cweft_words.h"

#define WEFT_LIKELY(x) __builtin_expect(!!(x), 1)
#define WEFT_UNLIKELY(x) __builtin_expect(!!(x), 0)

#if defined(__ELF__)
#define WEFT_TLS_MODEL __attribute__((tls_model("initial-exec")))
#else
#define WEFT_TLS_MODEL
#endif

/* Stack strides: 128 KiB (shift 17) to 64 MiB (shift 26) come from slabs, larger ones are mapped
 * and unmapped one by one. */
#define WEFT_SHIFT_MIN 17
#define WEFT_SHIFT_SLAB_MAX 26
#define WEFT_SHIFT_DEFAULT 18
#define WEFT_CLASSES (WEFT_SHIFT_SLAB_MAX - WEFT_SHIFT_MIN + 1)

/* A thread's last-in first-out cache of one class. Half of it moves to or from the pool at once. */
#define WEFT_CACHE_ENTRIES 64
typedef struct weft_stack_cache {
  uint32_t count;
  uint32_t limit; /* how many of this class; 0 until the first is put in */
  char *top[WEFT_CACHE_ENTRIES];
} weft_stack_cache;

/* The same of fibers' objects. */
typedef struct weft_record_cache {
  uint32_t count;
  uint32_t seen_count; /* by weft_record_settle, with this one on top: so since then */
  void *seen_top;
  uint64_t seen_since;
  void *object[WEFT_CACHE_ENTRIES];
} weft_record_cache;

/* What Weft keeps for a kernel thread; freed when the thread ends. */
typedef struct weft_thread {
  weft_words words;
  bool words_sought;
  bool concurrency_sought;
  uint8_t concurrency_rounds; /* searches that found nothing */
  void *alternate_stack; /* for the overflow handler; null where the thread had one already */
  weft_record_cache records;
  weft_stack_cache stacks[WEFT_CLASSES];
} weft_thread;

extern __thread weft_thread *weft_tls_thread WEFT_TLS_MODEL;
weft_thread *weft_thread_make(void);

/* This thread's record, made on first use. Null only where there is no memory for it. Not for
 * functions that switch in between: see weft_access_word. */
static inline weft_thread *weft_thread_current(void) {
  weft_thread *thread = weft_tls_thread;
  return WEFT_LIKELY(thread != NULL) ? thread : weft_thread_make();
}

/* The head of open exclusive accesses, for the inline getter in cweft_coroutine.h. */
extern __thread void **weft_tls_access_word WEFT_TLS_MODEL;

/* words.c */
void weft_words_find_access(weft_thread *thread);
void weft_words_enter_fallback(void *state);
void weft_words_exit_fallback(void *state);

/* stack.c */
void weft_stack_flush_thread(weft_thread *thread);
/* Around a fork(). */
void weft_stack_lock_all(void);
void weft_stack_unlock_all(void);

/* slab.c: whether the process's own limit leaves so much, and a reserve for everybody else. */
bool weft_leaves_reserve(size_t bytes);

/* record.c */
void weft_record_flush_thread(weft_thread *thread);
void weft_record_lock(void);
void weft_record_unlock(void);

/* overflow.c: installs the handler once, and gives this thread an alternate stack to run it on. */
void weft_overflow_prepare_thread(weft_thread *thread);
void weft_overflow_release_thread(weft_thread *thread);

/* system.c: weft_futex_wake for a thread outside, from a signal handler: the simulation that it may
 * have interrupted must not be entered again. */
void weft_futex_wake_really(weft_word *word, int32_t count);

/* system.c: the beginning of a small file of the kernel's, ended by 0. No memory is asked for. */
bool weft_read_text(const char *path, char *text, size_t bytes);

/* report.c: text for signal handlers, which may not use stdio. */
typedef struct weft_text {
  size_t count;
  char bytes[1024];
} weft_text;
void weft_text_add(weft_text *text, const char *string);
void weft_text_add_number(weft_text *text, uint64_t number);
void weft_text_add_site(weft_text *text, const weft_site *site);
void weft_text_write(const weft_text *text);

/* The control block at the top of a stack. */
static inline weft_coroutine *weft_stack_block(char *top, uint32_t stride_shift) {
  /* COST: a shift, a mask, a subtraction. Strides of 128 bytes: a hot block and the first frames
   * take a few lines each, so the colours spread them over the sets of a first-level cache that is
   * indexed by the offset in a page. Sixteen, since with as many as fill a page every fourth parked
   * fiber would reach into a second one, and a thousand of them switch hardly faster. */
  uintptr_t colour = (((uintptr_t)top >> stride_shift) & 15) * 128;
  return (weft_coroutine *)(((uintptr_t)top - colour - sizeof(weft_coroutine)) & ~(uintptr_t)63);
}

#endif
