/* cweft_atomic.h - C11 atomics on fields of C structures, as inline functions that Swift can call.
 *
 * The runtime's records are C structures, since assembly, signal handlers and debuggers share their
 * layout, and Swift's own atomics can't live in them. Each function names its memory order; the
 * call site says with which other site it pairs.
 */
#ifndef CWEFT_ATOMIC_H
#define CWEFT_ATOMIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cweft_seam.h"
#include "cweft_switch.h"

/* Where a simulation may let another thread run (cweft_seam.h): where one waits, at barriers, and
 * where a lock of the user's is taken or left. Built with WEFT_SEAM_FINE, before every access to a
 * word that several threads touch: that costs each of them a load and a branch, which the paths
 * that switch, wake and hand over would feel. Files of C with WEFT_NO_SEAM have none. */
#if defined(WEFT_NO_SEAM)
#define WEFT_POINT(kind, where) ((void)(where))
#else
#define WEFT_POINT(kind, where)                                \
  do {                                                         \
    if (weft_seam_is_open()) weft_seam_point((kind), (where)); \
  } while (0)
#endif
#if defined(WEFT_SEAM_FINE)
#define WEFT_POINT_FINE(where) WEFT_POINT(WEFT_POINT_WORD, where)
#else
#define WEFT_POINT_FINE(where) ((void)(where))
#endif

/* A word and a pointer that several threads touch. Swift sees them as opaque.
 *
 * ORDERING: what the name of each function says, and sequentially consistent (words) or
 * acquire-release (links) for a read-modify-write whose name says nothing. With what an access
 * pairs is its call site's to say. */
typedef struct weft_word {
  _Atomic(uint64_t) value;
} weft_word;
typedef struct weft_link {
  _Atomic(uintptr_t) value;
} weft_link;

#define WEFT_INLINE static inline __attribute__((always_inline))

WEFT_INLINE uint64_t weft_word_load_relaxed(weft_word *_Nonnull word) {
  WEFT_POINT_FINE(word);
  return atomic_load_explicit(&word->value, memory_order_relaxed);
}
WEFT_INLINE uint64_t weft_word_load_acquire(weft_word *_Nonnull word) {
  WEFT_POINT_FINE(word);
  return atomic_load_explicit(&word->value, memory_order_acquire);
}
WEFT_INLINE uint64_t weft_word_load_seq(weft_word *_Nonnull word) {
  WEFT_POINT_FINE(word);
  return atomic_load_explicit(&word->value, memory_order_seq_cst);
}
WEFT_INLINE void weft_word_store_relaxed(weft_word *_Nonnull word, uint64_t value) {
  WEFT_POINT_FINE(word);
  atomic_store_explicit(&word->value, value, memory_order_relaxed);
}
WEFT_INLINE void weft_word_store_release(weft_word *_Nonnull word, uint64_t value) {
  WEFT_POINT_FINE(word);
  atomic_store_explicit(&word->value, value, memory_order_release);
}
WEFT_INLINE uint64_t weft_word_exchange(weft_word *_Nonnull word, uint64_t value) {
  WEFT_POINT_FINE(word);
  return atomic_exchange_explicit(&word->value, value, memory_order_seq_cst);
}
/* On failure returns false and puts what was found into `expected`. Sequentially consistent, which
 * on x86-64 costs what any locked instruction costs. */
WEFT_INLINE bool weft_word_compare_exchange(weft_word *_Nonnull word, uint64_t *_Nonnull expected,
                                            uint64_t desired) {
  WEFT_POINT_FINE(word);
  /* ORDERING: as named above; who fails acquires what it found. */
  return atomic_compare_exchange_strong_explicit(&word->value, expected, desired,
                                                 memory_order_seq_cst, memory_order_acquire);
}
/* The same for whom it is enough to know whether: nothing on the stack. */
WEFT_INLINE bool weft_word_replace(weft_word *_Nonnull word, uint64_t expected, uint64_t desired) {
  WEFT_POINT_FINE(word);
  /* ORDERING: as above. */
  return atomic_compare_exchange_strong_explicit(&word->value, &expected, desired,
                                                 memory_order_seq_cst, memory_order_acquire);
}
/* The same where the caller holds no lock of the runtime, nor is inside it. */
WEFT_INLINE bool weft_word_replace_unlocked(weft_word *_Nonnull word, uint64_t expected,
                                            uint64_t desired) {
  WEFT_POINT(WEFT_POINT_LOCK, word);
  /* ORDERING: as above. */
  return atomic_compare_exchange_strong_explicit(&word->value, &expected, desired,
                                                 memory_order_seq_cst, memory_order_acquire);
}
WEFT_INLINE uint64_t weft_word_add(weft_word *_Nonnull word, uint64_t by) {
  WEFT_POINT_FINE(word);
  return atomic_fetch_add_explicit(&word->value, by, memory_order_seq_cst);
}
WEFT_INLINE uint64_t weft_word_subtract(weft_word *_Nonnull word, uint64_t by) {
  WEFT_POINT_FINE(word);
  return atomic_fetch_sub_explicit(&word->value, by, memory_order_seq_cst);
}
/* An increment by the only thread that writes: no locked instruction. */
WEFT_INLINE void weft_word_bump(weft_word *_Nonnull word, uint64_t by) {
  /* ORDERING: relaxed; the only writer reads its own value, others get a hint, or have a
   * barrier. */
  atomic_store_explicit(&word->value,
                        atomic_load_explicit(&word->value, memory_order_relaxed) + by,
                        memory_order_relaxed);
}

WEFT_INLINE uintptr_t weft_link_load_relaxed(weft_link *_Nonnull link) {
  WEFT_POINT_FINE(link);
  return atomic_load_explicit(&link->value, memory_order_relaxed);
}
WEFT_INLINE uintptr_t weft_link_load_acquire(weft_link *_Nonnull link) {
  WEFT_POINT_FINE(link);
  return atomic_load_explicit(&link->value, memory_order_acquire);
}
WEFT_INLINE void weft_link_store_relaxed(weft_link *_Nonnull link, uintptr_t value) {
  WEFT_POINT_FINE(link);
  atomic_store_explicit(&link->value, value, memory_order_relaxed);
}
WEFT_INLINE void weft_link_store_release(weft_link *_Nonnull link, uintptr_t value) {
  WEFT_POINT_FINE(link);
  atomic_store_explicit(&link->value, value, memory_order_release);
}
WEFT_INLINE uintptr_t weft_link_exchange(weft_link *_Nonnull link, uintptr_t value) {
  WEFT_POINT_FINE(link);
  return atomic_exchange_explicit(&link->value, value, memory_order_acq_rel);
}
WEFT_INLINE bool weft_link_compare_exchange(weft_link *_Nonnull link, uintptr_t *_Nonnull expected,
                                            uintptr_t desired) {
  WEFT_POINT_FINE(link);
  /* ORDERING: acquire-release; who fails acquires what it found. */
  return atomic_compare_exchange_strong_explicit(&link->value, expected, desired,
                                                 memory_order_acq_rel, memory_order_acquire);
}

/* ORDERING: the call site says between which two accesses, and with whose it pairs. */
WEFT_INLINE void weft_fence_seq(void) {
  WEFT_POINT(WEFT_POINT_FENCE, NULL);
  atomic_thread_fence(memory_order_seq_cst);
}
/* ORDERING: for the compiler alone: the processor's order is another thread's membarrier. */
WEFT_INLINE void weft_fence_compiler(void) { atomic_signal_fence(memory_order_seq_cst); }

/* In a loop that waits for another thread. */
WEFT_INLINE void weft_pause(void) {
  WEFT_POINT(WEFT_POINT_PAUSE, NULL);
#if defined(__x86_64__)
  __asm__ volatile("pause");
#elif defined(__aarch64__)
  __asm__ volatile("isb");
#endif
}

#endif
