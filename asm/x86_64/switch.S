/* switch.S - the out-of-line switches of x86-64 (System V), ELF and Mach-O.
 *
 * Stacks grow down; in the drawings high addresses are at the top.
 *
 *   A stack suspended by weft_switch          A stack that never ran (weft_context_prepare)
 *   or by the inline switch
 *
 *   |        ...          |                   +---------------------+ <- stack top, 16-aligned
 *   | caller's frames     |                   | (nothing yet)       | <- frame.sp
 *   | return address      |                   +---------------------+
 *   +---------------------+ <- frame.sp         frame.pc = weft_entry
 *   | red zone of a leaf  |                     frame.bx = function to run
 *   |  (inline switch)    |                     frame.fp = 0
 *   +---------------------+
 *
 *   Nothing is pushed: all registers are in the weft_context, so that the stack pointer is at
 *   every instruction a valid stack (signals may arrive) and unwind tables need no adjusting.
 *
 *   A stack suspended by weft_swapcontext     A stack that never ran (weft_textbook_prepare)
 *
 *   |        ...          |                   +---------------------+ <- stack top, 16-aligned
 *   | caller's frames     |                   | weft_textbook_exit+1| routine's return address
 *   | return address      |                   | routine             | popped by ret
 *   | rbp                 |                   | 0 (rbp)             |
 *   | rbx                 |                   | 0 (rbx)             |
 *   | r12                 |                   | 0 (r12 ... r15)     |
 *   | r13                 |                   +---------------------+ <- saved stack pointer
 *   | r14                 |
 *   | r15                 |
 *   +---------------------+ <- saved stack pointer
 *
 * Register protocol of every store-based switch, in and out of line: a context that is resumed
 * finds its own weft_frame in rsi and the passed value in rdx, and may find anything in the
 * other registers but rsp, rbp and rbx. So both kinds can resume each other.
 *
 * Shadow stacks (CET SHSTK) are not carried: this object bears no property note, so that a
 * linker leaves the feature off. Every address that is reached by an indirect jump is an endbr64.
 */
#if defined(__x86_64__)
#include "../include/cweft_frame.h"

/* void *weft_switch(weft_context *from, weft_context *to, void *value)
 *
 *   in:  rdi = from, rsi = to (never the same), rdx = value
 *   out: rax = the value that whoever switches back passes
 */
        WEFT_FUNCTION weft_switch
        .cfi_startproc
        endbr64
        /* The target address first: the front end can start on it while the stores drain. */
        movq    WEFT_FRAME_PC(%rsi), %rax
        /* Where this context goes on. */
        leaq    .Lweft_switch_landing(%rip), %rcx
        movq    %rcx, WEFT_FRAME_PC(%rdi)
        /* The callee-saved registers, none of them on the stack. */
        movq    %rsp, WEFT_FRAME_SP(%rdi)
        movq    %rbp, WEFT_FRAME_FP(%rdi)
        movq    %rbx, WEFT_FRAME_BX(%rdi)
        movq    %r12, WEFT_CONTEXT_SAVED+0(%rdi)
        movq    %r13, WEFT_CONTEXT_SAVED+8(%rdi)
        movq    %r14, WEFT_CONTEXT_SAVED+16(%rdi)
        movq    %r15, WEFT_CONTEXT_SAVED+24(%rdi)
        /* The target's stack. From here on the unwinder would read the target's frames, whose
         * layout at its resume address is the one its own tables describe. */
        movq    WEFT_FRAME_FP(%rsi), %rbp
        movq    WEFT_FRAME_BX(%rsi), %rbx
        movq    WEFT_FRAME_SP(%rsi), %rsp
        /* A jump, not ret: the return predictor would guess our own caller, wrongly each time. */
        jmpq    *%rax
.Lweft_switch_landing:
        /* Back, with rsi = our context and rdx = the value. */
        endbr64
        movq    WEFT_CONTEXT_SAVED+0(%rsi), %r12
        movq    WEFT_CONTEXT_SAVED+8(%rsi), %r13
        movq    WEFT_CONTEXT_SAVED+16(%rsi), %r14
        movq    WEFT_CONTEXT_SAVED+24(%rsi), %r15
        movq    %rdx, %rax
        /* Our own caller: but as it was reached by a jump, this one ret is mispredicted, which
         * is what the inline switch saves. */
        retq
        .cfi_endproc
        WEFT_END weft_switch

/* weft_entry: the first thing that runs on a prepared stack, and the last frame of every backtrace.
 *
 *   in:  rbx = function, rsi = own weft_frame, rdx = value
 *
 * The return address is undefined and the frame pointer zero, which is how DWARF and
 * frame-pointer unwinders are told that no frame comes after this one.
 */
        WEFT_FUNCTION weft_entry
        .cfi_startproc
        .cfi_undefined rip
        endbr64
        xorl    %ebp, %ebp
        movq    %rsi, %rdi
        movq    %rdx, %rsi
        /* The function expects rsp + 8 to be a multiple of 16 at its first instruction. The
         * prepared rsp is 16-aligned and call pushes 8. */
        callq   *%rbx
        /* It never returns. The instruction keeps the return address inside this function. */
        ud2
        .cfi_endproc
        WEFT_END weft_entry

/* void weft_swapcontext(void **from, void **to)
 *
 * The textbook switch: push the six callee-saved registers, swap stack pointers, pop, ret. It is
 * what the demos step through and what the benchmarks measure against; nothing else uses it,
 * since its ret goes to an address that the processor did not call (see weft_switch).
 */
        WEFT_FUNCTION weft_swapcontext
        .cfi_startproc
        endbr64
        /* 1. push: the six registers that a function must give back as it found them. */
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
        /* 2. save: where they are is all that has to be remembered. */
        movq    %rsp, (%rdi)
        /* 3. load: from here on this is the other stack. */
        movq    (%rsi), %rsp
        /* 4. pop: the other side's six, in the opposite order. */
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
        /* 5. ret: to whatever called weft_swapcontext on this stack. */
        retq
        .cfi_endproc
        WEFT_END weft_swapcontext

/* weft_textbook_exit: where a textbook routine returns to if it does not switch away at its end:
 * to the second byte, since unwinders look up the byte before a return address. */
        WEFT_FUNCTION weft_textbook_exit
        .cfi_startproc
        .cfi_undefined rip
        nop
        ud2
        .cfi_endproc
        WEFT_END weft_textbook_exit
#endif

#if defined(__ELF__)
        /* Outside the architecture's condition: an empty object without this note, too, would give
         * the whole program an executable stack. */
        .section .note.GNU-stack, "", %progbits
#endif
