/* debug.h - the hooks of the debug modes, for slow paths of the other C files. */
#ifndef WEFT_DEBUG_INTERNAL_H
#define WEFT_DEBUG_INTERNAL_H

#include "internal.h"

#include "cweft_debug.h"
#include "cweft_fiber.h"

/* The modes. Constant once the first thread record is made, which comes before any stack. */
extern uint32_t weft_debug_flags;

/* Modes that have to see each stack when it is handed out and when it comes back. */
#define WEFT_DEBUG_STACKS (WEFT_DEBUG_CANARY | WEFT_DEBUG_POISON)
/* Modes that have to see each switch between fibers. */
#define WEFT_DEBUG_SWITCHES (WEFT_DEBUG_CANARY | WEFT_DEBUG_WORDS | WEFT_DEBUG_MIGRATE)

static inline bool weft_debug_has(uint32_t modes) { return (weft_debug_flags & modes) != 0; }

/* A stack is handed out: `stack` is filled in. */
void weft_debug_stack_taken(weft_stack *stack);
/* It comes back. */
void weft_debug_stack_given_back(char *top, uint32_t stride_shift);
/* Bytes at the low end of a stack that the canary has touched, for who looks at touched pages. */
size_t weft_debug_canary_page(size_t page);

/* A fiber's, or a coroutine's, stack is left. */
void weft_debug_check_canary(const weft_stack *stack);

/* What a fiber left with. Kept in the frame of the slow switch, on its own stack. */
typedef struct weft_debug_left {
  void *words[4];
} weft_debug_left;

void weft_debug_leave(weft_fiber *from, weft_worker *worker, weft_debug_left *left);
/* The words are swapped, and the stack is about to be. */
void weft_debug_send_away(weft_fiber *from, weft_worker *worker);
void weft_debug_return(weft_worker *worker, const weft_debug_left *left);

#endif
