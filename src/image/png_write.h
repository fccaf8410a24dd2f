/* Pixels to PNG, without loss. */
#ifndef FATHOM_IMAGE_PNG_WRITE_H
#define FATHOM_IMAGE_PNG_WRITE_H

#include "base/err.h"

/* Whether every pixel of [height, width, 3] u8 is grey. */
bool rgb_is_grey(const uint8_t *rgb, int width, int height);

/* The rows of [height, width, 3] u8 filtered and compressed: what a PNG's IDAT holds, and a PDF's FlateDecode with
 * predictor 15. grey: one sample a pixel, the first. Both sides are at least 1. */
enum fathom_status png_rows_write(const uint8_t *rgb, int width, int height, bool grey, fathom_write_fn *write,
                                  void *user, struct fathom_err *err);

/* A whole PNG file of RGB pixels. */
enum fathom_status png_write(const uint8_t *rgb, int width, int height, fathom_write_fn *write, void *user,
                             struct fathom_err *err);

#endif
