#include "text/unicode.h"

#include "base/utf8.h"

#include <stdbool.h>

enum char_class unicode_class(uint32_t code)
{
    if (code >= 0x4e00 && code <= 0x9fff) /* the largest block: CJK unified ideographs */
        return CLASS_LETTER;
    uint32_t wanted = code << 3 | 7;
    size_t low = 0, n = UNICODE_N_BOUNDARIES; /* the last boundary at or below code is in [low, low + n) */
    while (n > 1) {
        size_t half = n / 2;
        low = unicode_boundaries[low + half] <= wanted ? low + half : low;
        n -= half;
    }
    return (enum char_class)(unicode_boundaries[low] & 7);
}

static bool stripped(uint32_t code) { return (code >= 0x1c && code <= 0x1f) || unicode_class(code) == CLASS_SPACE; }

const char *text_strip(const char *text, size_t *n)
{
    const char *end = text + *n;
    uint32_t code;
    size_t length;
    while ((length = utf8_decode(text, (size_t)(end - text), &code)) > 0 && stripped(code))
        text += length;
    while (end > text) {
        const char *last = end - 1;
        while (last > text && end - last < 4 && ((unsigned char)*last & 0xc0) == 0x80)
            last--;
        length = utf8_decode(last, (size_t)(end - last), &code);
        if (length != (size_t)(end - last) || !stripped(code))
            break;
        end = last;
    }
    *n = (size_t)(end - text);
    return text;
}
