/* processor.c - what depends on whose processor this is. */
#include <stdatomic.h>

#include "cweft_switch.h"
#if defined(__x86_64__)
#include <cpuid.h>
#endif

_Bool weft_fp_load_is_cheap(void) {
#if defined(__x86_64__)
  /* ORDERING: none needed; every thread computes the same, and a word is written at once. */
  static _Atomic(int) answer; /* 0: not asked yet */
  int known = atomic_load_explicit(&answer, memory_order_relaxed);
  if (__builtin_expect(known == 0, 0)) {
    unsigned int maximum, b = 0, c = 0, d = 0;
    __get_cpuid(0, &maximum, &b, &c, &d);
    /* "AuthenticAMD", "HygonGenuine": the first four letters. */
    known = b == 0x68747541 || b == 0x6f677948 ? 2 : 1;
    atomic_store_explicit(&answer, known, memory_order_relaxed);
  }
  return known == 2;
#else
  return 0;
#endif
}
