#include "image/codec.h"

#include <string.h>

struct tiff {
    const uint8_t *data;
    size_t n;
    bool big_endian;
};

/* Callers have checked that the bytes are there. */
static unsigned get16(const struct tiff *t, size_t at)
{
    const uint8_t *p = t->data + at;
    return t->big_endian ? (unsigned)p[0] << 8 | p[1] : (unsigned)p[1] << 8 | p[0];
}

static uint32_t get32(const struct tiff *t, size_t at)
{
    uint32_t a = get16(t, at), b = get16(t, at + 2);
    return t->big_endian ? a << 16 | b : b << 16 | a;
}

int exif_orientation(const uint8_t *tiff, size_t n)
{
    enum { HEADER = 8, ENTRY = 12, TAG_ORIENTATION = 0x0112, TYPE_SHORT = 3, TYPE_LONG = 4 };
    struct tiff t = {tiff, n, false};
    if (n < HEADER)
        return 1;
    if (memcmp(tiff, "MM", 2) == 0)
        t.big_endian = true;
    else if (memcmp(tiff, "II", 2) != 0)
        return 1;
    size_t directory = get32(&t, 4);
    if (get16(&t, 2) != 42 || directory > n - 2)
        return 1;
    size_t n_entries = get16(&t, directory), room = (n - directory - 2) / ENTRY;
    if (n_entries > room)
        n_entries = room;
    for (size_t i = 0; i < n_entries; i++) {
        size_t at = directory + 2 + i * ENTRY;
        if (get16(&t, at) != TAG_ORIENTATION)
            continue;
        unsigned type = get16(&t, at + 2);
        uint32_t value = type == TYPE_SHORT ? get16(&t, at + 8) : type == TYPE_LONG ? get32(&t, at + 8) : 1;
        return value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}
