/* engine.c - the stacks, the doors and the driver of the demo programs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "program.h"

void *weft_demo_sp[WEFT_DEMO_COROUTINES_MAX + 1];
void **weft_demo_door[WEFT_DEMO_COROUTINES_MAX + 1];

static struct {
  weft_demo_program program;
  const weft_demo_routines *routines;
  int sides;
  weft_demo_stack stacks[WEFT_DEMO_COROUTINES_MAX + 1];
  int stacks_mapped;
  void *driver_sp;
  int finished;
  int echo;
  int error;
  char *text;
  size_t text_length;
  size_t text_size;
} demo;

/* ---- What the programs print ---- */

static void write_all(const char *text, size_t length) {
  while (length > 0 && demo.error == 0) {
    ssize_t done = write(STDOUT_FILENO, text, length);
    if (done < 0 && errno != EINTR) demo.error = errno;
    if (done > 0) {
      text += done;
      length -= (size_t)done;
    }
  }
}

static void keep(const char *text, size_t length) {
  if (demo.text_length + length + 1 > demo.text_size) {
    size_t size = 2 * demo.text_size + length + 256;
    char *larger = realloc(demo.text, size);
    if (larger == NULL) {
      demo.error = ENOMEM;
      return;
    }
    demo.text = larger;
    demo.text_size = size;
  }
  memcpy(demo.text + demo.text_length, text, length);
  demo.text_length += length;
  demo.text[demo.text_length] = 0;
}

void say(const char *text) {
  char line[256];
  int length = snprintf(line, sizeof line, "%s\n", text);
  if (demo.echo)
    write_all(line, (size_t)length);
  else
    keep(line, (size_t)length);
}

void say_number(const char *text, long number) {
  char line[256];
  snprintf(line, sizeof line, "%s %ld", text, number);
  say(line);
}

const char *weft_demo_output(void) { return demo.text == NULL ? "" : demo.text; }

/* ---- Stacks ---- */

static int map_stack(weft_demo_stack *stack) {
  const size_t size = WEFT_DEMO_GUARD_BYTES + WEFT_DEMO_STACK_BYTES;
  char *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
  if (base == MAP_FAILED) return errno;
  if (mprotect(base, WEFT_DEMO_GUARD_BYTES, PROT_NONE) != 0) {
    int error = errno;
    munmap(base, size);
    return error;
  }
  stack->guard = (uintptr_t)base;
  stack->limit = stack->guard + WEFT_DEMO_GUARD_BYTES;
  stack->top = stack->limit + WEFT_DEMO_STACK_BYTES;
  return 0;
}

/* Main, as a side with a stack of its own: that is how it runs when it is stepped. */
static void main_side(void) {
  demo.routines->main();
  demo.finished = 1;
  weft_swapcontext(&weft_demo_sp[SIDE_main], &demo.driver_sp);
}

int weft_demo_open(weft_demo_program program, int64_t upto, int coroutines) {
  static const weft_demo_routines *const all[] = {&weft_demo_swap, &weft_demo_sum,
                                                  &weft_demo_deal};
  demo.program = program;
  demo.routines = all[program];
  demo.sides = program == WEFT_DEMO_DEAL ? coroutines + 1 : 3;
  demo.finished = demo.error = 0;
  demo.text_length = 0;
  if (demo.text != NULL) demo.text[0] = 0;
  weft_demo_deal_prepare(upto, program == WEFT_DEMO_DEAL ? coroutines : 1);
  for (int side = 0; side < demo.sides; side++) {
    if (side >= demo.stacks_mapped) {
      int error = map_stack(&demo.stacks[side]);
      if (error != 0) return error;
      demo.stacks_mapped = side + 1;
    }
    void (*entry)(void) = side == SIDE_main      ? main_side
                          : side == SIDE_routine ? demo.routines->routine
                                                 : demo.routines->routine2;
    weft_demo_sp[side] = weft_textbook_prepare((void *)demo.stacks[side].top, entry);
    weft_demo_door[side] = &weft_demo_sp[side];
  }
  return 0;
}

void weft_demo_close(void) {
  for (int side = 0; side < demo.stacks_mapped; side++)
    munmap((void *)demo.stacks[side].guard, WEFT_DEMO_GUARD_BYTES + WEFT_DEMO_STACK_BYTES);
  demo.stacks_mapped = demo.sides = 0;
  free(demo.text);
  demo.text = NULL;
  demo.text_length = demo.text_size = 0;
}

/* ---- Running and stepping ---- */

int weft_demo_run(int echo) {
  demo.echo = echo;
  demo.routines->main();
  return demo.error;
}

int weft_demo_resume(int side) {
  if (demo.finished || side < 0 || side >= demo.sides) return 0;
  demo.echo = 0;
  for (int each = 0; each < demo.sides; each++) weft_demo_door[each] = &demo.driver_sp;
  weft_swapcontext(&demo.driver_sp, &weft_demo_sp[side]);
  return !demo.finished;
}

/* ---- What can be looked at ---- */

int weft_demo_sides(void) { return demo.sides; }

weft_demo_stack weft_demo_stack_of(int side) { return demo.stacks[side]; }

uintptr_t weft_demo_saved_sp(int side) { return (uintptr_t)weft_demo_sp[side]; }

uint64_t weft_demo_word(int side, uintptr_t address) {
  const weft_demo_stack *stack = &demo.stacks[side];
  uint64_t word;
  if (address < stack->limit || address > stack->top - sizeof word) return 0;
  memcpy(&word, (const void *)address, sizeof word);
  return word;
}

#if defined(__x86_64__)
static const char *const saved_names[] = {"r15", "r14", "r13", "r12", "rbx", "rbp"};
int weft_demo_return_word(void) { return WEFT_TEXTBOOK_WORDS; }
#else
static const char *const saved_names[] = {
    "d8",  "d9",  "d10", "d11", "d12", "d13", "d14", "d15", "x19", "x20",
    "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29"};
int weft_demo_return_word(void) { return WEFT_TEXTBOOK_WORDS - 1; }
#endif

const char *weft_demo_saved_name(int word) {
  const int count = sizeof saved_names / sizeof *saved_names;
  return word >= 0 && word < count ? saved_names[word] : NULL;
}

/* ---- Code addresses ---- */

typedef struct function {
  const char *name;
  uintptr_t start;
} function;

/* No function of ours is longer. */
#define FUNCTION_BYTES_MAX 4096

static int functions(weft_demo_program program, function *list) {
  static const weft_demo_routines *const all[] = {&weft_demo_swap, &weft_demo_sum,
                                                  &weft_demo_deal};
  const weft_demo_routines *routines = all[program];
  const int deal = program == WEFT_DEMO_DEAL;
  function found[] = {
      {"main_routine", (uintptr_t)routines->main},
      {deal ? "coroutine" : "routine", (uintptr_t)routines->routine},
      {deal ? "coroutine" : "routine2", (uintptr_t)routines->routine2},
      {"main_side", (uintptr_t)main_side},
      {"weft_swapcontext", (uintptr_t)weft_swapcontext},
      {"weft_textbook_exit", (uintptr_t)weft_textbook_exit},
      {"say", (uintptr_t)say},
      {"say_number", (uintptr_t)say_number},
  };
  memcpy(list, found, sizeof found);
  return sizeof found / sizeof *found;
}

const char *weft_demo_symbol(uintptr_t address, uintptr_t *offset) {
  function list[16];
  const int count = functions(demo.program, list);
  const function *best = NULL;
  for (int index = 0; index < count; index++) {
    const function *each = &list[index];
    if (each->start > address || address - each->start >= FUNCTION_BYTES_MAX) continue;
    if (best == NULL || each->start > best->start) best = each;
  }
  if (best == NULL) return NULL;
  *offset = address - best->start;
  return best->name;
}

uintptr_t weft_demo_function(const char *name, weft_demo_program program) {
  function list[16];
  const int count = functions(program, list);
  for (int index = 0; index < count; index++)
    if (strcmp(list[index].name, name) == 0) return list[index].start;
  return 0;
}

size_t weft_demo_code(uintptr_t address, uint8_t *bytes, size_t count) {
  uintptr_t offset;
  if (weft_demo_symbol(address, &offset) == NULL) return 0;
  memcpy(bytes, (const void *)address, count);
  return count;
}

/* ---- Source lines ---- */

typedef struct mark {
  intptr_t where; /* ELF: relative to this field. Mach-O: absolute. */
  int32_t line;
  int32_t begun;
  int32_t to;
  int32_t padding;
} mark;

#if defined(__APPLE__)
extern const mark marks_start[] __asm("section$start$__DATA$weft_marks");
extern const mark marks_end[] __asm("section$end$__DATA$weft_marks");
static uintptr_t mark_address(const mark *each) { return (uintptr_t)each->where; }
#else
extern const mark marks_start[] __asm__("__start_weft_marks");
extern const mark marks_end[] __asm__("__stop_weft_marks");
static uintptr_t mark_address(const mark *each) {
  return (uintptr_t)((intptr_t)&each->where + each->where);
}
#endif

weft_demo_place weft_demo_place_of(int side) {
  weft_demo_place place = {0, 0, 0};
  if (side < 0 || side >= demo.sides) return place;
  const uintptr_t address = (uintptr_t)weft_demo_word(
      side, weft_demo_saved_sp(side) + 8 * (uintptr_t)weft_demo_return_word());
  /* The first mark at or after the address, which is in the same function by construction. */
  const mark *best = NULL;
  for (const mark *each = marks_start; each < marks_end; each++)
    if (mark_address(each) >= address &&
        (best == NULL || mark_address(each) < mark_address(best)))
      best = each;
  if (best == NULL || mark_address(best) - address >= FUNCTION_BYTES_MAX) return place;
  place.line = best->line;
  place.begun = best->begun;
  place.to = best->to == SIDE_next ? weft_demo_deal_next(side) : best->to;
  return place;
}
