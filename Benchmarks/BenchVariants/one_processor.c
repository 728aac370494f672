/* one_processor.c - starts this program once more, limited to one processor from its first
 * instruction on: the width of the pool that runs Swift's tasks is fixed that early.
 *
 * PLATFORM: Linux. Elsewhere a process can't be limited, and the call says so.
 */
#define _GNU_SOURCE
#include "bench_variants.h"

#if defined(__linux__)

#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdlib.h>
#include <unistd.h>

extern char **environ;

static bool start(const char *argument, int in, int out) {
  posix_spawn_file_actions_t actions;
  if (posix_spawn_file_actions_init(&actions)) return false;
  char *arguments[] = {"weft-bench", (char *)argument, NULL};
  pid_t child;
  bool started = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO) == 0 &&
                 posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO) == 0 &&
                 posix_spawn(&child, "/proc/self/exe", &actions, NULL, arguments, environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  return started;
}

bool bench_start_on_one_processor(const char *argument, int32_t *requests, int32_t *answers) {
  cpu_set_t all;
  int to_child[2], to_us[2];
  /* A process may use the processors of the thread that starts it. */
  if (sched_getaffinity(0, sizeof all, &all) || pipe2(to_child, O_CLOEXEC)) return false;
  bool started = false;
  if (pipe2(to_us, O_CLOEXEC) == 0) {
    if (weft_cpu_pin(weft_cpu_at(0))) {
      started = start(argument, to_child[0], to_us[1]);
      sched_setaffinity(0, sizeof all, &all);
    }
    close(to_us[1]);
    if (!started) close(to_us[0]);
  }
  close(to_child[0]);
  if (!started) close(to_child[1]);
  *requests = to_child[1];
  *answers = to_us[0];
  return started;
}

#else

bool bench_start_on_one_processor(const char *argument, int32_t *requests, int32_t *answers) {
  (void)argument, (void)requests, (void)answers;
  return false;
}

#endif
