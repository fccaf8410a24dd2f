#include "text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(struct text *t, size_t n)
{
    if (t->failed || n > SIZE_MAX / 4 - t->n) {
        t->failed = true;
        return false;
    }
    if (t->n + n + 1 <= t->capacity)
        return true;
    size_t capacity = 2 * (t->n + n + 1);
    char *bytes = realloc(t->bytes, capacity);
    if (!bytes) {
        t->failed = true;
        return false;
    }
    t->bytes = bytes;
    t->capacity = capacity;
    return true;
}

void text_add(struct text *t, const char *bytes, size_t n)
{
    if (!reserve(t, n))
        return;
    if (n)
        memcpy(t->bytes + t->n, bytes, n);
    t->n += n;
    t->bytes[t->n] = '\0';
}

void text_add_string(struct text *t, const char *s) { text_add(t, s, strlen(s)); }

void text_add_format(struct text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *s;
    int n = vasprintf(&s, format, args);
    va_end(args);
    if (n < 0) {
        t->failed = true;
        return;
    }
    text_add(t, s, (size_t)n);
    free(s);
}

void text_clear(struct text *t)
{
    t->n = 0;
    t->failed = false;
    if (t->bytes)
        t->bytes[0] = '\0';
}

void text_free(struct text *t)
{
    free(t->bytes);
    *t = (struct text){0};
}
