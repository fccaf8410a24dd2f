/* out = x w^T for up to MATVEC_MAX_M rows of x and MATVEC_ROWS rows of w. A lane owns an output, so that each is the
 * one chain of fused multiply-adds over ascending k that every other path computes; the rows are turned in registers
 * (columns.h), nothing is stored on the way.
 *
 * Limit: memory. Each row is a stream of its own, too short and too many of them for the processor to foresee, so lines
 * are asked for early; bench/bench_matvec.c measures the share of the read bandwidth. */
#include "kernel/x86/matvec.h"

#include "kernel/x86/columns.h"

#define VECTORS (MATVEC_ROWS / SIMD_LANES) /* at most in flight */
#define LINE_BYTES 64
#define AHEAD_BYTES 384
#define PASS_M 2 /* rows of x multiplied with a row of w while it is in registers */

struct rows {
    const char *p;
    size_t stride, row_bytes; /* in bytes: from row to row, and what of it is used */
    size_t n_rows, n_k;
};

static struct rows rows_of(const struct weight_rows *r)
{
    return (struct rows){.p = tensor_row(r->w, r->first),
                         .stride = dtype_bytes(r->w->dtype, r->w->stride[0]),
                         .row_bytes = dtype_bytes(r->w->dtype, r->w->shape[1]),
                         .n_rows = r->n,
                         .n_k = r->w->shape[1]};
}

/* Asks for the lines that the calls AHEAD_BYTES later will read, in these rows or at the start of the next. A line
 * serves four calls, so each call asks for a quarter of the rows. */
SIMD_INLINE void prefetch(const struct rows *w, const struct rows *next, const size_t vectors, size_t call, size_t at)
{
    const size_t quarter = vectors * SIMD_LANES / (LINE_BYTES / COLUMN_BYTES);
    at += AHEAD_BYTES;
    if (at >= w->row_bytes) {
        at -= w->row_bytes;
        w = next;
    }
    const char *row = w->p + call % 4 * quarter * w->stride + at;
    UNROLL for (size_t i = 0; i < quarter; i++) _mm_prefetch(row + i * w->stride, _MM_HINT_T0);
}

void SIMD_NAME(matvec_begin)(struct weight_rows r)
{
    struct rows rows = rows_of(&r);
    for (size_t at = 0; at < AHEAD_BYTES && at < rows.row_bytes; at += LINE_BYTES)
        for (size_t i = 0; i < rows.n_rows; i++)
            _mm_prefetch(rows.p + i * rows.stride + at, _MM_HINT_T0);
}

/* acc[i] += x_i[k + j] * column[j] for ascending j */
SIMD_INLINE void multiply(vf *acc, const vf *column, size_t k, size_t n_k, const float *const *x, const size_t m)
{
    for (size_t j = 0; j < n_k; j++)
        UNROLL for (size_t i = 0; i < m; i++) acc[i] = v_fma(v_set(x[i][k + j]), column[j], acc[i]);
}

/* One pass over as many rows as `vectors` hold. */
SIMD_INLINE void matvec_pass(enum dtype dtype, const size_t vectors, const struct rows *w, const float *const *x,
                             const size_t m, float *out, const struct rows *next)
{
    const size_t per_call = columns_per_call(dtype);
    vf acc[VECTORS][PASS_M], column[VECTORS][COLUMNS_MAX], scale[VECTORS];
    size_t k = 0;
    UNROLL for (size_t g = 0; g < vectors; g++)
    {
        scale[g] = v_zero();
        UNROLL for (size_t i = 0; i < m; i++) acc[g][i] = v_zero();
    }
    if (w->n_rows == vectors * SIMD_LANES)
        for (; k + per_call <= w->n_k; k += per_call) {
            prefetch(w, next, vectors, k / per_call, column_offset(dtype, k));
            UNROLL for (size_t g = 0; g < vectors; g++)
                columns(dtype, column[g], w->p + g * SIMD_LANES * w->stride, w->stride, k, &scale[g]);
            UNROLL for (size_t j = 0; j < per_call; j++) UNROLL for (size_t i = 0; i < m; i++)
            {
                vf xv = v_set(x[i][k + j]);
                UNROLL for (size_t g = 0; g < vectors; g++) acc[g][i] = v_fma(xv, column[g][j], acc[g][i]);
            }
        }
    for (; k < w->n_k; k += per_call) {
        size_t n_k = w->n_k - k < per_call ? w->n_k - k : per_call;
        for (size_t g = 0; g < vectors && g * SIMD_LANES < w->n_rows; g++) {
            size_t left = w->n_rows - g * SIMD_LANES, n_rows = left < SIMD_LANES ? left : SIMD_LANES;
            columns_edge(dtype, column[0], w->p + g * SIMD_LANES * w->stride, w->stride, k, n_rows, n_k, &scale[g]);
            multiply(acc[g], column[0], k, n_k, x, m);
        }
    }
    UNROLL for (size_t g = 0; g < vectors; g++) UNROLL for (size_t i = 0; i < m; i++)
        v_store(out + i * MATVEC_ROWS + g * SIMD_LANES, acc[g][i]);
}

static struct rows part_of(const struct rows *w, size_t first, size_t n)
{
    struct rows part = *w;
    part.p += first * w->stride;
    part.n_rows = w->n_rows - first < n ? w->n_rows - first : n;
    return part;
}

SIMD_INLINE void matvec_rows(enum dtype dtype, const size_t vectors, const struct rows *w, const float *const *x,
                             size_t m, float *out, const struct rows *next)
{
    const size_t n = vectors * SIMD_LANES;
    for (size_t first = 0; first < w->n_rows; first += n) {
        struct rows part = part_of(w, first, n), part_next = first + n < w->n_rows ? part_of(w, first + n, n) : *next;
        if (m == 1)
            matvec_pass(dtype, vectors, &part, x, 1, out + first, &part_next);
        else
            matvec_pass(dtype, vectors, &part, x, 2, out + first, &part_next);
    }
}

typedef void matvec_fn(const struct rows *w, const float *const *x, size_t m, float *out, const struct rows *next);

#define MATVEC_DTYPE(name, dtype, vectors)                                                                             \
    static void matvec_##name(const struct rows *w, const float *const *x, size_t m, float *out,                       \
                              const struct rows *next)                                                                 \
    {                                                                                                                  \
        matvec_rows(dtype, vectors, w, x, m, out, next);                                                               \
    }

/* Memory likes few streams: 16 rows. int8 takes more arithmetic a byte, which one chain of 16 lanes would stretch. */
#define STREAMED_VECTORS (16 / SIMD_LANES)

MATVEC_DTYPE(f32, DTYPE_F32, STREAMED_VECTORS)
MATVEC_DTYPE(f16, DTYPE_F16, STREAMED_VECTORS)
MATVEC_DTYPE(bf16, DTYPE_BF16, STREAMED_VECTORS)
MATVEC_DTYPE(q8_0, DTYPE_Q8_0, VECTORS)

void SIMD_NAME(matvec)(struct weight_rows r, const float *x, size_t x_stride, size_t m,
                       float out[MATVEC_MAX_M * MATVEC_ROWS], const struct weight_rows *next)
{
    static matvec_fn *const by_dtype[] = {
        [DTYPE_F32] = matvec_f32, [DTYPE_F16] = matvec_f16, [DTYPE_BF16] = matvec_bf16, [DTYPE_Q8_0] = matvec_q8_0};
    const struct rows rows = rows_of(&r), next_rows = next ? rows_of(next) : rows;
    for (size_t i = 0; i < m; i += PASS_M) { /* the second pass finds the rows in the cache */
        const float *pair[PASS_M] = {x + i * x_stride, x + (i + 1) * x_stride};
        by_dtype[r.w->dtype](&rows, pair, m - i < PASS_M ? m - i : PASS_M, out + i * MATVEC_ROWS, &next_rows);
    }
}
