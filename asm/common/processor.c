/* processor.c - what depends on whose processor this is. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cweft_switch.h"
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#if defined(__x86_64__)
/* WEFT_FP_CONTROL=load or compare decides it, so that instruction counts are the same anywhere. */
static int cheap_by_wish_or_vendor(void) {
  const char *wish = getenv("WEFT_FP_CONTROL");
  if (wish != NULL && strcmp(wish, "load") == 0) return 2;
  if (wish != NULL && strcmp(wish, "compare") == 0) return 1;
  unsigned int maximum, b = 0, c = 0, d = 0;
  __get_cpuid(0, &maximum, &b, &c, &d);
  /* "AuthenticAMD", "HygonGenuine": the first four letters. */
  return b == 0x68747541 || b == 0x6f677948 ? 2 : 1;
}
#endif

_Bool weft_fp_load_is_cheap(void) {
#if defined(__x86_64__)
  /* ORDERING: none needed; every thread computes the same, and a word is written at once. */
  static _Atomic(int) answer; /* 0: not asked yet */
  int known = atomic_load_explicit(&answer, memory_order_relaxed);
  if (__builtin_expect(known == 0, 0)) {
    known = cheap_by_wish_or_vendor();
    atomic_store_explicit(&answer, known, memory_order_relaxed);
  }
  return known == 2;
#else
  return 0;
#endif
}
