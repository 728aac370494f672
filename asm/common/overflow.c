/* overflow.c - a stack that runs into its guard says whose it was.
 *
 * The handler runs on an alternate stack that every thread gets before its first switch (a process
 * whose handler has no stack dies without a word), names the coroutine, and then hands the fault
 * to whoever handled it before: Swift's backtracer, a sanitizer, a crash reporter, or the kernel's
 * default. Faults that are no overflow go straight there.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "internal.h"
#include "signal_frame.h"

#define ALTERNATE_STACK_BYTES ((size_t)64 << 10)

static pthread_once_t handler_once = PTHREAD_ONCE_INIT;
static struct sigaction previous_segv, previous_bus;

static void report_overflow(const weft_stack *stack) {
  const weft_coroutine *coroutine = weft_stack_block(stack->top, stack->stride_shift);
  weft_text text = {0};
  weft_text_add(&text, "weft: stack overflow in ");
  weft_text_add_site(&text, &coroutine->site);
  weft_text_add(&text, ", whose stack has ");
  weft_text_add_number(&text, (uint64_t)(stack->top - stack->low) >> 10);
  weft_text_add(&text,
                " KiB.\nweft: Give it more with `stackSize:`, or run the deep part in "
                "`withLargeStack(_:_:)`.\n");
  weft_text_write(&text);
}

/* Blocks and unblocks what the kernel would have for this handler. Swift's backtracer asks for
 * SA_NODEFER, since it reads memory that may not be there; with the signal blocked, the kernel
 * would end the process in the middle of its report. */
static void take_mask_of(const struct sigaction *action, int number) {
  pthread_sigmask(SIG_BLOCK, &action->sa_mask, NULL);
  if ((action->sa_flags & SA_NODEFER) != 0) {
    sigset_t own;
    sigemptyset(&own);
    sigaddset(&own, number);
    pthread_sigmask(SIG_UNBLOCK, &own, NULL);
  }
}

static void hand_over(int number, siginfo_t *info, void *context) {
  const struct sigaction *previous = number == SIGBUS ? &previous_bus : &previous_segv;
  take_mask_of(previous, number);
  if ((previous->sa_flags & SA_SIGINFO) != 0 && previous->sa_sigaction != NULL) {
    previous->sa_sigaction(number, info, context);
    return;
  }
  if (previous->sa_handler != SIG_DFL && previous->sa_handler != SIG_IGN) {
    previous->sa_handler(number);
    return;
  }
  /* Whoever ignored the signal goes on doing so where it was sent (kill). */
  if (previous->sa_handler == SIG_IGN && info->si_code <= 0) return;
  /* The default: put it back and return, so that the same instruction faults again and the
   * process dies of this signal, with a core that shows the fault. Ignoring a fault would loop. */
  struct sigaction fallback;
  memset(&fallback, 0, sizeof fallback);
  fallback.sa_handler = SIG_DFL;
  sigaction(number, &fallback, NULL);
  /* A signal that was sent (kill) does not happen again by itself. */
  if (info->si_code <= 0) raise(number);
}

/* A fault in here (a second one) finds the signal blocked, and the kernel ends the process. */
static void on_fault(int number, siginfo_t *info, void *context) {
  weft_stack stack;
  /* A signal that was sent carries no address; si_addr would be its sender. si_code is not asked
   * beyond that: it differs between the two kinds of guard. */
  if (info->si_code > 0 &&
      weft_stack_find_guard((uintptr_t)info->si_addr, weft_signal_frame_of(context).sp, &stack)) {
    report_overflow(&stack);
  }
  hand_over(number, info, context);
}

static void install_handler(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &previous_segv);
  sigaction(SIGBUS, &action, &previous_bus);
}

void weft_overflow_prepare_thread(weft_thread *thread) {
  stack_t current;
  if (sigaltstack(NULL, &current) == 0 && (current.ss_flags & SS_DISABLE) != 0) {
    void *memory = mmap(NULL, ALTERNATE_STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) {
      stack_t alternate = {.ss_sp = memory, .ss_size = ALTERNATE_STACK_BYTES, .ss_flags = 0};
      if (sigaltstack(&alternate, NULL) == 0) thread->alternate_stack = memory;
      else munmap(memory, ALTERNATE_STACK_BYTES);
    }
  }
  pthread_once(&handler_once, install_handler);
}

void weft_overflow_release_thread(weft_thread *thread) {
  if (thread->alternate_stack == NULL) return;
  stack_t none = {.ss_flags = SS_DISABLE};
  stack_t current;
  /* Somebody else may have set another one meanwhile; theirs stays. */
  if (sigaltstack(NULL, &current) == 0 && current.ss_sp == thread->alternate_stack) {
    sigaltstack(&none, NULL);
  }
  munmap(thread->alternate_stack, ALTERNATE_STACK_BYTES);
}
