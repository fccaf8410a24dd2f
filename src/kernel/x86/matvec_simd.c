/* out = x w^T for up to MATVEC_MAX_M rows of x and MATVEC_ROWS rows of w. A lane owns an output, so that each is the
 * one chain of fused multiply-adds over ascending k that every other path computes; the rows are turned in registers
 * (columns.h), nothing is stored on the way. Two vectors of outputs are in flight to hide the latency of the chain.
 *
 * Limit: memory. While these rows are read, the lines of the rows that follow are asked for; bench/bench_matvec.c
 * measures the share of the read bandwidth. */
#include "kernel/x86/matvec.h"

#include "kernel/x86/columns.h"

#define VECTORS (MATVEC_ROWS / SIMD_LANES)
#define LINE_BYTES 64

/* Asks for the lines that hold the columns at byte `at` of the rows that come next: a line serves four calls, so each
 * call asks for a quarter of the rows. */
SIMD_INLINE void prefetch_rows(const char *next, size_t stride, size_t at)
{
    const size_t quarter = MATVEC_ROWS / (LINE_BYTES / COLUMN_BYTES);
    const char *row = next + at / COLUMN_BYTES % 4 * quarter * stride + at / LINE_BYTES * LINE_BYTES;
    UNROLL for (size_t i = 0; i < quarter; i++) _mm_prefetch(row + i * stride, _MM_HINT_T1);
}

SIMD_INLINE void multiply(vf acc[MATVEC_MAX_M], const vf *column, size_t n_k, const float *x, size_t x_stride,
                          const size_t m)
{
    for (size_t j = 0; j < n_k; j++)
        UNROLL for (size_t i = 0; i < m; i++) acc[i] = v_fma(v_set(x[i * x_stride + j]), column[j], acc[i]);
}

SIMD_INLINE void matvec_m(enum dtype dtype, const char *p, size_t stride, size_t n_rows, size_t n_k, const float *x,
                          size_t x_stride, const size_t m, float *out, const char *next)
{
    const size_t per_call = columns_per_call(dtype);
    vf acc[VECTORS][MATVEC_MAX_M], column[VECTORS][COLUMNS_MAX], scale[VECTORS];
    size_t k = 0;
    UNROLL for (size_t g = 0; g < VECTORS; g++)
    {
        scale[g] = v_zero();
        UNROLL for (size_t i = 0; i < m; i++) acc[g][i] = v_zero();
    }
    if (n_rows == MATVEC_ROWS)
        for (; k + per_call <= n_k; k += per_call) {
            if (next)
                prefetch_rows(next, stride, column_offset(dtype, k));
            UNROLL for (size_t g = 0; g < VECTORS; g++)
                columns(dtype, column[g], p + g * SIMD_LANES * stride, stride, k, &scale[g]);
            UNROLL for (size_t j = 0; j < per_call; j++) UNROLL for (size_t i = 0; i < m; i++)
            {
                vf xv = v_set(x[i * x_stride + k + j]);
                UNROLL for (size_t g = 0; g < VECTORS; g++) acc[g][i] = v_fma(xv, column[g][j], acc[g][i]);
            }
        }
    for (; k < n_k; k += per_call) {
        size_t n = n_k - k < per_call ? n_k - k : per_call;
        for (size_t g = 0; g < VECTORS && g * SIMD_LANES < n_rows; g++) {
            size_t rows = n_rows - g * SIMD_LANES < SIMD_LANES ? n_rows - g * SIMD_LANES : SIMD_LANES;
            columns_edge(dtype, column[0], p + g * SIMD_LANES * stride, stride, k, rows, n, &scale[g]);
            multiply(acc[g], column[0], n, x + k, x_stride, m);
        }
    }
    UNROLL for (size_t g = 0; g < VECTORS; g++) UNROLL for (size_t i = 0; i < m; i++)
        v_store(out + i * MATVEC_ROWS + g * SIMD_LANES, acc[g][i]);
}

SIMD_INLINE void matvec_dtype(enum dtype dtype, const char *p, size_t stride, size_t n_rows, size_t n_k, const float *x,
                              size_t x_stride, size_t m, float *out, const char *next)
{
    switch (m) {
    case 1: matvec_m(dtype, p, stride, n_rows, n_k, x, x_stride, 1, out, next); break;
    case 2: matvec_m(dtype, p, stride, n_rows, n_k, x, x_stride, 2, out, next); break;
    case 3: matvec_m(dtype, p, stride, n_rows, n_k, x, x_stride, 3, out, next); break;
    default: matvec_m(dtype, p, stride, n_rows, n_k, x, x_stride, 4, out, next);
    }
}

void SIMD_NAME(matvec)(const struct tensor *w, size_t first, size_t n_rows, const float *x, size_t x_stride, size_t m,
                       float out[MATVEC_MAX_M * MATVEC_ROWS], const void *next)
{
    const char *p = tensor_row(w, first);
    size_t stride = dtype_bytes(w->dtype, w->stride[0]), n_k = w->shape[1];
    switch (w->dtype) {
    case DTYPE_F32: matvec_dtype(DTYPE_F32, p, stride, n_rows, n_k, x, x_stride, m, out, next); break;
    case DTYPE_BF16: matvec_dtype(DTYPE_BF16, p, stride, n_rows, n_k, x, x_stride, m, out, next); break;
    case DTYPE_F16: matvec_dtype(DTYPE_F16, p, stride, n_rows, n_k, x, x_stride, m, out, next); break;
    default: matvec_dtype(DTYPE_Q8_0, p, stride, n_rows, n_k, x, x_stride, m, out, next);
    }
}
