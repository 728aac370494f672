/* probe.h - what the files of the probe share; not for its users. */
#ifndef PROBE_H
#define PROBE_H

#include <stdbool.h>

#include "cweft_probe.h"

/* The registers of a probe, in the order in which weft_probe_call() stores them.
 *   x86-64   rbx rbp r12 r13 r14 r15, MXCSR, x87 control word
 *   aarch64  x19 ... x29, d8 ... d15, FPCR */
#if defined(__x86_64__)
#define WEFT_PROBE_SAVED 6
#define WEFT_PROBE_WORDS 8
#else
#define WEFT_PROBE_SAVED 19
#define WEFT_PROBE_WORDS 20
#endif

/* Any of the ways to leave a stack, called by assembly only. */
typedef void *(*weft_probe_hop)(void *from, void *to, void *value);

/* Fills all of them from `fill` and every caller-saved register with rubbish, calls
 * hop(from, to, value), stores what it finds afterwards in `found`, restores its caller's. */
void *weft_probe_call(const uint64_t *fill, uint64_t *found, weft_probe_hop hop, void *from,
                      void *to, void *value);

/* A weft_body and a textbook routine that pass on the stack pointer which they started with. */
void weft_probe_body(weft_frame *own, void *value);
void weft_probe_routine(void);
void weft_probe_body_began(weft_frame *own, void *value, uintptr_t sp);
void weft_probe_routine_began(uintptr_t sp);

/* Notes the first failure; later ones are its consequences. */
void weft_probe_fail(weft_probe_report *report, const char *format, ...);
static inline bool weft_probe_failed(const weft_probe_report *report) {
  return report->text[0] != 0;
}

/* A stack from the heap. `top` is what the prepare functions want. */
typedef struct weft_probe_stack {
  char *base;
  char *top;
} weft_probe_stack;
#define WEFT_PROBE_STACK_BYTES ((size_t)64 * 1024)
weft_probe_stack weft_probe_stack_make(size_t bytes);
void weft_probe_stack_free(weft_probe_stack stack);

/* Runs function(argument) on a stack and comes back when it has returned. Inside, it may switch
 * to other contexts, as long as it comes back itself. */
void weft_probe_run_on(char *top, void (*function)(void *), void *argument);

/* The same on a textbook stack. */
void weft_probe_run_textbook(char *top, void (*function)(void *, uintptr_t sp), void *argument);

/* How a process has to die: of an instruction that stops it, or of an access to memory that is not
 * there. */
typedef enum weft_probe_death { WEFT_PROBE_TRAP, WEFT_PROBE_FAULT } weft_probe_death;

/* Runs `function` in a child process that has to die. */
void weft_probe_expect_death(void (*function)(void *), void *argument, weft_probe_death death,
                             weft_probe_report *report);

/* Registers and their names. */
extern const char *const weft_probe_register_names[WEFT_PROBE_WORDS];
void weft_probe_read_control(uint64_t words[WEFT_PROBE_WORDS]);
void weft_probe_fill(uint64_t words[WEFT_PROBE_WORDS], uint64_t seed, bool control);
bool weft_probe_compare(const uint64_t expected[WEFT_PROBE_WORDS],
                        const uint64_t found[WEFT_PROBE_WORDS], const char *who, uint64_t round,
                        weft_probe_report *report);
weft_probe_hop weft_probe_hop_of(weft_probe_way way);

#endif
