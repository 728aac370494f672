/* common.c - reports, stacks and register patterns of the probe. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe.h"

void weft_probe_fail(weft_probe_report *report, const char *format, ...) {
  if (weft_probe_failed(report)) return;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(report->text, sizeof report->text, format, arguments);
  va_end(arguments);
}

/* ---- stacks ---- */

weft_probe_stack weft_probe_stack_make(size_t bytes) {
  char *base = aligned_alloc(64, bytes);
  if (base == NULL) abort();
  return (weft_probe_stack){base, base + bytes};
}

void weft_probe_stack_free(weft_probe_stack stack) { free(stack.base); }

typedef struct run {
  weft_context inside;
  weft_context outside;
  void (*function)(void *);
  void *argument;
} run;

static void run_body(weft_frame *own, void *value) {
  (void)own;
  run *r = value;
  r->function(r->argument);
  weft_switch(&r->inside, &r->outside, NULL);
}

void weft_probe_run_on(char *top, void (*function)(void *), void *argument) {
  run r = {.function = function, .argument = argument};
  weft_frame_prepare(&r.inside.frame, top, run_body);
  weft_switch(&r.outside, &r.inside, &r);
}

/* A textbook routine has no argument, so it finds its work here. */
typedef struct textbook_run {
  void *inside;
  void *outside;
  void (*function)(void *, uintptr_t);
  void *argument;
} textbook_run;

static _Thread_local textbook_run *starting;

void weft_probe_routine_began(uintptr_t sp) {
  textbook_run *r = starting;
  r->function(r->argument, sp);
  weft_swapcontext(&r->inside, &r->outside);
}

void weft_probe_run_textbook(char *top, void (*function)(void *, uintptr_t), void *argument) {
  textbook_run r = {.function = function, .argument = argument};
  r.inside = weft_textbook_prepare(top, weft_probe_routine);
  starting = &r;
  weft_swapcontext(&r.outside, &r.inside);
}

/* ---- registers ---- */

const char *const weft_probe_register_names[WEFT_PROBE_WORDS] = {
#if defined(__x86_64__)
    "rbx", "rbp", "r12", "r13", "r14", "r15", "MXCSR", "x87 control word",
#else
    "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28",
    "x29", "d8",  "d9",  "d10", "d11", "d12", "d13", "d14", "d15", "FPCR",
#endif
};

void weft_probe_read_control(uint64_t words[WEFT_PROBE_WORDS]) {
  weft_fpctl control;
  weft_fp_store(&control);
#if defined(__x86_64__)
  words[WEFT_PROBE_SAVED] = control.x86.mxcsr;
  words[WEFT_PROBE_SAVED + 1] = control.x86.fcw;
#else
  words[WEFT_PROBE_SAVED] = control.fpcr;
#endif
}

/* Neighbouring seeds and indices give unrelated words (splitmix64). */
static uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

void weft_probe_fill(uint64_t words[WEFT_PROBE_WORDS], uint64_t seed, bool control) {
  for (unsigned i = 0; i < WEFT_PROBE_SAVED; i++) words[i] = mix(seed * 32 + i);
  weft_probe_read_control(words);
  if (!control) return;
  uint64_t bits = mix(~seed);
#if defined(__x86_64__)
  /* Flush to zero, rounding, the overflow and underflow masks, denormals are zero. */
  words[WEFT_PROBE_SAVED] = (0x1F80 & ~0xC00u) | (bits & 0xEC40);
  /* Rounding and precision; of its four values 01 is reserved. */
  uint64_t precision = bits >> 16 & 3;
  if (precision == 1) precision = 3;
  words[WEFT_PROBE_SAVED + 1] = 0x007F | (bits >> 8 & 0xC00) | precision << 8;
#else
  /* Alternative half precision, default NaN, flush to zero, rounding. */
  words[WEFT_PROBE_SAVED] = bits & 0x7C00000;
#endif
}

bool weft_probe_compare(const uint64_t expected[WEFT_PROBE_WORDS],
                        const uint64_t found[WEFT_PROBE_WORDS], const char *who, uint64_t round,
                        weft_probe_report *report) {
  for (unsigned i = 0; i < WEFT_PROBE_WORDS; i++) {
    uint64_t ignored = 0;
#if defined(__x86_64__)
    /* Bits 0 to 5 of MXCSR are sticky status. */
    if (i == WEFT_PROBE_SAVED) ignored = 0x3F;
#endif
    if (((expected[i] ^ found[i]) & ~ignored) == 0) continue;
    weft_probe_fail(report, "%s, round %llu: %s is %#llx, expected %#llx", who,
                    (unsigned long long)round, weft_probe_register_names[i],
                    (unsigned long long)found[i], (unsigned long long)expected[i]);
    return false;
  }
  return true;
}
