/* main.c - runs every check of the probe and prints one line for each.
 *
 * A program of its own, for architectures on which there is no Swift to test with:
 *   probe [rounds]       (a million round trips if not given)
 */
#include <stdio.h>
#include <stdlib.h>

#include "probe.h"

static unsigned passed, failed;

static void print(const char *name, const weft_probe_report *report) {
  if (weft_probe_failed(report)) {
    failed++;
    printf("FAIL %s: %s\n", name, report->text);
  } else {
    passed++;
    printf("ok   %s\n", name);
  }
  fflush(stdout);
}

#define CHECK(name, call)             \
  do {                                \
    weft_probe_report report = {{0}}; \
    call;                             \
    print(name, &report);             \
  } while (0)

int main(int count, char **arguments) {
  uint64_t rounds = count > 1 ? strtoull(arguments[1], NULL, 10) : 1000000;
  char name[160];
  for (weft_probe_way parent = 0; parent < WEFT_PROBE_WAYS; parent++) {
    for (weft_probe_way child = 0; child < WEFT_PROBE_WAYS; child++) {
      snprintf(name, sizeof name, "registers survive %s answered by %s",
               weft_probe_way_name(parent), weft_probe_way_name(child));
      CHECK(name, weft_probe_registers(parent, child, rounds, &report));
    }
  }
  CHECK("registers survive weft_swapcontext", weft_probe_textbook_registers(rounds, &report));
  CHECK("weft_switch leaves floating-point control alone",
        weft_probe_control_passes(WEFT_PROBE_SWITCH, &report));
  CHECK("weft_switch_inline leaves floating-point control alone",
        weft_probe_control_passes(WEFT_PROBE_INLINE, &report));
  CHECK("live values survive the inline switch", weft_probe_live_values(rounds, &report));
  CHECK("a leaf's data below sp survives", weft_probe_red_zone(rounds, &report));
  CHECK("one frame serves both sides", weft_probe_one_frame(rounds, &report));
  CHECK("sp is aligned at entry", weft_probe_entry_alignment(&report));
  CHECK("sp is aligned at a textbook entry", weft_probe_textbook_alignment(&report));
  CHECK("stacks above and below the parent", weft_probe_above_and_below(&report));
  CHECK("a thousand nested contexts", weft_probe_nested(1000, &report));
  CHECK("values pass both ways", weft_probe_first_value(&report));
  CHECK("a backtrace ends in weft_entry", weft_probe_backtrace(&report));
  CHECK("a textbook backtrace ends", weft_probe_textbook_backtrace(&report));
  CHECK("stacks of all sizes", weft_probe_pool_sizes(&report));
  CHECK("stacks are reused", weft_probe_pool_reuse(&report));
  CHECK("stacks have one owner among threads", weft_probe_pool_threads(&report));
  CHECK("a write below a stack faults", weft_probe_pool_guard(65536, 1, &report));
  CHECK("a write 60 KiB below a stack faults",
        weft_probe_pool_guard(WEFT_STACK_BYTES_DEFAULT, 60 << 10, &report));
  CHECK("a write below a huge stack faults", weft_probe_pool_guard(1 << 28, 1, &report));
  CHECK("a stack says how deep it was used", weft_probe_pool_high_water(&report));
  CHECK("registers survive resume and yield", weft_probe_coroutine_registers(rounds, &report));
  CHECK("a generator's sum", weft_probe_coroutine_sum(rounds, &report));
  CHECK("a coroutine moves from thread to thread", weft_probe_coroutine_migrates(100, &report));
  CHECK("a deep call on a stack of its own", weft_probe_call_on_stack(&report));
  CHECK("signals in the middle of a switch", weft_probe_signal_storm(1000, &report));
  CHECK("a body that returns traps", weft_probe_body_returns(&report));
  CHECK("a textbook routine that returns traps", weft_probe_routine_returns(&report));
  /* The last one, since it may leave no mapping for others. */
  CHECK("a hundred thousand stacks, or the limit's name",
        weft_probe_pool_many(100000, true, &report));
  printf("%u passed, %u failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}
