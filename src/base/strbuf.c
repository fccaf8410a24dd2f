#include "base/strbuf.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/utf8.h"

static bool reserve(struct strbuf *s, size_t more)
{
    size_t need;
    if (s->failed || !size_add(s->n, more, &need) || !size_add(need, 1, &need)) {
        s->failed = true;
        return false;
    }
    if (need <= s->capacity)
        return true;
    size_t capacity = s->capacity > need / 2 ? s->capacity * 2 : need + 64;
    char *text = realloc(s->text, capacity);
    if (!text) {
        s->failed = true;
        return false;
    }
    s->text = text;
    s->capacity = capacity;
    return true;
}

void strbuf_add(struct strbuf *s, const char *text, size_t n)
{
    if (!reserve(s, n))
        return;
    if (n)
        memcpy(s->text + s->n, text, n);
    s->n += n;
    s->text[s->n] = 0;
}

void strbuf_addf(struct strbuf *s, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n >= 0 && reserve(s, (size_t)n)) {
        vsnprintf(s->text + s->n, (size_t)n + 1, format, again);
        s->n += (size_t)n;
    }
    va_end(again);
}

void strbuf_adds(struct strbuf *s, const char *text) { strbuf_add(s, text, strlen(text)); }

void strbuf_add_decimal(struct strbuf *s, double value, int decimals)
{
    double scale = 1;
    for (int i = 0; i < decimals; i++)
        scale *= 10;
    if (fabs(value) * scale >= 1e18) { /* no decimal of it is certain */
        strbuf_addf(s, "%.0f", value);
        return;
    }
    uint64_t scaled = (uint64_t)llround(fabs(value) * scale);
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%0*llu", decimals + 1, (unsigned long long)scaled), whole = n - decimals;
    while (n > whole && digits[n - 1] == '0')
        n--;
    if (value < 0 && scaled)
        strbuf_add(s, "-", 1);
    strbuf_add(s, digits, (size_t)whole);
    if (n > whole) {
        strbuf_add(s, ".", 1);
        strbuf_add(s, digits + whole, (size_t)(n - whole));
    }
}

void strbuf_add_json(struct strbuf *s, const char *text, size_t n)
{
    strbuf_add(s, "\"", 1);
    for (size_t i = 0; i < n;) {
        uint32_t code;
        size_t length = utf8_decode(text + i, n - i, &code);
        if (!length)
            strbuf_add(s, "\\ufffd", 6);
        else if (code == '"' || code == '\\')
            strbuf_addf(s, "\\%c", (char)code);
        else if (code == '\n')
            strbuf_add(s, "\\n", 2);
        else if (code == '\t')
            strbuf_add(s, "\\t", 2);
        else if (code < 0x20 || code == 0x7f)
            strbuf_addf(s, "\\u%04x", (unsigned)code);
        else
            strbuf_add(s, text + i, length);
        i += length ? length : 1;
    }
    strbuf_add(s, "\"", 1);
}

void strbuf_cut(struct strbuf *s, size_t n)
{
    if (n < s->n) {
        s->n = n;
        s->text[n] = 0;
    }
}

void strbuf_free(struct strbuf *s)
{
    free(s->text);
    memset(s, 0, sizeof *s);
}

const char *strbuf_text(const struct strbuf *s) { return s->text ? s->text : ""; }
