/* again.c - this program once more, as a child, for a demo that ends its process. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cweftdemo.h"

#if defined(__APPLE__)
#include <mach-o/dyld.h>
#endif

extern char **environ;

static int64_t milliseconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int own_path(char *path, size_t size) {
#if defined(__APPLE__)
  uint32_t room = (uint32_t)size;
  return _NSGetExecutablePath(path, &room) == 0 ? 0 : ENAMETOOLONG;
#else
  ssize_t length = readlink("/proc/self/exe", path, size - 1);
  if (length < 0) return errno;
  path[length] = 0;
  return 0;
#endif
}

/* Reads to the end, or until the time is up. What does not fit is dropped: the child must not wait
 * for a reader. */
static int read_all(int source, char *text, size_t *size, int64_t deadline) {
  size_t room = *size, count = 0;
  int result = 0;
  for (;;) {
    int64_t left = deadline - milliseconds_now();
    struct pollfd item = {.fd = source, .events = POLLIN};
    int ready = left > 0 ? poll(&item, 1, (int)left) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      result = ready == 0 ? ETIMEDOUT : errno;
      break;
    }
    char dropped[512];
    int keeps = count < room;
    ssize_t more = read(source, keeps ? text + count : dropped,
                        keeps ? room - count : sizeof dropped);
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) {
      result = more == 0 ? 0 : errno;
      break;
    }
    if (keeps) count += (size_t)more;
  }
  *size = count;
  return result;
}

int weft_host_run_again(const char *const *arguments, char *errors, size_t *size, int milliseconds,
                        int *status) {
  char path[4096];
  int ends[2];
  int failure = own_path(path, sizeof path);
  if (failure != 0) return failure;
  if (pipe(ends) != 0) return errno;
  fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  fcntl(ends[1], F_SETFD, FD_CLOEXEC);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  pid_t child;
  failure = posix_spawn(&child, path, &actions, NULL, (char *const *)arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (failure == 0) {
    failure = read_all(ends[0], errors, size, milliseconds_now() + milliseconds);
    if (failure != 0) kill(child, SIGKILL);
    int word = 0;
    while (waitpid(child, &word, 0) < 0 && errno == EINTR) {
    }
    *status = WIFEXITED(word) ? WEXITSTATUS(word) : 128 + WTERMSIG(word);
  }
  close(ends[0]);
  return failure;
}
