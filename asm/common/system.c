/* system.c - futex, membarrier, processors, clock: one name on every platform. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE 1
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(__linux__)
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include "internal.h"

#include "cweft_fiber.h"
#include "cweft_system.h"
#include "cweft_watch.h"
#include "sanitizer.h"

/* The simulator of this thread, if there is one. */
static weft_seam *simulator(void) {
  return weft_seam_is_open() ? weft_seam_current() : NULL;
}

uint64_t weft_clock_now(void) {
  weft_seam *seam = simulator();
  if (seam != NULL) return seam->clock;
  struct timespec now;
#if defined(__linux__)
  clock_gettime(CLOCK_BOOTTIME, &now);
#else
  clock_gettime(CLOCK_MONOTONIC, &now);
#endif
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t weft_timer_slack(uint64_t nanoseconds) {
#if defined(__linux__)
  int before = prctl(PR_GET_TIMERSLACK);
  if (before <= 0 || nanoseconds == 0) return 0;
  prctl(PR_SET_TIMERSLACK, (unsigned long)nanoseconds);
  return (uint64_t)before;
#else
  (void)nanoseconds;
  return 0;
#endif
}

/* ---- Sleeping on a word ---- */

#if defined(__linux__)
static uint32_t *low_half(weft_word *word) {
  return (uint32_t *)(void *)&word->value; /* little-endian on both architectures */
}

void weft_futex_wait(weft_word *word, uint32_t expected, uint64_t nanoseconds) {
  struct timespec timeout, *limit = NULL;
  weft_seam *seam = simulator();
  if (seam != NULL) {
    seam->wait(seam, word, expected, nanoseconds);
    return;
  }
  if (nanoseconds != UINT64_MAX) {
    timeout.tv_sec = (time_t)(nanoseconds / 1000000000u);
    timeout.tv_nsec = (long)(nanoseconds % 1000000000u);
    limit = &timeout;
  }
  syscall(SYS_futex, low_half(word), FUTEX_WAIT_PRIVATE, expected, limit, NULL, 0);
}

void weft_futex_wake_really(weft_word *word, int32_t count) {
  syscall(SYS_futex, low_half(word), FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}
#else
/* PLATFORM: elsewhere one lock and condition serve all words; wakes are broadcast. */
static pthread_mutex_t futex_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t futex_condition = PTHREAD_COND_INITIALIZER;

void weft_futex_wait(weft_word *word, uint32_t expected, uint64_t nanoseconds) {
  struct timespec until;
  weft_seam *seam = simulator();
  if (seam != NULL) {
    seam->wait(seam, word, expected, nanoseconds);
    return;
  }
  pthread_mutex_lock(&futex_lock);
  if ((uint32_t)weft_word_load_seq(word) == expected) {
    if (nanoseconds == UINT64_MAX) {
      pthread_cond_wait(&futex_condition, &futex_lock);
    } else {
      clock_gettime(CLOCK_REALTIME, &until);
      uint64_t nanos = (uint64_t)until.tv_nsec + nanoseconds % 1000000000u;
      until.tv_sec += (time_t)(nanoseconds / 1000000000u + nanos / 1000000000u);
      until.tv_nsec = (long)(nanos % 1000000000u);
      pthread_cond_timedwait(&futex_condition, &futex_lock, &until);
    }
  }
  pthread_mutex_unlock(&futex_lock);
}

void weft_futex_wake_really(weft_word *word, int32_t count) {
  (void)word;
  (void)count;
  pthread_mutex_lock(&futex_lock);
  pthread_cond_broadcast(&futex_condition);
  pthread_mutex_unlock(&futex_lock);
}
#endif

void weft_futex_wake(weft_word *word, int32_t count) {
  weft_seam *seam = simulator();
  if (seam != NULL) seam->wake(seam, word, count);
  else weft_futex_wake_really(word, count);
}

/* ---- membarrier ---- */

bool weft_membarrier_register(void) {
#if WEFT_TSAN
  /* The thread sanitizer can't see what a membarrier orders. */
  return false;
#elif defined(__linux__)
  const char *wish = getenv("WEFT_RUN_QUEUE");
  if (wish != NULL && strcmp(wish, "unbiased") == 0) return false;
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
#else
  return false;
#endif
}

void weft_membarrier(void) {
  if (simulator() != NULL) {
    weft_seam_point(WEFT_POINT_FENCE, NULL);
    return;
  }
#if defined(__linux__)
  syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
#endif
}

void weft_thread_yield(void) {
  if (simulator() != NULL) weft_seam_point(WEFT_POINT_PAUSE, NULL);
  else sched_yield();
}

/* ---- Processors ---- */

#if defined(__linux__)
bool weft_read_text(const char *path, char *text, size_t bytes) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t count = read(fd, text, bytes - 1);
  close(fd);
  if (count < 0) return false;
  text[count] = 0;
  return true;
}

/* The quota of one cgroup v2 directory in whole CPUs, rounded up; 0 where there is none. */
static int32_t quota_at(const char *directory) {
  char path[4352], text[128];
  long long quota = 0, period = 0;
  snprintf(path, sizeof path, "%s/cpu.max", directory);
  if (!weft_read_text(path, text, sizeof text)) return 0;
  if (sscanf(text, "%lld %lld", &quota, &period) != 2 || quota <= 0 || period <= 0) return 0;
  return (int32_t)((quota + period - 1) / period);
}

static int32_t cgroup_quota(void) {
  char text[4096], directory[4224];
  int32_t least = 0;
  if (!weft_read_text("/proc/self/cgroup", text, sizeof text)) return 0;
  char *line = strstr(text, "0::");
  if (line == NULL) { /* version 1 */
    char number[64];
    long long quota = 0, period = 0;
    if (!weft_read_text("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", number, sizeof number)) return 0;
    quota = atoll(number);
    if (!weft_read_text("/sys/fs/cgroup/cpu/cpu.cfs_period_us", number, sizeof number)) return 0;
    period = atoll(number);
    return quota > 0 && period > 0 ? (int32_t)((quota + period - 1) / period) : 0;
  }
  line += 3;
  line[strcspn(line, "\n")] = 0;
  snprintf(directory, sizeof directory, "/sys/fs/cgroup%s", line);
  /* Every ancestor's quota binds too. */
  for (;;) {
    int32_t quota = quota_at(directory);
    if (quota > 0 && (least == 0 || quota < least)) least = quota;
    char *slash = strrchr(directory, '/');
    if (slash == NULL || slash - directory < (long)strlen("/sys/fs/cgroup")) break;
    *slash = 0;
  }
  return least;
}

/* Large enough for any machine; the fixed cpu_set_t ends at 1,024. */
#define CPU_SET_BYTES 1024

/* What the first thread that was pinned had before; never changes once it is there.
 *
 * ORDERING: the swap releases the set to the acquire loads of whoever uses it. */
static _Atomic(cpu_set_t *) unpinned_set;
/* The calling thread's own mask is our doing, and says nothing about the process. */
static __thread bool is_pinned WEFT_TLS_MODEL;

/* What the process may use, as far as this thread can tell. */
static bool usable_cpus(cpu_set_t *set) {
  cpu_set_t *before = atomic_load_explicit(&unpinned_set, memory_order_acquire);
  if (set == NULL) return false;
  if (is_pinned && before != NULL) {
    memcpy(set, before, CPU_SET_BYTES);
    return true;
  }
  return sched_getaffinity(0, CPU_SET_BYTES, set) == 0;
}

int32_t weft_cpus_available(void) {
  cpu_set_t *set = calloc(1, CPU_SET_BYTES);
  int32_t count = 0;
  if (usable_cpus(set)) {
    count = CPU_COUNT_S(CPU_SET_BYTES, set);
  }
  free(set);
  if (count <= 0) count = (int32_t)sysconf(_SC_NPROCESSORS_ONLN);
  int32_t quota = cgroup_quota();
  if (quota > 0 && quota < count) count = quota;
  return count > 0 ? count : 1;
}

int32_t weft_cpu_at(int32_t n) {
  cpu_set_t *set = calloc(1, CPU_SET_BYTES);
  int32_t found = -1;
  if (usable_cpus(set)) {
    for (int32_t cpu = 0; cpu < CPU_SET_BYTES * 8; cpu++) {
      if (CPU_ISSET_S((size_t)cpu, CPU_SET_BYTES, set) && n-- == 0) {
        found = cpu;
        break;
      }
    }
  }
  free(set);
  return found;
}

bool weft_cpu_pin(int32_t cpu) {
  cpu_set_t *set = calloc(1, CPU_SET_BYTES);
  if (set == NULL || cpu < 0 || cpu >= CPU_SET_BYTES * 8) {
    free(set);
    return false;
  }
  cpu_set_t *before = calloc(1, CPU_SET_BYTES), *none = NULL;
  if (before == NULL || !usable_cpus(before) ||
      !atomic_compare_exchange_strong(&unpinned_set, &none, before)) {
    free(before);
  }
  CPU_SET_S((size_t)cpu, CPU_SET_BYTES, set);
  bool done = sched_setaffinity(0, CPU_SET_BYTES, set) == 0;
  free(set);
  is_pinned = is_pinned || done;
  return done;
}

void weft_cpu_unpin(void) {
  cpu_set_t *before = atomic_load_explicit(&unpinned_set, memory_order_acquire);
  if (before != NULL) sched_setaffinity(0, CPU_SET_BYTES, before);
  is_pinned = false;
}

int32_t weft_thread_count(void) {
  /* One number that the kernel keeps: a walk over /proc/self/task may miss some while others end.
   * It is the 20th field; the second may hold blanks, and ends with the last parenthesis. */
  char text[1024];
  if (!weft_read_text("/proc/self/stat", text, sizeof text)) return -1;
  char *field = strrchr(text, ')');
  for (int i = 2; field != NULL && i < 20; i++) field = strchr(field + 1, ' ');
  return field != NULL ? (int32_t)strtol(field, NULL, 10) : -1;
}

void weft_thread_set_name(const char *name) { pthread_setname_np(pthread_self(), name); }

uint64_t weft_thread_id(void) { return (uint64_t)syscall(SYS_gettid); }

/* The kernel's own limit is 2^22; past 2^28 an id would not fit into the number of a clock. */
#define WEFT_THREAD_ID_MAX ((1u << 28) - 1)

uint64_t weft_thread_processor_time(uint64_t thread) {
  /* PLATFORM: how the kernel numbers the clock of a thread, as pthread_getcpuclockid does: the id
   * inverted, above the bits for "of one thread" (4) and "as the scheduler counts it" (2). */
  if (thread == 0 || thread > WEFT_THREAD_ID_MAX) return UINT64_MAX;
  clockid_t clock = (clockid_t)(~(uint32_t)thread << 3 | 6);
  struct timespec time;
  if (clock_gettime(clock, &time) != 0) return UINT64_MAX;
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}
#else
int32_t weft_cpus_available(void) {
  long count = sysconf(_SC_NPROCESSORS_ONLN);
  return count > 0 ? (int32_t)count : 1;
}
int32_t weft_cpu_at(int32_t n) {
  (void)n;
  return -1;
}
bool weft_cpu_pin(int32_t cpu) {
  (void)cpu;
  return false;
}
void weft_cpu_unpin(void) {}
int32_t weft_thread_count(void) { return -1; }
void weft_thread_set_name(const char *name) { pthread_setname_np(name); }
uint64_t weft_thread_id(void) {
  uint64_t id = 0;
  pthread_threadid_np(NULL, &id);
  return id;
}
uint64_t weft_thread_processor_time(uint64_t thread) {
  (void)thread;
  return UINT64_MAX;
}
#endif

/* ---- fork ---- */

/* ORDERING: relaxed; it changes in a child that has one thread. */
static _Atomic(uint64_t) fork_generation;

static pthread_mutex_t process_locks[WEFT_LOCKS] = {
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static __thread bool forked_on_worker WEFT_TLS_MODEL;

void weft_process_lock(int32_t which) { pthread_mutex_lock(&process_locks[which]); }
void weft_process_unlock(int32_t which) { pthread_mutex_unlock(&process_locks[which]); }
bool weft_forked_on_worker(void) { return forked_on_worker; }

/* All locks are held while the process is copied, so that none is left with a holder that is not
 * there any more. The pool of stacks comes last: the others are held around its calls. */
static void before_fork(void) {
  for (int32_t i = 0; i < WEFT_LOCKS; i++) weft_process_lock(i);
  weft_stack_lock_all();
}

static void in_parent(void) {
  weft_stack_unlock_all();
  for (int32_t i = WEFT_LOCKS - 1; i >= 0; i--) weft_process_unlock(i);
}

static void in_child(void) {
  in_parent();
  atomic_fetch_add_explicit(&fork_generation, 1, memory_order_relaxed);
  /* A fiber that forked goes on in the child, on a worker whose scheduler has lost its threads:
   * what it asks of the runtime from now on is refused by name. */
  if (weft_worker_current_outlined() != NULL) {
    weft_worker_set_current(NULL);
    forked_on_worker = true;
  }
  weft_watch_forked();
}

__attribute__((constructor)) static void watch_forks(void) {
  pthread_atfork(before_fork, in_parent, in_child);
}

uint64_t weft_fork_generation(void) {
  return atomic_load_explicit(&fork_generation, memory_order_relaxed);
}

int32_t *weft_errno_address(void) { return &errno; }

void weft_flush_output(void) {
  if (ftrylockfile(stdout) != 0) return;
  fflush(stdout);
  funlockfile(stdout);
}

/* ---- epoll ---- */

#if defined(__linux__)
#include <sys/epoll.h>
#include <sys/eventfd.h>

#if !defined(SYS_epoll_pwait2)
#define SYS_epoll_pwait2 441
#endif

int32_t weft_epoll_open(int32_t *event) {
  int epoll = epoll_create1(EPOLL_CLOEXEC);
  *event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct epoll_event interest = {.events = EPOLLIN, .data.fd = *event};
  if (epoll >= 0 && *event >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, *event, &interest) == 0) {
    return epoll;
  }
  if (epoll >= 0) close(epoll);
  if (*event >= 0) close(*event);
  return -1;
}

int32_t weft_epoll_wait(int32_t epoll, uint64_t nanoseconds, void *event) {
  struct epoll_event spare;
  struct epoll_event *into = event != NULL ? event : &spare;
  struct timespec timeout, *limit = NULL;
  if (nanoseconds != UINT64_MAX) {
    timeout.tv_sec = (time_t)(nanoseconds / 1000000000u);
    timeout.tv_nsec = (long)(nanoseconds % 1000000000u);
    limit = &timeout;
  }
  long count = syscall(SYS_epoll_pwait2, epoll, into, 1, limit, NULL, 0);
  if (count < 0 && errno == ENOSYS) {
    uint64_t milliseconds = nanoseconds / 1000000u + (nanoseconds % 1000000u != 0);
    int wait = nanoseconds == UINT64_MAX ? -1
               : milliseconds > 1000000000u ? 1000000000
                                            : (int)milliseconds;
    count = epoll_wait(epoll, into, 1, wait);
  }
  return count > 0 ? (int32_t)count : 0;
}
#endif
