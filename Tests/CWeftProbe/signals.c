/* signals.c - signals that arrive in the middle of a switch, of all kinds. */
#if !defined(__APPLE__)
#define _POSIX_C_SOURCE 200809L
#endif
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "probe.h"

/* ---- the storm ---- */

/* A handler has no argument of ours. One storm runs at a time. */
static atomic_uint arrived;
static atomic_uint dirt;

/* On the stack that runs, whichever it is: a stack pointer that is wrong for one instruction makes
 * the kernel's frame and this buffer overwrite something. */
static void on_signal(int number) {
  volatile char buffer[1024];
  for (unsigned i = 0; i < sizeof buffer; i++) buffer[i] = (char)number;
  atomic_fetch_add_explicit(&dirt, (unsigned)buffer[number], memory_order_relaxed);
  atomic_fetch_add_explicit(&arrived, 1, memory_order_relaxed);
}

typedef struct storm {
  pthread_t target;
  atomic_bool over;
} storm;

static void *send_signals(void *argument) {
  storm *s = argument;
  while (!atomic_load(&s->over)) {
    /* SIGURG is ignored by default: one that comes late harms nobody. */
    pthread_kill(s->target, SIGURG);
    nanosleep(&(struct timespec){.tv_nsec = 2000}, NULL);
  }
  return NULL;
}

static uint64_t now_milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void weft_probe_signal_storm(unsigned milliseconds, weft_probe_report *report) {
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, before;
  sigemptyset(&action.sa_mask);
  sigaction(SIGURG, &action, &before);
  /* Threads of a dispatch pool block every signal. */
  sigset_t urgent, mask;
  sigemptyset(&urgent);
  sigaddset(&urgent, SIGURG);
  pthread_sigmask(SIG_UNBLOCK, &urgent, &mask);
  unsigned start = atomic_load(&arrived);
  storm s = {.target = pthread_self()};
  pthread_t sender;
  bool started = pthread_create(&sender, NULL, send_signals, &s) == 0;
  if (!started) weft_probe_fail(report, "no thread to send signals from");
  uint64_t end = now_milliseconds() + milliseconds;
  while (now_milliseconds() < end && !weft_probe_failed(report)) {
    for (unsigned way = 0; way < WEFT_PROBE_WAYS; way++)
      weft_probe_registers(way, (way + 1) % WEFT_PROBE_WAYS, 200, report);
    weft_probe_textbook_registers(200, report);
    weft_probe_red_zone(2000, report);
    weft_probe_live_values(2000, report);
    weft_probe_one_frame(20000, report);
    weft_probe_coroutine_registers(200, report);
    weft_probe_coroutine_sum(20000, report);
  }
  atomic_store(&s.over, true);
  if (started) pthread_join(sender, NULL);
  pthread_sigmask(SIG_SETMASK, &mask, NULL);
  sigaction(SIGURG, &before, NULL);
  unsigned count = atomic_load(&arrived) - start;
  if (count < 20) weft_probe_fail(report, "only %u signals arrived", count);
}
