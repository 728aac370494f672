/* embed.S - the sources that the command shows, as they were when it was built.
 *
 * The assembler's .incbin takes them in; __has_include tells the build that this object depends
 * on them, which .incbin does not.
 */
#if !__has_include("x86_64/switch.S") || !__has_include("aarch64/switch.S") || \
    !__has_include("swap.c") || !__has_include("sum.c") || !__has_include("deal.c")
#error "a file that the demos show is missing"
#endif

#if defined(__APPLE__)
#define NAME(name) _##name
        .section __TEXT,__const
#else
#define NAME(name) name
        .section .rodata, "a", %progbits
#endif

#define EMBED(name, file)                                                     \
        .globl NAME(weft_embed_##name)                                      ; \
        .globl NAME(weft_embed_##name##_end)                                ; \
NAME(weft_embed_##name):                                                    ; \
        .incbin file                                                        ; \
NAME(weft_embed_##name##_end):                                              ; \
        .byte 0

EMBED(swap, "swap.c")
EMBED(sum, "sum.c")
EMBED(deal, "deal.c")
EMBED(x86_64, "x86_64/switch.S")
EMBED(aarch64, "aarch64/switch.S")

#if defined(__ELF__)
        .section .note.GNU-stack, "", %progbits
#endif
