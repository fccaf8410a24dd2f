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
    DTYPE_Q8_0, /* ggml's: blocks of 32 along the last dimension, an f16 scale and 32 int8, 34 bytes, unaligned */
    DTYPE_I32,
    DTYPE_I64,
    DTYPE_U8,
};

#define TENSOR_MAX_DIMS 4
#define Q8_0_BLOCK 32
#define Q8_0_BLOCK_BYTES 34

struct tensor {
    enum dtype dtype;
    int n_dims;                     /* 1..4                                                           */
    size_t shape[TENSOR_MAX_DIMS];  /* outermost first                                                */
    size_t stride[TENSOR_MAX_DIMS]; /* in elements; for Q8_0 only whole rows can be stepped over      */
    void *data;                     /* borrowed; weights are const in spirit and mapped read-only     */
};

const char *dtype_name(enum dtype dtype); /* "f32", "q8_0", ... */

/* Bytes of n consecutive elements; for Q8_0 n is a multiple of 32. */
size_t dtype_bytes(enum dtype dtype, size_t n);

/* Contiguous tensors over data. */
struct tensor tensor_1d(enum dtype dtype, void *data, size_t n);
struct tensor tensor_2d(enum dtype dtype, void *data, size_t rows, size_t cols);
struct tensor tensor_4d(enum dtype dtype, void *data, size_t n, size_t h, size_t w, size_t c);

/* Views of a matrix [rows, cols]: rows [first, first + n), or columns likewise (not for Q8_0). */
struct tensor tensor_rows(const struct tensor *t, size_t first, size_t n);
struct tensor tensor_cols(const struct tensor *t, size_t first, size_t n);

/* Address of row `row` of a matrix. */
void *tensor_row(const struct tensor *t, size_t row);

size_t tensor_elements(const struct tensor *t);

/* "[64, 1280]" into text of at least 96 bytes. */
const char *tensor_shape_text(const struct tensor *t, char text[96]);

#endif
