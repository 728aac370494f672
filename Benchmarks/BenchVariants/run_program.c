/* run_program.c - starts another program and gives its output to the caller. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include "bench_variants.h"

#if defined(__linux__)
#include <sched.h>
#endif

extern char **environ;

static bool start(char *const *arguments, bool with_errors, int out, int32_t *process) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  if (posix_spawn_file_actions_init(&actions)) return false;
  if (posix_spawnattr_init(&attributes)) {
    posix_spawn_file_actions_destroy(&actions);
    return false;
  }
  /* This program ignores closed pipes; others are to die of them, as is usual. */
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t child = -1;
  bool started =
      posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO) == 0 &&
      (!with_errors || posix_spawn_file_actions_adddup2(&actions, out, STDERR_FILENO) == 0) &&
      posix_spawnp(&child, arguments[0], &actions, &attributes, arguments, environ) == 0;
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  *process = child;
  return started;
}

bool bench_run_program(char *const *arguments, bool with_errors, bool one_processor,
                       int32_t *process, int32_t *output) {
  int ends[2];
  if (pipe(ends)) return false;
  /* dup2 clears this for the child's own end. */
  fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  fcntl(ends[1], F_SETFD, FD_CLOEXEC);
#if defined(__linux__)
  /* A process may use the processors of the thread that starts it. */
  cpu_set_t all;
  bool limited = one_processor && sched_getaffinity(0, sizeof all, &all) == 0 &&
                 weft_cpu_pin(weft_cpu_at(0));
  bool started = limited == one_processor && start(arguments, with_errors, ends[1], process);
  if (limited) sched_setaffinity(0, sizeof all, &all);
#else
  bool started = !one_processor && start(arguments, with_errors, ends[1], process);
#endif
  close(ends[1]);
  if (!started) close(ends[0]);
  *output = ends[0];
  return started;
}
