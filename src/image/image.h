/* Bytes to pixels. Every picture becomes sRGB u8 with the EXIF orientation applied. */
#ifndef FATHOM_IMAGE_IMAGE_H
#define FATHOM_IMAGE_IMAGE_H

#include "base/err.h"

struct image {
    int width, height;
    uint8_t *rgb; /* [height, width, 3], rows packed, owned (malloc) */
};

struct image_limits {
    size_t max_file_bytes; /* 512 MiB     */
    size_t max_pixels;     /* 178,956,970: 512 MiB of RGB */
    int max_side;          /* 65,500      */
    size_t max_work_bytes; /* 1 GiB: the coefficients that a progressive JPEG holds beside its pixels */
};
extern const struct image_limits image_default_limits;

void image_free(struct image *image); /* a zeroed one is fine */

/* Decodes PNG, JPEG or PPM/PGM/PBM bytes; the format is told from the first bytes, never from a name. Limits are tested on the
 * header before anything is allocated: a picture takes 3 bytes a pixel (6 while it is turned upright), a few rows, and at most
 * max_work_bytes. A picture that breaks off is an error: no half pages. Colour profiles and gamma are ignored. */
enum fathom_status image_decode(struct image *out, const uint8_t *bytes, size_t n, enum fathom_alpha alpha,
                                const struct image_limits *limits, struct fathom_err *err);

/* Reads and decodes a regular file; the messages name it. */
enum fathom_status image_load(struct image *out, const char *path, enum fathom_alpha alpha,
                              const struct image_limits *limits, struct fathom_err *err);

#endif
