#include "bench_page.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define GLYPH_WIDTH 5
#define GLYPH_HEIGHT 7

/* Rows from the top, the leftmost pixel in bit 4. */
static const struct {
    char letter;
    uint8_t rows[GLYPH_HEIGHT];
} glyphs[] = {
    {'A', {0x0e, 0x11, 0x11, 0x1f, 0x11, 0x11, 0x11}}, {'C', {0x0e, 0x11, 0x10, 0x10, 0x10, 0x11, 0x0e}},
    {'D', {0x1e, 0x11, 0x11, 0x11, 0x11, 0x11, 0x1e}}, {'E', {0x1f, 0x10, 0x10, 0x1e, 0x10, 0x10, 0x1f}},
    {'F', {0x1f, 0x10, 0x10, 0x1e, 0x10, 0x10, 0x10}}, {'G', {0x0e, 0x11, 0x10, 0x17, 0x11, 0x11, 0x0f}},
    {'H', {0x11, 0x11, 0x11, 0x1f, 0x11, 0x11, 0x11}}, {'I', {0x0e, 0x04, 0x04, 0x04, 0x04, 0x04, 0x0e}},
    {'K', {0x11, 0x12, 0x14, 0x18, 0x14, 0x12, 0x11}}, {'L', {0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x1f}},
    {'M', {0x11, 0x1b, 0x15, 0x15, 0x11, 0x11, 0x11}}, {'N', {0x11, 0x19, 0x19, 0x15, 0x13, 0x13, 0x11}},
    {'O', {0x0e, 0x11, 0x11, 0x11, 0x11, 0x11, 0x0e}}, {'P', {0x1e, 0x11, 0x11, 0x1e, 0x10, 0x10, 0x10}},
    {'R', {0x1e, 0x11, 0x11, 0x1e, 0x14, 0x12, 0x11}}, {'S', {0x0f, 0x10, 0x10, 0x0e, 0x01, 0x01, 0x1e}},
    {'T', {0x1f, 0x04, 0x04, 0x04, 0x04, 0x04, 0x04}}, {'U', {0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x0e}},
    {'W', {0x11, 0x11, 0x11, 0x15, 0x15, 0x1b, 0x11}}, {'Y', {0x11, 0x11, 0x0a, 0x04, 0x04, 0x04, 0x04}},
};

/* Needs no letters but those above. */
static const char text[] = "THE LEAD FELL FROM THE SHIP AND TOOK THE LINE DOWN TO THE SAND WHERE NO LIGHT COMES "
                           "A SAILOR CALLED OUT THE MARKS AS THE WET LINE RAN THROUGH HIS HANDS "
                           "THREE FATHOMS AND A HALF SAID THE SAILOR AND THE MATE WROTE IT IN THE LOG ";

static const uint8_t *glyph(char letter)
{
    for (size_t i = 0; i < sizeof glyphs / sizeof *glyphs; i++)
        if (glyphs[i].letter == letter)
            return glyphs[i].rows;
    return NULL;
}

/* One letter of which each pixel is scale x scale, its corner at x, y; all of it inside the page. */
static void draw(uint8_t *rgb, int page_width, int x, int y, int scale, const uint8_t *rows)
{
    for (int v = 0; v < GLYPH_HEIGHT * scale; v++)
        for (int u = 0; u < GLYPH_WIDTH * scale; u++)
            if (rows[v / scale] >> (GLYPH_WIDTH - 1 - u / scale) & 1)
                memset(rgb + ((size_t)(y + v) * (size_t)page_width + (size_t)(x + u)) * 3, 20, 3);
}

uint8_t *bench_page(int width, int height)
{
    size_t bytes = (size_t)width * (size_t)height * 3;
    uint8_t *rgb = malloc(bytes);
    if (!rgb)
        return NULL;
    memset(rgb, 255, bytes);
    int scale = 1 + width / 640, margin = width / 10;
    int advance = (GLYPH_WIDTH + 1) * scale, line = (GLYPH_HEIGHT + 5) * scale;
    const char *next = text;
    for (int y = margin; y + GLYPH_HEIGHT * scale <= height - margin; y += line)
        for (int x = margin; x + advance <= width - margin;) {
            int word = (int)strcspn(next, " ");
            if (x > margin && x + word * advance > width - margin)
                break;
            for (; word > 0 && x + advance <= width - margin; word--, next++, x += advance)
                if (glyph(*next))
                    draw(rgb, width, x, y, scale, glyph(*next));
            next += strcspn(next, " ") + 1;
            if (!*next)
                next = text;
            x += advance;
        }
    return rgb;
}
