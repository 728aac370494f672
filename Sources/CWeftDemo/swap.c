/* swap.c - the article's first program: two routines that hand the processor to each other. */
#include "program.h"

static void routine(void) {
  BEGIN;
  say("routine()");
  SWAP(routine, routine2); /* weft_swapcontext(&routine_sp, &routine2_sp) */
  say("routine() end");
  SWAP(routine, main);
}

static void routine2(void) {
  BEGIN;
  say("routine2()");
  SWAP(routine2, routine);
}

static void main_routine(void) {
  BEGIN;
  SWAP(main, routine);
  say("main routine");
}

const weft_demo_routines weft_demo_swap = {main_routine, routine, routine2};
