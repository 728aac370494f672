/* cweft_frame.h - where a suspended context keeps its registers.
 *
 * Read by the C compiler and by the assembler, so it holds nothing but numbers. The structures
 * that these numbers describe are in cweft_switch.h, which asserts each one against offsetof().
 *
 *   weft_frame (one cache line with room to spare; the inline switch uses only this)
 *
 *     byte    x86-64            aarch64
 *     0       rsp               sp
 *     8       rbp               x29 (fp)
 *     16      rbx               x19          the register that compilers reserve as a base
 *     24      resume address    resume address   pointer, so no clobber list may name it
 *     32      MXCSR, x87 CW     FPCR
 *
 *   weft_context = weft_frame, then the other callee-saved registers (out-of-line switch only)
 *
 *     40      r12 r13 r14 r15   x20 ... x28, x30, d8 ... d15
 */
#ifndef CWEFT_FRAME_H
#define CWEFT_FRAME_H

#define WEFT_FRAME_SP 0
#define WEFT_FRAME_FP 8
#define WEFT_FRAME_BX 16
#define WEFT_FRAME_PC 24
#define WEFT_FRAME_FPCTL 32
#define WEFT_FRAME_SIZE 40

#define WEFT_CONTEXT_SAVED 40
#if defined(__x86_64__)
#define WEFT_CONTEXT_SAVED_WORDS 4
#elif defined(__aarch64__)
#define WEFT_CONTEXT_SAVED_WORDS 18
#else
#error "Weft knows x86-64 and aarch64. asm/README.md says how to add an architecture."
#endif
#define WEFT_CONTEXT_SIZE (WEFT_CONTEXT_SAVED + 8 * WEFT_CONTEXT_SAVED_WORDS)

/* The textbook switch pushes this many words before it stores the stack pointer: the six
 * callee-saved registers on x86-64; x19 ... x30 and d8 ... d15 on aarch64. */
#if defined(__x86_64__)
#define WEFT_TEXTBOOK_WORDS 6
#else
#define WEFT_TEXTBOOK_WORDS 20
#endif

/* ELF and Mach-O spell symbols and their attributes differently; these hide it. */
#ifdef __ASSEMBLER__
#if defined(__APPLE__)
#define WEFT_SYMBOL(name) _##name
.macro WEFT_FUNCTION name
        .text
        .p2align 4
        .globl _\name
_\name:
.endm
.macro WEFT_END name
.endm
#else
#define WEFT_SYMBOL(name) name
.macro WEFT_FUNCTION name
        .text
        .p2align 4
        .globl \name
        .type \name, %function
\name:
.endm
.macro WEFT_END name
        .size \name, . - \name
.endm
#endif
#endif

#endif
