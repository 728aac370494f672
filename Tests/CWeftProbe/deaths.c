/* deaths.c - mistakes that have to end the process, each in a child process. */
#if !defined(__APPLE__)
#define _POSIX_C_SOURCE 200809L
#endif
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

static bool is_expected(int number, weft_probe_death death) {
  if (death == WEFT_PROBE_TRAP) return number == SIGILL || number == SIGTRAP;
  return number == SIGSEGV || number == SIGBUS;
}

void weft_probe_expect_death(void (*function)(void *), void *argument, weft_probe_death death,
                             weft_probe_report *report) {
  pid_t child = fork();
  if (child == 0) {
    /* No core files, no crash reporter: this death is wanted. */
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    static const int numbers[] = {SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGALRM};
    for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++) signal(numbers[i], SIG_DFL);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_UNBLOCK, &all, NULL);
    alarm(20); /* a function that is entered again and again would never end */
    function(argument);
    _exit(0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child)
    weft_probe_fail(report, "no child process");
  else if (!WIFSIGNALED(status))
    weft_probe_fail(report, "the process went on and exited with %d", WEXITSTATUS(status));
  else if (!is_expected(WTERMSIG(status), death))
    weft_probe_fail(report, "the process died of signal %d, which is another one",
                    WTERMSIG(status));
}

/* ---- functions that return and must not ---- */

static void returning_body(weft_frame *own, void *value) {
  (void)own;
  (void)value;
}

static void run_returning_body(void *top) {
  weft_context self, caller;
  weft_frame_prepare(&self.frame, top, returning_body);
  weft_switch(&caller, &self, NULL);
}

static void returning_routine(void) {}

static void run_returning_routine(void *top) {
  void *caller, *self = weft_textbook_prepare(top, returning_routine);
  weft_swapcontext(&caller, &self);
}

static void expect_trap(void (*function)(void *top), weft_probe_report *report) {
  weft_probe_stack stack = weft_probe_stack_make(WEFT_PROBE_STACK_BYTES);
  weft_probe_expect_death(function, stack.top, WEFT_PROBE_TRAP, report);
  weft_probe_stack_free(stack);
}

void weft_probe_body_returns(weft_probe_report *report) { expect_trap(run_returning_body, report); }

void weft_probe_routine_returns(weft_probe_report *report) {
  expect_trap(run_returning_routine, report);
}
