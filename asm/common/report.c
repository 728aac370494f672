/* report.c - messages that a signal handler may write. */
#include <errno.h>
#include <string.h>
#include <stdlib.h>
#include <unistd.h>

#include "internal.h"

void weft_text_add(weft_text *text, const char *string) {
  size_t room = sizeof text->bytes - text->count;
  size_t count = strlen(string);
  if (count > room) count = room;
  memcpy(text->bytes + text->count, string, count);
  text->count += count;
}

static void add_bytes(weft_text *text, const uint8_t *bytes, size_t count) {
  size_t room = sizeof text->bytes - text->count;
  if (count > room) count = room;
  memcpy(text->bytes + text->count, bytes, count);
  text->count += count;
}

void weft_text_add_number(weft_text *text, uint64_t number) {
  char digits[21];
  char *digit = digits + sizeof digits - 1;
  *digit = 0;
  do {
    *--digit = (char)('0' + number % 10);
    number /= 10;
  } while (number != 0);
  weft_text_add(text, digit);
}

/* `"name" (created at File.swift:12)` */
void weft_text_add_site(weft_text *text, const weft_site *site) {
  if (site == NULL || site->name == NULL) {
    weft_text_add(text, "(unknown)");
    return;
  }
  weft_text_add(text, "\"");
  add_bytes(text, site->name, site->name_bytes);
  weft_text_add(text, "\" (created at ");
  add_bytes(text, site->file, site->file_bytes);
  weft_text_add(text, ":");
  weft_text_add_number(text, site->line);
  weft_text_add(text, ")");
}

void weft_text_write(const weft_text *text) {
  size_t done = 0;
  while (done < text->count) {
    ssize_t count = write(STDERR_FILENO, text->bytes + done, text->count - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    done += (size_t)count;
  }
}

void weft_fatal(const char *problem, const weft_site *site, const char *remedy) {
  weft_text text = {0};
  weft_text_add(&text, "weft: ");
  weft_text_add(&text, problem);
  if (site != NULL) {
    weft_text_add(&text, ": ");
    weft_text_add_site(&text, site);
  }
  weft_text_add(&text, "\nweft: ");
  weft_text_add(&text, remedy);
  weft_text_add(&text, "\n");
  weft_text_write(&text);
  abort();
}
