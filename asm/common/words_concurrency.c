/* words_concurrency.c - the three words of libswift_Concurrency: task, executor, task-locals.
 *
 * They stand side by side in one thread-local block (seen on 6.3.1; each is verified, never
 * assumed):
 *
 *      base + 8         base + 16          base + 24
 *   +--------------+------------------+-------------------+
 *   | current task | executor record  | task-local head   |  (the last: where there is no task)
 *   +--------------+------------------+-------------------+
 */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE 1
#endif
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <link.h>
#endif

#include "internal.h"
#include "sanitizer.h"

#if defined(__linux__)

/* libswift_Concurrency, or absent in a program without it. Returns the task word. */
extern void *swift_task_getCurrent(void) __attribute__((weak));

/* This thread's thread-local block of the module that holds swift_task_getCurrent. */
struct block {
  void **words;
  size_t count;
};

static int find_module(struct dl_phdr_info *info, size_t size, void *context) {
  struct block *block = context;
  uintptr_t wanted = (uintptr_t)swift_task_getCurrent;
  bool inside = false;
  size_t bytes = 0;
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    uintptr_t start = info->dlpi_addr + segment->p_vaddr;
    if (segment->p_type == PT_TLS) bytes = segment->p_memsz;
    if (segment->p_type == PT_LOAD && wanted >= start && wanted < start + segment->p_memsz) {
      inside = true;
    }
  }
  if (!inside) return 0;
  block->words = info->dlpi_tls_data;
  block->count = info->dlpi_tls_data == NULL ? 0 : bytes / sizeof(void *);
  return 1;
}

/* Compares the block with what it was before a task-local was bound. */
struct binding_probe {
  struct block block;
  void **before;
  void **found;
  size_t matches;
};

WEFT_UNINSTRUMENTED static void inside_binding(void *context) {
  struct binding_probe *probe = context;
  for (size_t i = 0; i < probe->block.count; i++) {
    void *now = *(void *volatile *)&probe->block.words[i];
    if (probe->before[i] == NULL && now != NULL) {
      probe->found = &probe->block.words[i];
      probe->matches++;
    }
  }
}

/* The task word is the one that swift_task_getCurrent() returns. Only this thread sees the mark,
 * and nothing runs on it meanwhile. */
WEFT_UNINSTRUMENTED static bool is_task_word(void **word) {
  static char mark;
  void *volatile *cell = (void *volatile *)word;
  void *kept = *cell;
  *cell = &mark;
  bool same = swift_task_getCurrent() == (void *)&mark;
  *cell = kept;
  return same && swift_task_getCurrent() == kept;
}

/* The task word, where a task runs: the one that holds it. */
WEFT_UNINSTRUMENTED static void **find_task_word(const struct block *block, void *task) {
  for (size_t i = 0; i < block->count; i++) {
    if (*(void *volatile *)&block->words[i] == task && is_task_word(&block->words[i])) {
      return &block->words[i];
    }
  }
  return NULL;
}

/* Outside any task: binds a task-local twice, and sees which word changes. */
static void find_by_binding(weft_thread *thread, struct binding_probe *probe,
                            weft_bind_task_local bind) {
  probe->before = malloc(probe->block.count * sizeof(void *));
  if (probe->before == NULL) return;
  for (int round = 0; round < 2; round++) {
    void **first = probe->found;
    probe->matches = 0;
    memcpy(probe->before, probe->block.words, probe->block.count * sizeof(void *));
    bind(inside_binding, probe);
    if (probe->matches != 1 || (round == 1 && probe->found != first)) probe->found = NULL;
    if (probe->found == NULL) break;
  }
  free(probe->before);
  /* No word changed from null: inside a binding. That ends some time, so ask again later too, but
   * not for ever, for a runtime that keeps its bindings elsewhere. */
  thread->concurrency_sought = probe->matches != 0 || ++thread->concurrency_rounds == 64;
  if (probe->found == NULL || *(void *volatile *)probe->found != NULL) return;
  if (probe->found < probe->block.words + 2 || !is_task_word(probe->found - 2)) return;
  thread->words.fallback = probe->found;
  thread->words.task = probe->found - 2;
  thread->words.executor = probe->found - 1;
}

void weft_words_find_concurrency(weft_bind_task_local bind) {
  weft_thread *thread = weft_thread_current();
  struct binding_probe probe = {0};
  void **task_word = NULL;
  if (thread == NULL || thread->concurrency_sought || swift_task_getCurrent == NULL) return;
  weft_thread_words();
  dl_iterate_phdr(find_module, &probe.block);
  if (probe.block.count < 3) {
    thread->concurrency_sought = true;
    return;
  }
  void *task = swift_task_getCurrent();
  if (task != NULL) {
    /* Inside a task a binding goes to the task. Nothing else runs on this thread meanwhile, so for
     * the length of the search there is none. */
    task_word = find_task_word(&probe.block, task);
    if (task_word == NULL) return;
    *(void *volatile *)task_word = NULL;
  }
  find_by_binding(thread, &probe, bind);
  if (task_word != NULL) *(void *volatile *)task_word = task;
}

#else

void weft_words_find_concurrency(weft_bind_task_local bind) { (void)bind; }

#endif
