/* cweftdemo.h - the C programs that the command's demos run, and what shows them.
 *
 * A program is a few routines ("sides") that switch among each other with weft_swapcontext. Each
 * switch goes through a door: when a program simply runs, the door of a side is that side's saved
 * stack pointer; when it is stepped, every door is the driver's, which then looks at the stacks
 * and goes on to the side that was asked for. The routines are the same machine code either way.
 *
 * One program at a time, on one thread: like the article's, these programs keep their stack
 * pointers in global variables.
 */
#ifndef CWEFTDEMO_H
#define CWEFTDEMO_H

#include <stddef.h>
#include <stdint.h>

#include "cweft.h"

#define WEFT_DEMO_STACK_BYTES (64 * 1024)
#if defined(__has_feature)
#if __has_feature(thread_sanitizer) /* its snprintf alone wants more than that */
#undef WEFT_DEMO_STACK_BYTES
#define WEFT_DEMO_STACK_BYTES (1024 * 1024)
#endif
#endif
#define WEFT_DEMO_GUARD_BYTES (64 * 1024)
/* Side 0 is main. */
#define WEFT_DEMO_COROUTINES_MAX 10000

typedef enum weft_demo_program {
  WEFT_DEMO_SWAP,
  WEFT_DEMO_SUM,
  WEFT_DEMO_DEAL, /* the numbers 1 to N, dealt round over K coroutines */
} weft_demo_program;

/* Where a side stands: which switch it is in, or about to return from. */
typedef struct weft_demo_place {
  int32_t line;  /* in the program's source; 0: unknown */
  int32_t begun; /* 0: it is about to be entered */
  int32_t to;    /* the side that the switch goes to, if it has begun */
} weft_demo_place;

/* The mapping of one side's stack: guard, then usable bytes up to `top`. */
typedef struct weft_demo_stack {
  uintptr_t guard;
  uintptr_t limit;
  uintptr_t top;
} weft_demo_stack;

/* Lays out the stacks of a program and starts nothing. `upto` and `coroutines` matter to
 * WEFT_DEMO_DEAL only. Opening a program again starts it afresh on the same stacks.
 * Returns 0 or an errno. */
int weft_demo_open(weft_demo_program program, int64_t upto, int coroutines);

/* Unmaps the stacks. */
void weft_demo_close(void);

/* Runs the program that is open from start to end, with what it prints going to standard output
 * if `echo`, and kept for weft_demo_output() if not. Returns 0, or the errno of a failed write. */
int weft_demo_run(int echo);

/* Steps the program that is open: continues `side` until the next switch, and returns nonzero
 * while the program goes on. The side that left is then suspended on its stack. */
int weft_demo_resume(int side);

/* What is known of a side of the program that is open. */
int weft_demo_sides(void);
weft_demo_stack weft_demo_stack_of(int side);
uintptr_t weft_demo_saved_sp(int side);
weft_demo_place weft_demo_place_of(int side);

/* The 64-bit word at an address that lies inside the stack of `side`, 0 elsewhere. */
uint64_t weft_demo_word(int side, uintptr_t address);

/* The text that the program printed since it was opened, if it did not echo. */
const char *_Nonnull weft_demo_output(void);

/* WEFT_DEMO_DEAL: the sum of what all coroutines added, and how many switches it took. */
int64_t weft_demo_total(void);
int64_t weft_demo_switches(void);

/* What the textbook switch saves, lowest address first: the register's name, NULL after the last;
 * and the word, counted from the saved stack pointer, at which the return address lies. */
const char *_Nullable weft_demo_saved_name(int word);
int weft_demo_return_word(void);

/* The function that contains a code address, and how far into it; NULL if it is none of ours. */
const char *_Nullable weft_demo_symbol(uintptr_t address, uintptr_t *_Nonnull offset);

/* The address of one of our functions by the name that weft_demo_symbol() gives; 0 if none. */
uintptr_t weft_demo_function(const char *_Nonnull name, weft_demo_program program);

/* Copies up to `count` bytes of the code at `address` and returns how many: 0 if it is in none of
 * our functions. */
size_t weft_demo_code(uintptr_t address, uint8_t *_Nonnull bytes, size_t count);

/* Files embedded at build time. */
typedef enum weft_demo_file {
  WEFT_DEMO_FILE_SWAP,
  WEFT_DEMO_FILE_SUM,
  WEFT_DEMO_FILE_DEAL,
  WEFT_DEMO_FILE_X86_64,
  WEFT_DEMO_FILE_AARCH64,
} weft_demo_file;
const char *_Nonnull weft_demo_file_text(weft_demo_file file, size_t *_Nonnull size);

/* Cores that this process may run on. */
int weft_host_usable_cores(void);

/* Runs this program once more, with these arguments (NULL after the last), no input, and what it
 * prints dropped. `errors` gets what it writes to standard error, `*size` bytes at most, and
 * `*size` how many there were; `*status` its exit code, or 128 and the number of the signal that
 * ended it. Returns 0 or an errno; ETIMEDOUT: it took longer than that, and was killed. */
int weft_host_run_again(const char *const _Nullable *_Nonnull arguments, char *_Nonnull errors,
                        size_t *_Nonnull size, int milliseconds, int *_Nonnull status);

/* Puts the terminal into one-key-at-a-time mode on its alternate screen, cursor hidden, and sees
 * to it that SIGINT, SIGTERM, SIGHUP and SIGQUIT put it back before they end the process.
 * Returns 0 or an errno. weft_tty_leave() puts it back; calling it twice is harmless. */
int weft_tty_enter(int input, int output);
void weft_tty_leave(void);

/* Waits for a key, or for the window to change its size. */
typedef enum weft_tty_event {
  WEFT_TTY_KEY, /* or the end of input */
  WEFT_TTY_RESIZED,
  WEFT_TTY_FAILED,
} weft_tty_event;
weft_tty_event weft_tty_wait(void);

#endif
