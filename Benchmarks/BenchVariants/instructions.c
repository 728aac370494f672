/* instructions.c - counts instructions by executing them one by one: slow, but it needs nothing
 * installed and no counter of the processor, which virtual machines often hide, and it comes to the
 * same however busy the machine is.
 *
 * A system call counts as one, and so does each round of a string instruction (`rep movsb`). On
 * aarch64 without LSE a step between an exclusive load and its store makes the store fail for ever,
 * which ends at the limit.
 *
 * PLATFORM: Linux. Elsewhere counting is refused.
 */
#define _GNU_SOURCE
#include "bench_variants.h"

#include <stdio.h>

#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

const char *bench_c_library(void) {
#if defined(__GLIBC__)
  static char text[64];
  snprintf(text, sizeof text, "glibc %s", gnu_get_libc_version());
  return text;
#else
  return "unknown";
#endif
}

const char *bench_c_compiler(void) { return __VERSION__; }

#if defined(__linux__)

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* What differs from machine to machine and is none of ours: which variant of memcpy the processor
 * gets, the seed of hashes, which way floating-point control is switched, and what the caller has
 * set for experiments. */
static void make_alike(void) {
  for (char **variable = environ; *variable != NULL;) {
    char name[64];
    size_t length = strcspn(*variable, "=");
    if (strncmp(*variable, "WEFT_", 5) != 0 || length >= sizeof name) {
      variable++;
      continue;
    }
    memcpy(name, *variable, length);
    name[length] = 0;
    unsetenv(name); /* the next one takes its place */
  }
  setenv("GLIBC_TUNABLES",
         "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-AVX,-ERMS,-FSRM,-RTM,"
         "-AVX_Fast_Unaligned_Load,-AVX2_Usable,-AVX512F_Usable,-EVEX",
         1);
  setenv("LD_BIND_NOW", "1", 1);
  setenv("SWIFT_DETERMINISTIC_HASHING", "1", 1);
  setenv("WEFT_FP_CONTROL", "compare", 1);
}

enum { REFUSED_CODE = 113 };

static pid_t start_traced(const char *option, const char *name) {
  pid_t child = fork();
  if (child != 0) return child;
  make_alike();
  char *arguments[] = {"weft-bench", (char *)option, (char *)name, NULL};
  if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0) execv("/proc/self/exe", arguments);
  _exit(REFUSED_CODE);
}

/* Whether a stopped process is at a bench_mark(), and not just one instruction further. */
static bool is_at_mark(pid_t child) {
  siginfo_t info;
  if (ptrace(PTRACE_GETSIGINFO, child, NULL, &info) != 0 || info.si_signo != SIGTRAP) return false;
#if defined(__aarch64__)
  if (info.si_code != TRAP_BRKPT) return false;
  /* The breakpoint does not step over itself. */
  struct user_regs_struct registers;
  struct iovec all = {&registers, sizeof registers};
  if (ptrace(PTRACE_GETREGSET, child, (void *)NT_PRSTATUS, &all) != 0) return false;
  registers.pc += 4;
  return ptrace(PTRACE_SETREGSET, child, (void *)NT_PRSTATUS, &all) == 0;
#else
  return info.si_code == SI_KERNEL;
#endif
}

/* Goes on with the process until a mark, and counts. False if it ends before, or at the limit. */
static bool run_to_mark(pid_t child, bool stepping, uint64_t limit, uint64_t *count) {
  int status, deliver = 0;
  for (*count = 0; *count < limit; ++*count) {
    if (ptrace(stepping ? PTRACE_SINGLESTEP : PTRACE_CONT, child, NULL, (void *)(long)deliver) != 0)
      return false;
    if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return false;
    deliver = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
    if (deliver == 0 && is_at_mark(child)) return true;
  }
  return false;
}

static int32_t end(pid_t child, int32_t outcome) {
  kill(child, SIGKILL);
  while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
  }
  return outcome;
}

int32_t bench_count_instructions(
    const char *option, const char *name, uint64_t limit, uint32_t spans, uint64_t *counts) {
  pid_t child = start_traced(option, name);
  if (child < 0) return BENCH_COUNT_REFUSED;
  int status;
  if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return BENCH_COUNT_REFUSED;
  /* It ends with this process, should that be stopped. */
  ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)(long)PTRACE_O_EXITKILL);
  uint64_t unused;
  if (!run_to_mark(child, false, limit, &unused)) return end(child, BENCH_COUNT_FAILED);
  for (uint32_t span = 0; span < spans; span++)
    if (!run_to_mark(child, true, limit, &counts[span]))
      return end(child, counts[span] == limit ? BENCH_COUNT_ENDLESS : BENCH_COUNT_FAILED);
  /* What it checks at the end has to hold too. */
  ptrace(PTRACE_DETACH, child, NULL, NULL);
  if (waitpid(child, &status, 0) != child) return BENCH_COUNT_FAILED;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? BENCH_COUNT_DONE : BENCH_COUNT_FAILED;
}

#else

int32_t bench_count_instructions(
    const char *option, const char *name, uint64_t limit, uint32_t spans, uint64_t *counts) {
  (void)option, (void)name, (void)limit, (void)spans, (void)counts;
  return BENCH_COUNT_REFUSED;
}

#endif
