/* slab.c - the mappings that stacks are cut from, and their guards. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE 1
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "internal.h"
#include "sanitizer.h"
#include "slab.h"

#if !defined(MAP_NORESERVE)
#define MAP_NORESERVE 0
#endif
#if !defined(MAP_STACK)
#define MAP_STACK 0
#endif
#if !defined(MADV_GUARD_INSTALL) /* Linux 6.13 */
#define MADV_GUARD_INSTALL 102
#endif

/* What stacks and records leave to everybody else: a process whose last address they took dies in
 * malloc. */
#define RESERVE_BYTES ((size_t)8 << 20)

/* A mapping. Never freed, so that the fault handler may walk the list at any moment; a mapping
 * that was undone leaves low = 0 and is filled again. */
typedef struct slab {
  struct slab *next;
  /* ORDERING: low is stored last with release and read first with acquire (find_slab): a slab
   * that is seen is whole. */
  _Atomic(uintptr_t) low;
  uintptr_t high;
  uint32_t stride_shift;
} slab;

static pthread_mutex_t slabs_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(slab *) slabs;

/* ORDERING: relaxed; counters for people, they order nothing. */
static _Atomic(size_t) slab_count;
static _Atomic(size_t) slab_bytes_total;
static _Atomic(size_t) carved_count;

enum guard_kind { GUARD_UNDECIDED, GUARD_MADVISE, GUARD_MPROTECT };
/* ORDERING: relaxed; each thread that decides it decides alike. */
static _Atomic(int) guard_kind;

/* Counts the lines of /proc/self/maps against the kernel's limit: ENOMEM does not say which of
 * the two ran out. */
static weft_stack_failure classify_enomem(void) {
#if defined(__linux__)
  char buffer[4096];
  size_t maps = 0, limit = 0;
  ssize_t count;
  if (weft_read_text("/proc/sys/vm/max_map_count", buffer, sizeof buffer)) {
    limit = strtoul(buffer, NULL, 10);
  }
  int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    while ((count = read(fd, buffer, sizeof buffer)) > 0) {
      for (ssize_t i = 0; i < count; i++) maps += buffer[i] == '\n';
    }
    close(fd);
  }
  /* With some slack: other threads unmap meanwhile, and emulators hide mappings of their own. */
  if (limit != 0 && maps + limit / 64 >= limit) return WEFT_STACK_MAP_LIMIT;
#endif
  return WEFT_STACK_OUT_OF_MEMORY;
}

static bool slab_publish(uintptr_t low, size_t bytes, uint32_t shift) {
  pthread_mutex_lock(&slabs_lock);
  /* ORDERING: relaxed reads, since only holders of slabs_lock write; the release stores below pair
   * with the acquire loads of find_slab. */
  slab *entry = atomic_load_explicit(&slabs, memory_order_relaxed);
  while (entry != NULL && atomic_load_explicit(&entry->low, memory_order_relaxed) != 0) {
    entry = entry->next;
  }
  bool made = entry == NULL;
  if (made) entry = calloc(1, sizeof *entry);
  if (entry != NULL) {
    entry->high = low + bytes;
    entry->stride_shift = shift;
    atomic_store_explicit(&entry->low, low, memory_order_release);
    if (made) {
      entry->next = atomic_load_explicit(&slabs, memory_order_relaxed);
      atomic_store_explicit(&slabs, entry, memory_order_release);
    }
    atomic_fetch_add_explicit(&slab_count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&slab_bytes_total, bytes, memory_order_relaxed);
  }
  pthread_mutex_unlock(&slabs_lock);
  return entry != NULL;
}

/* The slab that holds an address. Async-signal-safe.
 * ORDERING: acquire, paired with the release stores of slab_publish. */
static slab *find_slab(uintptr_t address) {
  slab *entry = atomic_load_explicit(&slabs, memory_order_acquire);
  for (; entry != NULL; entry = entry->next) {
    uintptr_t low = atomic_load_explicit(&entry->low, memory_order_acquire);
    if (low != 0 && address >= low && address < entry->high) return entry;
  }
  return NULL;
}

/* It is calculated: a mapping made to find out would take from others, for a moment, what it is
 * there to keep for them. */
bool weft_leaves_reserve(size_t bytes) {
#if defined(__linux__)
  struct rlimit limit;
  char text[64];
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return true;
  if (!weft_read_text("/proc/self/statm", text, sizeof text)) return true;
  size_t used = strtoul(text, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
  return used + bytes + RESERVE_BYTES <= limit.rlim_cur;
#else
  (void)bytes;
  return true;
#endif
}

weft_stack_failure weft_slab_map(size_t bytes, uint32_t shift, char **low, int32_t *error) {
  if (!weft_leaves_reserve(bytes)) {
    *error = ENOMEM;
    return WEFT_STACK_OUT_OF_MEMORY;
  }
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) {
    *error = errno;
    return *error == ENOMEM ? classify_enomem() : WEFT_STACK_OUT_OF_MEMORY;
  }
#if defined(MADV_NOHUGEPAGE)
  /* A huge page would make a stack that touches 4 KiB cost 2 MiB. Refusal is harmless. */
  madvise(memory, bytes, MADV_NOHUGEPAGE);
#endif
  if (!slab_publish((uintptr_t)memory, bytes, shift)) {
    munmap(memory, bytes);
    *error = ENOMEM;
    return WEFT_STACK_OUT_OF_MEMORY;
  }
  *low = memory;
  return WEFT_STACK_OK;
}

/* PLATFORM: qemu's user mode (7.2) accepts every advice and ignores what it does not know. A system
 * call that reads a string from a guard fails with EFAULT; from anything else, with ENOENT. */
static bool is_guarded(const char *low) { return access(low, F_OK) != 0 && errno == EFAULT; }

/* PLATFORM: MADV_GUARD_INSTALL puts the guard into the page tables and leaves the mapping whole;
 * mprotect cuts the mapping in two, so that 32,000 stacks reach vm.max_map_count (65,530). */
static weft_stack_failure install_guard(char *low, int32_t *error) {
  int kind = atomic_load_explicit(&guard_kind, memory_order_relaxed);
  bool decided = kind != GUARD_UNDECIDED;
  if (!decided) {
    const char *wish = getenv("WEFT_GUARD");
    kind = wish != NULL && strcmp(wish, "mprotect") == 0 ? GUARD_MPROTECT : GUARD_MADVISE;
  }
  if (kind == GUARD_MADVISE) {
#if defined(__linux__)
    if (madvise(low, WEFT_GUARD_BYTES, MADV_GUARD_INSTALL) == 0 && (decided || is_guarded(low))) {
      atomic_store_explicit(&guard_kind, GUARD_MADVISE, memory_order_relaxed);
      return WEFT_STACK_OK;
    }
    if (errno == ENOMEM) {
      *error = ENOMEM;
      return WEFT_STACK_OUT_OF_MEMORY;
    }
#endif
    kind = GUARD_MPROTECT;
  }
  if (mprotect(low, WEFT_GUARD_BYTES, PROT_NONE) != 0) {
    *error = errno;
    return *error == ENOMEM ? classify_enomem() : WEFT_STACK_GUARD_REFUSED;
  }
  atomic_store_explicit(&guard_kind, GUARD_MPROTECT, memory_order_relaxed);
  return WEFT_STACK_OK;
}

weft_stack_failure weft_slab_prepare(char *low, uint32_t shift, int32_t *error) {
  weft_stack_failure failure = install_guard(low, error);
  if (failure != WEFT_STACK_OK) return failure;
  atomic_fetch_add_explicit(&carved_count, 1, memory_order_relaxed);
  weft_valgrind_register_stack(low + WEFT_GUARD_BYTES, low + ((size_t)1 << shift));
  return WEFT_STACK_OK;
}

void weft_slab_unmap(char *top, uint32_t shift, size_t stacks) {
  size_t stride = (size_t)1 << shift;
  /* Under the lock: an entry that is filled again meanwhile would show its old low and new high. */
  pthread_mutex_lock(&slabs_lock);
  slab *entry = find_slab((uintptr_t)top - stride);
  /* ORDERING: release, paired with find_slab; the range stops being ours before it is unmapped. */
  atomic_store_explicit(&entry->low, 0, memory_order_release);
  atomic_fetch_sub_explicit(&carved_count, stacks, memory_order_relaxed);
  atomic_fetch_sub_explicit(&slab_count, 1, memory_order_relaxed);
  atomic_fetch_sub_explicit(&slab_bytes_total, stride, memory_order_relaxed);
  pthread_mutex_unlock(&slabs_lock);
  munmap(top - stride, stride);
}

bool weft_stack_find_guard(uintptr_t address, uintptr_t sp, weft_stack *stack) {
  slab *entry = find_slab(address);
  if (entry == NULL) return false;
  uintptr_t low = atomic_load_explicit(&entry->low, memory_order_acquire);
  uintptr_t stride = (uintptr_t)1 << entry->stride_shift;
  uintptr_t start = low + ((address - low) & ~(stride - 1));
  if (address - start >= WEFT_GUARD_BYTES) return false;
  /* A stray pointer into somebody's guard is no overflow: the stack must be the one in use. */
  if (sp < start || sp > start + stride) return false;
  stack->top = (char *)(start + stride);
  stack->low = (char *)(start + WEFT_GUARD_BYTES);
  stack->stride_shift = entry->stride_shift;
  stack->error = 0;
  return true;
}

void weft_slab_count(weft_stack_statistics *statistics) {
  static const char *const names[] = {"undecided", "madvise", "mprotect"};
  statistics->guard = names[atomic_load_explicit(&guard_kind, memory_order_relaxed)];
  statistics->live = atomic_load_explicit(&carved_count, memory_order_relaxed);
  statistics->slabs = atomic_load_explicit(&slab_count, memory_order_relaxed);
  statistics->mapped_bytes = atomic_load_explicit(&slab_bytes_total, memory_order_relaxed);
}

void weft_slab_lock(void) { pthread_mutex_lock(&slabs_lock); }
void weft_slab_unlock(void) { pthread_mutex_unlock(&slabs_lock); }
