/* support.h - what the Swift program needs that a C library would give. */
#ifndef SUPPORT_H
#define SUPPORT_H

#include <stddef.h>

_Noreturn void exit(int status);
long write(int descriptor, const void *_Nonnull bytes, size_t count);

/* A stack for the one coroutine, 16-aligned. */
void *_Nonnull stack_top(void);

/* Memory taken and not given back, in bytes. */
size_t bytes_in_use(void);

#endif
