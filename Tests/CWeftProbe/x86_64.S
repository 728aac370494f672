/* x86_64.S - fills and reads the registers that a switch has to keep. probe.h says what for. */
#if defined(__x86_64__)
#include "cweft_frame.h"

/* void *weft_probe_call(fill, found, hop, from, to, value)
 *   in: rdi = fill, rsi = found, rdx = hop, rcx = from, r8 = to, r9 = value
 *
 *   | rbp rbx r12 ... r15 | 24   the caller's
 *   | (alignment)         | 16
 *   | MXCSR, x87 CW       | 8    the caller's
 *   | found               | 0    the one thing that is needed after the call, since every
 *   +---------------------+      register but rsp is under test
 */
        WEFT_FUNCTION weft_probe_call
        .cfi_startproc
        endbr64
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbp, 0
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbx, 0
        pushq   %r12
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r12, 0
        pushq   %r13
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r13, 0
        pushq   %r14
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r14, 0
        pushq   %r15
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r15, 0
        subq    $24, %rsp
        .cfi_adjust_cfa_offset 24
        movq    %rsi, (%rsp)
        stmxcsr 8(%rsp)
        fnstcw  12(%rsp)
        /* The registers under test. */
        movq    (%rdi), %rbx
        movq    8(%rdi), %rbp
        movq    16(%rdi), %r12
        movq    24(%rdi), %r13
        movq    32(%rdi), %r14
        movq    40(%rdi), %r15
        ldmxcsr 48(%rdi)
        fldcw   56(%rdi)
        /* The arguments, then rubbish in everything else: nobody may rely on it. */
        movq    %rdx, %r11
        movq    %rcx, %rdi
        movq    %r8, %rsi
        movq    %r9, %rdx
        movabsq $0xBADBADBADBADBADB, %rax
        movq    %rax, %rcx
        movq    %rax, %r8
        movq    %rax, %r9
        movq    %rax, %r10
        .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        movq    %rax, %xmm\n
        .endr
        callq   *%r11
        /* What is left of them. */
        movq    (%rsp), %rcx
        movq    %rbx, (%rcx)
        movq    %rbp, 8(%rcx)
        movq    %r12, 16(%rcx)
        movq    %r13, 24(%rcx)
        movq    %r14, 32(%rcx)
        movq    %r15, 40(%rcx)
        movq    $0, 48(%rcx)
        movq    $0, 56(%rcx)
        stmxcsr 48(%rcx)
        fnstcw  56(%rcx)
        ldmxcsr 8(%rsp)
        fldcw   12(%rsp)
        addq    $24, %rsp
        .cfi_adjust_cfa_offset -24
        popq    %r15
        .cfi_adjust_cfa_offset -8
        .cfi_restore r15
        popq    %r14
        .cfi_adjust_cfa_offset -8
        .cfi_restore r14
        popq    %r13
        .cfi_adjust_cfa_offset -8
        .cfi_restore r13
        popq    %r12
        .cfi_adjust_cfa_offset -8
        .cfi_restore r12
        popq    %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore rbx
        popq    %rbp
        .cfi_adjust_cfa_offset -8
        .cfi_restore rbp
        retq
        .cfi_endproc
        WEFT_END weft_probe_call

/* A weft_body: rdi = own frame, rsi = value; the third argument is the stack pointer it found. */
        WEFT_FUNCTION weft_probe_body
        .cfi_startproc
        endbr64
        movq    %rsp, %rdx
        jmp     WEFT_SYMBOL(weft_probe_body_began)
        .cfi_endproc
        WEFT_END weft_probe_body

/* A textbook routine: entered by ret, with nothing in the registers. */
        WEFT_FUNCTION weft_probe_routine
        .cfi_startproc
        endbr64
        movq    %rsp, %rdi
        jmp     WEFT_SYMBOL(weft_probe_routine_began)
        .cfi_endproc
        WEFT_END weft_probe_routine

/* rdi = word. Without unwind information, like a stub of the linker. */
        WEFT_FUNCTION weft_probe_spin_unknown
        endbr64
1:      pause
        cmpq    $0, (%rdi)
        je      1b
        retq
        WEFT_END weft_probe_spin_unknown
#endif

#if defined(__ELF__)
        /* Outside the architecture's condition: an empty object without this note, too, would give
         * the whole program an executable stack. */
        .section .note.GNU-stack, "", %progbits
#endif
