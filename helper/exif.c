#include "helper/codec.h"

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

/* A rational number at the place that the entry names; 0 when it lies outside or is none. */
static double get_rational(const struct tiff *t, size_t entry)
{
    enum { TYPE_RATIONAL = 5 };
    size_t at = get32(t, entry + 8);
    if (get16(t, entry + 2) != TYPE_RATIONAL || at > t->n - 8)
        return 0;
    uint32_t above = get32(t, at), below = get32(t, at + 4);
    return below ? (double)above / below : 0;
}

static unsigned get_small(const struct tiff *t, size_t entry)
{
    enum { TYPE_SHORT = 3, TYPE_LONG = 4 };
    unsigned type = get16(t, entry + 2);
    return type == TYPE_SHORT ? get16(t, entry + 8) : type == TYPE_LONG ? get32(t, entry + 8) : 0;
}

struct exif exif_read(const uint8_t *tiff, size_t n)
{
    enum { HEADER = 8, ENTRY = 12, CENTIMETRE = 3 };
    enum { TAG_ORIENTATION = 0x0112, TAG_X_RESOLUTION = 0x011a, TAG_Y_RESOLUTION = 0x011b, TAG_UNIT = 0x0128 };
    struct tiff t = {tiff, n, false};
    struct exif out = {.orientation = 1};
    double per_inch = 1;
    if (n < HEADER)
        return out;
    if (memcmp(tiff, "MM", 2) == 0)
        t.big_endian = true;
    else if (memcmp(tiff, "II", 2) != 0)
        return out;
    size_t directory = get32(&t, 4);
    if (get16(&t, 2) != 42 || directory > n - 2)
        return out;
    size_t n_entries = get16(&t, directory), room = (n - directory - 2) / ENTRY;
    if (n_entries > room)
        n_entries = room;
    for (size_t i = 0; i < n_entries; i++) {
        size_t at = directory + 2 + i * ENTRY;
        unsigned small = get_small(&t, at);
        switch (get16(&t, at)) {
        case TAG_ORIENTATION: out.orientation = small >= 1 && small <= 8 ? (int)small : 1; break;
        case TAG_X_RESOLUTION: out.dpi_x = get_rational(&t, at); break;
        case TAG_Y_RESOLUTION: out.dpi_y = get_rational(&t, at); break;
        case TAG_UNIT: per_inch = small == CENTIMETRE ? 2.54 : 1; break;
        }
    }
    out.dpi_x *= per_inch;
    out.dpi_y *= per_inch;
    return out;
}
