/* Pixels to JPEG: baseline, quality 90 of the usual scale, colour at full resolution, so that text in a figure stays sharp
 * (ITU T.81). */
#ifndef FATHOM_IMAGE_JPEG_WRITE_H
#define FATHOM_IMAGE_JPEG_WRITE_H

#include "base/err.h"

/* rgb: the upper left pixel of width x height, rows stride bytes apart. Sides of 1 to 65,535; FATHOM_ELIMIT above. */
enum fathom_status jpeg_write(const uint8_t *rgb, size_t stride, int width, int height, fathom_write_fn *write,
                              void *user, struct fathom_err *err);

#endif
