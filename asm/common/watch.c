/* watch.c - looking at the threads of the process. cweft_watch.h says what for. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE 1
#endif
#define WEFT_NO_SEAM 1
#include <errno.h>
#include <execinfo.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <sys/uio.h>
#endif

#include "internal.h"
#include "signal_frame.h"
#include "sanitizer.h"

#include "cweft_system.h"
#include "cweft_watch.h"

/* ---- Threads whose doings are known ---- */

/* How many in the low half; how often that changed in the high half, so that a count which was left
 * and reached again is not taken for one that stood still. */
static weft_word known_threads;
static __thread bool is_known WEFT_TLS_MODEL;

#define ONE_CHANGE ((uint64_t)1 << 32)

bool weft_threads_enter(void) {
  if (is_known) return false;
  is_known = true;
  weft_word_add(&known_threads, ONE_CHANGE + 1);
  return true;
}

void weft_threads_leave(void) {
  is_known = false;
  weft_word_add(&known_threads, ONE_CHANGE - 1);
}

bool weft_threads_block(void) {
  /* Nor one that is simulated. */
  if (is_known || weft_seam_current() != NULL) return false;
  weft_word_add(&known_threads, ONE_CHANGE + 1);
  return true;
}

void weft_threads_unblock(void) { weft_word_add(&known_threads, ONE_CHANGE - 1); }

bool weft_threads_are_known(void) {
  uint64_t before = weft_word_load_seq(&known_threads);
  int32_t count = weft_thread_count();
  return count > 0 && (uint32_t)before == (uint32_t)count &&
         weft_word_load_seq(&known_threads) == before;
}

/* ---- What a thread runs ---- */

#define CAPTURE_SIGNAL SIGURG

/*   IDLE ── take ──▶ ASKED ── the handler ──▶ HELD ── release ──▶ DONE ── the handler ──▶ LEFT
 *                      └── patience ends ──▶ GONE
 *
 * Nobody knows when a handler that comes late has looked at one that is GONE: that one is kept for
 * good. It takes a thread that gets no processor for a quarter of a second. */
enum {
  CAPTURE_IDLE = 0,
  CAPTURE_ASKED = 1,
  CAPTURE_HELD = 2,
  CAPTURE_DONE = 3,
  CAPTURE_LEFT = 4,
  CAPTURE_GONE = 5,
};

static struct sigaction previous_action;
static int installations; /* GUARDED BY: WEFT_LOCK_CAPTURE */
/* ORDERING: released by the asker, acquired by the handler: a capture that is seen is filled in. */
static _Atomic(weft_capture *) asked_capture;

static void chain(int number, siginfo_t *info, void *context) {
  if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
    if (previous_action.sa_sigaction != NULL) previous_action.sa_sigaction(number, info, context);
  } else if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
    previous_action.sa_handler(number);
  }
}

/* backtrace() in the handler gives the handler, the kernel's return and where the thread was. */
#define FRAMES_UP_TO_SIGNAL 3

/* A sanitizer puts its own function round backtrace(), which is then the first frame. `back` is
 * where the handler returns to: the second frame otherwise. */
WEFT_UNINSTRUMENTED static int32_t drop_wrapper(void **frames, int32_t count, const void *back) {
  int32_t extra = 0;
  while (extra + 1 < count && frames[extra + 1] != back) extra++;
  if (extra + 1 >= count) return count;
  for (int32_t i = extra; i < count; i++) frames[i - extra] = frames[i];
  return count - extra;
}

/* The frames behind one that the unwinder knows nothing about, of which the usual kind is a stub of
 * the linker that jumps to a function of another library: it has built no frame of its own, and its
 * caller, being Swift or built like it, has a frame pointer.
 *
 *      fp -> | caller's fp | return address |   and so on, each higher than the one before
 */
WEFT_UNINSTRUMENTED static int32_t add_linked_frames(void **frames, int32_t count,
                                                     const void *context, const weft_fiber *fiber) {
  if (fiber == NULL || fiber->cold == NULL || (fiber->flags & WEFT_FIBER_ROOT) != 0) return count;
  weft_signal_frame at = weft_signal_frame_of(context);
  uintptr_t top = (uintptr_t)fiber->cold - 2 * sizeof(void *);
  if (at.sp < (uintptr_t)fiber->cold->stack.low || at.sp >= top) return count;
  frames[count++] = (void *)(at.link != 0 ? at.link : *(uintptr_t *)at.sp);
  uintptr_t low = at.sp, frame = at.fp;
  while (frame >= low && frame < top && frame % sizeof(void *) == 0 &&
         count < WEFT_CAPTURE_FRAMES) {
    const uintptr_t *pair = (const uintptr_t *)frame;
    if (pair[1] == 0) break;
    frames[count++] = (void *)pair[1];
    low = frame + 1;
    frame = pair[0];
  }
  return count;
}

/* Stands still until the asker has taken its reference. A function of its own, since the thread
 * sanitizer has to see what the asker acquires here; what else the handler reads, like the handler
 * before it, was written before it was installed, which the sanitizer takes for no order. */
__attribute__((noinline)) static void stand_still(weft_capture *capture) {
  uint64_t expected = CAPTURE_ASKED;
  /* If the asker lost patience meanwhile, it does not look any more. */
  if (!weft_word_compare_exchange(&capture->state, &expected, CAPTURE_HELD)) return;
  weft_futex_wake_really(&capture->state, 1);
  /* A matter of nanoseconds, unless the kernel took the asker's processor away. */
  while (weft_word_load_acquire(&capture->state) == CAPTURE_HELD) sched_yield();
  /* ORDERING: release, paired with the acquire in weft_capture_drop; the last touch. */
  weft_word_store_release(&capture->state, CAPTURE_LEFT);
}

WEFT_UNINSTRUMENTED static void on_capture(int number, siginfo_t *info, void *context) {
  int saved = errno;
  weft_capture *capture = atomic_load_explicit(&asked_capture, memory_order_acquire);
  if (capture == NULL || capture->thread != weft_thread_id()) {
    chain(number, info, context);
    errno = saved;
    return;
  }
  weft_worker *worker = weft_worker_current_outlined();
  capture->fiber = worker != NULL ? worker->current : NULL;
  capture->count = backtrace(capture->frames, WEFT_CAPTURE_FRAMES);
  capture->count = drop_wrapper(capture->frames, capture->count,
                                __builtin_extract_return_addr(__builtin_return_address(0)));
  if (capture->count <= FRAMES_UP_TO_SIGNAL) {
    capture->count = add_linked_frames(capture->frames, capture->count, context, capture->fiber);
  }
  stand_still(capture);
  errno = saved;
}

void weft_capture_install(void) {
  void *frame[2];
  weft_process_lock(WEFT_LOCK_CAPTURE);
  if (installations++ == 0) {
    /* The first call loads the unwinder, which a handler must not. */
    backtrace(frame, 2);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_capture;
    /* On the alternate stack, since the fiber's own may be nearly full. */
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    struct sigaction current;
    sigaction(CAPTURE_SIGNAL, &action, &current);
    /* After a fork() ours is there already. */
    if (current.sa_sigaction != on_capture) previous_action = current;
  }
  weft_process_unlock(WEFT_LOCK_CAPTURE);
}

void weft_capture_remove(void) {
  struct sigaction current;
  weft_process_lock(WEFT_LOCK_CAPTURE);
  if (--installations == 0 && sigaction(CAPTURE_SIGNAL, NULL, &current) == 0 &&
      (current.sa_flags & SA_SIGINFO) != 0 && current.sa_sigaction == on_capture) {
    sigaction(CAPTURE_SIGNAL, &previous_action, NULL);
  }
  weft_process_unlock(WEFT_LOCK_CAPTURE);
}

static __thread bool was_blocked WEFT_TLS_MODEL;

static void set_blocked(int how, sigset_t *before) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, CAPTURE_SIGNAL);
  pthread_sigmask(how, &set, before);
}

void weft_capture_allow(void) {
  sigset_t before;
  sigemptyset(&before);
  set_blocked(SIG_UNBLOCK, &before);
  was_blocked = sigismember(&before, CAPTURE_SIGNAL) == 1;
}

void weft_capture_restore(void) {
  if (was_blocked) set_blocked(SIG_BLOCK, NULL);
}

/* PLATFORM: the thread sanitizer's own state of a thread changes with each switch of a fiber; a
 * signal in the middle of that finds half of it. So there reports do without frames. */
bool weft_capture_take(weft_capture *capture, uint64_t thread, uint64_t nanoseconds) {
#if defined(__linux__) && !WEFT_TSAN
  struct sigaction current;
  /* A program that took the signal for itself would not answer. */
  if (sigaction(CAPTURE_SIGNAL, NULL, &current) != 0 || current.sa_sigaction != on_capture) {
    return false;
  }
  capture->thread = thread;
  capture->fiber = NULL;
  capture->count = 0;
  weft_word_store_release(&capture->state, CAPTURE_ASKED);
  weft_process_lock(WEFT_LOCK_CAPTURE); /* one at a time */
  atomic_store_explicit(&asked_capture, capture, memory_order_release);
  bool sent = syscall(SYS_tgkill, getpid(), (pid_t)thread, CAPTURE_SIGNAL) == 0;
  uint64_t until = weft_clock_now() + nanoseconds;
  /* On a busy machine the thread may have to wait for a processor, so this one sleeps meanwhile. */
  while (sent && weft_word_load_acquire(&capture->state) == CAPTURE_ASKED) {
    uint64_t now = weft_clock_now();
    if (now >= until) break;
    weft_futex_wait(&capture->state, CAPTURE_ASKED, until - now);
  }
  /* A handler that comes late finds nothing asked, and one that is in there finds it taken back. */
  atomic_store_explicit(&asked_capture, NULL, memory_order_release);
  uint64_t expected = CAPTURE_ASKED;
  bool gone = weft_word_compare_exchange(&capture->state, &expected, CAPTURE_GONE);
  weft_process_unlock(WEFT_LOCK_CAPTURE);
  return !gone;
#else
  (void)capture;
  (void)thread;
  (void)nanoseconds;
  return false;
#endif
}

weft_capture *weft_capture_make(void) { return calloc(1, sizeof(weft_capture)); }

void weft_capture_drop(weft_capture *capture) {
  static weft_capture *dropped; /* GUARDED BY: WEFT_LOCK_CAPTURE */
  weft_process_lock(WEFT_LOCK_CAPTURE);
  capture->next = dropped;
  dropped = capture;
  for (weft_capture **link = &dropped; *link != NULL;) {
    weft_capture *one = *link;
    uint64_t state = weft_word_load_acquire(&one->state);
    if (state == CAPTURE_LEFT || state == CAPTURE_IDLE) {
      *link = one->next;
      free(one);
    } else {
      link = &one->next;
    }
  }
  weft_process_unlock(WEFT_LOCK_CAPTURE);
}

void weft_capture_release(weft_capture *capture) {
  weft_word_store_release(&capture->state, CAPTURE_DONE);
}

#if defined(__linux__)
int32_t weft_thread_system_call(uint64_t thread) {
  char path[64], text[64] = {0};
  snprintf(path, sizeof path, "/proc/self/task/%llu/syscall", (unsigned long long)thread);
  FILE *file = fopen(path, "re");
  if (file == NULL) return -2;
  bool read = fgets(text, sizeof text, file) != NULL;
  fclose(file);
  if (!read) return -2;
  if (strncmp(text, "running", 7) == 0) return -1;
  char *end;
  long number = strtol(text, &end, 10);
  if (end == text) return -2;
  return number >= 0 ? (int32_t)number : -3;
}

/* PLATFORM: signal(7) lists the calls that fail with EINTR whatever the handler's flags say. A
 * futex with a time limit is restarted by the kernel itself. */
bool weft_system_call_restarts(int32_t number) {
  switch (number) {
    case -1:
    case SYS_read:
    case SYS_write:
    case SYS_readv:
    case SYS_writev:
    case SYS_pread64:
    case SYS_pwrite64:
    case SYS_openat:
    case SYS_wait4:
    case SYS_waitid:
    case SYS_flock:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_futex:
    case SYS_sched_yield:
    case SYS_madvise:
    case SYS_mmap:
    case SYS_munmap:
    /* These never wait; clock_gettime is a call where the kernel's page can't read the clock. */
    case SYS_clock_gettime:
    case SYS_gettid:
    case SYS_getpid:
    case SYS_mprotect:
    case SYS_brk:
      return true;
    default:
      return false;
  }
}
#else
int32_t weft_thread_system_call(uint64_t thread) {
  (void)thread;
  return -2;
}
bool weft_system_call_restarts(int32_t number) { return number == -1; }
#endif

WEFT_UNINSTRUMENTED uint64_t weft_worker_switches(weft_worker *worker) {
  /* Those that go past the queue are counted apart, from each look at the queue to the next. */
  /* ORDERING: relaxed; a figure that is compared with itself. */
  uint64_t direct = __atomic_load_n(&worker->direct, __ATOMIC_RELAXED);
  return weft_word_load_relaxed(&worker->tick) ^ direct << 48;
}

WEFT_UNINSTRUMENTED weft_fiber *weft_worker_running(weft_worker *worker) {
  /* ORDERING: relaxed; the address alone is used, unless the fiber is held. */
  return __atomic_load_n(&worker->current, __ATOMIC_RELAXED);
}

bool weft_copy_memory(void *to, const void *from, uint64_t bytes) {
#if defined(__linux__)
  struct iovec local = {to, bytes}, remote = {(void *)(uintptr_t)from, bytes};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)bytes;
#else
  (void)to;
  (void)from;
  (void)bytes;
  return false;
#endif
}

/* ---- Dumps on a signal ---- */

/* ORDERING: release by the one who installs the handler, acquire in the handler; relaxed in a child
 * of fork(), which has one thread. */
static _Atomic(weft_word *) dump_word;

static void on_dump(int number) {
  int saved = errno;
  (void)number;
  weft_word *word = atomic_load_explicit(&dump_word, memory_order_acquire);
  if (word != NULL) {
    weft_word_add(word, 1);
    weft_futex_wake(word, 1);
  }
  errno = saved;
}

bool weft_dump_on_signal(int32_t signal, weft_word *word) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_dump;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  atomic_store_explicit(&dump_word, word, memory_order_release);
  return sigaction(signal, &action, NULL) == 0;
}

/* ---- fork ---- */

void weft_watch_forked(void) {
  /* ORDERING: relaxed; the child has one thread. */
  weft_word_store_relaxed(&known_threads, 0);
  is_known = false;
  installations = 0;
  atomic_store_explicit(&asked_capture, NULL, memory_order_relaxed);
  atomic_store_explicit(&dump_word, NULL, memory_order_relaxed);
}
