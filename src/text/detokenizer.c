#include "text/tokenizer.h"

#include <string.h>

/* The length that the first byte of a character announces, 0 when it cannot be one. */
static size_t announced(uint8_t first)
{
    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* Whether byte can follow those that wait: overlong forms, surrogates and what lies above U+10FFFF end at the second. */
static bool can_follow(const struct detokenizer *d, uint8_t byte)
{
    uint8_t low = 0x80, high = 0xbf;
    if (d->n_pending == 1)
        switch (d->pending[0]) {
        case 0xe0: low = 0xa0; break;
        case 0xed: high = 0x9f; break;
        case 0xf0: low = 0x90; break;
        case 0xf4: high = 0x8f; break;
        }
    return byte >= low && byte <= high;
}

static size_t replace(char *out)
{
    memcpy(out, "\xef\xbf\xbd", 3);
    return 3;
}

size_t detokenizer_push(struct detokenizer *d, const char *piece, size_t n, char *out)
{
    size_t n_out = 0;
    if (!piece) {
        if (d->n_pending)
            n_out = replace(out);
        d->n_pending = 0;
        return n_out;
    }
    for (size_t i = 0; i < n; i++) {
        uint8_t byte = (uint8_t)piece[i];
        if (d->n_pending && !can_follow(d, byte)) {
            n_out += replace(out + n_out);
            d->n_pending = 0;
        }
        if (!d->n_pending && announced(byte) == 0) {
            n_out += replace(out + n_out);
            continue;
        }
        d->pending[d->n_pending++] = byte;
        if (d->n_pending == announced(d->pending[0])) {
            memcpy(out + n_out, d->pending, d->n_pending);
            n_out += d->n_pending;
            d->n_pending = 0;
        }
    }
    return n_out;
}
