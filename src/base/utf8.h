/* UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef FATHOM_BASE_UTF8_H
#define FATHOM_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* The length of the character at p (1 to 4 of the n bytes there), with *code its number; 0 when no valid character
 * starts there or it is cut off. */
static inline size_t utf8_decode(const char *text, size_t n, uint32_t *code)
{
    const uint8_t *p = (const uint8_t *)text;
    if (n == 0)
        return 0;
    if (p[0] < 0x80) {
        *code = p[0];
        return 1;
    }
    if (p[0] < 0xe0) {
        if (p[0] < 0xc2 || n < 2 || (p[1] & 0xc0) != 0x80)
            return 0;
        *code = (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
        return 2;
    }
    if (p[0] < 0xf0) {
        if (n < 3 || (p[1] & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80)
            return 0;
        *code = (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
        return *code >= 0x800 && (*code < 0xd800 || *code > 0xdfff) ? 3 : 0;
    }
    if (p[0] > 0xf4 || n < 4 || (p[1] & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80 || (p[3] & 0xc0) != 0x80)
        return 0;
    *code = (p[0] & 0x07u) << 18 | (p[1] & 0x3fu) << 12 | (p[2] & 0x3fu) << 6 | (p[3] & 0x3fu);
    return *code >= 0x10000 && *code <= 0x10ffff ? 4 : 0;
}

/* Writes a character (not a surrogate, at most U+10FFFF) and returns its length. */
static inline size_t utf8_encode(uint32_t code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

#endif
