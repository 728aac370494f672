/* threads.c - what kernel threads cost for the things that fibers do: beginning and ending, passing
 * the turn to each other, being woken. The words to sleep on are the library's own, so that the
 * system call is the same on both sides of a comparison.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "bench_variants.h"
#include "cweft.h"

static void *begin_and_end(void *argument) { return argument; }

uint64_t bench_pthread_create_join(uint64_t count) {
  uint64_t done = 0;
  for (uint64_t i = 0; i < count; i++) {
    pthread_t thread;
    void *result = NULL;
    if (pthread_create(&thread, NULL, begin_and_end, &done)) break;
    pthread_join(thread, &result);
    done += result == &done;
  }
  return done;
}

/* One word, two threads: whose turn it is. */
struct turns {
  weft_word word;
  uint64_t count;
  uint64_t answered;
};

static void pass(weft_word *word, uint64_t to) {
  weft_word_store_release(word, to);
  weft_futex_wake(word, 1);
}

static void await(weft_word *word, uint64_t turn) {
  uint64_t seen;
  while ((seen = weft_word_load_acquire(word)) != turn)
    weft_futex_wait(word, (uint32_t)seen, UINT64_MAX);
}

static void *answer(void *argument) {
  struct turns *turns = argument;
  for (uint64_t i = 0; i < turns->count; i++) {
    await(&turns->word, 1);
    turns->answered++;
    pass(&turns->word, 0);
  }
  return NULL;
}

uint64_t bench_futex_pingpong(uint64_t count) {
  struct turns turns = {.count = count};
  pthread_t thread;
  if (pthread_create(&thread, NULL, answer, &turns)) return 0;
  for (uint64_t i = 0; i < count; i++) {
    pass(&turns.word, 1);
    await(&turns.word, 0);
  }
  pthread_join(thread, NULL);
  return turns.answered;
}

/* A thread that sleeps on `word` and notes how late it goes on after `sent`. */
struct sleeper {
  weft_word word;
  weft_word ready;
  weft_word sent;
  uint64_t count;
  uint64_t *latencies;
};

static void *sleep_and_note(void *argument) {
  struct sleeper *sleeper = argument;
  for (uint64_t i = 0; i < sleeper->count; i++) {
    weft_word_store_release(&sleeper->ready, i + 1);
    await(&sleeper->word, i + 1);
    sleeper->latencies[i] = weft_clock_now() - weft_word_load_acquire(&sleeper->sent);
  }
  return NULL;
}

bool bench_futex_wakes(uint64_t count, uint64_t gap_nanoseconds, uint64_t *latencies) {
  struct sleeper sleeper = {.count = count, .latencies = latencies};
  pthread_t thread;
  if (pthread_create(&thread, NULL, sleep_and_note, &sleeper)) return false;
  for (uint64_t i = 0; i < count; i++) {
    while (weft_word_load_acquire(&sleeper.ready) != i + 1) weft_pause();
    bench_spin(gap_nanoseconds);
    weft_word_store_release(&sleeper.sent, weft_clock_now());
    pass(&sleeper.word, i + 1);
  }
  pthread_join(thread, NULL);
  return true;
}

void bench_spin(uint64_t nanoseconds) {
  uint64_t end = weft_clock_now() + nanoseconds;
  while (weft_clock_now() < end) weft_pause();
}
