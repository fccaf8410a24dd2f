/* What the picture formats share. */
#ifndef FATHOM_HELPER_CODEC_H
#define FATHOM_HELPER_CODEC_H

#include "image/image.h"

struct codec_input {
    const uint8_t *bytes; /* borrowed for the call; the format's signature has been seen */
    size_t n;
    enum fathom_alpha alpha;
    bool ignore_icc;
    const struct image_limits *limits;
};

struct decoded {
    struct image image;  /* owned                                                            */
    int orientation;     /* EXIF's, 1..8; 1 once the pixels are upright                       */
    double dpi_x, dpi_y; /* of the image; 0: not stated                                       */
    bool plain_jpeg;     /* the file is a JPEG that any reader shows with just these pixels   */
};

void decoded_free(struct decoded *picture); /* a zeroed one is fine */

/* Decoders: *out is {.orientation = 1} before and may be half filled after a failure (the caller frees it); the pixels
 * are as stored, in sRGB unless ignore_icc. Without its library a decoder fails with FATHOM_EUNSUPPORTED. */
enum fathom_status png_decode(struct decoded *out, const struct codec_input *in, struct fathom_err *err);
enum fathom_status jpeg_decode(struct decoded *out, const struct codec_input *in, struct fathom_err *err);
enum fathom_status webp_decode(struct decoded *out, const struct codec_input *in, struct fathom_err *err);
enum fathom_status bmp_decode(struct decoded *out, const struct codec_input *in, struct fathom_err *err);
enum fathom_status gif_decode(struct decoded *out, const struct codec_input *in, struct fathom_err *err);

/* What an EXIF block (a TIFF header and its first directory) says: the orientation (1..8, and 1 when it is absent or
 * broken) and the resolution in dots an inch (0: not stated). */
struct exif {
    int orientation;
    double dpi_x, dpi_y;
};
struct exif exif_read(const uint8_t *tiff, size_t n);

/* Turns and mirrors the picture so that it stands upright. */
enum fathom_status picture_orient(struct decoded *picture, struct fathom_err *err);

/* One colour sample over white: alpha 0 gives 255, 255 gives the colour. */
static inline uint8_t over_white(unsigned colour, unsigned alpha)
{
    return (uint8_t)((colour * alpha + 255 * (255 - alpha) + 127) / 255);
}

#endif
