/* What the picture formats share; used within src/image only. */
#ifndef FATHOM_IMAGE_CODEC_H
#define FATHOM_IMAGE_CODEC_H

#include "image/image.h"

struct codec_input {
    const uint8_t *bytes; /* borrowed for the call; the format's signature has been seen */
    size_t n;
    enum fathom_alpha alpha;
    const struct image_limits *limits;
};

/* Tests the size that a header claims against the limits, then allocates out->rgb (not cleared). */
enum fathom_status codec_alloc(struct image *out, size_t width, size_t height, const struct image_limits *limits,
                               struct fathom_err *err);

/* Decoders: out is zeroed before and may be half filled after a failure (the caller frees it); the pixels are as stored.
 * *orientation is the file's EXIF orientation, 1 when it has none. Without its library a decoder fails with
 * FATHOM_EUNSUPPORTED. */
enum fathom_status png_decode(struct image *out, int *orientation, const struct codec_input *in,
                              struct fathom_err *err);
enum fathom_status jpeg_decode(struct image *out, int *orientation, const struct codec_input *in,
                               struct fathom_err *err);
enum fathom_status pnm_decode(struct image *out, const struct codec_input *in, struct fathom_err *err);

/* The Orientation of an EXIF block (a TIFF header and its first directory): 1..8, and 1 when it is absent or broken. */
int exif_orientation(const uint8_t *tiff, size_t n);

/* Turns and mirrors the picture so that it stands upright. */
enum fathom_status image_orient(struct image *image, int orientation, struct fathom_err *err);

/* One colour sample over white: alpha 0 gives 255, 255 gives the colour. */
static inline uint8_t over_white(unsigned colour, unsigned alpha)
{
    return (uint8_t)((colour * alpha + 255 * (255 - alpha) + 127) / 255);
}

#endif
