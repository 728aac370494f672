/* values.c - what a compiler keeps over an inline switch, and what lies below its stack pointer.
 *
 * The other side is weft_probe_call around weft_switch: it comes back with rubbish in every
 * register, callee-saved and caller-saved, integer and vector.
 */
#include "probe.h"

typedef struct vandal {
  weft_context self;
  weft_context victim;
} vandal;

static void vandal_body(weft_frame *own, void *value) {
  (void)own;
  vandal *v = value;
  uint64_t fill[WEFT_PROBE_WORDS], found[WEFT_PROBE_WORDS];
  weft_probe_hop hop = weft_probe_hop_of(WEFT_PROBE_SWITCH);
  for (uint64_t round = 0;; round++) {
    weft_probe_fill(fill, ~round, false);
    weft_probe_call(fill, found, hop, &v->self, &v->victim, NULL);
  }
}

/* ---- live values ---- */

/* Twelve integers and ten doubles, more than there are callee-saved registers, computed before
 * and folded after. With v == NULL there is no switch: that is the result to expect. */
static uint64_t fold(vandal *v, uint64_t x) {
  uint64_t a = x * 3, b = x ^ 5, c = x + 7, d = x * 11, e = x ^ 13, f = x + 17;
  uint64_t g = x * 19, h = x ^ 23, i = x + 29, j = x * 31, k = x ^ 37, l = x + 41;
  double m = (double)x, n = m * 1.5, o = m + 0.25, p = m * 3.0, q = m - 0.5;
  double r = m * 5.0, s = m + 7.0, t = m * 0.125, u = m - 9.0, w = m * 11.0;
  if (v != NULL) weft_switch_inline(&v->victim.frame, &v->self.frame, v);
  uint64_t integers = a ^ (b << 1) ^ (c << 2) ^ (d << 3) ^ (e << 4) ^ (f << 5);
  integers ^= (g << 6) ^ (h << 7) ^ (i << 8) ^ (j << 9) ^ (k << 10) ^ (l << 11);
  double doubles = m + n * 2 + o * 4 + p * 8 + q * 16 + r * 32 + s * 64 + t * 128 + u * 256 + w;
  return integers + (uint64_t)(int64_t)doubles;
}

/* Called through memory, so that no compiler folds the two calls into one. */
static uint64_t (*volatile fold_called)(vandal *, uint64_t) = fold;

void weft_probe_live_values(uint64_t rounds, weft_probe_report *report) {
  vandal v;
  weft_probe_stack stack = weft_probe_stack_make(WEFT_PROBE_STACK_BYTES);
  weft_frame_prepare(&v.self.frame, stack.top, vandal_body);
  for (uint64_t round = 0; round < rounds && !weft_probe_failed(report); round++) {
    /* Small enough for every double to be exact, and so for the order not to matter. */
    uint64_t x = round & 0xFFFFF;
    uint64_t found = fold_called(&v, x), expected = fold_called(NULL, x);
    if (found != expected)
      weft_probe_fail(report, "round %llu: values kept over the switch fold to %#llx, not %#llx",
                      (unsigned long long)round, (unsigned long long)found,
                      (unsigned long long)expected);
  }
  weft_probe_stack_free(stack);
}

/* ---- the red zone ---- */

/* A leaf function as far as the compiler knows, since assembly is no call: on x86-64 (and Apple's
 * aarch64) it may keep its 96 bytes below the stack pointer. */
static unsigned leaf(vandal *v, uint64_t x) {
  volatile uint64_t data[12];
  for (unsigned i = 0; i < 12; i++) data[i] = x * 13 + i;
  weft_switch_inline(&v->victim.frame, &v->self.frame, v);
  unsigned wrong = 0;
  for (unsigned i = 0; i < 12; i++) wrong += data[i] != x * 13 + i;
  return wrong;
}

static unsigned (*volatile leaf_called)(vandal *, uint64_t) = leaf;

void weft_probe_red_zone(uint64_t rounds, weft_probe_report *report) {
  vandal v;
  weft_probe_stack stack = weft_probe_stack_make(WEFT_PROBE_STACK_BYTES);
  weft_frame_prepare(&v.self.frame, stack.top, vandal_body);
  for (uint64_t round = 0; round < rounds && !weft_probe_failed(report); round++) {
    unsigned wrong = leaf_called(&v, round);
    if (wrong != 0)
      weft_probe_fail(report, "round %llu: %u of 12 words of a leaf function were overwritten",
                      (unsigned long long)round, wrong);
  }
  weft_probe_stack_free(stack);
}

/* ---- one frame for both sides ---- */

static void one_frame_body(weft_frame *own, void *value) {
  for (;;) value = weft_switch_inline(own, own, (char *)value + 1);
}

void weft_probe_one_frame(uint64_t rounds, weft_probe_report *report) {
  weft_frame frame;
  weft_probe_stack stack = weft_probe_stack_make(WEFT_PROBE_STACK_BYTES);
  weft_frame_prepare(&frame, stack.top, one_frame_body);
  uintptr_t value = 0;
  for (uint64_t round = 0; round < rounds && !weft_probe_failed(report); round++) {
    value = (uintptr_t)weft_switch_inline(&frame, &frame, (void *)value);
    if (value != round + 1)
      weft_probe_fail(report, "round %llu: the value is %llu", (unsigned long long)round,
                      (unsigned long long)value);
  }
  weft_probe_stack_free(stack);
}
