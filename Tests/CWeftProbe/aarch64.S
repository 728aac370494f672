/* aarch64.S - fills and reads the registers that a switch has to keep. probe.h says what for. */
#if defined(__aarch64__)
#include "cweft_frame.h"

/* void *weft_probe_call(fill, found, hop, from, to, value)
 *   in: x0 = fill, x1 = found, x2 = hop, x3 = from, x4 = to, x5 = value
 *
 *   | found, FPCR         | 160  found: the one thing that is needed after the call, since every
 *   | d8 ... d15          | 96         register but sp is under test
 *   | x19 ... x28         | 16   the caller's
 *   | x29, x30            | 0
 *   +---------------------+
 */
        WEFT_FUNCTION weft_probe_call
        .cfi_startproc
        hint    #34                             /* bti c */
        sub     sp, sp, #176
        .cfi_adjust_cfa_offset 176
        stp     x29, x30, [sp, #0]
        .cfi_rel_offset x29, 0
        .cfi_rel_offset x30, 8
        stp     x19, x20, [sp, #16]
        stp     x21, x22, [sp, #32]
        stp     x23, x24, [sp, #48]
        stp     x25, x26, [sp, #64]
        stp     x27, x28, [sp, #80]
        stp     d8, d9, [sp, #96]
        stp     d10, d11, [sp, #112]
        stp     d12, d13, [sp, #128]
        stp     d14, d15, [sp, #144]
        mrs     x9, fpcr
        stp     x1, x9, [sp, #160]
        /* The registers under test. */
        ldp     x19, x20, [x0, #0]
        ldp     x21, x22, [x0, #16]
        ldp     x23, x24, [x0, #32]
        ldp     x25, x26, [x0, #48]
        ldp     x27, x28, [x0, #64]
        ldr     x29, [x0, #80]
        ldp     d8, d9, [x0, #88]
        ldp     d10, d11, [x0, #104]
        ldp     d12, d13, [x0, #120]
        ldp     d14, d15, [x0, #136]
        ldr     x9, [x0, #152]
        msr     fpcr, x9
        /* The arguments, then rubbish in everything else: nobody may rely on it. */
        mov     x16, x2
        mov     x0, x3
        mov     x1, x4
        mov     x2, x5
        .irp n, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17
        mov     x\n, #-0x5A5B
        .endr
#if !defined(__APPLE__)
        mov     x18, #-0x5A5B
#endif
        .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23
        movi    v\n\().16b, #0xA5
        .endr
        .irp n, 24, 25, 26, 27, 28, 29, 30, 31
        movi    v\n\().16b, #0xA5
        .endr
        blr     x16
        /* What is left of them. */
        ldr     x9, [sp, #160]
        stp     x19, x20, [x9, #0]
        stp     x21, x22, [x9, #16]
        stp     x23, x24, [x9, #32]
        stp     x25, x26, [x9, #48]
        stp     x27, x28, [x9, #64]
        str     x29, [x9, #80]
        stp     d8, d9, [x9, #88]
        stp     d10, d11, [x9, #104]
        stp     d12, d13, [x9, #120]
        stp     d14, d15, [x9, #136]
        mrs     x10, fpcr
        str     x10, [x9, #152]
        ldr     x10, [sp, #168]
        msr     fpcr, x10
        ldp     x29, x30, [sp, #0]
        ldp     x19, x20, [sp, #16]
        ldp     x21, x22, [sp, #32]
        ldp     x23, x24, [sp, #48]
        ldp     x25, x26, [sp, #64]
        ldp     x27, x28, [sp, #80]
        ldp     d8, d9, [sp, #96]
        ldp     d10, d11, [sp, #112]
        ldp     d12, d13, [sp, #128]
        ldp     d14, d15, [sp, #144]
        add     sp, sp, #176
        .cfi_adjust_cfa_offset -176
        .cfi_restore x29
        .cfi_restore x30
        ret
        .cfi_endproc
        WEFT_END weft_probe_call

/* A weft_body: x0 = own frame, x1 = value; the third argument is the stack pointer it found. */
        WEFT_FUNCTION weft_probe_body
        .cfi_startproc
        hint    #34                             /* bti c */
        mov     x2, sp
        b       WEFT_SYMBOL(weft_probe_body_began)
        .cfi_endproc
        WEFT_END weft_probe_body

/* A textbook routine, with nothing in the registers. */
        WEFT_FUNCTION weft_probe_routine
        .cfi_startproc
        hint    #38                             /* bti jc */
        mov     x0, sp
        b       WEFT_SYMBOL(weft_probe_routine_began)
        .cfi_endproc
        WEFT_END weft_probe_routine

/* x0 = word. Without unwind information, like a stub of the linker. */
        WEFT_FUNCTION weft_probe_spin_unknown
        hint    #34                             /* bti c */
1:      yield
        ldr     x1, [x0]
        cbz     x1, 1b
        ret
        WEFT_END weft_probe_spin_unknown
#endif

#if defined(__ELF__)
        /* Outside the architecture's condition: an empty object without this note, too, would give
         * the whole program an executable stack. */
        .section .note.GNU-stack, "", %progbits
#endif
