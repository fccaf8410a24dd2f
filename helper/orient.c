#include "helper/codec.h"

#include <stdlib.h>
#include <string.h>

/* Where the upright picture's pixel (x, y) lies in the stored one: origin + x * step_x + y * step_y, in pixels. */
struct walk {
    ptrdiff_t origin, step_x, step_y;
};

static struct walk walk_for(int orientation, ptrdiff_t w, ptrdiff_t h)
{
    ptrdiff_t last_column = w - 1, last_row = (h - 1) * w;
    switch (orientation) {
    case 2: return (struct walk){last_column, -1, w};             /* mirrored left to right     */
    case 3: return (struct walk){last_row + last_column, -1, -w}; /* upside down                */
    case 4: return (struct walk){last_row, 1, -w};                /* mirrored top to bottom     */
    case 5: return (struct walk){0, w, 1};                        /* transposed                 */
    case 6: return (struct walk){last_row, -w, 1};                /* needs a clockwise quarter  */
    case 7: return (struct walk){last_row + last_column, -w, -1}; /* transposed the other way   */
    case 8: return (struct walk){last_column, w, -1};             /* needs an anticlockwise one */
    default: return (struct walk){0, 1, w};
    }
}

enum fathom_status picture_orient(struct decoded *picture, struct fathom_err *err)
{
    enum { BLOCK = 32 }; /* a quarter turn reads columns: blocks keep their cache lines in use */
    struct image *image = &picture->image;
    int orientation = picture->orientation;
    if (orientation <= 1 || orientation > 8)
        return FATHOM_OK;
    struct walk walk = walk_for(orientation, image->width, image->height);
    int w = orientation >= 5 ? image->height : image->width, h = orientation >= 5 ? image->width : image->height;
    size_t bytes = (size_t)w * (size_t)h * 3; /* the product fits: the picture exists */
    uint8_t *turned = malloc(bytes);
    if (!turned)
        return fail_nomem(err, bytes, "turning the picture upright");
    for (int y0 = 0; y0 < h; y0 += BLOCK)
        for (int x0 = 0; x0 < w; x0 += BLOCK)
            for (int y = y0; y < h && y < y0 + BLOCK; y++) {
                const uint8_t *src = image->rgb + 3 * (walk.origin + x0 * walk.step_x + y * walk.step_y);
                uint8_t *dst = turned + 3 * ((size_t)y * (size_t)w + (size_t)x0);
                for (int x = x0; x < w && x < x0 + BLOCK; x++, src += 3 * walk.step_x, dst += 3)
                    memcpy(dst, src, 3);
            }
    free(image->rgb);
    *image = (struct image){w, h, turned};
    if (orientation >= 5) {
        double dpi = picture->dpi_x;
        picture->dpi_x = picture->dpi_y;
        picture->dpi_y = dpi;
    }
    picture->orientation = 1;
    return FATHOM_OK;
}
