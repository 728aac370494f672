/* embed.c - access to what embed.S takes in. */
#include "cweftdemo.h"

#define EMBEDDED(name) extern const char weft_embed_##name[], weft_embed_##name##_end[]
EMBEDDED(swap);
EMBEDDED(sum);
EMBEDDED(deal);
EMBEDDED(x86_64);
EMBEDDED(aarch64);

#define ROW(name) {weft_embed_##name, weft_embed_##name##_end}

const char *weft_demo_file_text(weft_demo_file file, size_t *size) {
  const char *const rows[][2] = {ROW(swap), ROW(sum), ROW(deal), ROW(x86_64), ROW(aarch64)};
  *size = (size_t)(rows[file][1] - rows[file][0]);
  return rows[file][0];
}
