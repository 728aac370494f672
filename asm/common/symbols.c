/* symbols.c - names for addresses: what the dynamic linker knows, and what it does not, the symbol
 * table of the file. A program's own functions are seldom exported.
 */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE 1
#endif
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__linux__)
#include <link.h>
#endif

#include "internal.h"

#include "cweft_watch.h"

/* libswiftCore's, where the program has Swift in it. */
extern char *swift_demangle(const char *name, size_t length, char *output, size_t *output_bytes,
                            uint32_t flags) __attribute__((weak));

#if defined(__linux__)
/* The name and the start of the function that holds `offset`, from the file's symbol table. Reports
 * are rare: the file is mapped anew each time. */
static bool search_file(const char *image, size_t bytes, uintptr_t offset, char *name,
                        size_t name_bytes, uintptr_t *start) {
  const ElfW(Ehdr) *header = (const void *)image;
  if (bytes < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_shoff == 0 ||
      header->e_shoff + (size_t)header->e_shnum * sizeof(ElfW(Shdr)) > bytes) {
    return false;
  }
  const ElfW(Shdr) *sections = (const void *)(image + header->e_shoff);
  for (unsigned int i = 0; i < header->e_shnum; i++) {
    const ElfW(Shdr) *section = &sections[i];
    if (section->sh_type != SHT_SYMTAB || section->sh_link >= header->e_shnum) continue;
    const ElfW(Shdr) *strings = &sections[section->sh_link];
    if (section->sh_offset + section->sh_size > bytes ||
        strings->sh_offset + strings->sh_size > bytes) {
      continue;
    }
    const ElfW(Sym) *symbols = (const void *)(image + section->sh_offset);
    for (size_t j = 0; j < section->sh_size / sizeof *symbols; j++) {
      const ElfW(Sym) *symbol = &symbols[j];
      if ((symbol->st_info & 15) == STT_FUNC && offset >= symbol->st_value &&
          offset < symbol->st_value + symbol->st_size && symbol->st_name < strings->sh_size) {
        snprintf(name, name_bytes, "%s", image + strings->sh_offset + symbol->st_name);
        *start = symbol->st_value;
        return true;
      }
    }
  }
  return false;
}

static bool find_in_file(const Dl_info *info, uintptr_t offset, char *name, size_t name_bytes,
                         uintptr_t *start) {
  struct stat status;
  bool found = false;
  /* The program's own name may be relative to a directory that it has left. */
  int fd = open(strchr(info->dli_fname, '/') == info->dli_fname ? info->dli_fname
                                                                : "/proc/self/exe",
                O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  if (fstat(fd, &status) == 0 && status.st_size > 0) {
    size_t bytes = (size_t)status.st_size;
    void *image = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (image != MAP_FAILED) {
      found = search_file(image, bytes, offset, name, name_bytes, start);
      munmap(image, bytes);
    }
  }
  close(fd);
  return found;
}
#else
static bool find_in_file(const Dl_info *info, uintptr_t offset, char *name, size_t name_bytes,
                         uintptr_t *start) {
  (void)info;
  (void)offset;
  (void)name;
  (void)name_bytes;
  (void)start;
  return false;
}
#endif

int32_t weft_capture_describe(const weft_capture *capture, int32_t i, char *text, int32_t bytes) {
  Dl_info info;
  char name[1024];
  /* A return address may lie past the end of a function that does not return. */
  char *address = (char *)capture->frames[i] - 1;
  int32_t count;
  if (dladdr(address, &info) == 0 || info.dli_fname == NULL) {
    count = snprintf(text, (size_t)bytes, "%p", capture->frames[i]);
    return count < bytes ? count : bytes - 1;
  }
  uintptr_t offset = (uintptr_t)(address - (char *)info.dli_fbase), start = 0;
  const char *symbol = info.dli_sname;
  if (symbol != NULL) {
    start = (uintptr_t)info.dli_saddr - (uintptr_t)info.dli_fbase;
  } else if (find_in_file(&info, offset, name, sizeof name, &start)) {
    symbol = name;
  }
  if (symbol == NULL) {
    const char *slash = strrchr(info.dli_fname, '/');
    count = snprintf(text, (size_t)bytes, "%s + 0x%lx", slash != NULL ? slash + 1 : info.dli_fname,
                     (unsigned long)offset + 1);
  } else {
    char *plain =
        swift_demangle != NULL ? swift_demangle(symbol, strlen(symbol), NULL, NULL, 0) : NULL;
    count = snprintf(text, (size_t)bytes, "%s + %lu", plain != NULL ? plain : symbol,
                     (unsigned long)(offset - start) + 1);
    free(plain);
  }
  return count < bytes ? count : bytes - 1;
}
