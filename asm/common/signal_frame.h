/* signal_frame.h - the registers that a signal interrupted. */
#ifndef WEFT_SIGNAL_FRAME_H
#define WEFT_SIGNAL_FRAME_H

#include <stdint.h>
#include <ucontext.h>

typedef struct weft_signal_frame {
  uintptr_t sp; /* stack pointer */
  uintptr_t fp; /* frame pointer, where the code keeps one */
  /* Where the function returns to if it has not built a frame: the link register, or what the stack
   * pointer points at (0 here). */
  uintptr_t link;
} weft_signal_frame;

static inline weft_signal_frame weft_signal_frame_of(const void *context) {
  const ucontext_t *ucontext = context;
#if defined(__linux__) && defined(__x86_64__)
  /* REG_RSP, REG_RBP */
  return (weft_signal_frame){.sp = (uintptr_t)ucontext->uc_mcontext.gregs[15],
                             .fp = (uintptr_t)ucontext->uc_mcontext.gregs[10]};
#elif defined(__linux__) && defined(__aarch64__)
  return (weft_signal_frame){.sp = (uintptr_t)ucontext->uc_mcontext.sp,
                             .fp = (uintptr_t)ucontext->uc_mcontext.regs[29],
                             .link = (uintptr_t)ucontext->uc_mcontext.regs[30]};
#elif defined(__APPLE__) && defined(__x86_64__)
  return (weft_signal_frame){.sp = (uintptr_t)ucontext->uc_mcontext->__ss.__rsp,
                             .fp = (uintptr_t)ucontext->uc_mcontext->__ss.__rbp};
#elif defined(__APPLE__) && defined(__aarch64__)
  return (weft_signal_frame){.sp = (uintptr_t)ucontext->uc_mcontext->__ss.__sp,
                             .fp = (uintptr_t)ucontext->uc_mcontext->__ss.__fp,
                             .link = (uintptr_t)ucontext->uc_mcontext->__ss.__lr};
#else
#error "Say where this platform's signal frame keeps the stack pointer."
#endif
}

#endif
