/* The two inner loops of image_resize; used within src/image only.
 *
 * A weight is 22-bit fixed point, split in two 16-bit halves, q = 2048 hi + lo, because 16-bit products summed in 32 bits are
 * what the vector units of every processor do fastest. A half's sum may wrap; the whole fits in 32 bits, so it comes out
 * right, and every version gives the same bytes. */
#ifndef FATHOM_IMAGE_RESAMPLE_H
#define FATHOM_IMAGE_RESAMPLE_H

#include <stddef.h>
#include <stdint.h>

enum {
    RESAMPLE_WEIGHT_BITS = 22,
    RESAMPLE_LOW_BITS = 11,
    RESAMPLE_LANES =
        8, /* taps are padded with zero weights to a multiple of this, so that no loop over them has a tail */
};

/* The taps of one axis: output i is the weighted sum of the inputs from first[i] on. */
struct axis {
    size_t n_out, stride, max_taps; /* stride: a multiple of RESAMPLE_LANES */
    size_t *first, *n;
    int16_t *hi, *lo; /* [n_out, stride], zero beyond the taps */
};

/* One row: planes [3, plane_stride] to dst [n_out, 3]. A plane has RESAMPLE_LANES readable samples behind the last. */
void resample_row(uint8_t *dst, const int16_t *planes, size_t plane_stride, const struct axis *a);
void resample_row_portable(uint8_t *dst, const int16_t *planes, size_t plane_stride, const struct axis *a);

/* Output i of the vertical axis: rows[k] is the row of its tap k, `bytes` long; rows has an even number of entries. */
void resample_column(uint8_t *dst, size_t bytes, const uint8_t *const *rows, const struct axis *a, size_t i);
void resample_column_portable(uint8_t *dst, size_t bytes, const uint8_t *const *rows, const struct axis *a, size_t i);

#endif
