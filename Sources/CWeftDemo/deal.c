/* deal.c - a bigger sum: 1 to N, dealt round over K coroutines, a switch after each addition. */
#include "program.h"

static struct {
  long upto;
  int coroutines;
  int started;  /* who is entered next; a textbook routine gets no argument */
  int finished;
  long total;
  long switches;
} deal;

static void coroutine(void) {
  BEGIN;
  const int self = ++deal.started;
  const int next = self % deal.coroutines + 1;
  long sum = 0;
  for (long i = self; i <= deal.upto; i += deal.coroutines) {
    sum += i;
    REAL(sum);
    deal.switches++;
    SWAP_NUMBERED(self, next); /* weft_swapcontext(&sp[self], &sp[next]) */
  }
  deal.total += sum;
  deal.finished++;
  deal.switches++;
  /* All run out of numbers within one round. Who does so last goes back to main. */
  const int last = deal.finished == deal.coroutines;
  SWAP_NUMBERED(self, last ? SIDE_main : next);
}

static void main_routine(void) {
  BEGIN;
  deal.switches++;
  SWAP(main, routine);
  say_number("sum:", deal.total);
}

int weft_demo_deal_next(int side) {
  return deal.finished == deal.coroutines ? SIDE_main : side % deal.coroutines + 1;
}

void weft_demo_deal_prepare(int64_t upto, int coroutines) {
  deal.upto = (long)upto;
  deal.coroutines = coroutines;
  deal.started = deal.finished = 0;
  deal.total = deal.switches = 0;
}

int64_t weft_demo_total(void) { return deal.total; }
int64_t weft_demo_switches(void) { return deal.switches; }

const weft_demo_routines weft_demo_deal = {main_routine, coroutine, coroutine};
