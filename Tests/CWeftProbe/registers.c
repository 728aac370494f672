/* registers.c - do all callee-saved registers survive, whatever the other side does with them?
 *
 * Two stacks bounce control between them. Before each switch a side fills every register that the
 * ABI asks to be kept with a pattern of its own and that round, and compares when it is back. So
 * each side is also the vandal of the other. The switch is called straight from assembly: a C
 * function in between would save some of the registers itself and hide a switch that does not.
 */
#include <string.h>

#include "probe.h"

/* ---- the ways to leave a stack ---- */

static void *inline_hop(void *from, void *to, void *value) {
  return weft_switch_inline(from, to, value);
}

/* Floating-point control is kept as the runtime does it: this side's goes into its frame and the
 * other side's comes from there, if it differs or, on some processors, always. */
static void *switch_control_hop(void *from, void *to, void *value) {
  weft_context *self = from, *other = to;
  weft_fp_switch(&self->frame.fpctl, &other->frame.fpctl, false);
  return weft_switch(self, other, value);
}

static void *inline_control_hop(void *from, void *to, void *value) {
  weft_frame *self = from, *other = to;
  weft_fp_switch(&self->fpctl, &other->fpctl, false);
  return weft_switch_inline(self, other, value);
}

static void *inline_control_load_hop(void *from, void *to, void *value) {
  weft_frame *self = from, *other = to;
  weft_fp_switch(&self->fpctl, &other->fpctl, true);
  return weft_switch_inline(self, other, value);
}

weft_probe_hop weft_probe_hop_of(weft_probe_way way) {
  switch (way) {
    case WEFT_PROBE_SWITCH: return (weft_probe_hop)(void (*)(void))weft_switch;
    case WEFT_PROBE_INLINE: return inline_hop;
    case WEFT_PROBE_SWITCH_CONTROL: return switch_control_hop;
    case WEFT_PROBE_INLINE_CONTROL: return inline_control_hop;
    case WEFT_PROBE_INLINE_CONTROL_LOAD: return inline_control_load_hop;
    case WEFT_PROBE_WAYS: break;
  }
  return NULL;
}

const char *weft_probe_way_name(weft_probe_way way) {
  switch (way) {
    case WEFT_PROBE_SWITCH: return "weft_switch";
    case WEFT_PROBE_INLINE: return "weft_switch_inline";
    case WEFT_PROBE_SWITCH_CONTROL: return "weft_switch + control";
    case WEFT_PROBE_INLINE_CONTROL: return "weft_switch_inline + control";
    case WEFT_PROBE_INLINE_CONTROL_LOAD: return "weft_switch_inline + control, always loaded";
    case WEFT_PROBE_WAYS: break;
  }
  return "?";
}

static bool keeps_control(weft_probe_way way) {
  return way >= WEFT_PROBE_SWITCH_CONTROL;
}

/* ---- the two sides ---- */

typedef struct side {
  const char *name;
  weft_probe_hop hop;
  weft_context context; /* or, for the textbook switch, */
  void *sp;             /* this */
  uint64_t seed;
  bool control; /* fill floating-point control too */
} side;

typedef struct pair {
  side parent;
  side child;
  bool textbook;
  weft_probe_report *report;
} pair;

static void round_trip(pair *p, side *self, side *other, uint64_t round) {
  uint64_t fill[WEFT_PROBE_WORDS], found[WEFT_PROBE_WORDS] = {0};
  weft_probe_fill(fill, self->seed + 2 * round, self->control);
  void *value = p->textbook
                    ? weft_probe_call(fill, found, self->hop, &self->sp, &other->sp, p)
                    : weft_probe_call(fill, found, self->hop, &self->context, &other->context, p);
  weft_probe_compare(fill, found, self->name, round, p->report);
  if (value != p && !p->textbook)
    weft_probe_fail(p->report, "%s, round %llu: the value passed is %p, expected %p", self->name,
                    (unsigned long long)round, value, (void *)p);
}

static void child_rounds(pair *p) {
  /* The parent stops resuming this when it has seen enough. */
  for (uint64_t round = 0;; round++) round_trip(p, &p->child, &p->parent, round);
}

static void child_body(weft_frame *own, void *value) {
  pair *p = value;
  if (own != &p->child.context.frame)
    weft_probe_fail(p->report, "the body was given another frame than its own");
  child_rounds(p);
}

static void parent_rounds(pair *p, uint64_t rounds) {
  for (uint64_t round = 0; round < rounds && !weft_probe_failed(p->report); round++)
    round_trip(p, &p->parent, &p->child, round);
}

void weft_probe_registers(weft_probe_way parent, weft_probe_way child, uint64_t rounds,
                          weft_probe_report *report) {
  /* Control can be told apart only where both sides keep it. */
  bool control = keeps_control(parent) && keeps_control(child);
  pair p = {
      .parent = {.name = "parent", .hop = weft_probe_hop_of(parent), .seed = 0, .control = control},
      .child = {.name = "child", .hop = weft_probe_hop_of(child), .seed = 1, .control = control},
      .report = report,
  };
  weft_probe_stack stack = weft_probe_stack_make(WEFT_PROBE_STACK_BYTES);
  weft_frame_prepare(&p.child.context.frame, stack.top, child_body);
  /* A side that does not keep control leaves the other one this. */
  weft_fp_store(&p.parent.context.frame.fpctl);
  weft_fp_store(&p.child.context.frame.fpctl);
  parent_rounds(&p, rounds);
  weft_probe_stack_free(stack);
}

/* ---- the textbook switch ---- */

typedef struct textbook {
  pair p;
  uint64_t rounds;
} textbook;

static _Thread_local textbook *textbook_starting;

static void textbook_routine(void) { child_rounds(&textbook_starting->p); }

void weft_probe_textbook_registers(uint64_t rounds, weft_probe_report *report) {
  weft_probe_hop hop = (weft_probe_hop)(void (*)(void))weft_swapcontext;
  textbook t = {
      .p = {.parent = {.name = "parent", .hop = hop, .seed = 0},
            .child = {.name = "child", .hop = hop, .seed = 1},
            .textbook = true,
            .report = report},
      .rounds = rounds,
  };
  weft_probe_stack stack = weft_probe_stack_make(WEFT_PROBE_STACK_BYTES);
  t.p.child.sp = weft_textbook_prepare(stack.top, textbook_routine);
  textbook_starting = &t;
  parent_rounds(&t.p, rounds);
  weft_probe_stack_free(stack);
}

/* ---- floating-point control that nobody keeps ---- */

typedef struct passing {
  weft_context parent;
  weft_context child;
  weft_probe_hop hop;
  uint64_t seen[WEFT_PROBE_WORDS];
  uint64_t back[WEFT_PROBE_WORDS];
} passing;

static void passing_body(weft_frame *own, void *value) {
  (void)own;
  passing *p = value;
  uint64_t ignored[WEFT_PROBE_WORDS];
  weft_probe_read_control(p->seen);
  weft_probe_call(p->back, ignored, p->hop, &p->child, &p->parent, NULL);
}

void weft_probe_control_passes(weft_probe_way way, weft_probe_report *report) {
  for (uint64_t seed = 0; seed < 64; seed++) {
    passing p = {.hop = weft_probe_hop_of(way)};
    uint64_t fill[WEFT_PROBE_WORDS], found[WEFT_PROBE_WORDS] = {0};
    weft_probe_fill(fill, seed, true);
    memcpy(p.seen, fill, sizeof fill);
    memcpy(p.back, fill, sizeof fill);
    weft_probe_fill(p.back, seed + 1000, true);
    weft_probe_stack stack = weft_probe_stack_make(WEFT_PROBE_STACK_BYTES);
    weft_frame_prepare(&p.child.frame, stack.top, passing_body);
    weft_probe_call(fill, found, p.hop, &p.parent, &p.child, &p);
    weft_probe_compare(fill, p.seen, "on the way in", seed, report);
    /* Of the way out only control is of interest: the other registers must be the parent's. */
    memcpy(p.back, fill, WEFT_PROBE_SAVED * sizeof fill[0]);
    weft_probe_compare(p.back, found, "on the way out", seed, report);
    weft_probe_stack_free(stack);
  }
}
