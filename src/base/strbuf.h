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

void strbuf_adds(struct strbuf *s, const char *text); /* up to its NUL */

/* Adds a finite number with at most this many decimals (0 to 9), none of them a trailing zero, whatever the locale. */
void strbuf_add_decimal(struct strbuf *s, double value, int decimals);

/* Adds text as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD. */
void strbuf_add_json(struct strbuf *s, const char *text, size_t n);

void strbuf_cut(struct strbuf *s, size_t n); /* keeps the first n bytes */
void strbuf_free(struct strbuf *s);          /* a zeroed one is fine    */

/* "" while empty. */
const char *strbuf_text(const struct strbuf *s);

#endif
