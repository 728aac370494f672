/* cweft_coroutine.h - the asymmetric pair: whoever resumes, and the body that yields.
 *
 * The control block sits at the top of the coroutine's own stack, so that creating one costs no
 * allocation, and the lines that a switch touches are next to the frames that it returns to.
 *
 * It holds the registers of the side that is *not* running:
 *
 *                 resume                          yield
 *   caller ────────────────────▶ body ────────────────────────▶ caller
 *   block: body's registers      block: caller's registers      block: body's registers
 *
 * so a switch is an exchange with one cache line, and both directions are the same function.
 */
#ifndef CWEFT_COROUTINE_H
#define CWEFT_COROUTINE_H

#include "cweft_stack.h"
#include "cweft_switch.h"

/* Where the user made a coroutine: pointers to constants of the program, so that a signal handler
 * may print them. */
typedef struct weft_site {
  const uint8_t *_Nullable name;
  const uint8_t *_Nullable file;
  uint16_t name_bytes;
  uint16_t file_bytes;
  uint32_t line;
} weft_site;

typedef enum weft_phase {
  WEFT_PHASE_FRESH = 0,    /* the body has not started */
  WEFT_PHASE_STARTED = 1,  /* running, or suspended in a yield */
  WEFT_PHASE_FINISHED = 2, /* the body has returned or thrown; nothing runs on the stack again */
} weft_phase;

typedef struct weft_coroutine {
  /* Hot: one line. */
  weft_frame frame;        /* the side that is not running; its fpctl is always the body's */
  weft_fpctl caller_fpctl; /* the caller's, while the body runs */
  void *_Nullable access;  /* open exclusive accesses of the side that is not running */
  uint32_t running;        /* between a resume and the yield or end that answers it */
  uint16_t phase;          /* weft_phase */
  uint16_t fp_load_is_cheap;
  /* Cold. */
  void *_Nullable error;   /* what the body threw: an owned Swift error */
  void *_Nullable body[2];   /* the user's closure: function, context */
  void *_Nullable runner[2]; /* coroutines: the closure that knows the body's types */
  void (*_Nullable run)(struct weft_coroutine *_Nonnull);
  weft_stack stack;
  weft_site site;
  uint64_t cancel_rounds; /* how often cancellation was thrown at the body */
  /* Thread words as the last resume found them, in debug builds (withValue check). */
  void *_Nullable seen_task;
  void *_Nullable seen_fallback;
  /* Slow path only: fallback for the thread words, sanitizers. */
  void *_Nullable task_accesses[2];
  void *_Nullable tsan_body;
  void *_Nullable tsan_caller;
  const void *_Nullable other_low;
  size_t other_bytes;
} weft_coroutine;

_Static_assert(offsetof(weft_coroutine, frame) == 0, "weft_entry hands over the frame's address");
_Static_assert(offsetof(weft_coroutine, error) == 64, "the hot part is one cache line");

/* The addresses of fields: Swift has none for a field of a structure. */
static inline void *_Nullable *_Nonnull weft_coroutine_body(weft_coroutine *_Nonnull coroutine) {
  return coroutine->body;
}
static inline void *_Nullable *_Nonnull weft_coroutine_runner(weft_coroutine *_Nonnull coroutine) {
  return coroutine->runner;
}
static inline void *_Nullable *_Nonnull weft_coroutine_error(weft_coroutine *_Nonnull coroutine) {
  return &coroutine->error;
}

/* What travels with a switch. Into the body: go on, or unwind. Out of it: yielded, or ended. */
static const uintptr_t WEFT_GO = 0, WEFT_CANCEL = 1;
static const uintptr_t WEFT_YIELDED = 0, WEFT_ENDED = 1;

/* Takes a stack and lays a fresh coroutine at its top. `slot_bytes` (a multiple of 16) are kept
 * free right below the block, for the values that are passed. The caller then fills `body` and
 * `run`. The body starts with the floating-point control of its first resume.
 * COST: warm, about 15 ns: no lock, no allocation, no system call. */
weft_coroutine *_Nullable weft_coroutine_create(size_t stack_bytes, size_t slot_bytes,
                                                const weft_site *_Nonnull site,
                                                weft_stack_failure *_Nonnull failure,
                                                int32_t *_Nonnull error);

/* Gives the stack back. The coroutine is fresh or finished. */
void weft_coroutine_destroy(weft_coroutine *_Nonnull coroutine);

/* Everything that the fast path leaves out: first switch on a thread, thread words that were not
 * found, sanitizers. */
uintptr_t weft_coroutine_switch_slow(weft_coroutine *_Nonnull coroutine, uintptr_t status,
                                     _Bool entering);

/* In debug builds: remembers, at a resume, which task and task-locals the caller has, and stops the
 * process if a yield finds others, since a binding of the body's own would leak to the caller. */
void weft_coroutine_note_resume(weft_coroutine *_Nonnull coroutine);
void weft_coroutine_check_yield(const weft_coroutine *_Nonnull coroutine);

/* The same for platforms whose thread-locals take a call: never inlined. */
void *_Nullable *_Nullable weft_access_word_outlined(void);

/* This thread's cached address of the word that heads its list of open exclusive accesses, or
 * null: not looked for yet, not found, or a sanitizer wants the slow path.
 *
 * The thread-local is read anew at each call. A plain read will not do: compilers keep the address
 * of a thread-local over a switch, after which the thread may be another. */
static inline __attribute__((always_inline)) void *_Nullable *_Nullable weft_access_word(void) {
#if defined(__ELF__) && defined(__x86_64__)
  void **word;
  __asm__ volatile(
      "movq weft_tls_access_word@gottpoff(%%rip), %0\n\t"
      "movq %%fs:(%0), %0"
      : "=r"(word));
  return word;
#elif defined(__ELF__) && defined(__aarch64__)
  void **word;
  uintptr_t offset;
  __asm__ volatile(
      "mrs %0, tpidr_el0\n\t"
      "adrp %1, :gottprel:weft_tls_access_word\n\t"
      "ldr %1, [%1, #:gottprel_lo12:weft_tls_access_word]\n\t"
      "ldr %0, [%0, %1]"
      : "=&r"(word), "=&r"(offset));
  return word;
#else
  return weft_access_word_outlined();
#endif
}

/* The exchange, in either direction (`entering`, a constant, is true for a resume).
 *
 * COST: the bare switch, plus: one thread-local read, FP control stored and compared or loaded,
 * two loads and a predicted branch for open accesses. No atomic, no call.
 *
 * Everything that belongs to the thread is done before the switch, since the other side may go on
 * on another thread. */
static inline __attribute__((always_inline)) uintptr_t weft_coroutine_switch(
    weft_coroutine *_Nonnull coroutine, uintptr_t status, _Bool entering) {
  void **word = weft_access_word();
  if (__builtin_expect(word == NULL, 0)) {
    return weft_coroutine_switch_slow(coroutine, status, entering);
  }
  if (entering) {
    weft_fp_switch(&coroutine->caller_fpctl, &coroutine->frame.fpctl, coroutine->fp_load_is_cheap);
  } else if (status == WEFT_ENDED && coroutine->fp_load_is_cheap) {
    weft_fp_load(&coroutine->caller_fpctl); /* nobody comes back to what this side had */
  } else {
    weft_fp_switch(&coroutine->frame.fpctl, &coroutine->caller_fpctl, coroutine->fp_load_is_cheap);
  }
  void *mine = *word, *theirs = coroutine->access;
  if (__builtin_expect(((uintptr_t)mine | (uintptr_t)theirs) != 0, 0)) {
    *word = theirs;
    coroutine->access = mine;
  }
  return (uintptr_t)weft_switch_inline(&coroutine->frame, &coroutine->frame, (void *)status);
}

/* Runs the body until it yields or ends: WEFT_YIELDED or WEFT_ENDED. */
static inline __attribute__((always_inline)) uintptr_t weft_coroutine_resume(
    weft_coroutine *_Nonnull coroutine, uintptr_t go_or_cancel) {
  return weft_coroutine_switch(coroutine, go_or_cancel, 1);
}

/* Goes back to whoever resumed, until the next resume: WEFT_GO or WEFT_CANCEL. */
static inline __attribute__((always_inline)) uintptr_t weft_coroutine_yield(
    weft_coroutine *_Nonnull coroutine) {
  return weft_coroutine_switch(coroutine, WEFT_YIELDED, 0);
}

/* Calls `function(argument)` on a stack of at least `bytes` and returns when it has returned. */
weft_stack_failure weft_call_on_stack(size_t bytes, const weft_site *_Nonnull site,
                                      void (*_Nonnull function)(void *_Nullable),
                                      void *_Nullable argument, int32_t *_Nonnull error);

/* Stops the process with "weft: " `problem`, then name, creation site, and `remedy`. */
_Noreturn void weft_fatal(const char *_Nonnull problem, const weft_site *_Nullable site,
                          const char *_Nonnull remedy);

#endif
