/* Picture files: bytes to upright pixels. */
#ifndef FATHOM_HELPER_DECODE_H
#define FATHOM_HELPER_DECODE_H

#include "helper/codec.h"

/* Decodes a picture, the first of a file with several; the format is told from the first bytes, never from a name. Limits
 * are tested on the header before anything is allocated: a picture takes 3 bytes a pixel (6 while it is turned upright), a
 * few rows, and at most max_work_bytes. A picture that breaks off is an error: no half pages. On failure *out is empty. */
enum fathom_status picture_decode(struct decoded *out, const struct codec_input *in, struct fathom_err *err);

/* The same for the pixels alone, stored colours kept. */
enum fathom_status image_decode(struct image *out, const uint8_t *bytes, size_t n, enum fathom_alpha alpha,
                                const struct image_limits *limits, struct fathom_err *err);

/* Reads and decodes a regular file; the messages name it. */
enum fathom_status image_load(struct image *out, const char *path, enum fathom_alpha alpha,
                              const struct image_limits *limits, struct fathom_err *err);

#endif
