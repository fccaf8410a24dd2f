#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void separate(struct json *j)
{
    if (j->separate)
        text_add(&j->text, ",", 1);
    j->separate = true;
}

void json_open(struct json *j, char bracket)
{
    separate(j);
    text_add(&j->text, &bracket, 1);
    j->separate = false;
}

void json_close(struct json *j, char bracket)
{
    text_add(&j->text, &bracket, 1);
    j->separate = true;
}

/* The length of the well-formed UTF-8 character at s (no surrogates, nothing overlong, at most U+10FFFF), 0 if there is
 * none. s ends with a NUL, which is never a continuation byte. */
static size_t utf8_length(const unsigned char *s)
{
    if (s[0] < 0x80)
        return 1;
    size_t n = s[0] >= 0xc2 && s[0] <= 0xdf   ? 2
               : s[0] >= 0xe0 && s[0] <= 0xef ? 3
               : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4
                                              : 0;
    if (!n)
        return 0;
    unsigned char least = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : 0x80;
    unsigned char most = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : 0xbf;
    if (s[1] < least || s[1] > most)
        return 0;
    for (size_t i = 2; i < n; i++)
        if (s[i] < 0x80 || s[i] > 0xbf)
            return 0;
    return n;
}

static void add_quoted(struct text *t, const char *s)
{
    text_add(t, "\"", 1);
    for (const unsigned char *c = (const unsigned char *)s; *c;) {
        size_t n = utf8_length(c);
        if (n == 0) {
            text_add_string(t, "\\ufffd");
            n = 1;
        } else if (*c == '"' || *c == '\\') {
            text_add_format(t, "\\%c", *c);
        } else if (*c == '\n') {
            text_add_string(t, "\\n");
        } else if (*c == '\t') {
            text_add_string(t, "\\t");
        } else if (*c < 0x20 || *c == 0x7f) {
            text_add_format(t, "\\u%04x", *c);
        } else {
            text_add(t, (const char *)c, n);
        }
        c += n;
    }
    text_add(t, "\"", 1);
}

void json_key(struct json *j, const char *key)
{
    separate(j);
    add_quoted(&j->text, key);
    text_add(&j->text, ":", 1);
    j->separate = false;
}

void json_string(struct json *j, const char *s)
{
    separate(j);
    add_quoted(&j->text, s);
}

void json_number(struct json *j, double value)
{
    if (!isfinite(value)) {
        json_null(j);
        return;
    }
    separate(j);
    char number[400];
    int n = snprintf(number, sizeof number, "%.3f", value);
    while (number[n - 1] == '0')
        n--;
    if (number[n - 1] == '.')
        n--;
    text_add(&j->text, number, (size_t)n);
}

void json_integer(struct json *j, uint64_t value)
{
    separate(j);
    text_add_format(&j->text, "%" PRIu64, value);
}

void json_null(struct json *j)
{
    separate(j);
    text_add_string(&j->text, "null");
}
