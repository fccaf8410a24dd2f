/* A growing NUL-terminated string. The first failure to grow sticks; later calls do nothing. */
#ifndef FATHOM_BASE_STRBUF_H
#define FATHOM_BASE_STRBUF_H

#include "base/err.h"

struct strbuf {
    char *text; /* owned (malloc); NULL while nothing was added */
    size_t n, capacity;
    bool failed;
};

void strbuf_add(struct strbuf *s, const char *text, size_t n);
void strbuf_addf(struct strbuf *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds text as a JSON string with its quotes. text is valid UTF-8. */
void strbuf_add_json(struct strbuf *s, const char *text, size_t n);

void strbuf_cut(struct strbuf *s, size_t n); /* keeps the first n bytes */
void strbuf_free(struct strbuf *s);          /* a zeroed one is fine    */

/* "" while empty. */
const char *strbuf_text(const struct strbuf *s);

#endif
