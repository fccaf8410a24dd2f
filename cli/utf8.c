#include "utf8.h"

#include <stdlib.h>
#include <string.h>

size_t utf8_length(const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;
    if (s[0] < 0x80)
        return 1;
    size_t length = s[0] >= 0xc2 && s[0] <= 0xdf   ? 2
                    : s[0] >= 0xe0 && s[0] <= 0xef ? 3
                    : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4
                                                   : 0;
    if (!length || length > n)
        return 0;
    unsigned char least = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : 0x80;
    unsigned char most = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : 0xbf;
    if (s[1] < least || s[1] > most)
        return 0;
    for (size_t i = 2; i < length; i++)
        if (s[i] < 0x80 || s[i] > 0xbf)
            return 0;
    return length;
}

bool utf8_is_harmless(const char *s, size_t n, size_t *length)
{
    *length = utf8_length(s, n);
    if (*length == 0) {
        *length = 1;
        return false;
    }
    unsigned char c = (unsigned char)s[0], d = n > 1 ? (unsigned char)s[1] : 0, e = n > 2 ? (unsigned char)s[2] : 0;
    switch (*length) {
    case 1: return (c >= 0x20 && c != 0x7f) || c == '\n' || c == '\t';
    case 2: return c != 0xc2 || d >= 0xa0; /* U+0080 to U+009F */
    case 3:
        if (c != 0xe2)
            return true;
        /* U+2028 to U+202E: line and paragraph ends, embeddings, overrides; U+2066 to U+2069: isolates. */
        return !(d == 0x80 && e >= 0xa8 && e <= 0xae) && !(d == 0x81 && e >= 0xa6 && e <= 0xa9);
    default: return true;
    }
}

char *utf8_printable(const char *s)
{
    size_t n = strlen(s), length, m = 0;
    char *copy = malloc(n + 1);
    if (!copy)
        return NULL;
    for (size_t i = 0; i < n; i += length) {
        if (utf8_is_harmless(s + i, n - i, &length) && s[i] != '\n' && s[i] != '\t') {
            memcpy(copy + m, s + i, length);
            m += length;
        } else {
            copy[m++] = '?';
        }
    }
    copy[m] = '\0';
    return copy;
}
