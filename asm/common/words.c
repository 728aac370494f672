/* words.c - finding the Swift runtime's thread-local words by what they do.
 *
 * The words are local symbols, so no linker knows them. But we can make the runtime write a value
 * that only we know, and then look for it in the thread-local blocks that the dynamic linker
 * reports. A find counts only if it is the only one and a second probe agrees.
 *
 * PLATFORM: on Darwin the words are reserved pthread keys and the blocks are not enumerable; the
 * fallback is used there.
 */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE 1
#endif
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <link.h>
#endif

#include "internal.h"
#include "sanitizer.h"

/* libswiftCore. A program without Swift (our own C test) has none of them. */
extern void swift_beginAccess(void *pointer, void *buffer, uintptr_t flags, void *pc)
    __attribute__((weak));
extern void swift_endAccess(void *buffer) __attribute__((weak));
extern void swift_task_enterThreadLocalContext(char *state) __attribute__((weak));
extern void swift_task_exitThreadLocalContext(char *state) __attribute__((weak));

/* Modify, and keep it in the list until it ends. */
#define ACCESS_FLAGS ((uintptr_t)0x21)

/* ORDERING: relaxed; the mode is decided alike by every thread that gets to decide it, and
 * publishes nothing but itself. */
static _Atomic(int) words_mode;

weft_words_mode weft_words_get_mode(void) {
  weft_thread_words();
  return (weft_words_mode)atomic_load_explicit(&words_mode, memory_order_relaxed);
}

const char *weft_sanitizer(void) {
  return WEFT_ASAN ? "address" : WEFT_TSAN ? "thread" : NULL;
}

/* A thread whose word can't or needn't be swapped: the fast path then finds nothing to do. */
static __thread void *no_accesses WEFT_TLS_MODEL;

/* Thread-local blocks of this thread, one callback each. */
typedef void (*block_visitor)(void **words, size_t count, uintptr_t module_low,
                              uintptr_t module_high, void *context);

#if defined(__linux__)
struct block_walk {
  block_visitor visit;
  void *context;
};

static int visit_module(struct dl_phdr_info *info, size_t size, void *context) {
  struct block_walk *walk = context;
  uintptr_t low = UINTPTR_MAX, high = 0;
  size_t bytes = 0;
  if (size < offsetof(struct dl_phdr_info, dlpi_tls_data) + sizeof info->dlpi_tls_data) return 1;
  if (info->dlpi_tls_data == NULL) return 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    if (segment->p_type == PT_TLS) bytes = segment->p_memsz;
    if (segment->p_type == PT_LOAD) {
      uintptr_t start = info->dlpi_addr + segment->p_vaddr;
      if (start < low) low = start;
      if (start + segment->p_memsz > high) high = start + segment->p_memsz;
    }
  }
  walk->visit(info->dlpi_tls_data, bytes / sizeof(void *), low, high, walk->context);
  return 0;
}

static void for_each_block(block_visitor visit, void *context) {
  struct block_walk walk = {visit, context};
  dl_iterate_phdr(visit_module, &walk);
}
#else
static void for_each_block(block_visitor visit, void *context) {
  (void)visit;
  (void)context;
}
#endif

/* Looks for words that hold `value`. */
struct value_search {
  void *value;
  void **found;
  size_t matches;
};

WEFT_UNINSTRUMENTED static void search_value(void **words, size_t count, uintptr_t low,
                                             uintptr_t high, void *context) {
  struct value_search *search = context;
  (void)low;
  (void)high;
  for (size_t i = 0; i < count; i++) {
    /* volatile: the runtime writes these words behind the compiler's back. */
    if (*(void *volatile *)&words[i] == search->value) {
      search->found = &words[i];
      search->matches++;
    }
  }
}

/* Heap memory, so that no register or spilled copy in a thread-local block can be mistaken. */
static void **find_access_word(void) {
  struct probe {
    uint64_t target;
    void *buffer[3];
  } *probes = calloc(2, sizeof *probes);
  if (probes == NULL) return NULL;
  struct value_search search = {probes[0].buffer, NULL, 0};
  swift_beginAccess(&probes[0].target, probes[0].buffer, ACCESS_FLAGS, NULL);
  bool tracked = probes[0].buffer[0] != NULL;
  if (tracked) for_each_block(search_value, &search);
  /* A second access goes to the front of the same list, or it was another word. */
  bool confirmed = false;
  if (search.matches == 1) {
    swift_beginAccess(&probes[1].target, probes[1].buffer, ACCESS_FLAGS, NULL);
    confirmed = *(void *volatile *)search.found == probes[1].buffer;
    swift_endAccess(probes[1].buffer);
    confirmed = confirmed && *(void *volatile *)search.found == probes[0].buffer;
  }
  swift_endAccess(probes[0].buffer);
  free(probes);
  if (!tracked) return &no_accesses;
  return confirmed ? search.found : NULL;
}

void weft_words_find_access(weft_thread *thread) {
  weft_words_mode mode = WEFT_WORDS_FALLBACK;
  const char *wish = getenv("WEFT_THREAD_WORDS");
  if (swift_beginAccess == NULL || swift_endAccess == NULL) {
    thread->words.access = &no_accesses;
    mode = WEFT_WORDS_UNTRACKED;
  } else if (wish == NULL || strcmp(wish, "fallback") != 0) {
    thread->words.access = find_access_word();
    if (thread->words.access == &no_accesses) mode = WEFT_WORDS_UNTRACKED;
    else if (thread->words.access != NULL) mode = WEFT_WORDS_FOUND;
  }
  if (mode == WEFT_WORDS_FALLBACK &&
      (swift_task_enterThreadLocalContext == NULL || swift_task_exitThreadLocalContext == NULL)) {
    weft_fatal("this Swift runtime hides its list of open accesses and has no call to swap it",
               NULL, "Build with -enforce-exclusivity=unchecked, or use another Swift version.");
  }
  atomic_store_explicit(&words_mode, (int)mode, memory_order_relaxed);
}

void weft_words_enter_fallback(void *state) { swift_task_enterThreadLocalContext(state); }
void weft_words_exit_fallback(void *state) { swift_task_exitThreadLocalContext(state); }
