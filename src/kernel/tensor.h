/* A tensor: dtype, shape, strides and borrowed storage. It never owns: weights belong to the mapping, activations to
 * the arena of the run, views to whatever they view. */
#ifndef FATHOM_KERNEL_TENSOR_H
#define FATHOM_KERNEL_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dtype {
    DTYPE_F32,
    DTYPE_F16,
    DTYPE_BF16,
    DTYPE_Q8_0,    /* ggml's: blocks of 32 along the last dimension, an f16 scale and 32 int8, 34 bytes, unaligned */
    DTYPE_F8_E4M3, /* DeepSeek-V4's: a byte each, times the scale of its 128 x 128 block (base/fp8.h)           */
    DTYPE_F4_E2M1, /* DeepSeek-V4's: four bits each, the low ones first, times the scale of its 1 x 32 block    */
    DTYPE_F8_E8M0, /* scales of those: a power of two in a byte                                                 */
    DTYPE_I32,
    DTYPE_I64,
    DTYPE_U8,
    DTYPE_I8,
};

#define TENSOR_MAX_DIMS 4
#define Q8_0_BLOCK 32
#define Q8_0_BLOCK_BYTES 34
#define F8_BLOCK 128 /* rows and columns */
#define F4_BLOCK 32  /* columns          */

struct tensor {
    enum dtype dtype;
    int n_dims;                     /* 1..4                                                           */
    size_t shape[TENSOR_MAX_DIMS];  /* outermost first                                                */
    size_t stride[TENSOR_MAX_DIMS]; /* in elements; for blocks only whole rows can be stepped over    */
    void *data;                     /* borrowed; weights are const in spirit and mapped read-only     */
    const uint8_t *scales;          /* of an f8_e4m3 or f4_e2m1 matrix: e8m0, borrowed as well, a row
                                       of them for each 128 rows (f8) or each row (f4)                */
    size_t scale_stride;            /* from one row of them to the next                               */
    size_t scale_row;               /* the matrix's first row is this one of those that have scales   */
};

const char *dtype_name(enum dtype dtype); /* "f32", "q8_0", ... */

/* Bytes of n consecutive elements; for Q8_0 n is a multiple of 32, for f4_e2m1 of 2. */
size_t dtype_bytes(enum dtype dtype, size_t n);

/* Rows and columns of the scales of a [rows, cols] matrix; other dtypes have none. */
void scale_shape(enum dtype dtype, size_t rows, size_t cols, size_t shape[2]);

/* Contiguous tensors over data. */
struct tensor tensor_1d(enum dtype dtype, void *data, size_t n);
struct tensor tensor_2d(enum dtype dtype, void *data, size_t rows, size_t cols);
struct tensor tensor_4d(enum dtype dtype, void *data, size_t n, size_t h, size_t w, size_t c);

/* Views of a matrix [rows, cols]: rows [first, first + n), or columns likewise (f32, f16 and bf16). */
struct tensor tensor_rows(const struct tensor *t, size_t first, size_t n);
struct tensor tensor_cols(const struct tensor *t, size_t first, size_t n);

/* Address of row `row` of a matrix. */
void *tensor_row(const struct tensor *t, size_t row);

size_t tensor_elements(const struct tensor *t);

/* Whether the elements lie behind one another without gaps, in order. */
bool tensor_is_packed(const struct tensor *t);

/* "[64, 1280]" into text of at least 96 bytes. */
const char *tensor_shape_text(const struct tensor *t, char text[96]);

#endif
