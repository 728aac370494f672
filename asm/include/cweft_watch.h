/* cweft_watch.h - what the watchdog, dumps and the deadlock report need of the process: its
 * threads, and what one of them runs at this moment.
 */
#ifndef CWEFT_WATCH_H
#define CWEFT_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "cweft_atomic.h"
#include "cweft_fiber.h"

/* ---- Threads whose doings are known ----
 *
 * A deadlock can be told only where every thread of the process is one of Weft's, or is blocked in
 * a call of Weft's that only a fiber can end. Such threads count themselves: up when they run
 * already, down before they end, so that the count is never above the truth.
 */

/* The calling thread is Weft's from now on. False if it counts already. */
bool weft_threads_enter(void);
void weft_threads_leave(void);
/* The calling thread is about to block until a fiber ends its wait. False if it is Weft's anyway.
 */
bool weft_threads_block(void);
/* Whoever ends that wait says so before the thread can go on. */
void weft_threads_unblock(void);
/* Whether at one moment every thread of the process was counted. */
bool weft_threads_are_known(void);

/* ---- What a thread runs ---- */

#define WEFT_CAPTURE_FRAMES 48

/* A look at a running thread. From `weft_capture_take` to `weft_capture_release` the thread stands
 * still in a signal handler, so the fiber that it runs exists. On the heap, since the handler may
 * come late, or let go of it late. */
typedef struct weft_capture {
  weft_word state;
  struct weft_capture *_Nullable next;
  uint64_t thread;
  weft_fiber *_Nullable fiber;
  int32_t count;
  void *_Nullable frames[WEFT_CAPTURE_FRAMES];
} weft_capture;

/* Installs the handler of SIGURG, on which a captured thread stops; nests. That signal does nothing
 * by default, so a stray one is harmless, and a handler of the program's is called for its own. */
void weft_capture_install(void);
/* Puts the program's handler back with the last removal, if ours is still in place. */
void weft_capture_remove(void);
/* A worker's thread takes that signal while it is one, even if it was blocked there, as on the
 * threads of libdispatch. */
void weft_capture_allow(void);
void weft_capture_restore(void);
weft_capture *_Nullable weft_capture_make(void);
/* Frees it once no handler can touch it any more. */
void weft_capture_drop(weft_capture *_Nonnull capture);
/* Stops a thread and notes its frames. False if it did not answer in time. */
bool weft_capture_take(weft_capture *_Nonnull capture, uint64_t thread, uint64_t nanoseconds);
void weft_capture_release(weft_capture *_Nonnull capture);
/* The i-th frame, as text: `function + 12`, demangled where it can be. Returns its length. */
int32_t weft_capture_describe(const weft_capture *_Nonnull capture, int32_t i,
                              char *_Nonnull text, int32_t bytes);

/* The number of the system call that a thread is blocked in; -1: it runs, or is ready to run;
 * -2: it can't be told; -3: it is blocked in none, as by a page that has to be read in. */
int32_t weft_thread_system_call(uint64_t thread);
/* Whether that call goes on by itself after a signal handler. */
bool weft_system_call_restarts(int32_t number);

/* Changes with every switch of a worker. */
uint64_t weft_worker_switches(weft_worker *_Nonnull worker);

/* The fiber that a worker runs at this moment, for a look from outside. */
weft_fiber *_Nullable weft_worker_running(weft_worker *_Nonnull worker);

WEFT_INLINE weft_word *_Nonnull weft_fiber_id_word(weft_fiber *_Nonnull fiber) {
  return &fiber->id;
}
/* Copies memory that may be gone; false if it is. */
bool weft_copy_memory(void *_Nonnull to, const void *_Nonnull from, uint64_t bytes);

/* ---- Dumps on a signal ---- */

/* Makes `signal` add one to `word` and wake one that sleeps on it. False if it can't be caught. */
bool weft_dump_on_signal(int32_t signal, weft_word *_Nonnull word);

/* In a child of fork(): all of the above starts anew. */
void weft_watch_forked(void);

#endif
