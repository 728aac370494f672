/* slab.h - the mappings that stacks are cut from; for stack.c. */
#ifndef WEFT_SLAB_H
#define WEFT_SLAB_H

#include "internal.h"

/* Maps `bytes` of strides of 1 << shift; `low` is where they begin. */
weft_stack_failure weft_slab_map(size_t bytes, uint32_t shift, char **low, int32_t *error);
/* Installs the guard of the stack whose stride begins at `low`. */
weft_stack_failure weft_slab_prepare(char *low, uint32_t shift, int32_t *error);
/* Unmaps a mapping of one stride; `stacks` is 1 if it had its guard. */
void weft_slab_unmap(char *top, uint32_t shift, size_t stacks);
/* Over a fork(). */
void weft_slab_lock(void);
void weft_slab_unlock(void);
/* Fills in what the slabs know. `live` counts the idle ones too. */
void weft_slab_count(weft_stack_statistics *statistics);

#endif
