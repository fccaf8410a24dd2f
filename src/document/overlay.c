/* The page with its boxes drawn. */
#include "base/checked.h"
#include "document/kind.h"
#include "image/image.h"
#include "image/letters.h"
#include "image/png_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL_LENGTH = 28 };

static void fill(struct image *image, int x0, int y0, int x1, int y1, const uint8_t colour[3])
{
    x0 = x0 < 0 ? 0 : x0;
    y0 = y0 < 0 ? 0 : y0;
    x1 = x1 > image->width ? image->width : x1;
    y1 = y1 > image->height ? image->height : y1;
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++)
            memcpy(image->rgb + ((size_t)y * (size_t)image->width + (size_t)x) * 3, colour, 3);
}

/* A frame of this thickness round the box, within it. */
static void frame(struct image *image, const struct fathom_box *b, int thick, const uint8_t colour[3])
{
    fill(image, b->x0, b->y0, b->x1 + 1, b->y0 + thick, colour);
    fill(image, b->x0, b->y1 + 1 - thick, b->x1 + 1, b->y1 + 1, colour);
    fill(image, b->x0, b->y0, b->x0 + thick, b->y1 + 1, colour);
    fill(image, b->x1 + 1 - thick, b->y0, b->x1 + 1, b->y1 + 1, colour);
}

/* Text on a plate of the colour, its lower left corner at (x, y) if there is room above, else its upper one; dot: pixels
 * a dot of the letters. */
static void plate(struct image *image, int x, int y, const char *text, int dot, const uint8_t colour[3])
{
    static const uint8_t white[3] = {255, 255, 255};
    int height = (LETTER_HEIGHT + 1) * dot, width = (int)strlen(text) * LETTER_WIDTH * dot + dot;
    if (x + width > image->width)
        x = image->width > width ? image->width - width : 0;
    y = y >= height ? y - height : y;
    fill(image, x, y, x + width, y + height, colour);
    for (int i = 0; text[i]; i++)
        for (int row = 0; row < LETTER_HEIGHT; row++)
            for (int column = 0; column < LETTER_WIDTH; column++) {
                int left = x + dot + (i * LETTER_WIDTH + column) * dot, top = y + dot + row * dot;
                if (letter_pixel(text[i], column, row))
                    fill(image, left, top, left + dot, top + dot, white);
            }
}

/* "3 title", a '?' for each character that is not ASCII. */
static void write_label(char out[LABEL_LENGTH], size_t number, const char *label)
{
    int n = snprintf(out, LABEL_LENGTH, "%zu ", number);
    for (; *label && n < LABEL_LENGTH - 1; label++)
        if (((unsigned char)*label & 0xc0) != 0x80)
            out[n++] = (unsigned char)*label < 0x80 ? *label : '?';
    out[n] = 0;
}

static void draw(struct image *image, const struct fathom_page *page)
{
    static const uint8_t colours[N_KINDS][3] = {
        [KIND_TEXT] = {0x1f, 0x5f, 0xbf},  [KIND_TITLE] = {0xc0, 0x20, 0x20},   [KIND_FIGURE] = {0x1a, 0x7f, 0x37},
        [KIND_TABLE] = {0x8a, 0x4b, 0x08}, [KIND_FORMULA] = {0x7b, 0x2c, 0xbf}, [KIND_CAPTION] = {0x00, 0x76, 0x7f},
        [KIND_OTHER] = {0x60, 0x60, 0x60},
    };
    int side = image->width > image->height ? image->width : image->height;
    int thick = side / 700 + 1, dot = side / 900 + 1;
    for (size_t i = 0; i < page->n_blocks; i++) {
        const struct fathom_block *block = &page->blocks[i];
        const uint8_t *colour = colours[block_kind(block)];
        char label[LABEL_LENGTH];
        write_label(label, i + 1, block->label);
        for (size_t b = 0; b < block->n_boxes; b++) {
            frame(image, &block->boxes[b], thick, colour);
            plate(image, block->boxes[b].x0, block->boxes[b].y0, label, dot, colour);
        }
    }
}

enum fathom_status fathom_page_overlay_png(const struct fathom_page *page, fathom_write_fn *write, void *user,
                                           struct fathom_err *err)
{
    size_t bytes;
    if (!page->rgb || page->width < 1 || page->height < 1)
        return fail(err, FATHOM_EINVAL, "page %zu has no pixels to draw on", page->number);
    if (!size_mul((size_t)page->width, (size_t)page->height, &bytes) || !size_mul(bytes, 3, &bytes))
        return fail_nomem(err, SIZE_MAX, "a picture");
    struct image image = {page->width, page->height, malloc(bytes)};
    if (!image.rgb)
        return fail_nomem(err, bytes, "a picture");
    memcpy(image.rgb, page->rgb, bytes);
    draw(&image, page);
    enum fathom_status status = png_write(image.rgb, image.width, image.height, write, user, err);
    free(image.rgb);
    return status;
}
