/* sanitizer.h - hooks that vanish when no sanitizer is built in, and Valgrind's client request.
 *
 * The package-wide flag reaches this C target; it does not reach headers that Swift imports, so
 * nothing in include/ may depend on it. Under a sanitizer every switch takes the slow path here.
 */
#ifndef WEFT_SANITIZER_H
#define WEFT_SANITIZER_H

#include <stddef.h>
#include <stdint.h>

#if !defined(__has_feature)
#define __has_feature(x) 0
#endif
#if __has_feature(address_sanitizer) || defined(__SANITIZE_ADDRESS__)
#define WEFT_ASAN 1
void __sanitizer_start_switch_fiber(void **fake, const void *low, size_t bytes);
void __sanitizer_finish_switch_fiber(void *fake, const void **low, size_t *bytes);
void __asan_unpoison_memory_region(const volatile void *address, size_t bytes);
void __lsan_ignore_object(const void *object);
void __lsan_register_root_region(const void *address, size_t bytes);
void __lsan_unregister_root_region(const void *address, size_t bytes);
#else
#define WEFT_ASAN 0
#endif
#if __has_feature(thread_sanitizer) || defined(__SANITIZE_THREAD__)
#define WEFT_TSAN 1
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void *__tsan_get_current_fiber(void);
#else
#define WEFT_TSAN 0
#endif
#define WEFT_SANITIZED (WEFT_ASAN || WEFT_TSAN)

/* Thread sanitizer keeps a shadow call stack per fiber: a function that enters on one and leaves
 * on another must not be instrumented at all. */
#if defined(__clang__)
#define WEFT_UNINSTRUMENTED __attribute__((noinline, disable_sanitizer_instrumentation))
#else
#define WEFT_UNINSTRUMENTED __attribute__((noinline, no_sanitize_thread, no_sanitize_address))
#endif

/* Tells Valgrind that [low, top) is a stack. The four rotations leave the register as it was, so
 * that outside Valgrind this costs five cheap instructions; it runs once per stack ever made.
 * 0x1501 is VG_USERREQ__STACK_REGISTER. */
static inline void weft_valgrind_register_stack(const void *low, const void *top) {
#if defined(__x86_64__)
  volatile uintptr_t request[6] = {0x1501, (uintptr_t)low, (uintptr_t)top, 0, 0, 0};
  uintptr_t result = 0;
  __asm__ volatile(
      "rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\t"
      "xchgq %%rbx, %%rbx"
      : "+d"(result)
      : "a"(&request[0])
      : "cc", "memory");
#elif defined(__aarch64__)
  volatile uintptr_t request[6] = {0x1501, (uintptr_t)low, (uintptr_t)top, 0, 0, 0};
  register uintptr_t result __asm__("x3") = 0;
  register volatile uintptr_t *arguments __asm__("x4") = request;
  __asm__ volatile(
      "ror x12, x12, #3\n\tror x12, x12, #13\n\tror x12, x12, #51\n\tror x12, x12, #61\n\t"
      "orr x10, x10, x10"
      : "+r"(result)
      : "r"(arguments)
      : "cc", "memory");
#endif
}

#endif
