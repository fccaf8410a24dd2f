/* A file as a descriptor of bytes that can be read again and again. */
#ifndef FATHOM_DOCUMENT_INPUT_H
#define FATHOM_DOCUMENT_INPUT_H

#include "base/err.h"

struct input {
    int fd;      /* read-only, close-on-exec, owned */
    size_t size; /* when it was opened              */
};

/* Opens a regular file; a pipe, or "-" for standard input, is first copied into memory, max_bytes of it at most. A pipe
 * that nobody writes to is given up after some seconds. Messages do not name the path. */
enum fathom_status input_open(struct input *in, const char *path, size_t max_bytes, struct fathom_err *err);
void input_close(struct input *in);

/* Reads n bytes at an offset, fewer at the end of the file; false with errno. */
bool input_read(const struct input *in, void *out, size_t n, size_t at, size_t *n_read);

/* The whole file, the caller's to free; at most max_bytes. */
enum fathom_status input_read_all(const struct input *in, size_t max_bytes, uint8_t **out, size_t *n,
                                  struct fathom_err *err);

#endif
