/* stacks.c - entry alignment, stacks above and below, deep nesting, values, backtraces. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe.h"

#if defined(__GLIBC__)
#include <execinfo.h>
#endif

/* What sp has to be, modulo 16, at the first instruction of a function. */
#if defined(__x86_64__)
#define ENTRY_ALIGNMENT 8
#else
#define ENTRY_ALIGNMENT 0
#endif

/* ---- alignment ---- */

typedef struct entry {
  weft_context self;
  weft_context caller;
  uintptr_t sp;
  char text[32];
} entry;

/* Variadic functions save vector registers with aligned stores: the crash of a wrong entry. */
static void entered(entry *e, uintptr_t sp) {
  e->sp = sp;
  snprintf(e->text, sizeof e->text, "%.2f", 1.25);
}

void weft_probe_body_began(weft_frame *own, void *value, uintptr_t sp) {
  (void)own;
  entry *e = value;
  entered(e, sp);
  weft_switch(&e->self, &e->caller, NULL);
}

static void check_entry(const entry *e, uintptr_t top, weft_probe_report *report) {
  if (e->sp % 16 != ENTRY_ALIGNMENT)
    weft_probe_fail(report, "sp is %#llx at entry: %llu modulo 16, not %d",
                    (unsigned long long)e->sp, (unsigned long long)(e->sp % 16), ENTRY_ALIGNMENT);
  if (e->sp > top || top - e->sp > 64)
    weft_probe_fail(report, "sp is %#llx at entry, the stack's top %#llx",
                    (unsigned long long)e->sp, (unsigned long long)top);
  if (strcmp(e->text, "1.25") != 0)
    weft_probe_fail(report, "a double is printed as %s inside, not 1.25", e->text);
}

/* Tops are 16-aligned, and each residue modulo 64 of such tops is tried. */
void weft_probe_entry_alignment(weft_probe_report *report) {
  weft_probe_stack stack = weft_probe_stack_make(WEFT_PROBE_STACK_BYTES);
  for (size_t down = 0; down < 64; down += 16) {
    entry e = {.sp = 0};
    weft_frame_prepare(&e.self.frame, stack.top - down, weft_probe_body);
    weft_switch(&e.caller, &e.self, &e);
    check_entry(&e, (uintptr_t)stack.top - down, report);
  }
  weft_probe_stack_free(stack);
}

static void textbook_entered(void *argument, uintptr_t sp) { entered(argument, sp); }

void weft_probe_textbook_alignment(weft_probe_report *report) {
  weft_probe_stack stack = weft_probe_stack_make(WEFT_PROBE_STACK_BYTES);
  for (size_t down = 0; down < 64; down += 16) {
    entry e = {.sp = 0};
    weft_probe_run_textbook(stack.top - down, textbook_entered, &e);
    check_entry(&e, (uintptr_t)stack.top - down, report);
  }
  weft_probe_stack_free(stack);
}

/* ---- stacks in memory ---- */

typedef struct neighbours {
  weft_probe_stack stacks[3]; /* in one block, lowest first */
  unsigned ran;
  weft_probe_report *report;
} neighbours;

static void run_registers(void *argument) {
  neighbours *n = argument;
  n->ran++;
  weft_probe_registers(WEFT_PROBE_INLINE, WEFT_PROBE_SWITCH, 100, n->report);
}

static void run_in_middle(void *argument) {
  neighbours *n = argument;
  /* The parent is in the middle, so its children are below and above it. */
  for (unsigned round = 0; round < 100; round++) {
    weft_probe_run_on(n->stacks[0].top, run_registers, n);
    weft_probe_run_on(n->stacks[2].top, run_registers, n);
  }
}

void weft_probe_above_and_below(weft_probe_report *report) {
  size_t each = WEFT_PROBE_STACK_BYTES;
  weft_probe_stack block = weft_probe_stack_make(3 * each);
  neighbours n = {.report = report};
  for (size_t i = 0; i < 3; i++)
    n.stacks[i] = (weft_probe_stack){block.base + i * each, block.base + (i + 1) * each};
  weft_probe_run_on(n.stacks[1].top, run_in_middle, &n);
  if (n.ran != 200) weft_probe_fail(report, "%u of 200 runs came back", n.ran);
  weft_probe_stack_free(block);
}

typedef struct nest {
  unsigned depth;
  unsigned reached;
} nest;

static void run_nest(void *argument) {
  nest *n = argument;
  n->reached++;
  if (n->reached == n->depth) return;
  weft_probe_stack stack = weft_probe_stack_make(WEFT_PROBE_STACK_BYTES);
  weft_probe_run_on(stack.top, run_nest, n);
  weft_probe_stack_free(stack);
}

void weft_probe_nested(unsigned depth, weft_probe_report *report) {
  nest n = {.depth = depth};
  run_nest(&n);
  if (n.reached != depth) weft_probe_fail(report, "%u of %u levels were reached", n.reached, depth);
}

/* ---- values ---- */

typedef struct echo {
  weft_context self;
  weft_context caller;
} echo;

static void echo_body(weft_frame *own, void *value) {
  /* The context starts with its frame, and `caller` follows. */
  echo *e = (echo *)(void *)own;
  for (unsigned round = 0;; round++) {
    void *answer = (char *)value + 1;
    value = round % 2 == 0 ? weft_switch(&e->self, &e->caller, answer)
                           : weft_switch_inline(&e->self.frame, &e->caller.frame, answer);
  }
}

void weft_probe_first_value(weft_probe_report *report) {
  echo e;
  weft_probe_stack stack = weft_probe_stack_make(WEFT_PROBE_STACK_BYTES);
  weft_frame_prepare(&e.self.frame, stack.top, echo_body);
  for (uintptr_t round = 0; round < 1000; round++) {
    void *value = (void *)(round << 44 | round * 2);
    char *answer = round % 3 == 0 ? weft_switch(&e.caller, &e.self, value)
                                  : weft_switch_inline(&e.caller.frame, &e.self.frame, value);
    if (answer != (char *)value + 1)
      weft_probe_fail(report, "round %u: sent %p, got %p back", (unsigned)round, value,
                      (void *)answer);
  }
  weft_probe_stack_free(stack);
}

/* ---- backtraces ---- */

#if defined(__GLIBC__)
typedef struct trace {
  void *frames[64];
  int count;
} trace;

static void take_trace(void *argument) {
  trace *t = argument;
  t->count = backtrace(t->frames, 64);
}

static void take_textbook_trace(void *argument, uintptr_t sp) {
  (void)sp;
  take_trace(argument);
}

static bool is_in(void *address, void (*function)(void)) {
  /* The roots are functions of a few instructions. */
  return (char *)address >= (char *)function && (char *)address < (char *)function + 64;
}

/* The last frame, and no other one, is in `root`. */
static void check_trace(const trace *t, void (*root)(void), const char *name,
                        weft_probe_report *report) {
  if (t->count < 2 || t->count == 64)
    weft_probe_fail(report, "the backtrace has %d frames", t->count);
  else if (!is_in(t->frames[t->count - 1], root))
    weft_probe_fail(report, "the backtrace of %d frames ends at %p, not in %s (%p)", t->count,
                    t->frames[t->count - 1], name, (void *)root);
  else if (is_in(t->frames[t->count - 2], root))
    weft_probe_fail(report, "the backtrace of %d frames has %s twice", t->count, name);
}

/* What lies above a stack looks like return addresses, to lure on an unwinder that does not know
 * where to end. */
#define LURE_WORDS 32
static weft_probe_stack stack_with_lure(void) {
  weft_probe_stack stack = weft_probe_stack_make(4 * WEFT_PROBE_STACK_BYTES);
  stack.top -= LURE_WORDS * sizeof(void *);
  void **words = (void **)(void *)stack.top;
  for (unsigned i = 0; i < LURE_WORDS; i++) words[i] = (char *)weft_swapcontext + 8;
  return stack;
}
#endif

void weft_probe_backtrace(weft_probe_report *report) {
#if defined(__GLIBC__)
  trace t = {.count = 0};
  weft_probe_stack stack = stack_with_lure();
  weft_probe_run_on(stack.top, take_trace, &t);
  check_trace(&t, weft_entry, "weft_entry", report);
  weft_probe_stack_free(stack);
#else
  (void)report;
#endif
}

void weft_probe_textbook_backtrace(weft_probe_report *report) {
#if defined(__GLIBC__)
  trace t = {.count = 0};
  weft_probe_stack stack = stack_with_lure();
  weft_probe_run_textbook(stack.top, take_textbook_trace, &t);
  check_trace(&t, weft_textbook_exit, "weft_textbook_exit", report);
  weft_probe_stack_free(stack);
#else
  (void)report;
#endif
}
