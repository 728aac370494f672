/* cweft_fiber.h - what the scheduler keeps in C layout: fibers, workers, run queues.
 *
 * The logic is in Swift (WeftRuntime). Here are the structures, so that the switch, the overflow
 * handler and debuggers agree on them, and the few inline functions that every switch runs.
 */
#ifndef CWEFT_FIBER_H
#define CWEFT_FIBER_H

#include "cweft_atomic.h"
#include "cweft_coroutine.h"
#include "cweft_stack.h"
#include "cweft_switch.h"

struct weft_worker;
struct weft_group;

/* What surrounds the code that runs in a fiber, or on a plain thread: Scope/Scope.swift. Its own,
 * but for `shields` of a fiber, which Scopes.swift guards. */
typedef struct weft_scope {
  uint64_t deadline;       /* the earliest in force, on weft_clock_now's clock; UINT64_MAX: none */
  void *_Nullable locals;  /* the innermost binding, with a reference to it */
  uint32_t shields;        /* depth of withCancellationShield */
  uint32_t unused;
} weft_scope;

/* What a fiber needs while it runs or waits: at the top of its stack, below the control block. A
 * million fibers that are spawned ahead, or that ended with a handle left, have none. */
typedef struct weft_fiber_cold {
  /* The Swift runtime's thread words: access, task, executor, task-locals. */
  void *_Nullable words[4];
  weft_stack stack;
  uint32_t wait_reason;           /* ParkReason of the current or last wait, for dumps */
  uint32_t timer_reason;          /* WakeReason: as what the timer ends the wait */
  void *_Nullable wait_object;    /* what it waits for, for dumps */
  weft_scope scope;
  /* Timer: GUARDED BY the timer lock of `timer_worker`. */
  uint64_t timer_wait;            /* the wait that the timer ends */
  int64_t timer_slot;             /* in that worker's TimerHeap; -1 while in none */
  struct weft_worker *_Nullable timer_worker;
  /* Registry.swift: fibers that have parked. GUARDED BY the lock of the shard. */
  struct weft_fiber *_Nullable registry_next;
  struct weft_fiber *_Nullable registry_previous;
  /* GroupCore.swift: the group's children that have parked. GUARDED BY the group's lock. */
  struct weft_fiber *_Nullable sibling_next;
  struct weft_fiber *_Nullable sibling_previous;
  uint32_t registry_shard;        /* 1 + index; 0: not registered */
  uint32_t unused;
  void *_Nullable tsan;
  void *_Nullable task_accesses[2]; /* fallback for the first thread word */
} weft_fiber_cold;

/* A fiber's record: the first stored property of its Swift object.
 *
 * Who may touch what:
 *   frame, cold, links    whoever holds the fiber: the worker that runs it, or the queue it is in
 *   wait, joiners         any thread
 *   the rest              the fiber itself, and whoever made it before it was first queued
 */
typedef struct weft_fiber {
  /* What a yield touches comes first: with a thousand fibers every line is a cache miss. */
  weft_frame frame;
  struct weft_fiber *_Nullable next;     /* in a run queue or an inbox */
  struct weft_fiber *_Nullable previous; /* in a run queue */
  struct weft_queue *_Nullable queued;   /* the run queue that it is in; written under its lock */
  uint32_t flags;                        /* WEFT_FIBER_... */
  int32_t saved_errno;
  uint32_t pin_depth;                    /* Fiber.pinned, Swift jobs on the stack */
  uint32_t stack_units;                  /* how large a stack it wants: weft_fiber_stack_bytes */
  weft_word wait;                        /* Wait.swift draws its states */
  struct weft_worker *_Nullable home;    /* who ran it last; of pinned fibers, the only worker */
  weft_fiber_cold *_Null_unspecified cold;       /* null while it has no stack */
  weft_link joiners;                     /* Join.swift */
  void *_Nullable body[2];               /* the user's closure; later the result, if it fits */
  struct weft_group *_Nullable group;    /* whose child it is; outlives it */
  void *_Nullable runner[2];             /* the closure that knows its types */
  weft_word id;                          /* 0 until somebody asks */
  weft_site site;
} weft_fiber;

enum {
  WEFT_FIBER_PINNED = 1,   /* runs on `home` only */
  WEFT_FIBER_HIGH = 2,     /* priority class */
  WEFT_FIBER_STARTED = 4,  /* has run */
  WEFT_FIBER_MAIN = 8,     /* Scheduler.run's main */
  WEFT_FIBER_ROOT = 16,    /* a worker's own stack */
  WEFT_FIBER_SUCCEEDED = 32,
  WEFT_FIBER_FAILED = 64,
  WEFT_FIBER_BOXED = 128,  /* the result is on the heap, at body[0] */
  WEFT_FIBER_OWNS = 256,   /* the result must be released: the runner's words hold how */
  WEFT_FIBER_JOINED = 512, /* somebody took the outcome */
  WEFT_FIBER_EXCLUSIVE = 1024,
  WEFT_FIBER_CHILD = 2048, /* belongs to a group */
  WEFT_FIBER_LOCALS = 4096, /* its code has fiber locals that children inherit */
  WEFT_FIBER_BOUND = 8192, /* has its stack */
  WEFT_FIBER_IN_JOB = 16384, /* pinned because a Swift job is on its stack */
  WEFT_FIBER_PROVOKED = 32768, /* what it threw is the cancellation that its group gave it */
  WEFT_FIBER_ENLISTED = 65536, /* in its group's list of children that have parked */
  WEFT_FIBER_DUE = 262144, /* woken by its timer, and not run since */
  WEFT_FIBER_NAMED = 131072, /* has a name of its own */
  WEFT_FIBER_MIGRATES = 524288, /* debug mode: is woken on another worker */
  WEFT_FIBER_SIMULATED = 1048576, /* belongs to a simulation: cweft_seam.h */
  WEFT_FIBER_HAS_WORDS = 2097152, /* one of cold->words is not null */
  WEFT_FIBER_POOLED = 4194304, /* its object's memory is cweft_record.h's */
};

/* What a group and its children share: GroupCore.swift.
 *
 * GUARDED BY: lock, but for `cancelled` and `failing`, which anybody reads, the constants, and the
 * last four, which are the body's own.
 */
typedef struct weft_group {
  weft_word lock;
  weft_word cancelled;               /* its children count as cancelled */
  weft_fiber *_Nullable ready_head;  /* ended, not yet taken, in the order of their ends */
  weft_fiber *_Nullable ready_tail;
  weft_fiber *_Nullable enlisted;    /* children that have parked and not ended */
  uint64_t ended;
  uint64_t target;                   /* when `ended` gets here, wake the body; UINT64_MAX: never */
  weft_fiber *_Nullable waiter;      /* the body's fiber; null: a plain thread, asleep on `woken` */
  uint64_t waiter_number;            /* its wait */
  weft_word woken;
  weft_word failing;                 /* there is a first error; read by anybody */
  uint32_t collects;                 /* errors are outcomes, and cancel nobody; a constant */
  uint32_t shields;                  /* how deep in shields it was opened; a constant */
  uint64_t deadline;                 /* in force where it was opened; a constant */
  uint64_t spawned;
  uint64_t taken;
  weft_fiber *_Nullable own_head;    /* taken over from the ready list, not yet handed out */
  weft_fiber *_Nullable own_tail;
} weft_group;

/* The lists of a run queue, in the order in which they are looked at. */
enum {
  WEFT_QUEUE_HIGH = 0,
  WEFT_QUEUE_DUE = 1, /* woken by their timers: late already, so not behind a crowd of new ones */
  WEFT_QUEUE_NORMAL = 2,
  WEFT_QUEUE_CLASSES = 3,
};

/* Fibers that may run. The owner's lock is biased to it: no atomic read-modify-write unless a
 * thief is there.
 *
 *   owner: busy = 1; (compiler fence) if thief: back off; change plain fields; busy = 0 (release)
 *   thief: CAS thief 0 -> 1; membarrier; wait, with a bound, for busy == 0; change; thief = 0
 *
 * After the membarrier every store that the owner made before it is visible to the thief, and every
 * load that the owner makes after it sees the thief's mark. So either the thief sees busy == 1
 * and waits, or the owner's check sees the thief: never neither. Where membarrier is missing,
 * `unbiased` makes the owner take `thief` with a CAS too.
 */
typedef struct weft_queue {
  weft_word busy;
  weft_fiber *_Nullable head[WEFT_QUEUE_CLASSES];
  weft_fiber *_Nullable tail[WEFT_QUEUE_CLASSES];
  weft_word count;     /* written under the lock, read by anybody */
  weft_word stealable; /* of those, the ones that are not pinned */
  uint32_t unbiased;
  uint32_t turns;      /* picks for which others had to wait */
  /* Thieves write it, so it shares no line with what the owner writes all the time. (Swift imports
   * no structure that asks for an alignment.) */
  uint8_t pad1[56];
  weft_word thief;
  uint8_t pad2[56];
} weft_queue;

/* What has to happen once the switch away from a fiber is done; runs on the next stack. */
enum {
  WEFT_AFTER_NOTHING = 0,
  WEFT_AFTER_UNLOCK = 1,  /* a yield: release the queue, which the fiber is in already */
  WEFT_AFTER_PARK = 2,    /* publish "parked" */
  WEFT_AFTER_JOIN = 3,    /* put the fiber into another's list of joiners */
  WEFT_AFTER_END = 4,     /* drop the last reference of a dead fiber */
  WEFT_AFTER_CALL = 5,    /* call after_function(after_argument, previous) */
};

/* A kernel thread of the pool, or one that visits it as worker 0. */
typedef struct weft_worker {
  /* Hot, written by the owner only. */
  weft_fiber *_Nonnull current;
  void *_Nullable *_Nonnull access;      /* this thread's words; a dummy where not tracked */
  void *_Nullable *_Nonnull concurrency; /* task, executor, task-locals in a row; or dummies */
  uint32_t slow;                         /* sanitizers, fallback, debug: switch out of line */
  uint16_t fp_load_is_cheap;
  uint16_t spend_mask;                   /* 255: one of so many yields; 0: in a simulation */
  uint32_t after;                        /* WEFT_AFTER_... */
  uint32_t direct_most;                  /* how far `direct` may go */
  int32_t *_Nonnull errno_address;       /* this thread's errno */
  uint32_t direct;                       /* fibers that went past the queue, one after another */
  uint32_t spent;                        /* operations that did not have to wait */
  uint32_t index;
  uint32_t poll_mask;                    /* 15: how often it looks around; 0: in a simulation */
  /* What the workers of a scheduler share, without going through a counted reference. */
  struct weft_pool *_Nonnull pool;
  weft_fiber *_Nullable previous;        /* whom `after` is about */
  void *_Nullable after_argument;
  void (*_Nullable after_function)(struct weft_worker *_Nonnull, weft_fiber *_Nonnull,
                                   void *_Nullable);
  weft_word tick;                        /* switches so far; read by the watchdog */
  weft_queue queue;
  /* Written by others. */
  weft_link inbox;                       /* woken from elsewhere; may be stolen */
  weft_link mailbox;                     /* pinned to this worker */
  weft_link offer;                       /* a lone fiber, held out to searchers: Waking.swift */
  weft_word away;                        /* takes no general work: WEFT_AWAY_... */
  weft_word turning;                     /* 1: its queue turns over fast: Stealing.swift */
  uint8_t pad[24];
  weft_word sleeping;                    /* futex word in its low half: Idle.swift */
  weft_word next_deadline;               /* earliest timer; UINT64_MAX: none */
  weft_word timer_lock;
  void *_Nullable timers;                /* its TimerHeap. GUARDED BY: timer_lock */
  /* Counters: written by the owner, read by anybody. */
  weft_word ran, spawned, ended, stolen, parked, woken, idle_nanoseconds, queue_high_water;
  weft_word idle_since;                  /* when it began to be idle; 0: it runs a fiber */
  weft_word stacks_cached;               /* by its thread, when it was last idle */
  weft_fiber root;                       /* the thread's own stack */
  weft_fiber_cold root_cold;
  void *_Nullable scheduler;             /* unretained Swift object: for slow paths only */
  uint64_t random;
  uint64_t spin_rounds;                  /* of a search for work: Idle.swift */
  uint64_t patience;                     /* searches that left a queue because it turned over */
  uint64_t thread;                       /* kernel thread id */
  int32_t wake_fd;
  int32_t cpu;                           /* pinned to, or -1 */
  void *_Nullable dummies[4];            /* stand-ins for words that are not there */
} weft_worker;

/* What a scheduler's workers share: settings that never change, but for the last, which hardly ever
 * does, and words that several threads write, a cache line each. SharedWords in Swift names the
 * lines. */
#define WEFT_POOL_LINES 26
typedef struct weft_pool {
  struct {
    weft_word word;
    uint8_t pad[56];
  } line[WEFT_POOL_LINES];
  uint64_t stack_bytes;      /* of a fiber that asks for no size */
  uint32_t migrates_started; /* thread words can be swapped, so started fibers may move */
  uint32_t spreads;          /* placement policy: lesser of two */
  weft_word refused;         /* classes of stacks that can't be had now: StackLine.swift */
  uint64_t timers_most;      /* fired under one hold of their lock */
  /* Debug modes: sends off a fiber that has yielded; null where it may stay. */
  void (*_Nullable moves)(struct weft_worker *_Nonnull, weft_fiber *_Nonnull, void *_Nullable);
} weft_pool;

/* Why a worker takes no general work. Fibers that are pinned to it it runs all the same. */
enum {
  WEFT_AWAY_RETIRED = 1,   /* not needed now, or its thread was never started */
  WEFT_AWAY_EXCLUSIVE = 2, /* kept for one fiber */
  WEFT_AWAY_FROM_WORK = 3, /* one of these */
  WEFT_AWAY_SENDS = 4,     /* debug mode: takes general work, but sends off what yields */
};

/* One that waits for a fiber's end with a word of its own, on its own stack (Join.swift). */
typedef struct weft_join_node {
  weft_word done;               /* 1 once whoever ended the fiber has let go of this node */
  uintptr_t next;               /* tagged, as the list is */
  weft_fiber *_Nullable record; /* the fiber that waits; null: a plain thread, asleep on `done` */
  uint64_t number;              /* its wait; of a plain thread: 1 if it counts as blocked */
  weft_word *_Nullable thread;  /* a plain thread that selects sleeps here; else null */
} weft_join_node;

WEFT_INLINE weft_word *_Nonnull weft_join_node_done(weft_join_node *_Nonnull node) {
  return &node->done;
}

/* ---- The current worker ---- */

void weft_worker_set_current(weft_worker *_Nullable worker);
weft_worker *_Nullable weft_worker_current_outlined(void);

/* This thread's worker, or null on a plain thread. Read anew at each call: see weft_access_word. */
WEFT_INLINE weft_worker *_Nullable weft_worker_current(void) {
#if defined(__ELF__) && defined(__x86_64__)
  weft_worker *worker;
  __asm__ volatile(
      "movq weft_tls_worker@gottpoff(%%rip), %0\n\t"
      "movq %%fs:(%0), %0"
      : "=r"(worker));
  return worker;
#elif defined(__ELF__) && defined(__aarch64__)
  weft_worker *worker;
  uintptr_t offset;
  __asm__ volatile(
      "mrs %0, tpidr_el0\n\t"
      "adrp %1, :gottprel:weft_tls_worker\n\t"
      "ldr %1, [%1, #:gottprel_lo12:weft_tls_worker]\n\t"
      "ldr %0, [%0, %1]"
      : "=&r"(worker), "=&r"(offset));
  return worker;
#else
  return weft_worker_current_outlined();
#endif
}

/* What surrounds the code of this thread while it is a plain one. Never inlined: a function that
 * switches in between must ask again (see weft_access_word). */
weft_scope *_Nonnull weft_thread_scope(void);

/* What surrounds the code that calls. */
WEFT_INLINE weft_scope *_Nonnull weft_current_scope(void) {
  weft_worker *worker = weft_worker_current();
  return worker != NULL ? &worker->current->cold->scope : weft_thread_scope();
}
WEFT_INLINE weft_scope *_Nonnull weft_fiber_scope(weft_fiber *_Nonnull fiber) {
  return &fiber->cold->scope;
}

/* ---- The switch between fibers ---- */

weft_worker *_Nonnull weft_fiber_switch_slow(weft_fiber *_Nonnull from, weft_fiber *_Nonnull to,
                                             weft_worker *_Nonnull worker);

/* Puts the thread's words into `from` and `to`'s words into the thread. */
void weft_fiber_swap_words(weft_fiber *_Nonnull from, weft_fiber *_Nonnull to,
                           weft_worker *_Nonnull worker);

/* Continues `to` on this worker. Returns when somebody continues `from`: on which worker is what it
 * returns, and everything else that belongs to a thread must be read anew.
 *
 * COST: the bare switch, FP control, five loads and a predicted branch for the thread words. */
WEFT_INLINE weft_worker *_Nonnull weft_fiber_switch_either(weft_fiber *_Nonnull from,
                                                           weft_fiber *_Nonnull to,
                                                           weft_worker *_Nonnull worker,
                                                           bool last) {
  worker->current = to;
  if (__builtin_expect(worker->slow, 0)) return weft_fiber_switch_slow(from, to, worker);
  if (last && worker->fp_load_is_cheap) weft_fp_load(&to->frame.fpctl);
  else weft_fp_switch(&from->frame.fpctl, &to->frame.fpctl, worker->fp_load_is_cheap);
  void **three = worker->concurrency;
  if (__builtin_expect(((uintptr_t)*worker->access | (uintptr_t)three[0] | (uintptr_t)three[1] |
                        (uintptr_t)three[2] | (to->flags & WEFT_FIBER_HAS_WORDS) |
                        (from->flags & WEFT_FIBER_IN_JOB)) != 0,
                       0)) {
    weft_fiber_swap_words(from, to, worker);
  }
  return (weft_worker *)weft_switch_inline(&from->frame, &to->frame, worker);
}

WEFT_INLINE weft_worker *_Nonnull weft_fiber_switch(weft_fiber *_Nonnull from,
                                                    weft_fiber *_Nonnull to,
                                                    weft_worker *_Nonnull worker) {
  return weft_fiber_switch_either(from, to, worker, false);
}

/* The last switch of a fiber that ends: it keeps nothing, and does not return. */
WEFT_INLINE void weft_fiber_switch_last(weft_fiber *_Nonnull from, weft_fiber *_Nonnull to,
                                        weft_worker *_Nonnull worker) {
  (void)weft_fiber_switch_either(from, to, worker, true);
}

/* Binds `stack` to a fiber that never ran, so that switching to it calls `main(fiber, worker)`. */
void weft_fiber_bind(weft_fiber *_Nonnull fiber, const weft_stack *_Nonnull stack,
                     void (*_Nonnull main)(weft_fiber *_Nonnull, weft_worker *_Nonnull));

/* Leaves room at the top of the fiber's stack, before it runs, for a name of its own. Nothing is
 * written yet: the stack may be one that another fiber, which is ending, still runs on. */
void weft_fiber_reserve_name(weft_fiber *_Nonnull fiber, uint64_t bytes);
/* From the fiber itself: copies the name there, where the overflow handler finds it. */
void weft_fiber_name(weft_fiber *_Nonnull fiber, const char *_Nonnull name, uint64_t bytes);

/* Prepares a worker on the thread that calls: finds its words, makes its root fiber. */
void weft_worker_prepare(weft_worker *_Nonnull worker);

/* Before its last switch: gives a dying fiber's stack back. Only this thread's next acquire can see
 * it, and what that writes lies above the frames that are still in use. Returns what has to be
 * done with after the switch (a huge stack, or what a sanitizer keeps; else null). */
void *_Nullable weft_fiber_unbind(weft_fiber *_Nonnull fiber);
void weft_fiber_destroy_sanitizer(void *_Nullable left);
/* After it: gives back a stack that could not be given back before. */
void weft_fiber_release_stack(weft_fiber *_Nonnull fiber);

/* How large a stack it wants, rounded up to what 32 bits can say of 64 GiB. */
WEFT_INLINE uint64_t weft_fiber_stack_bytes(const weft_fiber *_Nonnull fiber) {
  return (uint64_t)fiber->stack_units * 32;
}
WEFT_INLINE void weft_fiber_set_stack_bytes(weft_fiber *_Nonnull fiber, uint64_t bytes) {
  fiber->stack_units = (uint32_t)((bytes + 31) / 32);
}

/* A number that no other fiber of this process has; given out when first asked for. */
uint64_t weft_fiber_id(weft_fiber *_Nonnull fiber);

/* Adds a reference to a Swift object that no other thread knows yet: not atomic. */
void weft_retain_unshared(void *_Nonnull object);

/* Whether a Swift object has more than one reference. */
_Bool weft_is_shared(void *_Nonnull object);

WEFT_INLINE weft_word *_Nonnull weft_pool_refused(weft_pool *_Nonnull pool) {
  return &pool->refused;
}
WEFT_INLINE weft_word *_Nonnull weft_pool_line(weft_pool *_Nonnull pool, int64_t index) {
  return &pool->line[index].word;
}

/* Counts an operation that did not have to wait. True for one in 256: others should run. */
WEFT_INLINE bool weft_worker_spend(weft_worker *_Nonnull worker) {
  return (++worker->spent & worker->spend_mask) == 0;
}

/* Marks of the wait word, of which Wait.swift has all. */
enum {
  WEFT_WAIT_CANCELLABLE = 1 << 7,
  WEFT_WAIT_CANCELLED = 1 << 8,
  WEFT_WAIT_INTERRUPTED = 1 << 9,
};
/* The line of the pool that has the phase of the scheduler's life; 0 while it is open. */
enum { WEFT_POOL_PHASE = 6 };

/* Whether the fiber that runs may be cancelled, or have a deadline. False is certain; true has to
 * be looked into. COST: five loads, one branch. */
WEFT_INLINE bool weft_fiber_seems_cancelled(weft_worker *_Nonnull worker) {
  weft_fiber *fiber = worker->current;
  struct weft_group *group = fiber->group;
  /* ORDERING: relaxed; who finds a mark looks again, and acquires what came before it. */
  uint64_t marks = weft_word_load_relaxed(&fiber->wait) &
                   (WEFT_WAIT_CANCELLED | WEFT_WAIT_INTERRUPTED);
  marks |= weft_word_load_relaxed(weft_pool_line(worker->pool, WEFT_POOL_PHASE));
  marks |= ~fiber->cold->scope.deadline;
  if (group != NULL) {
    marks |= weft_word_load_relaxed(&group->cancelled) | ~group->deadline;
  }
  return marks != 0;
}

/* Addresses of fields, which Swift can't take. */
WEFT_INLINE void *_Nullable *_Nonnull weft_fiber_body(weft_fiber *_Nonnull fiber) {
  return fiber->body;
}
WEFT_INLINE void *_Nullable *_Nonnull weft_fiber_runner(weft_fiber *_Nonnull fiber) {
  return fiber->runner;
}

/* Flags of a fiber that has ended, where several joiners may set WEFT_FIBER_JOINED at once. */
WEFT_INLINE uint32_t weft_fiber_flags(weft_fiber *_Nonnull fiber) {
  /* ORDERING: relaxed; of the flags that the fiber itself wrote, the joiner's acquire of the end
   * mark (hasEnded) has brought the last values. */
  return __atomic_load_n(&fiber->flags, __ATOMIC_RELAXED);
}
WEFT_INLINE void weft_fiber_clear_flag(weft_fiber *_Nonnull fiber, uint32_t flag) {
  /* ORDERING: relaxed; the end mark orders what the flags speak of. */
  __atomic_fetch_and(&fiber->flags, ~flag, __ATOMIC_RELAXED);
}
/* The queue that it is in: a hint without that queue's lock. */
WEFT_INLINE struct weft_queue *_Nullable weft_fiber_queued(weft_fiber *_Nonnull fiber) {
  /* ORDERING: relaxed; corrected under the lock. */
  return __atomic_load_n(&fiber->queued, __ATOMIC_RELAXED);
}
/* Who ran it last, for those who do not hold it: an address, which may be another's by now. */
WEFT_INLINE struct weft_worker *_Nullable weft_fiber_home(weft_fiber *_Nonnull fiber) {
  /* ORDERING: relaxed; only compared. */
  return __atomic_load_n(&fiber->home, __ATOMIC_RELAXED);
}
/* Whoever holds a fiber says so when it takes it to a worker. */
WEFT_INLINE void weft_fiber_set_home(weft_fiber *_Nonnull fiber,
                                     struct weft_worker *_Nonnull worker) {
  /* ORDERING: relaxed; whoever holds the fiber next got it through a queue or an inbox. */
  __atomic_store_n(&fiber->home, worker, __ATOMIC_RELAXED);
}
WEFT_INLINE void weft_fiber_set_flag(weft_fiber *_Nonnull fiber, uint32_t flag) {
  /* ORDERING: relaxed; read again only after the last reference is dropped, which orders it. */
  __atomic_fetch_or(&fiber->flags, flag, __ATOMIC_RELAXED);
}

/* Fields that several threads touch. */
WEFT_INLINE weft_word *_Nonnull weft_fiber_wait(weft_fiber *_Nonnull fiber) {
  return &fiber->wait;
}
WEFT_INLINE weft_link *_Nonnull weft_fiber_joiners(weft_fiber *_Nonnull fiber) {
  return &fiber->joiners;
}
#define WEFT_WORKER_FIELD(type, name)                                                  \
  WEFT_INLINE type *_Nonnull weft_worker_##name(weft_worker *_Nonnull worker) {        \
    return &worker->name;                                                              \
  }
/* The lock of the list of groups that the fiber has open. One of 64, by address: such a lock is
 * held for some nanoseconds, and only while groups are opened, closed, cancelled. */
weft_word *_Nonnull weft_fiber_scopes_lock(weft_fiber *_Nonnull fiber);

WEFT_INLINE weft_word *_Nonnull weft_group_lock(weft_group *_Nonnull group) {
  return &group->lock;
}
WEFT_INLINE weft_word *_Nonnull weft_group_cancelled(weft_group *_Nonnull group) {
  return &group->cancelled;
}
WEFT_INLINE weft_word *_Nonnull weft_group_failing(weft_group *_Nonnull group) {
  return &group->failing;
}
WEFT_INLINE weft_word *_Nonnull weft_group_woken(weft_group *_Nonnull group) {
  return &group->woken;
}
WEFT_WORKER_FIELD(weft_queue, queue)
WEFT_WORKER_FIELD(weft_fiber, root)
WEFT_WORKER_FIELD(weft_link, inbox)
WEFT_WORKER_FIELD(weft_link, offer)
WEFT_WORKER_FIELD(weft_link, mailbox)
WEFT_WORKER_FIELD(weft_word, tick)
WEFT_WORKER_FIELD(weft_word, sleeping)
WEFT_WORKER_FIELD(weft_word, next_deadline)
WEFT_WORKER_FIELD(weft_word, timer_lock)
WEFT_WORKER_FIELD(weft_word, away)
WEFT_WORKER_FIELD(weft_word, turning)
WEFT_WORKER_FIELD(weft_word, ran)
WEFT_WORKER_FIELD(weft_word, spawned)
WEFT_WORKER_FIELD(weft_word, ended)
WEFT_WORKER_FIELD(weft_word, stolen)
WEFT_WORKER_FIELD(weft_word, parked)
WEFT_WORKER_FIELD(weft_word, woken)
WEFT_WORKER_FIELD(weft_word, idle_nanoseconds)
WEFT_WORKER_FIELD(weft_word, queue_high_water)
WEFT_WORKER_FIELD(weft_word, idle_since)
WEFT_WORKER_FIELD(weft_word, stacks_cached)
WEFT_INLINE weft_word *_Nonnull weft_worker_queue_count(weft_worker *_Nonnull worker) {
  return &worker->queue.count;
}
WEFT_INLINE weft_word *_Nonnull weft_worker_queue_stealable(weft_worker *_Nonnull worker) {
  return &worker->queue.stealable;
}

/* What a worker's thread says of itself when it begins, for figures and the watchdog. */
WEFT_INLINE int32_t weft_worker_cpu(weft_worker *_Nonnull worker) {
  /* ORDERING: relaxed, for these four: each stands for itself, and may be a moment old. */
  return __atomic_load_n(&worker->cpu, __ATOMIC_RELAXED);
}
WEFT_INLINE void weft_worker_set_cpu(weft_worker *_Nonnull worker, int32_t cpu) {
  /* ORDERING: relaxed; as above. */
  __atomic_store_n(&worker->cpu, cpu, __ATOMIC_RELAXED);
}
WEFT_INLINE uint64_t weft_worker_thread(weft_worker *_Nonnull worker) {
  /* ORDERING: relaxed; as above. */
  return __atomic_load_n(&worker->thread, __ATOMIC_RELAXED);
}
WEFT_INLINE void weft_worker_set_thread(weft_worker *_Nonnull worker, uint64_t thread) {
  /* ORDERING: relaxed; as above. */
  __atomic_store_n(&worker->thread, thread, __ATOMIC_RELAXED);
}

#endif
