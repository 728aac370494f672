/* start.S - _start and the two system calls of a program with no C library (Linux, aarch64). */
#include "cweft_frame.h"

        WEFT_FUNCTION _start
        mov     x29, xzr
        mov     x30, xzr
        bl      main
        b       exit
        WEFT_END _start

        WEFT_FUNCTION exit
        mov     x8, #93
        svc     #0
        brk     #1
        WEFT_END exit

        WEFT_FUNCTION write
        mov     x8, #64
        svc     #0
        ret
        WEFT_END write

        .section .note.GNU-stack, "", %progbits
