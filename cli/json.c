#include "json.h"

#include "utf8.h"

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

static void add_quoted(struct text *t, const char *s)
{
    const char *end = s + strlen(s);
    text_add(t, "\"", 1);
    for (const char *c = s; c < end;) {
        size_t n = utf8_length(c, (size_t)(end - c));
        if (n == 0) {
            text_add_string(t, "\\ufffd");
            n = 1;
        } else if (*c == '"' || *c == '\\') {
            text_add_format(t, "\\%c", *c);
        } else if (*c == '\n') {
            text_add_string(t, "\\n");
        } else if (*c == '\t') {
            text_add_string(t, "\\t");
        } else if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            text_add_format(t, "\\u%04x", (unsigned char)*c);
        } else {
            text_add(t, c, n);
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
