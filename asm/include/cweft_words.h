/* cweft_words.h - the thread-local words of the Swift runtime that belong to the running code.
 *
 * The runtime keeps four words per thread that describe the code which runs, not the thread: the
 * head of the list of open exclusive accesses (libswiftCore), and the current task, the executor
 * record and the task-locals outside a task (libswift_Concurrency). A stack that leaves a thread
 * has to take its own along. They are not exported, so each thread finds them by behaviour.
 */
#ifndef CWEFT_WORDS_H
#define CWEFT_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cweft_switch.h"

typedef enum weft_words_mode {
  WEFT_WORDS_UNDECIDED = 0,
  WEFT_WORDS_FOUND = 1,    /* the word's address is known: swapped inline */
  WEFT_WORDS_FALLBACK = 2, /* not found: the runtime's own enter/exit pair, slower */
  WEFT_WORDS_UNTRACKED = 3 /* no Swift runtime, or exclusivity checking is off: nothing to swap */
} weft_words_mode;

/* This thread's addresses of the words; null where one was not found. */
typedef struct weft_words {
  void *_Nullable *_Nullable access;
  void *_Nullable *_Nullable task;
  void *_Nullable *_Nullable executor;
  void *_Nullable *_Nullable fallback;
} weft_words;

/* Looks for this thread's words, once per thread. */
const weft_words *_Nonnull weft_thread_words(void);

/* How this process keeps the first word. Decided by the first thread that asks. */
weft_words_mode weft_words_get_mode(void);

/* True when switches take the slow path for a sanitizer; which one. */
const char *_Nullable weft_sanitizer(void);

/* Calls `body(context)` with a task-local bound, outside any task. Given by the Swift side, which
 * alone can bind one. */
typedef void (*weft_bind_task_local)(void (*_Nonnull body)(void *_Nullable),
                                     void *_Nullable context);

/* Finds the words of libswift_Concurrency on this thread, with the help of `bind`. */
void weft_words_find_concurrency(weft_bind_task_local _Nonnull bind);

#endif
