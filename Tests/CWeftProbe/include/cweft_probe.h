/* cweft_probe.h - checks of the context switch, one function each.
 *
 * They are called by main.c (a program of its own, which also runs under user-mode emulation on
 * other architectures) and by Swift tests. Each check fills a report with the first thing that
 * went wrong, or leaves it empty. They keep no global state: tests may run them side by side.
 */
#ifndef CWEFT_PROBE_H
#define CWEFT_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cweft.h"

/* What went wrong first; an empty text says that nothing did. */
typedef struct weft_probe_report {
  char text[240];
} weft_probe_report;

/* How one side of a pair leaves its stack. */
typedef enum weft_probe_way {
  WEFT_PROBE_SWITCH,          /* weft_switch */
  WEFT_PROBE_INLINE,          /* weft_switch_inline in a C function */
  WEFT_PROBE_SWITCH_CONTROL,  /* the same two, keeping floating-point control */
  WEFT_PROBE_INLINE_CONTROL,
  WEFT_PROBE_INLINE_CONTROL_LOAD, /* loading it without comparing first */
  WEFT_PROBE_WAYS
} weft_probe_way;

const char *_Nonnull weft_probe_way_name(weft_probe_way way);

/* Every callee-saved register, filled with patterns on both sides of `rounds` round trips. */
void weft_probe_registers(weft_probe_way parent, weft_probe_way child, uint64_t rounds,
                          weft_probe_report *_Nonnull report);
void weft_probe_textbook_registers(uint64_t rounds, weft_probe_report *_Nonnull report);

/* A switch that does not keep floating-point control leaves it alone: the other side sees it. */
void weft_probe_control_passes(weft_probe_way way, weft_probe_report *_Nonnull report);

/* What a C compiler keeps over an inline switch, while the other side overwrites everything. */
void weft_probe_live_values(uint64_t rounds, weft_probe_report *_Nonnull report);
void weft_probe_red_zone(uint64_t rounds, weft_probe_report *_Nonnull report);
void weft_probe_one_frame(uint64_t rounds, weft_probe_report *_Nonnull report);

/* Stacks of the probe's own. */
void weft_probe_entry_alignment(weft_probe_report *_Nonnull report);
void weft_probe_textbook_alignment(weft_probe_report *_Nonnull report);
void weft_probe_above_and_below(weft_probe_report *_Nonnull report);
void weft_probe_nested(unsigned depth, weft_probe_report *_Nonnull report);
void weft_probe_first_value(weft_probe_report *_Nonnull report);

/* The pool of stacks: sizes, bounds and alignment; no two alike; last in, first out; many threads;
 * guards; how deep a stack was used; a hundred thousand at once. */
void weft_probe_pool_sizes(weft_probe_report *_Nonnull report);
void weft_probe_pool_reuse(weft_probe_report *_Nonnull report);
void weft_probe_pool_threads(weft_probe_report *_Nonnull report);
void weft_probe_pool_guard(size_t bytes, size_t below, weft_probe_report *_Nonnull report);
void weft_probe_pool_high_water(weft_probe_report *_Nonnull report);
void weft_probe_pool_many(size_t count, bool exhaust, weft_probe_report *_Nonnull report);

/* Coroutines in C: registers and control over resume and yield, sums, a call on another stack. */
void weft_probe_coroutine_registers(uint64_t rounds, weft_probe_report *_Nonnull report);
void weft_probe_coroutine_sum(uint64_t count, weft_probe_report *_Nonnull report);
void weft_probe_coroutine_migrates(uint64_t rounds, weft_probe_report *_Nonnull report);
void weft_probe_call_on_stack(weft_probe_report *_Nonnull report);

/* Backtraces from inside; where the C library has no backtrace(), they find nothing wrong. */
void weft_probe_backtrace(weft_probe_report *_Nonnull report);
void weft_probe_textbook_backtrace(weft_probe_report *_Nonnull report);

/* Spins until the word is not 0, in code that no unwinder knows anything about. */
void weft_probe_spin_unknown(const volatile uint64_t *_Nonnull word);

/* Signals that arrive at any instruction of any switch, for about `milliseconds`. */
void weft_probe_signal_storm(unsigned milliseconds, weft_probe_report *_Nonnull report);

/* A function that must not return and does: the process (a child of this one) dies of a trap. */
void weft_probe_body_returns(weft_probe_report *_Nonnull report);
void weft_probe_routine_returns(weft_probe_report *_Nonnull report);

#endif
