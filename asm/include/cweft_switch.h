/* cweft_switch.h - the context switch, inline and out of line.
 *
 * The inline switch is a `static inline` function with assembly in it, so that Swift's importer
 * carries it into the frame of whoever resumes or yields. No call, no return: the compiler keeps
 * alive across it only what it needs, since every register but sp, fp and one more is clobbered.
 *
 * COST: four loads, four stores, one indirect jump through a register.
 *
 * REJECTED: jumping through memory (10 to 20 % slower: the target is known later); pairing the
 * resume's call with the yield's ret (a fifth faster when both sit in one frame, three times
 * slower when the yield is a few calls deep, and pushing needs care for the red zone). The rows
 * `switch.*` of weft-bench measure all of them.
 */
#ifndef CWEFT_SWITCH_H
#define CWEFT_SWITCH_H

#include <stddef.h>
#include <stdint.h>

#include "cweft_frame.h"

#if !defined(__clang__) /* gcc has no nullability */
#define _Nonnull
#define _Nullable
#define _Null_unspecified
#endif

/* Floating-point control, which both ABIs ask a callee to keep. */
typedef union weft_fpctl {
  struct {
    uint32_t mxcsr; /* SSE control and status */
    uint16_t fcw;   /* x87 control word */
    uint16_t unused;
  } x86;
  uint64_t fpcr; /* aarch64 */
} weft_fpctl;

/* What the inline switch saves. cweft_frame.h draws it. */
typedef struct weft_frame {
  void *_Nullable sp;
  void *_Nullable fp;
  void *_Nullable bx;
  void *_Nullable pc;
  weft_fpctl fpctl; /* not touched by the switch itself: see weft_fp_switch */
} weft_frame;

/* What the out-of-line switch saves. */
typedef struct weft_context {
  weft_frame frame;
  void *_Nullable saved[WEFT_CONTEXT_SAVED_WORDS];
} weft_context;

_Static_assert(offsetof(weft_frame, sp) == WEFT_FRAME_SP, "see cweft_frame.h");
_Static_assert(offsetof(weft_frame, fp) == WEFT_FRAME_FP, "see cweft_frame.h");
_Static_assert(offsetof(weft_frame, bx) == WEFT_FRAME_BX, "see cweft_frame.h");
_Static_assert(offsetof(weft_frame, pc) == WEFT_FRAME_PC, "see cweft_frame.h");
_Static_assert(offsetof(weft_frame, fpctl) == WEFT_FRAME_FPCTL, "see cweft_frame.h");
_Static_assert(sizeof(weft_frame) == WEFT_FRAME_SIZE, "see cweft_frame.h");
_Static_assert(offsetof(weft_context, saved) == WEFT_CONTEXT_SAVED, "see cweft_frame.h");
_Static_assert(sizeof(weft_context) == WEFT_CONTEXT_SIZE, "see cweft_frame.h");

/* Saves the running context into `from`, continues `to`, and returns, when somebody switches
 * back, the value they passed. `from` and `to` differ. Floating-point control is not touched. */
void *_Nullable weft_switch(weft_context *_Nonnull from, weft_context *_Nonnull to,
                            void *_Nullable value);

/* The first instructions on a prepared stack; never called. */
void weft_entry(void);

/* The textbook switch (six pushes, ret) on bare stack pointers, for demos and yardsticks. */
void weft_swapcontext(void *_Nullable *_Nonnull from, void *_Nullable *_Nonnull to);

/* Where a textbook routine that returns ends up: it stops the process. */
void weft_textbook_exit(void);

/* Lays the first frame of a textbook stack, so that switching to it calls `routine()`.
 * `top` is 16-aligned. Returns the stack pointer to switch to. */
void *_Nonnull weft_textbook_prepare(void *_Nonnull top, void (*_Nonnull routine)(void));

/* The function that a prepared context runs: it gets its own frame and the first value passed,
 * and must never return. */
typedef void (*weft_body)(weft_frame *_Nonnull own, void *_Nullable value);

/* Makes `frame` start `body` on the stack that ends at `top` (16-aligned). */
static inline void weft_frame_prepare(weft_frame *_Nonnull frame, void *_Nonnull top,
                                      weft_body _Nonnull body) {
  frame->sp = top;
  frame->fp = NULL;
  frame->bx = (void *)body;
  frame->pc = (void *)weft_entry;
}

#if defined(__AVX512F__)
#define WEFT_CLOBBER_AVX512                                                                     \
  , "zmm16", "zmm17", "zmm18", "zmm19", "zmm20", "zmm21", "zmm22", "zmm23", "zmm24", "zmm25",   \
      "zmm26", "zmm27", "zmm28", "zmm29", "zmm30", "zmm31", "k0", "k1", "k2", "k3", "k4", "k5", \
      "k6", "k7"
#else
#define WEFT_CLOBBER_AVX512
#endif

/* Saves the running context into `from`, continues `to`, and returns what is passed back.
 *
 * `from` may be `to`: everything is loaded before anything is stored, so one frame can hold
 * "the other side" of an asymmetric pair, in one cache line.
 *
 * SAFETY: it never pushes (the red zone below sp stays as it is), and the resume address carries
 * the landing instruction that branch protection asks for. The caller re-reads everything that
 * belongs to a thread: it may come back on another one.
 */
static inline __attribute__((always_inline)) void *_Nullable weft_switch_inline(
    weft_frame *_Nonnull from, weft_frame *_Nonnull to, void *_Nullable value) {
#if defined(__x86_64__)
  __asm__ volatile(
      /* Target address first, into a register: the jump can be followed early. */
      "movq %c[pc](%%rsi), %%rax\n\t"
      "movq %c[sp](%%rsi), %%r8\n\t"
      "movq %c[fp](%%rsi), %%r9\n\t"
      "movq %c[bx](%%rsi), %%r10\n\t"
      /* Then this side. */
      "leaq 1f(%%rip), %%rcx\n\t"
      "movq %%rcx, %c[pc](%%rdi)\n\t"
      "movq %%rsp, %c[sp](%%rdi)\n\t"
      "movq %%rbp, %c[fp](%%rdi)\n\t"
      "movq %%rbx, %c[bx](%%rdi)\n\t"
      "movq %%r9, %%rbp\n\t"
      "movq %%r10, %%rbx\n\t"
      "movq %%r8, %%rsp\n\t"
      "jmpq *%%rax\n"
      /* Back. rsi is our own frame again, rdx the value. */
      "1:\n\t"
      "endbr64\n\t"
      : "+D"(from), "+S"(to), "+d"(value)
      : [sp] "i"(WEFT_FRAME_SP), [fp] "i"(WEFT_FRAME_FP), [bx] "i"(WEFT_FRAME_BX),
        [pc] "i"(WEFT_FRAME_PC)
      : "rax", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1",
        "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
        "xmm12", "xmm13", "xmm14", "xmm15", "mm0", "mm1", "mm2", "mm3", "mm4", "mm5", "mm6",
        "mm7", "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)", "cc",
        "memory" WEFT_CLOBBER_AVX512);
#elif defined(__aarch64__)
  register weft_frame *x0 __asm__("x0") = from;
  register weft_frame *x1 __asm__("x1") = to;
  register void *x2 __asm__("x2") = value;
  __asm__ volatile(
      "ldr x16, [x1, %[pc]]\n\t"
      "ldp x9, x10, [x1, %[sp]]\n\t"
      "ldr x11, [x1, %[bx]]\n\t"
      "adr x12, 1f\n\t"
      "mov x13, sp\n\t"
      "stp x13, x29, [x0, %[sp]]\n\t"
      "stp x19, x12, [x0, %[bx]]\n\t"
      "mov x29, x10\n\t"
      "mov x19, x11\n\t"
      "mov sp, x9\n\t"
      "br x16\n"
      "1:\n\t"
      "hint #36\n\t" /* bti j */
      : "+r"(x0), "+r"(x1), "+r"(x2)
      : [sp] "i"(WEFT_FRAME_SP), [bx] "i"(WEFT_FRAME_BX), [pc] "i"(WEFT_FRAME_PC)
      : "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16",
        "x17",
#if !defined(__APPLE__)
        "x18",
#endif
        "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30", "v0", "v1", "v2",
        "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16",
        "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29",
        "v30", "v31", "cc", "memory");
  from = x0;
  to = x1;
  value = x2;
#endif
  return value;
}

/* What a thread starts with. */
static inline weft_fpctl weft_fp_default(void) {
  weft_fpctl fpctl = {.fpcr = 0};
#if defined(__x86_64__)
  fpctl.x86.mxcsr = 0x1F80;
  fpctl.x86.fcw = 0x037F;
#endif
  return fpctl;
}

/* Stores the floating-point control of this thread. */
static inline __attribute__((always_inline)) void weft_fp_store(weft_fpctl *_Nonnull own) {
#if defined(__x86_64__)
  __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(own->x86.mxcsr), "=m"(own->x86.fcw));
#elif defined(__aarch64__)
  __asm__ volatile("mrs %0, fpcr" : "=r"(own->fpcr));
#endif
}

/* Loads the floating-point control of this thread. */
static inline __attribute__((always_inline)) void weft_fp_load(const weft_fpctl *_Nonnull own) {
#if defined(__x86_64__)
  __asm__ volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(own->x86.mxcsr), "m"(own->x86.fcw));
#elif defined(__aarch64__)
  __asm__ volatile("msr fpcr, %0" : : "r"(own->fpcr));
#endif
}

/* Whether two of them differ in what matters to arithmetic. Bits 0 to 5 of MXCSR are sticky
 * exception flags, status and not control: arithmetic sets them all the time, and comparing them
 * would force the slow load at every switch. */
static inline __attribute__((always_inline)) _Bool weft_fp_differs(const weft_fpctl *_Nonnull a,
                                                                   const weft_fpctl *_Nonnull b) {
#if defined(__x86_64__)
  return (((a->x86.mxcsr ^ b->x86.mxcsr) & 0xFFC0u) | (uint32_t)(a->x86.fcw ^ b->x86.fcw)) != 0;
#elif defined(__aarch64__)
  return a->fpcr != b->fpcr;
#endif
}

/* Whether this processor loads floating-point control so cheaply that comparing first costs more.
 *
 * Storing MXCSR costs 1 ns on Intel's and 5 on AMD's; loading it 40 and 1. Comparing needs the
 * stored value back at once, which on AMD waits for the store: 2 ns more than just loading. */
_Bool weft_fp_load_is_cheap(void);

/* Keeps this side's floating-point control and brings in the other side's.
 *
 * COST: a store, and a compare or a load, whichever `load_is_cheap` says. */
static inline __attribute__((always_inline)) void weft_fp_switch(weft_fpctl *_Nonnull from,
                                                                 const weft_fpctl *_Nonnull to,
                                                                 _Bool load_is_cheap) {
  weft_fp_store(from);
  if (load_is_cheap || __builtin_expect(weft_fp_differs(from, to), 0)) weft_fp_load(to);
}

#endif
