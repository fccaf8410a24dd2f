/* Colours by an embedded profile to sRGB, with lcms2. */
#ifndef FATHOM_HELPER_ICC_H
#define FATHOM_HELPER_ICC_H

#include "image/image.h"

/* Converts pixels in place. Greys stand in all three channels and may have a profile of greys. A profile that is broken,
 * that is for other channels, or that is sRGB in all but name leaves the pixels as they are: true when they were
 * changed. */
bool icc_to_srgb(struct image *image, const void *profile, size_t n);

/* The same for n pixels of four inks, 255 being none, which is how JPEGs keep them. False: no such profile; dst is as
 * it was. The state is made once a picture. */
struct icc_inks;
struct icc_inks *icc_inks_open(const void *profile, size_t n); /* NULL: no profile of inks */
void icc_inks_row(struct icc_inks *inks, uint8_t *dst, const uint8_t *src, size_t n);
void icc_inks_close(struct icc_inks *inks); /* NULL is fine */

#endif
