/* cweft.h - everything that the Swift targets see of the C and assembly layer. */
#ifndef CWEFT_H
#define CWEFT_H

#include "cweft_atomic.h"
#include "cweft_coroutine.h"
#include "cweft_debug.h"
#include "cweft_fiber.h"
#include "cweft_queue.h"
#include "cweft_record.h"
#include "cweft_stack.h"
#include "cweft_switch.h"
#include "cweft_sync.h"
#include "cweft_system.h"
#include "cweft_watch.h"
#include "cweft_words.h"

#endif
