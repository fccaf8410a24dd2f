/* FP8 and FP4 matrices of synth-v1 values, as DeepSeek-V4's checkpoints store them: each block is divided by the least
 * power of two that brings it into its format's range, and rounded to the nearest code. */
#ifndef FATHOM_WEIGHTS_SYNTH_BLOCKS_H
#define FATHOM_WEIGHTS_SYNTH_BLOCKS_H

#include "base/err.h"
#include "kernel/tensor.h"
#include "weights/synth.h"

#define SYNTH_BLOCK_ROWS F8_BLOCK /* rows are made in multiples of these */

/* The matrix [rows, cols] called name: dtype F8_E4M3 or F4_E2M1; of the values that bf16 holds. */
struct synth_blocks {
    const char *name;
    enum dtype dtype;
    size_t rows, cols;
    struct synth_range range;
};

/* Rows [first, first + n) of the codes, or rows of the scales that belong to them, end to end in dst; first is a multiple of
 * SYNTH_BLOCK_ROWS, and n is one or ends with the matrix. pool may be NULL. */
enum fathom_status synth_fill_codes(uint8_t *dst, const struct synth_blocks *b, size_t first, size_t n,
                                    struct pool *pool, struct fathom_err *err);
enum fathom_status synth_fill_scales(uint8_t *dst, const struct synth_blocks *b, size_t first, size_t n,
                                     struct pool *pool, struct fathom_err *err);

#endif
