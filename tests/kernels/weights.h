/* For tests of operations: weight matrices of every dtype. */
#ifndef TESTS_KERNELS_WEIGHTS_H
#define TESTS_KERNELS_WEIGHTS_H

#include "kernels/kernel_run.h"

#include <math.h>

static const enum dtype weight_dtypes[] = {DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_Q8_0, DTYPE_F8_E4M3, DTYPE_F4_E2M1};
#define N_WEIGHT_DTYPES (sizeof weight_dtypes / sizeof *weight_dtypes)
#define N_UNSCALED_DTYPES 4 /* of them, at the front: those that conv2d and embed take */

struct weight {
    struct tensor t;
    char *block;
    uint8_t *scales; /* of FP8 and FP4 */
};

/* A width near cols that the dtype can have. */
static inline size_t weight_cols(enum dtype dtype, size_t cols)
{
    return dtype == DTYPE_Q8_0 || dtype == DTYPE_F4_E2M1 ? (cols % 160 / 32 + 1) * 32 : cols;
}

static inline void weight_set(const struct weight *w, size_t row, size_t col, float value)
{
    char *p = tensor_row(&w->t, row);
    uint16_t h = w->t.dtype == DTYPE_BF16 ? bf16_from_f32(value) : f16_from_f32(value);
    switch (w->t.dtype) {
    case DTYPE_F32: memcpy(p + 4 * col, &value, 4); break;
    case DTYPE_F8_E4M3: p[col] = (char)(uint8_t)(int)((value + 1.0f) * 127.9f); break;
    case DTYPE_F4_E2M1: {
        unsigned code = (unsigned)((value + 1.0f) * 7.99f), shift = 4 * (col % 2);
        p[col / 2] = (char)(((unsigned)(unsigned char)p[col / 2] & 0xf0u >> shift) | code << shift);
        break;
    }
    case DTYPE_Q8_0: p[col / Q8_0_BLOCK * Q8_0_BLOCK_BYTES + 2 + col % Q8_0_BLOCK] = (char)(int)(value * 127.0f); break;
    default: memcpy(p + 2 * col, &h, 2);
    }
}

/* Random rows with `gap` unused elements between them. The block ends with the last row and its start has no more
 * alignment than a mapped file promises, so that a sanitizer sees what reads beyond. */
static inline struct weight weight_random(enum dtype dtype, size_t rows, size_t cols, size_t gap, uint64_t seed)
{
    struct weight w = {.t = tensor_2d(dtype, NULL, rows, cols)};
    size_t shift = dtype == DTYPE_F32 ? 4 : 2, n;
    w.t.stride[0] = cols + gap;
    n = dtype_bytes(dtype, (rows - 1) * w.t.stride[0]) + dtype_bytes(dtype, cols);
    w.block = malloc(shift + n);
    assert_non_null(w.block);
    memset(w.block, 0x7e, shift + n);
    w.t.data = w.block + shift;
    if (dtype == DTYPE_F8_E4M3 || dtype == DTYPE_F4_E2M1) { /* the matrix begins inside a row of 128 x 128 blocks */
        size_t shape[2], n_scales;
        w.t.scale_row = seed % 3 * 117;
        scale_shape(dtype, rows + w.t.scale_row, cols, shape);
        w.t.scale_stride = shape[1] + seed % 2 * 3;
        n_scales = (shape[0] - 1) * w.t.scale_stride + shape[1];
        w.t.scales = w.scales = malloc(n_scales);
        assert_non_null(w.scales);
        for (size_t i = 0; i < n_scales; i++)
            w.scales[i] = (uint8_t)(120.0f + 4.0f * random_f32(&seed));
    }
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++) {
            if (dtype == DTYPE_Q8_0 && c % Q8_0_BLOCK == 0) {
                uint16_t scale = f16_from_f32(random_f32(&seed) / 64.0f);
                memcpy((char *)tensor_row(&w.t, r) + dtype_bytes(dtype, c), &scale, sizeof scale);
            }
            weight_set(&w, r, c, random_f32(&seed));
        }
    return w;
}

static inline void weight_free(struct weight *w)
{
    free(w->block);
    free(w->scales);
}

/* Numbers at which arithmetic is hard; the last three are not finite. */
static const float hard_values[] = {0.0f,    -0.0f,  1e-45f,   -1e-45f, 1.1754944e-38f, -3e-39f,   1e-20f, -1e20f,
                                    3.4e38f, -3e38f, 65504.0f, -6e-8f,  INFINITY,       -INFINITY, NAN};
#define N_HARD_VALUES (sizeof hard_values / sizeof *hard_values)
#define N_HARD_FINITE (N_HARD_VALUES - 3)

/* Scatters hard values over a matrix, about one in `every`. */
static inline void matrix_harden(const struct matrix *m, size_t every, size_t n_values, uint64_t seed)
{
    for (size_t r = 0; r < m->t.shape[0]; r++)
        for (size_t c = 0; c < m->t.shape[1]; c++)
            if ((uint64_t)((random_f32(&seed) + 1.0f) * 1e6f) % every == 0)
                *matrix_at(m, r, c) = hard_values[(size_t)((random_f32(&seed) + 1.0f) * 1e6f) % n_values];
}

/* Of blocks it is the scales that become hard, those of FP8 and FP4 all at once. */
static inline void weight_harden(const struct weight *w, size_t every, size_t n_values, uint64_t seed)
{
    static const uint16_t scales[] = {0, 0x8000, 0x0001, 0x83ff, 0x7bff, 0xfbff, 0xbc00, 0x7c00, 0xfc00, 0x7e00};
    static const uint8_t powers[] = {0, 1, 2, 100, 119, 120, 127, 200, 245, 254, 255};
    size_t n_scales = n_values == N_HARD_VALUES ? 10 : 7, width = w->t.dtype == DTYPE_Q8_0 ? Q8_0_BLOCK : 1;
    if (w->scales) {
        size_t shape[2];
        scale_shape(w->t.dtype, w->t.shape[0] + w->t.scale_row, w->t.shape[1], shape);
        for (size_t r = 0; r < shape[0]; r++)
            for (size_t c = 0; c < shape[1]; c++)
                w->scales[r * w->t.scale_stride + c] =
                    powers[(size_t)((random_f32(&seed) + 1.0f) * 1e6f) % (n_values == N_HARD_VALUES ? 11 : 7)];
        return;
    }
    for (size_t r = 0; r < w->t.shape[0]; r++)
        for (size_t c = 0; c < w->t.shape[1]; c += width) {
            size_t pick = (size_t)((random_f32(&seed) + 1.0f) * 1e6f);
            if ((uint64_t)((random_f32(&seed) + 1.0f) * 1e6f) % every != 0)
                continue;
            if (w->t.dtype == DTYPE_Q8_0)
                memcpy((char *)tensor_row(&w->t, r) + dtype_bytes(DTYPE_Q8_0, c), &scales[pick % n_scales], 2);
            else
                weight_set(w, r, c, hard_values[pick % n_values]);
        }
}

#endif
