/* cweft_record.h - memory for the objects of fibers.
 *
 * A fiber's object is a Swift object of one size, made and dropped more often than anything else
 * here. Its memory comes from chunks that are kept, and goes back to them: no malloc on the way.
 * What Swift does when the last reference is dropped stays as it is, up to freeing the memory: the
 * objects have the reference counts of those that the compiler puts on a stack, whose memory is
 * somebody else's too.
 */
#ifndef CWEFT_RECORD_H
#define CWEFT_RECORD_H

#include "cweft_fiber.h"

/* A Swift object's header: type, reference counts. The fiber's record follows. */
#define WEFT_OBJECT_HEADER_BYTES 16
/* Header, record and two words more. Not rounded up to whole cache lines: a hundred thousand of 256
 * bytes take longer than as many of 224. */
#define WEFT_OBJECT_BYTES 224

/* Once, before the first fiber: the class of the objects. Any number of times, from any thread. */
void weft_record_prepare(const void *_Nonnull metadata);

/* An object with two references and nothing but zeros and WEFT_FIBER_POOLED in it. Null where
 * there is no memory, or each object should be known to a sanitizer: make one as Swift does.
 * COST: warm, an array pop and twelve stores; no lock, no atomic operation. */
void *_Nullable weft_record_acquire(void);

/* From the end of the object's deinit, which may touch it for a moment longer: this thread gives it
 * to nobody before it has come back from there. COST: an array push; every 32nd time a lock. */
void weft_record_release(void *_Nonnull object);

/* As weft_stack_settle and weft_stack_trim do with stacks. */
_Bool weft_record_settle(_Bool at_once);
void weft_record_trim(void);

typedef struct weft_record_statistics {
  size_t chunks; /* that were made */
  size_t empty;  /* of which nothing is in use, or in the cache of a thread */
  size_t clean;  /* of those: pages given back to the kernel */
} weft_record_statistics;
weft_record_statistics weft_record_get_statistics(void);

#endif
