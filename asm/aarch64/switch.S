/* switch.S - the out-of-line switches of aarch64 (AAPCS64), ELF and Mach-O.
 *
 * ../x86_64/switch.S explains the design; here are only the drawings and what differs.
 *
 *   A stack suspended by weft_switch          A stack that never ran (weft_context_prepare)
 *   or by the inline switch
 *
 *   |        ...          |                   +---------------------+ <- stack top, 16-aligned
 *   | caller's frames     |                   | (nothing yet)       | <- frame.sp
 *   +---------------------+ <- frame.sp       +---------------------+
 *                                               frame.pc = weft_entry
 *                                               frame.bx = function to run
 *                                               frame.fp = 0
 *
 *   A stack suspended by weft_swapcontext     A stack that never ran (weft_textbook_prepare)
 *
 *   |        ...          |                   +---------------------+ <- stack top, 16-aligned
 *   | caller's frames     |                   | x29 = 0             |
 *   | x29, x30 (resume)   | 144               | x30 = textbook_exit |
 *   | x27, x28            | 128               | x27, x28 = 0        |
 *   | ...                 |                   |  ...                |
 *   | x19, x20            | 64                | x19 = routine       |
 *   | d14, d15            | 48                |  ...                |
 *   | d8, d9              | 0                 | d8, d9 = 0          |
 *   +---------------------+ <- saved sp       +---------------------+ <- saved sp
 *
 * Register protocol: a context that is resumed finds its own weft_frame in x1 and the passed
 * value in x2, and may find anything in the other registers but sp, x29 and x19.
 *
 * AAPCS64 asks a callee to keep x19-x29, sp and the low 64 bits of v8-v15; libraries that forgot
 * d8-d15 computed wrong doubles. sp stays a multiple of 16 at every instruction: the processor
 * faults on any access through it otherwise. x18 belongs to the platform and is left alone.
 * Every address that is reached by an indirect branch is a bti landing pad (a hint that older
 * processors skip).
 */
#if defined(__aarch64__)
#include "../include/cweft_frame.h"

/* void *weft_switch(weft_context *from, weft_context *to, void *value)
 *   in: x0 = from, x1 = to (never the same), x2 = value    out: x0 = value passed back */
        WEFT_FUNCTION weft_switch
        .cfi_startproc
        hint    #34                             /* bti c */
        ldr     x9, [x1, #WEFT_FRAME_PC]
        /* Where this context goes on; its own caller is in x30, kept in the saved area. */
        adr     x10, 1f
        mov     x11, sp
        stp     x11, x29, [x0, #WEFT_FRAME_SP]
        stp     x19, x10, [x0, #WEFT_FRAME_BX]
        stp     x20, x21, [x0, #WEFT_CONTEXT_SAVED+0]
        stp     x22, x23, [x0, #WEFT_CONTEXT_SAVED+16]
        stp     x24, x25, [x0, #WEFT_CONTEXT_SAVED+32]
        stp     x26, x27, [x0, #WEFT_CONTEXT_SAVED+48]
        stp     x28, x30, [x0, #WEFT_CONTEXT_SAVED+64]
        stp     d8, d9, [x0, #WEFT_CONTEXT_SAVED+80]
        stp     d10, d11, [x0, #WEFT_CONTEXT_SAVED+96]
        stp     d12, d13, [x0, #WEFT_CONTEXT_SAVED+112]
        stp     d14, d15, [x0, #WEFT_CONTEXT_SAVED+128]
        ldp     x11, x29, [x1, #WEFT_FRAME_SP]
        ldr     x19, [x1, #WEFT_FRAME_BX]
        mov     sp, x11
        /* x16: a jump through x16 or x17 may land on a "bti c" or a "bti j". */
        mov     x16, x9
        br      x16
1:      hint    #36                             /* bti j */
        ldp     x20, x21, [x1, #WEFT_CONTEXT_SAVED+0]
        ldp     x22, x23, [x1, #WEFT_CONTEXT_SAVED+16]
        ldp     x24, x25, [x1, #WEFT_CONTEXT_SAVED+32]
        ldp     x26, x27, [x1, #WEFT_CONTEXT_SAVED+48]
        ldp     x28, x30, [x1, #WEFT_CONTEXT_SAVED+64]
        ldp     d8, d9, [x1, #WEFT_CONTEXT_SAVED+80]
        ldp     d10, d11, [x1, #WEFT_CONTEXT_SAVED+96]
        ldp     d12, d13, [x1, #WEFT_CONTEXT_SAVED+112]
        ldp     d14, d15, [x1, #WEFT_CONTEXT_SAVED+128]
        mov     x0, x2
        ret
        .cfi_endproc
        WEFT_END weft_switch

/* weft_entry: x19 = function, x1 = own weft_frame, x2 = value. The root of every backtrace. */
        WEFT_FUNCTION weft_entry
        .cfi_startproc
        .cfi_undefined x30
        hint    #36                             /* bti j */
        mov     x29, xzr
        mov     x30, xzr
        mov     x0, x1
        mov     x1, x2
        blr     x19
        brk     #1
        .cfi_endproc
        WEFT_END weft_entry

/* void weft_swapcontext(void **from, void **to): the textbook switch, for demos and benchmarks. */
        WEFT_FUNCTION weft_swapcontext
        .cfi_startproc
        hint    #34                             /* bti c */
        /* 1. push: the registers that a function must give back as it found them. */
        sub     sp, sp, #160
        .cfi_adjust_cfa_offset 160
        stp     d8, d9, [sp, #0]
        stp     d10, d11, [sp, #16]
        stp     d12, d13, [sp, #32]
        stp     d14, d15, [sp, #48]
        stp     x19, x20, [sp, #64]
        stp     x21, x22, [sp, #80]
        stp     x23, x24, [sp, #96]
        stp     x25, x26, [sp, #112]
        stp     x27, x28, [sp, #128]
        stp     x29, x30, [sp, #144]
        .cfi_rel_offset x29, 144
        .cfi_rel_offset x30, 152
        /* 2. save: where they are is all that has to be remembered. */
        mov     x9, sp
        str     x9, [x0]
        /* 3. load: from here on this is the other stack. */
        ldr     x9, [x1]
        mov     sp, x9
        /* 4. pop: the other side's registers. */
        ldp     d8, d9, [sp, #0]
        ldp     d10, d11, [sp, #16]
        ldp     d12, d13, [sp, #32]
        ldp     d14, d15, [sp, #48]
        ldp     x19, x20, [sp, #64]
        ldp     x21, x22, [sp, #80]
        ldp     x23, x24, [sp, #96]
        ldp     x25, x26, [sp, #112]
        ldp     x27, x28, [sp, #128]
        ldp     x29, x30, [sp, #144]
        add     sp, sp, #160
        .cfi_adjust_cfa_offset -160
        .cfi_restore x29
        .cfi_restore x30
        /* 5. ret: to whatever called weft_swapcontext on this stack. */
        ret
        .cfi_endproc
        WEFT_END weft_swapcontext

/* weft_textbook_exit: x19 = routine. Calls it on a prepared textbook stack, and is where it returns
 * to if it does not switch away at its end. */
        WEFT_FUNCTION weft_textbook_exit
        .cfi_startproc
        .cfi_undefined x30
        blr     x19
        brk     #1
        .cfi_endproc
        WEFT_END weft_textbook_exit
#endif

#if defined(__ELF__)
        /* Outside the architecture's condition: an empty object without this note, too, would give
         * the whole program an executable stack. */
        .section .note.GNU-stack, "", %progbits
#endif
