/* cweft_seam.h - where a simulation takes the place of the kernel: WeftTesting.
 *
 * The runtime asks the kernel, and chance, for a few things: to let another thread run now, to put
 * a thread to sleep on a word, what time it is, to start a thread, which of several runnable fibers
 * is next. In a simulation all of a scheduler's threads are contexts on one kernel thread
 * (weft_virtual), and a simulator answers those questions, so that one number decides everything
 * that may go one way or another.
 *
 * COST: where nobody in the process simulates, each point is a load and a predicted branch, next to
 * a barrier, a system call, or the locked instruction of a mutex.
 */
#ifndef CWEFT_SEAM_H
#define CWEFT_SEAM_H

#include <stdbool.h>
#include <stdint.h>

#include "cweft_stack.h"
#include "cweft_switch.h"

struct weft_fiber;
struct weft_worker;
struct weft_queue;
struct weft_scope;
struct weft_virtual;
struct weft_word;

/* How many threads of this process simulate. */
extern uint32_t weft_seam_open;

static inline __attribute__((always_inline)) bool weft_seam_is_open(void) {
  /* ORDERING: relaxed; whoever simulates has set it itself, and others need not care. */
  return __builtin_expect(__atomic_load_n(&weft_seam_open, __ATOMIC_RELAXED) != 0, 0);
}

/* Why another thread may run now. */
enum {
  WEFT_POINT_WORD = 0,  /* before an atomic operation */
  WEFT_POINT_FENCE = 1, /* before a barrier */
  WEFT_POINT_PAUSE = 2, /* the thread waits for what another one does, and can't go on before */
  WEFT_POINT_LOCK = 3,  /* as WORD, and nothing of the runtime is held: a fiber may go first */
};

/* What a simulator is told of a fiber. */
enum {
  WEFT_NOTE_PARK = 0,
  WEFT_NOTE_YIELD = 1,
  WEFT_NOTE_JOIN = 2,
  WEFT_NOTE_END = 3,
  WEFT_NOTE_LEAVE = 4, /* goes to another worker */
  WEFT_NOTE_RUN = 5,   /* goes on, or begins */
  WEFT_NOTE_WAKE = 6,
};

/* What is chosen. */
enum {
  WEFT_CHOICE_THREAD = 0,
  WEFT_CHOICE_FIBER = 1,  /* which runnable fiber is next; the first is the one whose turn it is */
  WEFT_CHOICE_PREEMPT = 2, /* the same where the running one, the first, could go on */
  WEFT_CHOICE_DIRECT = 3, /* 0: past the queue, where that may be */
  WEFT_CHOICE_FAULT = 4,  /* 0: no */
  WEFT_CHOICE_VALUE = 5,  /* a random number below the count */
};

/* What may go wrong. */
enum {
  WEFT_FAULT_STACK = 0,  /* no stack can be had */
  WEFT_FAULT_THREAD = 1, /* no thread can be had */
  WEFT_FAULT_CANCEL = 2, /* the fiber that parks is cancelled */
};

/* A simulator, as the runtime sees it. Its functions run on the stack of whoever asks, and may
 * switch to another virtual thread before they return. */
typedef struct weft_seam {
  void (*_Nonnull point)(struct weft_seam *_Nonnull, uint32_t kind,
                         const volatile void *_Nullable where);
  void (*_Nonnull wait)(struct weft_seam *_Nonnull, struct weft_word *_Nonnull word,
                        uint32_t expected, uint64_t nanoseconds);
  void (*_Nonnull wake)(struct weft_seam *_Nonnull, struct weft_word *_Nonnull word, int32_t count);
  /* One of `count`; `names` has a number for each that stays the same. */
  uint32_t (*_Nonnull choose)(struct weft_seam *_Nonnull, uint32_t kind,
                              const uint64_t *_Nullable names, uint32_t count);
  /* Whether something goes wrong now that may. */
  bool (*_Nonnull fails)(struct weft_seam *_Nonnull, uint32_t fault);
  void (*_Nonnull note)(struct weft_seam *_Nonnull, uint32_t what,
                        struct weft_fiber *_Nonnull fiber);
  struct weft_virtual *_Nullable (*_Nonnull start)(struct weft_seam *_Nonnull,
                                                   void (*_Nonnull run)(void *_Nonnull),
                                                   void *_Nonnull argument);
  void (*_Nonnull join)(struct weft_seam *_Nonnull, struct weft_virtual *_Nonnull);
  /* The running virtual thread has ended: who goes on. The switch away for good is made when this
   * has returned, so that nothing of the simulator's is left on that stack. */
  struct weft_virtual *_Nonnull (*_Nonnull ended)(struct weft_seam *_Nonnull);
  /* The runtime's own: Fiber.yield, and the cancellation of a fiber that is about to park. */
  void (*_Nonnull yield)(void);
  void (*_Nonnull cancel)(struct weft_fiber *_Nonnull);
  void *_Nullable simulator;
  void *_Nullable scheduler; /* the SchedulerCore of the run, unretained */
  struct weft_virtual *_Nullable current;
  uint64_t clock;            /* the time, for all of them */
  uint64_t fibers;           /* numbers given out */
  int64_t stacks;            /* stacks taken and not given back */
  uint32_t holds;            /* above 0: no points, a choice is always the first */
  uint32_t is_chosen;        /* the fiber at the head of the queue was just chosen */
} weft_seam;

/* This thread's simulator, or null. Never inlined: see weft_access_word. */
weft_seam *_Nullable weft_seam_current(void);
void weft_seam_enter(weft_seam *_Nonnull seam);
void weft_seam_leave(void);

/* For functions that hot ones call hardly ever: these keep their registers. */
#if defined(__clang__) && (defined(__x86_64__) || defined(__aarch64__))
#define WEFT_COLD __attribute__((preserve_most))
#else
#define WEFT_COLD
#endif

/* Each does nothing on a thread that does not simulate. */
WEFT_COLD void weft_seam_point(uint32_t kind, const volatile void *_Nullable where);
void weft_seam_note(uint32_t what, struct weft_fiber *_Nonnull fiber);
uint32_t weft_seam_choose(uint32_t kind, uint32_t count);
bool weft_seam_fails(uint32_t fault);
void weft_seam_count_stack(int64_t by);

/* A word, for a simulator: no point. */
uint64_t weft_word_peek(struct weft_word *_Nonnull word);

/* Before the next fiber is picked: which one of the queue it is. One that yields where nobody else
 * is runnable waits for what other threads do. */
void weft_seam_look(struct weft_worker *_Nonnull worker, bool yields);
/* Whether the running fiber should let another one go first, which then is the queue's head. */
bool weft_seam_preempts(struct weft_worker *_Nonnull worker);

/* ---- Virtual threads ---- */

/* A kernel thread of the simulated process: a context on a stack of its own, with what a kernel
 * thread has that the runtime relies on. */
typedef struct weft_virtual {
  weft_frame frame;
  struct weft_worker *_Nullable worker;
  void *_Nullable scope;             /* weft_scope: what surrounds plain code of this thread */
  void *_Nullable words[4];          /* of the Swift runtime, while it does not run */
  void *_Nullable task_accesses[2];  /* fallback for the first of them */
  int32_t saved_errno;
  uint32_t has_ended;
  weft_stack stack;
  void (*_Nullable run)(void *_Nonnull);
  void *_Nullable argument;
  uint64_t number;
  /* Sanitizers. */
  void *_Nullable fake;
  void *_Nullable tsan;
  const void *_Nullable low;
  uint64_t bytes;
} weft_virtual;

/* Makes one that will run `run(argument)`, and then tell the simulator that it has ended. Null: no
 * memory. */
weft_virtual *_Nullable weft_virtual_create(uint64_t stack_bytes,
                                            void (*_Nonnull run)(void *_Nonnull),
                                            void *_Nonnull argument);
/* One that stands for the calling thread itself. */
weft_virtual *_Nullable weft_virtual_adopt(void);
/* Of one that has ended, or never ran, or was adopted. */
void weft_virtual_destroy(weft_virtual *_Nonnull thread);
/* Continues `to` on this kernel thread; returns when somebody continues `from`. */
void weft_virtual_switch(weft_virtual *_Nonnull from, weft_virtual *_Nonnull to);

#endif
