/* host.c - what Swift's importer cannot reach: the affinity mask hides behind a macro. */
#if defined(__linux__)
#define _GNU_SOURCE
#include <sched.h>
#endif
#include <unistd.h>

#include "cweftdemo.h"

int weft_host_usable_cores(void) {
#if defined(__linux__)
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) return CPU_COUNT(&mask);
#endif
  return (int)sysconf(_SC_NPROCESSORS_ONLN);
}
