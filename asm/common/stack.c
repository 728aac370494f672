/* stack.c - the pool of stacks: this thread's caches and the shared lists. slab.c is under it.
 *
 *   thread cache (64)  <-- half at a time -->  shared lists  <-- carved from --  slabs
 *   no lock, LIFO                              a lock a class                    one mapping each
 *
 * A stack is known by its top. No list is kept in the stacks themselves: a link in a stack whose
 * pages went back to the kernel would bring one of them in again.
 */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE 1
#endif
#define WEFT_NO_SEAM 1
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "debug.h"
#include "internal.h"
#include "sanitizer.h"
#include "slab.h"

#include "cweft_fiber.h"
#include "cweft_system.h"

/* Idle stacks with used pages that a class keeps in any case. */
#define DIRTY_BYTES_MAX ((size_t)256 << 20) /* counted in strides, so 1,024 default stacks */
/* Beyond that it keeps as many as were in use lately, and lets go of the rest bit by bit: giving a
 * stack's pages back and taking new ones costs 3 us, and a use that comes back soon pays both. */
#define LATELY_NS UINT64_C(1000000000)
#define CLEAN_STEP 128
/* When next to nothing is left of a large use it is over: all of it goes back at once, which is
 * cheap, since most of the stacks are neighbours by then. */
#define OVER_FRACTION 256
#define OVER_REST 128
#define SLAB_BYTES_FIRST ((size_t)16 << 20)
#define SLAB_BYTES_MAX ((size_t)1 << 30)

typedef struct list {
  char **top;
  size_t count;
  size_t capacity;
} list;

typedef struct class_pool {
  pthread_mutex_t lock;
  list dirty; /* the last is the hottest */
  list clean;
  /* The part of the newest slab that was never handed out. GUARDED BY: lock */
  char *fresh;
  char *fresh_end;
  size_t slab_bytes;
  /* How many stacks there are; how many of them were in use at most, in the period under way and
   * with the one before it. GUARDED BY: lock */
  size_t made;
  size_t peak_now;
  size_t peak_lately;
  uint64_t period_began;
  /* Since when a use is over that left its stacks to weft_stack_settle, and up to how many in use
   * that still holds. GUARDED BY: lock */
  uint64_t over_since;
  size_t over_below;
} class_pool;

/* A bit for each class with such stacks.
 * ORDERING: relaxed; a hint, changed under the class's lock. */
static _Atomic(uint32_t) surplus;

static class_pool pools[WEFT_CLASSES] = {
    [0 ... WEFT_CLASSES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

/* ---- Lists ---- */

static bool list_reserve(list *list, size_t more) {
  if (list->count + more <= list->capacity) return true;
  size_t capacity = list->capacity == 0 ? 256 : list->capacity;
  while (capacity < list->count + more) capacity *= 2;
  char **top = realloc(list->top, capacity * sizeof *top);
  if (top == NULL) return false;
  list->top = top;
  list->capacity = capacity;
  return true;
}

static int by_address(const void *a, const void *b) {
  uintptr_t left = (uintptr_t) * (char *const *)a, right = (uintptr_t) * (char *const *)b;
  return (left > right) - (left < right);
}

/* Gives the pages of these stacks to the kernel, one call for each run of neighbours: in bulk this
 * is eight times cheaper a stack than one by one. The guards between them stay installed. */
static void clean_stacks(char **top, size_t count, uint32_t shift) {
  size_t stride = (size_t)1 << shift;
  qsort(top, count, sizeof *top, by_address);
  for (size_t i = 0; i < count;) {
    size_t run = 1;
    while (i + run < count && top[i + run] == top[i + run - 1] + stride) run++;
    madvise(top[i] - stride, run * stride, MADV_DONTNEED);
    i += run;
  }
}

/* Cleans the coldest `count` dirty stacks. Takes and leaves the lock; cleans outside it. */
static void clean_cold(class_pool *pool, uint32_t shift, size_t count) {
  if (count > pool->dirty.count) count = pool->dirty.count;
  char **cold = count == 0 ? NULL : malloc(count * sizeof *cold);
  if (cold == NULL) return; /* no memory: they stay dirty, which is safe */
  memcpy(cold, pool->dirty.top, count * sizeof *cold);
  pool->dirty.count -= count;
  memmove(pool->dirty.top, pool->dirty.top + count, pool->dirty.count * sizeof *cold);
  pthread_mutex_unlock(&pool->lock);
  clean_stacks(cold, count, shift);
  pthread_mutex_lock(&pool->lock);
  list *list = list_reserve(&pool->clean, count) ? &pool->clean : &pool->dirty;
  /* Dirty had room for them before; if it was filled meanwhile and no memory is left, they are
   * unreachable but clean: address space only. */
  if (list_reserve(list, count)) {
    memcpy(list->top + list->count, cold, count * sizeof *cold);
    list->count += count;
  } else {
    pool->made -= count;
  }
  free(cold);
}

static size_t dirty_min(uint32_t shift) {
  size_t stacks = weft_debug_has(WEFT_DEBUG_TINY) ? 0 : DIRTY_BYTES_MAX >> shift;
  return stacks < 4 ? 4 : stacks;
}

/* Stacks in use, those in the caches of threads among them. GUARDED BY: pool->lock */
static size_t in_use(const class_pool *pool) {
  return pool->made - pool->dirty.count - pool->clean.count;
}

/* The same, noted for the peaks. GUARDED BY: pool->lock */
static size_t note_use(class_pool *pool, uint32_t shift) {
  size_t used = in_use(pool);
  if (pool->made <= dirty_min(shift)) return used; /* a small program asks for no time */
  uint64_t now = weft_clock_now();
  if (now - pool->period_began >= LATELY_NS) {
    /* Two periods without a look: what was before is long ago. */
    pool->peak_lately = now - pool->period_began < 2 * LATELY_NS ? pool->peak_now : used;
    pool->peak_now = used;
    pool->period_began = now;
  }
  if (pool->peak_now < used) pool->peak_now = used;
  if (pool->peak_lately < used) pool->peak_lately = used;
  return used;
}

/* A large use is over: gives all of it back but half of what is kept in any case. Takes and leaves
 * the lock. */
static void end_use(class_pool *pool, uint32_t shift) {
  pool->peak_now = pool->peak_lately = in_use(pool);
  clean_cold(pool, shift, pool->dirty.count - dirty_min(shift) / 2);
}

/* After stacks came back. Takes and leaves the lock. */
static void clean_surplus(class_pool *pool, uint32_t shift) {
  size_t limit = dirty_min(shift), used = note_use(pool, shift);
  if (pool->dirty.count <= limit) return;
  size_t over_below = pool->peak_lately / OVER_FRACTION + OVER_REST;
  if (used <= over_below) {
    uint32_t bit = (uint32_t)1 << (shift - WEFT_SHIFT_MIN);
    if (weft_worker_current_outlined() == NULL) {
      end_use(pool, shift);
    } else if ((atomic_load_explicit(&surplus, memory_order_relaxed) & bit) == 0) {
      /* Fibers are waiting for this worker. It comes back to it when it has nothing to do. */
      pool->over_since = weft_clock_now();
      pool->over_below = over_below;
      atomic_fetch_or_explicit(&surplus, bit, memory_order_relaxed);
    }
  } else if (pool->dirty.count + used > pool->peak_lately + limit) {
    clean_cold(pool, shift, CLEAN_STEP);
  }
}

static void pool_put(class_pool *pool, uint32_t shift, char **top, size_t count) {
  pthread_mutex_lock(&pool->lock);
  if (list_reserve(&pool->dirty, count)) {
    memcpy(pool->dirty.top + pool->dirty.count, top, count * sizeof *top);
    pool->dirty.count += count;
    clean_surplus(pool, shift);
  } else {
    pool->made -= count;
    clean_stacks(top, count, shift); /* lost to the pool, but not the memory in them */
  }
  pthread_mutex_unlock(&pool->lock);
}

bool weft_stack_settle(bool at_once) {
  uint32_t bits = atomic_load_explicit(&surplus, memory_order_relaxed);
  bool is_left = false;
  while (bits != 0) {
    uint32_t index = (uint32_t)__builtin_ctz(bits), shift = index + WEFT_SHIFT_MIN;
    class_pool *pool = &pools[index];
    bits &= bits - 1;
    pthread_mutex_lock(&pool->lock);
    bool is_over = in_use(pool) <= pool->over_below && pool->dirty.count > dirty_min(shift);
    if (is_over && !at_once && weft_clock_now() - pool->over_since < LATELY_NS) {
      is_left = true;
    } else {
      atomic_fetch_and_explicit(&surplus, ~((uint32_t)1 << index), memory_order_relaxed);
      if (is_over) end_use(pool, shift);
    }
    pthread_mutex_unlock(&pool->lock);
  }
  return is_left;
}

/* Carves a stack that was never used. GUARDED BY: pool->lock */
static weft_stack_failure carve(class_pool *pool, uint32_t shift, char **top, int32_t *error) {
  size_t stride = (size_t)1 << shift;
  if (pool->fresh == pool->fresh_end) {
    size_t bytes = pool->slab_bytes == 0 ? SLAB_BYTES_FIRST : pool->slab_bytes * 2;
    if (bytes > SLAB_BYTES_MAX) bytes = SLAB_BYTES_MAX;
    if (bytes < stride) bytes = stride;
    weft_stack_failure failure = weft_slab_map(bytes, shift, &pool->fresh, error);
    if (failure != WEFT_STACK_OK && bytes > stride) {
      /* A smaller piece may still fit. */
      bytes = stride;
      failure = weft_slab_map(bytes, shift, &pool->fresh, error);
    }
    if (failure != WEFT_STACK_OK) {
      pool->fresh = pool->fresh_end = NULL;
      return failure;
    }
    pool->fresh_end = pool->fresh + bytes;
    pool->slab_bytes = bytes;
  }
  weft_stack_failure failure = weft_slab_prepare(pool->fresh, shift, error);
  if (failure != WEFT_STACK_OK) return failure;
  pool->fresh += stride;
  pool->made++;
  *top = pool->fresh;
  return WEFT_STACK_OK;
}

/* How many a thread caches: fewer of the large ones. */
static uint32_t cache_limit(uint32_t shift) {
  if (weft_debug_has(WEFT_DEBUG_TINY | WEFT_DEBUG_STACKS)) return 2;
  return shift <= 18 ? WEFT_CACHE_ENTRIES : shift <= 20 ? 16 : 4;
}

/* Fills the cache with one stack at least: warm ones first, then cleaned ones, then a new one. */
static weft_stack_failure cache_fill(weft_stack_cache *cache, uint32_t shift, int32_t *error) {
  class_pool *pool = &pools[shift - WEFT_SHIFT_MIN];
  weft_stack_failure failure = WEFT_STACK_OK;
  size_t wanted = cache_limit(shift) / 2;
  pthread_mutex_lock(&pool->lock);
  list *list = pool->dirty.count > 0 ? &pool->dirty : &pool->clean;
  if (list->count > 0) {
    size_t count = list->count < wanted ? list->count : wanted;
    list->count -= count;
    memcpy(cache->top, list->top + list->count, count * sizeof *cache->top);
    cache->count = (uint32_t)count;
  } else {
    failure = carve(pool, shift, &cache->top[0], error);
    if (failure == WEFT_STACK_OK) cache->count = 1;
  }
  if (failure == WEFT_STACK_OK) (void)note_use(pool, shift);
  pthread_mutex_unlock(&pool->lock);
  return failure;
}

/* ---- Acquire, release ---- */

static uint32_t shift_for(size_t bytes) {
  uint32_t shift = weft_stack_class(bytes);
  return shift < WEFT_SHIFT_MIN ? WEFT_SHIFT_MIN : shift;
}

static void stack_fill(weft_stack *stack, char *top, uint32_t shift) {
  stack->top = top;
  stack->low = top - ((size_t)1 << shift) + WEFT_GUARD_BYTES;
  stack->stride_shift = shift;
  stack->error = 0;
#if WEFT_ASAN
  /* A stack that was left by a throw or by unwinding has poisoned frames. */
  __asan_unpoison_memory_region(stack->low, (size_t)(stack->top - stack->low));
  __lsan_register_root_region(stack->low, (size_t)(stack->top - stack->low));
#endif
}

__attribute__((noinline)) static weft_stack_failure acquire_huge(uint32_t shift, char **top,
                                                                 int32_t *error) {
  size_t stride = (size_t)1 << shift;
  char *low = NULL;
  weft_stack_failure failure = weft_slab_map(stride, shift, &low, error);
  if (failure != WEFT_STACK_OK) return failure;
  *top = low + stride;
  failure = weft_slab_prepare(low, shift, error);
  if (failure != WEFT_STACK_OK) weft_slab_unmap(*top, shift, 0);
  return failure;
}

/* All that is not "pop from this thread's cache". Never inlined, so that the caller stays small. */
__attribute__((noinline)) static weft_stack_failure acquire_slow(size_t bytes, weft_stack *stack) {
  char *top = NULL;
  int32_t error = EINVAL;
  weft_stack_failure failure = WEFT_STACK_SIZE_OUT_OF_RANGE;
  if (weft_stack_size_is_possible(bytes)) {
    uint32_t shift = shift_for(bytes);
    weft_thread *thread = weft_thread_current();
    if (thread == NULL) {
      error = ENOMEM;
      failure = WEFT_STACK_OUT_OF_MEMORY;
    } else if (shift > WEFT_SHIFT_SLAB_MAX) {
      failure = acquire_huge(shift, &top, &error);
    } else {
      weft_stack_cache *cache = &thread->stacks[shift - WEFT_SHIFT_MIN];
      failure = cache_fill(cache, shift, &error);
      if (failure == WEFT_STACK_OK) top = cache->top[--cache->count];
    }
    if (failure == WEFT_STACK_OK) {
      stack_fill(stack, top, shift);
      if (shift > WEFT_SHIFT_SLAB_MAX) stack->error = WEFT_STACK_STAYS;
      if (weft_debug_has(WEFT_DEBUG_STACKS)) weft_debug_stack_taken(stack);
    }
  }
  if (failure != WEFT_STACK_OK) *stack = (weft_stack){.error = error};
  return failure;
}

/* In a simulation: counted, and sometimes refused. True: it is. */
__attribute__((noinline)) static bool is_refused(weft_stack *stack) {
  if (weft_seam_fails(WEFT_FAULT_STACK)) {
    stack->error = ENOMEM;
    return true;
  }
  weft_seam_count_stack(1);
  return false;
}

weft_stack_failure weft_stack_acquire(size_t bytes, weft_stack *stack) {
  if (weft_seam_is_open() && is_refused(stack)) return WEFT_STACK_OUT_OF_MEMORY;
  weft_thread *thread = weft_tls_thread;
  /* The size that nearly everybody asks for: bounds and class are known. */
  uint32_t shift = bytes <= WEFT_STACK_BYTES_DEFAULT && bytes > WEFT_STACK_BYTES_DEFAULT / 2
                       ? WEFT_SHIFT_DEFAULT
                       : shift_for(bytes);
  /* Both bounds in one comparison; above the upper one the shift has wrapped. */
  bool in_range = bytes - WEFT_STACK_BYTES_MIN <= WEFT_STACK_BYTES_MAX - WEFT_STACK_BYTES_MIN;
  if (WEFT_LIKELY(thread != NULL && in_range && shift <= WEFT_SHIFT_SLAB_MAX)) {
    weft_stack_cache *cache = &thread->stacks[shift - WEFT_SHIFT_MIN];
    if (WEFT_LIKELY(cache->count != 0)) {
      stack_fill(stack, cache->top[--cache->count], shift);
      return WEFT_STACK_OK;
    }
  }
  return acquire_slow(bytes, stack);
}

/* For a stack that does not fit: the older half goes to the pool, the hot half stays. False if the
 * stack itself has gone there: under a debug mode that is to see each, all do. */
__attribute__((noinline)) static bool make_room(weft_stack_cache *cache, uint32_t shift,
                                                char *top) {
  uint32_t half = cache->limit / 2;
  if (weft_debug_has(WEFT_DEBUG_STACKS)) {
    weft_debug_stack_given_back(top, shift);
    pool_put(&pools[shift - WEFT_SHIFT_MIN], shift, &top, 1);
    return false;
  }
  if (cache->limit == 0) {
    cache->limit = cache_limit(shift);
    if (cache->count < cache->limit) return true;
    half = cache->limit / 2;
  }
  pool_put(&pools[shift - WEFT_SHIFT_MIN], shift, cache->top, half);
  cache->count -= half;
  memmove(cache->top, cache->top + half, cache->count * sizeof *cache->top);
  return true;
}

__attribute__((noinline)) static void release_slow(char *top, uint32_t shift) {
  if (shift > WEFT_SHIFT_SLAB_MAX) {
    if (weft_debug_has(WEFT_DEBUG_STACKS)) weft_debug_stack_given_back(top, shift);
    weft_slab_unmap(top, shift, 1);
  } else if (weft_thread_make() == NULL) pool_put(&pools[shift - WEFT_SHIFT_MIN], shift, &top, 1);
  else weft_stack_release(&(weft_stack){.top = top, .stride_shift = shift});
}

void weft_stack_release(const weft_stack *stack) {
  if (weft_seam_is_open()) weft_seam_count_stack(-1);
  uint32_t shift = stack->stride_shift;
  char *top = stack->top;
  weft_thread *thread = weft_tls_thread;
#if WEFT_ASAN
  if (stack->low != NULL) {
    __lsan_unregister_root_region(stack->low, (size_t)(stack->top - stack->low));
    __asan_unpoison_memory_region(stack->low, (size_t)(stack->top - stack->low));
  }
#endif
  if (WEFT_UNLIKELY(thread == NULL || shift > WEFT_SHIFT_SLAB_MAX)) {
    release_slow(top, shift);
    return;
  }
  weft_stack_cache *cache = &thread->stacks[shift - WEFT_SHIFT_MIN];
  if (WEFT_UNLIKELY(cache->count >= cache->limit) && !make_room(cache, shift, top)) return;
  cache->top[cache->count++] = top;
}

void weft_stack_flush_thread(weft_thread *thread) {
  for (uint32_t i = 0; i < WEFT_CLASSES; i++) {
    weft_stack_cache *cache = &thread->stacks[i];
    if (cache->count > 0) pool_put(&pools[i], i + WEFT_SHIFT_MIN, cache->top, cache->count);
    cache->count = 0;
  }
}

uint64_t weft_stack_cached(void) {
  weft_thread *thread = weft_tls_thread;
  uint64_t count = 0;
  if (thread == NULL) return 0;
  for (uint32_t i = 0; i < WEFT_CLASSES; i++) count += thread->stacks[i].count;
  return count;
}

void weft_stack_lock_all(void) {
  for (uint32_t i = 0; i < WEFT_CLASSES; i++) pthread_mutex_lock(&pools[i].lock);
  weft_slab_lock();
  weft_record_lock();
}

void weft_stack_unlock_all(void) {
  weft_record_unlock();
  weft_slab_unlock();
  for (uint32_t i = 0; i < WEFT_CLASSES; i++) pthread_mutex_unlock(&pools[i].lock);
}

void weft_stack_trim(void) {
  weft_thread *thread = weft_thread_current();
  if (thread != NULL) weft_stack_flush_thread(thread);
  for (uint32_t i = 0; i < WEFT_CLASSES; i++) {
    pthread_mutex_lock(&pools[i].lock);
    clean_cold(&pools[i], i + WEFT_SHIFT_MIN, SIZE_MAX);
    pthread_mutex_unlock(&pools[i].lock);
  }
}

/* ---- Questions ---- */

size_t weft_stack_high_water(const weft_stack *stack) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t bytes = (size_t)(stack->top - stack->low);
  unsigned char *resident = malloc(bytes / page);
  size_t used = 0;
  if (resident == NULL) return 0;
  if (mincore(stack->low, bytes, (void *)resident) == 0) {
    size_t index = weft_debug_canary_page(page) / page;
    while (index < bytes / page && (resident[index] & 1) == 0) index++;
    used = bytes - index * page;
  }
  free(resident);
  return used;
}

weft_stack_statistics weft_stack_get_statistics(void) {
  weft_thread *thread = weft_thread_current();
  size_t idle = 0;
  weft_stack_statistics statistics = {0};
  weft_slab_count(&statistics);
  for (uint32_t i = 0; i < WEFT_CLASSES; i++) {
    pthread_mutex_lock(&pools[i].lock);
    statistics.idle_dirty += pools[i].dirty.count;
    statistics.idle_clean += pools[i].clean.count;
    pthread_mutex_unlock(&pools[i].lock);
    if (thread != NULL) statistics.idle_dirty += thread->stacks[i].count;
  }
  idle = statistics.idle_dirty + statistics.idle_clean;
  /* Other threads' caches count as live: nobody but their owner may look into them. */
  statistics.live -= idle;
  return statistics;
}
