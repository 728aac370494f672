/* cweft_system.h - the system calls that the scheduler needs, with one name on every platform. */
#ifndef CWEFT_SYSTEM_H
#define CWEFT_SYSTEM_H

#include <stdbool.h>
#include <stdint.h>

#include "cweft_atomic.h"

/* Nanoseconds on the clock of ContinuousClock (on Linux CLOCK_BOOTTIME). */
uint64_t weft_clock_now(void);

/* Waits while the low half of `word` is `expected`, until woken, for `nanoseconds` at most
 * (UINT64_MAX: for ever). May return early. */
void weft_futex_wait(weft_word *_Nonnull word, uint32_t expected, uint64_t nanoseconds);
void weft_futex_wake(weft_word *_Nonnull word, int32_t count);

/* How much later than asked the kernel may end this thread's waits, to gather several: 50 us unless
 * somebody said otherwise. Sets it, and returns what it was; 0 where there is no such thing.
 * Threads that this one starts begin with its. */
uint64_t weft_timer_slack(uint64_t nanoseconds);

/* Registers the process for membarrier. False where it is refused: use unbiased queues. */
bool weft_membarrier_register(void);
void weft_membarrier(void);

/* Lets another thread run, in a loop that waits for it. */
void weft_thread_yield(void);

/* CPUs that this thread may use, capped by the cgroup's quota (rounded up); at least 1. */
int32_t weft_cpus_available(void);
/* The n-th CPU in the affinity mask, or -1. */
int32_t weft_cpu_at(int32_t n);
/* Pins the calling thread. False where it is refused. */
bool weft_cpu_pin(int32_t cpu);
/* Gives the calling thread back the CPUs that the process had before the first pin. */
void weft_cpu_unpin(void);

/* What a thread of ours refers to from its own stack is no leak. While it runs a fiber, the leak
 * sanitizer does not look there. */
void weft_thread_keeps(const void *_Nonnull object);

/* Kernel threads of this process; -1 where it can't be told. */
int32_t weft_thread_count(void);
void weft_thread_set_name(const char *_Nonnull name);
uint64_t weft_thread_id(void);
/* Processor time of a thread of this process, by its id; UINT64_MAX where it can't be told. */
uint64_t weft_thread_processor_time(uint64_t thread);

/* A count that goes up in every child of fork(). */
uint64_t weft_fork_generation(void);
/* True on the one thread of a child whose fork() was called by a fiber: that fiber's worker is not
 * there any more. */
bool weft_forked_on_worker(void);

/* Locks of the process, which a fork() never leaves held in the child. Taken in this order. */
enum { WEFT_LOCK_SHARED = 0, WEFT_LOCK_LIST = 1, WEFT_LOCK_CAPTURE = 2, WEFT_LOCKS = 3 };
void weft_process_lock(int32_t which);
void weft_process_unlock(int32_t which);

/* Opens an epoll and an eventfd that is registered with it; -1, and nothing open, on failure. */
int32_t weft_epoll_open(int32_t *_Nonnull event);
/* Waits for one event (stored at `event` unless null); 0 after the time or a signal. Linux only. */
int32_t weft_epoll_wait(int32_t epoll, uint64_t nanoseconds, void *_Nullable event);

/* Where this thread's errno is. */
int32_t *_Nonnull weft_errno_address(void);
/* Writes out what the program printed, unless somebody holds that stream. */
void weft_flush_output(void);

#endif
