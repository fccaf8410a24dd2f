/* A growable run of bytes. A failed allocation is remembered, so that a caller checks once, after the last addition. */
#ifndef FATHOM_CLI_TEXT_H
#define FATHOM_CLI_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text {
    char *bytes; /* n bytes and a NUL; NULL while nothing was added */
    size_t n, capacity;
    bool failed; /* out of memory: the content is not complete      */
};

void text_add(struct text *t, const char *bytes, size_t n);
void text_add_string(struct text *t, const char *s);
void text_add_format(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Empties it and keeps the memory. */
void text_clear(struct text *t);
void text_free(struct text *t);

#endif
