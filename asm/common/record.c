/* record.c - the pool of fibers' objects: this thread's cache, and the chunks that fill it.
 *
 *   thread cache (64)  <-- half at a time -->  chunks of 256 KiB: partly used, empty, or clean
 *   no lock, LIFO                              one lock          (empty, pages given back)
 *
 *      +-------+--------+--------+--------+---------------------------+
 *      | chunk | object | object | object |  ...  not carved yet      |   aligned to its size, so
 *      +-------+--------+--------+--------+---------------------------+   that an object finds it
 *
 * Empty chunks are kept as long as they come to use again: once a second the least number of them
 * that there was in that second goes back to the kernel, since that many were not needed. (The
 * working set of Bonwick and Adams, "Magazines and Vmem", USENIX 2001.) So does what lies in the
 * cache of a worker that has not used it for a second: each object may be all that keeps its chunk.
 */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE 1
#endif
#define WEFT_NO_SEAM 1
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"
#include "sanitizer.h"

#include "cweft_record.h"
#include "cweft_system.h"

#define CHUNK_BYTES ((size_t)256 << 10)
#define REGION_BYTES_FIRST ((size_t)1 << 20)
#define REGION_BYTES_MAX ((size_t)64 << 20)
/* Empty chunks that are kept in any case: 1 MiB. */
#define EMPTY_MIN 4
/* And those that the end of a scheduler leaves to the next one: 32 MiB, 150,000 fibers. */
#define EMPTY_KEPT 128
#define PERIOD_NS UINT64_C(1000000000)

/* At the beginning of its memory. The first page of it stays when the rest is given back. */
typedef struct chunk {
  struct chunk *next, *previous;
  void *free;      /* objects that came back, linked by their first words */
  uint32_t idle;   /* neither in use nor in a cache: those, and the ones that were never carved */
  uint32_t carved; /* how many were */
} chunk;

#define OBJECTS ((CHUNK_BYTES - 64) / WEFT_OBJECT_BYTES)

_Static_assert(sizeof(chunk) <= 64, "objects begin at the chunk's second cache line");
_Static_assert(WEFT_OBJECT_HEADER_BYTES + sizeof(weft_fiber) + 2 * sizeof(void *) <=
                   WEFT_OBJECT_BYTES,
               "the object has a header, the record and two words");
_Static_assert(WEFT_OBJECT_BYTES % 16 == 0, "objects are aligned as those of malloc");

/* GUARDED BY: lock */
static struct {
  pthread_mutex_t lock;
  chunk partial, empty, clean; /* ends of rings */
  size_t made, empty_count, clean_count;
  size_t empty_least; /* in this period */
  uint64_t period_began;
  char *fresh, *fresh_end; /* of the newest region: chunks that were never used */
  size_t region_bytes;
} depot = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .partial = {.next = &depot.partial, .previous = &depot.partial},
    .empty = {.next = &depot.empty, .previous = &depot.empty},
    .clean = {.next = &depot.clean, .previous = &depot.clean},
};

/* What every object begins with; zeros until it is known.
 * ORDERING: relaxed; whoever makes fibers has called weft_record_prepare, or been told of its
 * scheduler by somebody who did. */
static uint64_t header[2];

extern void *swift_initStackObject(const void *metadata, void *object) __attribute__((weak));
extern void *swift_nonatomic_retain(void *object) __attribute__((weak));

static void make_header(const void *metadata) {
  static _Alignas(16) uint64_t sample[WEFT_OBJECT_BYTES / sizeof(uint64_t)];
  if (swift_initStackObject == NULL || swift_nonatomic_retain == NULL) return;
  swift_initStackObject(metadata, sample);
  swift_nonatomic_retain(sample);
  header[1] = sample[1];
  header[0] = sample[0];
}

void weft_record_prepare(const void *metadata) {
  if (WEFT_SANITIZED) return;
  pthread_mutex_lock(&depot.lock);
  if (header[0] == 0) make_header(metadata);
  pthread_mutex_unlock(&depot.lock);
}

/* ---- Chunks. GUARDED BY: depot.lock ---- */

static void unlink_chunk(chunk *c) {
  c->next->previous = c->previous;
  c->previous->next = c->next;
}

static void link_first(chunk *ring, chunk *c) {
  c->next = ring->next;
  c->previous = ring;
  ring->next->previous = c;
  ring->next = c;
}

/* Another region of chunks, a small one where there is little memory. False if there is none. */
static bool map_region(void) {
  size_t bytes = depot.region_bytes == 0 ? REGION_BYTES_FIRST : depot.region_bytes * 2;
  if (bytes > REGION_BYTES_MAX) bytes = REGION_BYTES_MAX;
  if (!weft_leaves_reserve(bytes + CHUNK_BYTES)) {
    bytes = CHUNK_BYTES;
    if (!weft_leaves_reserve(bytes + CHUNK_BYTES)) return false;
  }
  char *memory = mmap(NULL, bytes + CHUNK_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  depot.region_bytes = bytes;
  uintptr_t first = ((uintptr_t)memory + CHUNK_BYTES - 1) & ~(uintptr_t)(CHUNK_BYTES - 1);
  depot.fresh = (char *)first;
  depot.fresh_end = depot.fresh + bytes;
  return true;
}

/* A chunk with idle objects. Null if there is no memory. */
static chunk *find_chunk(void) {
  chunk *c = depot.partial.next;
  if (c != &depot.partial) return c;
  if (depot.empty_count > 0) {
    c = depot.empty.next;
    if (--depot.empty_count < depot.empty_least) depot.empty_least = depot.empty_count;
    unlink_chunk(c);
  } else if (depot.clean_count > 0) {
    c = depot.clean.next;
    depot.clean_count--;
    unlink_chunk(c);
  } else {
    if (depot.fresh == depot.fresh_end && !map_region()) return NULL;
    c = (chunk *)(void *)depot.fresh;
    depot.fresh += CHUNK_BYTES;
    depot.made++;
    c->idle = OBJECTS;
  }
  link_first(&depot.partial, c);
  return c;
}

static void *take_object(chunk *c) {
  void *object = c->free;
  if (object != NULL) memcpy(&c->free, object, sizeof c->free);
  else object = (char *)c + 64 + (size_t)c->carved++ * WEFT_OBJECT_BYTES;
  if (--c->idle == 0) unlink_chunk(c);
  return object;
}

static void put_object(void *object) {
  chunk *c = (chunk *)((uintptr_t)object & ~(uintptr_t)(CHUNK_BYTES - 1));
  memcpy(object, &c->free, sizeof c->free);
  c->free = object;
  if (c->idle++ == 0) link_first(&depot.partial, c);
  if (c->idle < OBJECTS) return;
  /* Carved anew, in the order of addresses. */
  c->free = NULL;
  c->carved = 0;
  unlink_chunk(c);
  link_first(&depot.empty, c);
  depot.empty_count++;
}

/* Gives the pages of the coldest empty chunks to the kernel. Leaves the lock while it does. */
static void clean_chunks(size_t count) {
  chunk chain = {.next = &chain, .previous = &chain};
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  if (count > depot.empty_count) count = depot.empty_count;
  depot.empty_count -= count;
  if (depot.empty_least > depot.empty_count) depot.empty_least = depot.empty_count;
  for (size_t i = 0; i < count; i++) {
    chunk *c = depot.empty.previous;
    unlink_chunk(c);
    link_first(&chain, c);
  }
  pthread_mutex_unlock(&depot.lock);
  for (chunk *c = chain.next; c != &chain; c = c->next) {
    madvise((char *)c + page, CHUNK_BYTES - page, MADV_DONTNEED);
  }
  pthread_mutex_lock(&depot.lock);
  for (chunk *c = chain.next, *next; c != &chain; c = next) {
    next = c->next;
    link_first(&depot.clean, c);
    depot.clean_count++;
  }
}

/* Lets go of what was not needed in a period that is over. True if there may be more later. Leaves
 * the lock for a while. */
static bool end_period(void) {
  if (depot.empty_count <= EMPTY_MIN) return false;
  uint64_t now = weft_clock_now();
  if (now - depot.period_began >= PERIOD_NS) {
    size_t surplus = depot.empty_least;
    depot.period_began = now;
    depot.empty_least = depot.empty_count;
    if (surplus > depot.empty_count - EMPTY_MIN) surplus = depot.empty_count - EMPTY_MIN;
    if (surplus > 0) clean_chunks(surplus);
  }
  return depot.empty_count > EMPTY_MIN;
}

/* ---- Caches ---- */

/* Fills this thread's cache, so that what lies first is handed out first. */
__attribute__((noinline)) static bool cache_fill(weft_record_cache *cache) {
  uint32_t count = 0, most = WEFT_CACHE_ENTRIES / 2;
  pthread_mutex_lock(&depot.lock);
  while (count < most) {
    chunk *c = find_chunk();
    if (c == NULL) break;
    while (count < most && c->idle > 0) cache->object[most - ++count] = take_object(c);
  }
  pthread_mutex_unlock(&depot.lock);
  if (count < most) {
    memmove(cache->object, cache->object + (most - count), count * sizeof *cache->object);
  }
  cache->count = count;
  return count > 0;
}

/* To the depot: from `first` on, so many. */
static void put_objects(void **first, uint32_t count) {
  pthread_mutex_lock(&depot.lock);
  size_t empty = depot.empty_count;
  for (uint32_t i = 0; i < count; i++) put_object(first[i]);
  if (depot.empty_count > empty) (void)end_period();
  pthread_mutex_unlock(&depot.lock);
}

/* The older half goes. */
__attribute__((noinline)) static void make_room(weft_record_cache *cache) {
  uint32_t half = WEFT_CACHE_ENTRIES / 2;
  put_objects(cache->object, half);
  cache->count -= half;
  memmove(cache->object, cache->object + half, cache->count * sizeof *cache->object);
}

__attribute__((noinline)) static weft_thread *thread_for_records(void) {
  return header[0] == 0 ? NULL : weft_thread_current();
}

void *weft_record_acquire(void) {
  weft_thread *thread = weft_tls_thread;
  if (WEFT_UNLIKELY(thread == NULL || header[0] == 0)) {
    thread = thread_for_records();
    if (thread == NULL || header[0] == 0) return NULL;
  }
  weft_record_cache *cache = &thread->records;
  if (WEFT_UNLIKELY(cache->count == 0) && !cache_fill(cache)) return NULL;
  uint64_t *object = cache->object[--cache->count];
  /* The one after it, if there are many: its lines come while this one is filled in. */
  if (cache->count != 0) {
    const char *next = cache->object[cache->count - 1];
    __builtin_prefetch(next, 1);
    __builtin_prefetch(next + 64, 1);
    __builtin_prefetch(next + 128, 1);
  }
  memset(object, 0, WEFT_OBJECT_BYTES);
  object[0] = header[0];
  object[1] = header[1];
  ((weft_fiber *)(object + 2))->flags = WEFT_FIBER_POOLED;
  return object;
}

void weft_record_release(void *object) {
  weft_thread *thread = weft_tls_thread;
  if (WEFT_UNLIKELY(thread == NULL)) {
    /* Its deinit is still under way, so it can't go to the depot; where there is no memory for a
     * cache either, it is lost. */
    thread = weft_thread_make();
    if (thread == NULL) return;
  }
  weft_record_cache *cache = &thread->records;
  if (WEFT_UNLIKELY(cache->count == WEFT_CACHE_ENTRIES)) make_room(cache);
  cache->object[cache->count++] = object;
}

void weft_record_flush_thread(weft_thread *thread) {
  if (thread->records.count > 0) put_objects(thread->records.object, thread->records.count);
  thread->records.count = 0;
}

/* Empties a cache that its thread has left as it is for a period. True if it is too early for that.
 * GUARDED BY: depot.lock */
static bool settle_cache(weft_record_cache *cache) {
  size_t used = depot.made - depot.empty_count - depot.clean_count;
  if (cache->count == 0 || used <= EMPTY_MIN) return false;
  void *top = cache->object[cache->count - 1];
  uint64_t now = weft_clock_now();
  if (cache->count != cache->seen_count || top != cache->seen_top) {
    cache->seen_count = cache->count;
    cache->seen_top = top;
    cache->seen_since = now;
    return true;
  }
  if (now - cache->seen_since < PERIOD_NS) return true;
  while (cache->count > 0) put_object(cache->object[--cache->count]);
  return false;
}

bool weft_record_settle(bool at_once) {
  weft_thread *thread = weft_tls_thread;
  /* A glance without the lock would save some nanoseconds of a worker that has nothing to do. */
  pthread_mutex_lock(&depot.lock);
  bool is_early = thread != NULL && settle_cache(&thread->records);
  if (at_once && depot.empty_count > EMPTY_KEPT) clean_chunks(depot.empty_count - EMPTY_KEPT);
  bool is_left = end_period();
  pthread_mutex_unlock(&depot.lock);
  return is_left || is_early;
}

void weft_record_trim(void) {
  weft_thread *thread = weft_tls_thread;
  if (thread != NULL) weft_record_flush_thread(thread);
  pthread_mutex_lock(&depot.lock);
  clean_chunks(SIZE_MAX);
  pthread_mutex_unlock(&depot.lock);
}

weft_record_statistics weft_record_get_statistics(void) {
  pthread_mutex_lock(&depot.lock);
  weft_record_statistics statistics = {
      .chunks = depot.made,
      .empty = depot.empty_count + depot.clean_count,
      .clean = depot.clean_count,
  };
  pthread_mutex_unlock(&depot.lock);
  return statistics;
}

void weft_record_lock(void) { pthread_mutex_lock(&depot.lock); }
void weft_record_unlock(void) { pthread_mutex_unlock(&depot.lock); }
