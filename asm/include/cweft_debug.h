/* cweft_debug.h - the debug modes that the environment variable WEFT_DEBUG asks for.
 *
 * They make rare things frequent, or check what is taken for granted. What runs all the time pays
 * nothing for them: the hooks are in paths that are out of line already, and a mode that needs to
 * see every switch makes workers take the slow one (`slow` of weft_worker). */
#ifndef CWEFT_DEBUG_H
#define CWEFT_DEBUG_H

#include <stdint.h>

enum {
  WEFT_DEBUG_MIGRATE = 1, /* what parks or yields goes on on another worker */
  WEFT_DEBUG_STEAL = 2,   /* searchers take all they can, at once */
  WEFT_DEBUG_TINY = 4,    /* small capacities */
  WEFT_DEBUG_QUEUE = 8,   /* nobody goes past the run queue */
  WEFT_DEBUG_CANARY = 16, /* a pattern at the low end of each stack is checked */
  WEFT_DEBUG_POISON = 32, /* stacks that are given back are filled with a pattern */
  WEFT_DEBUG_WORDS = 64,  /* thread words are compared at every switch */
};

/* How much of a stack's low end the canary takes. */
#define WEFT_DEBUG_CANARY_BYTES 64
/* What stacks are filled with, a byte. Eight of them are no address. */
#define WEFT_DEBUG_POISON_BYTE 0xA5

/* The modes of this process. Read once, when Weft first keeps something for a thread. */
uint32_t weft_debug_modes(void);

#endif
