/* TIFF files: several pages, read with libtiff. */
#ifndef FATHOM_HELPER_TIFF_H
#define FATHOM_HELPER_TIFF_H

#include "helper/codec.h"

struct tiff_pages;

/* Lists the pages of the file: its directories but for thumbnails and masks. The bytes are borrowed until close. */
enum fathom_status tiff_open(struct tiff_pages **out, const struct codec_input *in, struct fathom_err *err);
void tiff_close(struct tiff_pages *t); /* NULL is fine */

size_t tiff_n_pages(const struct tiff_pages *t);

/* Decodes page `number`, 1-based, as the decoders of codec.h do. */
enum fathom_status tiff_page(struct tiff_pages *t, size_t number, struct decoded *out, struct fathom_err *err);

#endif
