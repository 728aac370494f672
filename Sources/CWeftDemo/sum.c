/* sum.c - the article's second program: a sum that is interrupted after every addition. */
#include "program.h"

static void routine(void) {
  BEGIN;
  say("routine()");
  long sum = 0;
#pragma clang loop unroll(disable)
  for (long i = 0; i < 10; i++) {
    sum += i;
    REAL(sum); /* the compiler may not know that it will be 45 */
    SWAP(routine, routine2); /* weft_swapcontext(&routine_sp, &routine2_sp) */
  }
  say_number("sum:", sum);
  SWAP(routine, main);
}

static void routine2(void) {
  BEGIN;
  for (;;) {
    say("routine2()");
    SWAP(routine2, routine);
  }
}

static void main_routine(void) {
  BEGIN;
  SWAP(main, routine);
}

const weft_demo_routines weft_demo_sum = {main_routine, routine, routine2};
