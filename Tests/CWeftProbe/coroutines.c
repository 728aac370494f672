/* coroutines.c - the coroutine of cweft_coroutine.h, without Swift around it. */
#if !defined(__APPLE__)
#define _POSIX_C_SOURCE 200809L
#endif
#include <pthread.h>
#include <stdlib.h>

#include "probe.h"

static weft_coroutine *create(void (*run)(weft_coroutine *), void *argument,
                              weft_probe_report *report) {
  weft_stack_failure failure = WEFT_STACK_OK;
  int32_t error = 0;
  weft_site site = {0};
  weft_coroutine *coroutine =
      weft_coroutine_create(WEFT_STACK_BYTES_DEFAULT, 0, &site, &failure, &error);
  if (coroutine == NULL) {
    weft_probe_fail(report, "no coroutine: failure %d, errno %d", (int)failure, (int)error);
    return NULL;
  }
  coroutine->run = run;
  coroutine->body[0] = argument;
  coroutine->body[1] = NULL;
  return coroutine;
}

/* ---- registers ---- */

/* Both hops answer with what the switch passed. */
static void *resume_hop(void *coroutine, void *unused, void *value) {
  (void)unused;
  return (void *)weft_coroutine_resume(coroutine, (uintptr_t)value);
}

static void *yield_hop(void *coroutine, void *unused, void *value) {
  (void)unused;
  (void)value;
  return (void *)weft_coroutine_yield(coroutine);
}

typedef struct exchange {
  uint64_t rounds;
  weft_probe_report *report;
} exchange;

static void exchange_run(weft_coroutine *self) {
  exchange *e = self->body[0];
  for (uint64_t round = 0; round < e->rounds; round++) {
    uint64_t fill[WEFT_PROBE_WORDS], found[WEFT_PROBE_WORDS] = {0};
    weft_probe_fill(fill, 2 * round + 1, true);
    uintptr_t value = (uintptr_t)weft_probe_call(fill, found, yield_hop, self, NULL, NULL);
    weft_probe_compare(fill, found, "body", round, e->report);
    if (value != (round + 1 == e->rounds ? WEFT_CANCEL : WEFT_GO))
      weft_probe_fail(e->report, "body, round %llu: resumed with %u", (unsigned long long)round,
                      (unsigned)value);
  }
}

void weft_probe_coroutine_registers(uint64_t rounds, weft_probe_report *report) {
  exchange e = {rounds, report};
  weft_coroutine *coroutine = create(exchange_run, &e, report);
  if (coroutine == NULL) return;
  for (uint64_t round = 0; round <= rounds; round++) {
    uint64_t fill[WEFT_PROBE_WORDS], found[WEFT_PROBE_WORDS] = {0};
    weft_probe_fill(fill, 2 * round, true);
    /* The first resume starts the body, so `rounds` more answer its yields. */
    uintptr_t value = (uintptr_t)weft_probe_call(
        fill, found, resume_hop, coroutine, NULL,
        (void *)(round == rounds ? WEFT_CANCEL : WEFT_GO));
    weft_probe_compare(fill, found, "caller", round, report);
    if (value != (round == rounds ? WEFT_ENDED : WEFT_YIELDED))
      weft_probe_fail(report, "caller, round %llu: %u came back", (unsigned long long)round,
                      (unsigned)value);
  }
  if (coroutine->phase != WEFT_PHASE_FINISHED)
    weft_probe_fail(report, "phase %d after the end", (int)coroutine->phase);
  weft_coroutine_destroy(coroutine);
}

/* ---- sums ---- */

typedef struct numbers {
  uint64_t count;
  uint64_t current;
} numbers;

static void count_run(weft_coroutine *self) {
  numbers *n = self->body[0];
  for (uint64_t i = 1; i <= n->count; i++) {
    n->current = i;
    weft_coroutine_yield(self);
  }
}

void weft_probe_coroutine_sum(uint64_t count, weft_probe_report *report) {
  numbers n = {count, 0};
  weft_coroutine *coroutine = create(count_run, &n, report);
  if (coroutine == NULL) return;
  uint64_t sum = 0;
  while (weft_coroutine_resume(coroutine, WEFT_GO) == WEFT_YIELDED) sum += n.current;
  if (sum != count * (count + 1) / 2)
    weft_probe_fail(report, "1 + ... + %llu is %llu", (unsigned long long)count,
                    (unsigned long long)sum);
  weft_coroutine_destroy(coroutine);
}

/* ---- moving to other threads ---- */

typedef struct mover {
  weft_coroutine *coroutine;
  uint64_t rounds;
  uintptr_t last;
} mover;

static void *move_rounds(void *argument) {
  mover *m = argument;
  for (uint64_t i = 0; i < m->rounds; i++) m->last = weft_coroutine_resume(m->coroutine, WEFT_GO);
  return NULL;
}

/* Each round on a new thread, one after the other; the stack goes back on yet another one. */
void weft_probe_coroutine_migrates(uint64_t rounds, weft_probe_report *report) {
  numbers n = {rounds * 10, 0};
  mover m = {create(count_run, &n, report), 10, WEFT_YIELDED};
  if (m.coroutine == NULL) return;
  for (uint64_t round = 0; round < rounds; round++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, move_rounds, &m) != 0) abort();
    pthread_join(thread, NULL);
    if (m.last != WEFT_YIELDED || n.current != (round + 1) * 10)
      weft_probe_fail(report, "round %llu: at %llu", (unsigned long long)round,
                      (unsigned long long)n.current);
  }
  if (weft_coroutine_resume(m.coroutine, WEFT_GO) != WEFT_ENDED)
    weft_probe_fail(report, "the body did not end");
  weft_coroutine_destroy(m.coroutine);
}

/* ---- a call on another stack ---- */

typedef struct descent {
  unsigned depth;
  uint64_t sum;
  uintptr_t lowest;
} descent;

/* A kilobyte a level, and some work after the call, so that no compiler makes a loop of it. */
static uint64_t descend(descent *d, unsigned level) {
  volatile char room[1024];
  room[0] = (char)level;
  if ((uintptr_t)room < d->lowest) d->lowest = (uintptr_t)room;
  uint64_t below = level == 0 ? 0 : descend(d, level - 1);
  return below + level + (room[0] != (char)level);
}

static void run_descent(void *argument) {
  descent *d = argument;
  d->sum = descend(d, d->depth);
}

void weft_probe_call_on_stack(weft_probe_report *report) {
  /* 100 MB deep: no thread's own stack has that. */
  descent d = {.depth = 100000, .lowest = UINTPTR_MAX};
  weft_site site = {0};
  int32_t error = 0;
  weft_stack_failure failure =
      weft_call_on_stack((size_t)512 << 20, &site, run_descent, &d, &error);
  if (failure != WEFT_STACK_OK)
    weft_probe_fail(report, "failure %d, errno %d", (int)failure, (int)error);
  else if (d.sum != (uint64_t)d.depth * (d.depth + 1) / 2)
    weft_probe_fail(report, "the sum of the levels is %llu", (unsigned long long)d.sum);
  if (weft_call_on_stack(0, &site, run_descent, &d, &error) != WEFT_STACK_SIZE_OUT_OF_RANGE)
    weft_probe_fail(report, "a stack of no bytes was not refused");
}
