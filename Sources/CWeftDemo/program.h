/* program.h - what the demo programs are written with. */
#ifndef WEFT_DEMO_PROGRAM_H
#define WEFT_DEMO_PROGRAM_H

#include "cweftdemo.h"

/* The saved stack pointer of every side, and the door to it (cweftdemo.h). */
#define HIDDEN __attribute__((visibility("hidden")))
extern void *weft_demo_sp[WEFT_DEMO_COROUTINES_MAX + 1] HIDDEN;
extern void **weft_demo_door[WEFT_DEMO_COROUTINES_MAX + 1] HIDDEN;

enum { SIDE_main, SIDE_routine, SIDE_routine2, SIDE_next = -1 };

/* Notes, in a section of its own and without an instruction, that the code address right here
 * belongs to this source line. It works when the compiler copies or moves the code around it. */
#if defined(__APPLE__)
#define MARK_RECORD ".pushsection __DATA,weft_marks\n\t.p2align 3\n\t.quad 0b\n\t"
#else
#define MARK_RECORD ".pushsection weft_marks, \"aR\", %%progbits\n\t.p2align 3\n\t.quad 0b - .\n\t"
#endif
#define MARK_LINE(line, begun, to)                                    \
  __asm__ volatile("0:\n\t" MARK_RECORD                               \
                   ".long %c0, %c1, %c2, 0\n\t.popsection"             \
                   :                                                  \
                   : "i"(line), "i"(begun), "i"(to)                   \
                   : "memory")

#define MARK(begun, to) MARK_LINE(__LINE__, begun, to)

/* The routine begins: what it does first is in the next line. */
#define BEGIN MARK_LINE(__LINE__ + 1, 0, 0)

/* weft_swapcontext(&from's stack pointer, &to's stack pointer), through the door. */
#define SWAP(from, to)                                                        \
  do {                                                                        \
    weft_swapcontext(&weft_demo_sp[SIDE_##from], weft_demo_door[SIDE_##to]);  \
    MARK(1, SIDE_##to);                                                       \
  } while (0)

/* An empty instruction that might change the variable, for all that the compiler knows: it has to
 * compute the value step by step. Otherwise it would see that a sum of 0 to 9 is 45. */
#define REAL(variable) __asm__ volatile("" : "+r"(variable))

/* The same between sides that are numbers. Where it goes is known only when it happens, so the
 * record leaves it open, and weft_demo_deal_next() tells. */
#define SWAP_NUMBERED(from, to)                                   \
  do {                                                            \
    weft_swapcontext(&weft_demo_sp[from], weft_demo_door[to]);    \
    MARK(1, SIDE_next);                                           \
  } while (0)

/* Prints a line; a line with a number. */
void say(const char *text) HIDDEN;
void say_number(const char *text, long number) HIDDEN;

/* The entry points of a program, which are all that engine.c knows of it. */
typedef struct weft_demo_routines {
  void (*main)(void);
  void (*routine)(void);
  void (*routine2)(void);
} weft_demo_routines;
extern const weft_demo_routines weft_demo_swap, weft_demo_sum, weft_demo_deal;

/* deal.c: the state that the coroutines share. */
void weft_demo_deal_prepare(int64_t upto, int coroutines);
int weft_demo_deal_next(int side);

#endif
