/* textbook.c - the first frame of a stack that weft_swapcontext will switch to. */
#include <string.h>

#include "cweft_switch.h"

void *weft_textbook_prepare(void *top, void (*routine)(void)) {
  void **word = top;
#if defined(__x86_64__)
  /* switch.S draws it. When ret enters the routine, rsp is top - 8, as after a call. */
  *--word = (char *)weft_textbook_exit + 1;
  *--word = (void *)routine;
  word -= WEFT_TEXTBOOK_WORDS;
  memset(word, 0, WEFT_TEXTBOOK_WORDS * sizeof *word);
#elif defined(__aarch64__)
  word -= WEFT_TEXTBOOK_WORDS;
  memset(word, 0, WEFT_TEXTBOOK_WORDS * sizeof *word);
  /* Not straight to the routine: it would find itself in x30, and its ret would enter it again. */
  word[8] = (void *)routine;                                  /* x19 */
  word[WEFT_TEXTBOOK_WORDS - 1] = (void *)weft_textbook_exit; /* x30 */
#endif
  return word;
}
