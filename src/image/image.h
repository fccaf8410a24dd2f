/* Pixels: every picture is sRGB u8, upright. The bytes of strangers become pixels in the helper process (helper/); PPM,
 * PGM and PBM, which are little more than pixels, are read here. */
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
    size_t max_work_bytes; /* 1 GiB: what a decoder may hold beside the pixels */
};
extern const struct image_limits image_default_limits;

/* Tests the size that a header claims against the limits, then allocates out->rgb (not cleared). */
enum fathom_status image_alloc(struct image *out, size_t width, size_t height, const struct image_limits *limits,
                               struct fathom_err *err);
void image_free(struct image *image); /* a zeroed one is fine */

/* Decodes a PBM, PGM or PPM file, plain or binary; the signature has been seen. The sizes are tested before anything is
 * allocated. A picture that breaks off is an error: no half pages. On failure *out is empty. */
enum fathom_status pnm_decode(struct image *out, const uint8_t *bytes, size_t n, enum fathom_alpha alpha,
                              const struct image_limits *limits, struct fathom_err *err);

#endif
