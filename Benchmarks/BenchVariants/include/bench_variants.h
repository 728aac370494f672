/* bench_variants.h - what the Swift jobs call that Swift cannot say itself.
 *
 * First: the context switches, each in a generator loop written in C, so that all of them are
 * compiled the same way. Among them are those that were measured and rejected, kept to be
 * measured again on other processors. A function `uint64_t bench_switch_...(uint64_t count)` lets a
 * producer on its own stack hand over 0, 1, ... count - 1 and returns their sum, for which it
 * switches 2 * count times.
 *
 * Then: kernel threads doing what fibers do, a sink that keeps results alive, and a counter of
 * allocations.
 */
#ifndef BENCH_VARIANTS_H
#define BENCH_VARIANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cweft.h"

/* The textbook switch: six pushes, six pops, ret. */
uint64_t bench_switch_textbook(uint64_t count);
/* Store-based, called: one jump and one ret that mispredicts. */
uint64_t bench_switch_outofline(uint64_t count);
/* Store-based, inlined, one frame for each side. */
uint64_t bench_switch_inline(uint64_t count);
/* The same with one frame that holds whichever side is suspended. */
uint64_t bench_switch_inline_shared(uint64_t count);
/* The same, but storing first and jumping through memory. x86-64 only. */
uint64_t bench_switch_memory(uint64_t count);
/* Resume by `call`, yield by the `ret` that matches it. x86-64 only. */
uint64_t bench_switch_pairing(uint64_t count);
/* glibc's swapcontext, which asks the kernel for the signal mask each time. */
uint64_t bench_switch_ucontext(uint64_t count);

/* The inline switch with floating-point control kept: stored always, and loaded ... */
uint64_t bench_switch_fp_compare(uint64_t count);    /* ... if it differs */
uint64_t bench_switch_fp_always(uint64_t count);     /* ... without a look */
uint64_t bench_switch_mxcsr_compare(uint64_t count); /* MXCSR only. These five: x86-64 only. */
uint64_t bench_switch_mxcsr_always(uint64_t count);
uint64_t bench_switch_x87_compare(uint64_t count); /* x87 control word only */
uint64_t bench_switch_x87_always(uint64_t count);
uint64_t bench_switch_fp_witness(uint64_t count); /* ... if the x87 half differs */

/* The inline switch with words of the thread kept: a coroutine needs the first, a fiber four. */
uint64_t bench_switch_word(uint64_t count);
uint64_t bench_switch_words(uint64_t count);
/* All that a fiber has to keep: floating-point control and four words. */
uint64_t bench_switch_fp_words(uint64_t count);
/* All that a coroutine has to keep, by the library's own exchange. */
uint64_t bench_switch_coroutine(uint64_t count);

/* The producer yields from three calls deep, calling down and returning for each element. */
uint64_t bench_deep_inline(uint64_t count);
uint64_t bench_deep_pairing(uint64_t count); /* x86-64 only */
/* The consumer resumes from three calls deep too. */
uint64_t bench_deep_both_inline(uint64_t count);
uint64_t bench_deep_both_pairing(uint64_t count); /* x86-64 only */
/* The same call trees without any switch, to subtract. */
uint64_t bench_deep_calls(uint64_t count);

/* Maps, touches and unmaps `count` pages one by one: what the kernel asks for a fresh page.
 * Returns `count`, less if the kernel refused. */
uint64_t bench_touch_pages(uint64_t count);

/* Begins and ends `count` kernel threads, one after the other. Returns how many ended well. */
uint64_t bench_pthread_create_join(uint64_t count);
/* Two kernel threads pass the turn there and back, `count` times, sleeping while it is not theirs.
 * Returns `count`, or 0 if there was no thread to be had. */
uint64_t bench_futex_pingpong(uint64_t count);
/* Wakes a sleeping kernel thread `count` times, each time so long after it went to sleep, and
 * stores how many nanoseconds passed from before the wake until it ran. False without a thread. */
bool bench_futex_wakes(
    uint64_t count, uint64_t gap_nanoseconds, uint64_t *_Nonnull latencies);
/* Starts this program with one argument, limited to one processor, and gives the descriptors for
 * its standard input and output. False where that can't be done. */
bool bench_start_on_one_processor(
    const char *_Nonnull argument, int32_t *_Nonnull requests, int32_t *_Nonnull answers);

/* Starts a program of the path, named and given arguments by a list that ends with NULL. What it
 * prints to standard output, and to standard error if that is asked for, can be read from *output.
 * Whether it has been started, which it is not if it can't be limited to one processor. */
bool bench_run_program(
    char *_Nullable const *_Nonnull arguments, bool with_errors, bool one_processor,
    int32_t *_Nonnull process, int32_t *_Nonnull output);
/* What became of counting. */
enum {
  BENCH_COUNT_DONE = 0,
  BENCH_COUNT_REFUSED = 1, /* this system lets no process trace another */
  BENCH_COUNT_FAILED = 2,  /* the traced process ended early, or badly */
  BENCH_COUNT_ENDLESS = 3, /* more than `limit` instructions */
};
/* Starts this program with two arguments and counts the instructions that its first thread executes
 * between each bench_mark() and the next, until there are `spans` counts. */
int32_t bench_count_instructions(
    const char *_Nonnull option, const char *_Nonnull name, uint64_t limit, uint32_t spans,
    uint64_t *_Nonnull counts);
/* The C library's name and version, and the C compiler's: instruction counts depend on both. */
const char *_Nonnull bench_c_library(void);
const char *_Nonnull bench_c_compiler(void);

/* Starts this program with one argument, waits until it has ended, and returns the nanoseconds that
 * it took; 0 if it could not be started or failed. */
uint64_t bench_run_self(const char *_Nonnull argument);

/* A place between two of which instructions are counted: a breakpoint. Deadly without a tracer. */
static inline __attribute__((always_inline)) void bench_mark(void) {
#if defined(__x86_64__)
  __asm__ volatile("int3" : : : "memory");
#elif defined(__aarch64__)
  __asm__ volatile("brk #0" : : : "memory");
#endif
}

/* Retains a Swift object and releases it again, so many times. */
void bench_retain_and_release(void *_Nonnull object, uint64_t times);

/* Keeps the processor busy for so long. */
void bench_spin(uint64_t nanoseconds);

/* Makes the compiler believe that `value` is used. */
static inline __attribute__((always_inline)) void bench_black_hole(uint64_t value) {
  __asm__ volatile("" : : "r"(value) : "memory");
}

/* Returns `value`, about which the compiler then knows nothing. */
static inline __attribute__((always_inline)) uint64_t bench_opaque(uint64_t value) {
  __asm__ volatile("" : "+r"(value));
  return value;
}

/* Whether this build counts allocations. */
bool bench_allocations_are_counted(void);
/* How many blocks malloc and its kin have given out to the calling thread. Only differences mean
 * anything. */
uint64_t bench_allocation_count(void);
/* Gives free memory of malloc back to the system, so that what is used next shows as new.
 *
 * PLATFORM: glibc; elsewhere it does nothing. */
void bench_release_free_memory(void);

#endif
