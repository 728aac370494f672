/* pairing.S - where the producer of pairing.h starts. */
#if defined(__x86_64__)
#include "../../asm/include/cweft_frame.h"

/* bench_pair_entry: reached by the consumer's `call`, on the consumer's stack.
 *
 *   in:  rdi = pair, whose frame.bx is the function to run with it
 */
        WEFT_FUNCTION bench_pair_entry
        .cfi_startproc
        .cfi_undefined rip
        endbr64
        movq    %rsp, 40(%rdi)
        movq    WEFT_FRAME_SP(%rdi), %rsp
        xorl    %ebp, %ebp
        callq   *WEFT_FRAME_BX(%rdi)
        /* It never returns. */
        ud2
        .cfi_endproc
        WEFT_END bench_pair_entry
#endif

#if defined(__ELF__)
        /* Without this note the linker would give the whole program an executable stack. */
        .section .note.GNU-stack, "", %progbits
#endif
