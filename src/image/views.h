/* Pixels to the views the vision tower sees (spec deepseek-ocr §2.3-2.6). */
#ifndef FATHOM_IMAGE_VIEWS_H
#define FATHOM_IMAGE_VIEWS_H

#include "image/image.h"
#include "weights/config.h"

/* Resamples src [sh, sw, 3] to dst [dh, dw, 3] as Pillow's 8-bit BICUBIC does (spec §2.5), bit for bit. */
enum fathom_status image_resize(uint8_t *dst, int dw, int dh, const uint8_t *src, int sw, int sh,
                                struct fathom_err *err);

/* Fits the picture into a square of the given side, centred on the background (Pillow's ImageOps.pad; spec §2.4). */
enum fathom_status image_fit_pad(uint8_t *dst, int side, const uint8_t *src, int sw, int sh,
                                 const uint8_t background[3], struct fathom_err *err);

/* The tile grid, or 1x1 when the picture needs none (spec §2.3). */
void choose_grid(int width, int height, int tile_side, int min_tiles, int max_tiles, int *across, int *down);

/* Float pictures [n, 3, side, side], planes R, G, B: (p/255 - mean) / std. */
struct views {
    float *global; /* [1, 3, base, base], owned    */
    float *local;  /* [n_local, 3, tile, tile], owned, NULL when n_local is 0; tiles row-major */
    size_t n_local;
    int across, down; /* grid; 1x1 without tiles         */
    size_t base_side, tile_side;
};

enum fathom_status views_make(struct views *out, const uint8_t *rgb, int width, int height,
                              const struct view_config *config, struct fathom_err *err);
void views_free(struct views *v);

#endif
