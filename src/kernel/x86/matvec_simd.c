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
    struct column_rows at;
    size_t row_bytes; /* that are used */
    size_t n_rows, n_k;
};

static inline struct column_rows rows_from(const struct column_rows *rows, size_t first)
{
    struct column_rows from = *rows;
    from.p += first * rows->stride;
    from.scale_row += first;
    return from;
}

static struct rows rows_of(const struct weight_rows *r)
{
    const struct tensor *w = r->w;
    return (struct rows){.at = column_rows(w, r->first),
                         .row_bytes = dtype_bytes(w->dtype, w->shape[1]),
                         .n_rows = r->n,
                         .n_k = w->shape[1]};
}

/* Asks for the lines that the calls AHEAD_BYTES later will read, in these rows or at the start of the next. A line
 * serves several calls, so each call asks for a part of the rows. */
SIMD_INLINE void prefetch(const struct rows *w, const struct rows *next, enum dtype dtype, const size_t vectors,
                          size_t call, size_t at)
{
    const size_t n_parts = LINE_BYTES / column_bytes(dtype), part = vectors * SIMD_LANES / n_parts;
    at += AHEAD_BYTES;
    if (at >= w->row_bytes) {
        at -= w->row_bytes;
        w = next;
    }
    const char *row = w->at.p + call % n_parts * part * w->at.stride + at;
    UNROLL for (size_t i = 0; i < part; i++) _mm_prefetch(row + i * w->at.stride, _MM_HINT_T0);
}

void SIMD_NAME(matvec_begin)(struct weight_rows r)
{
    struct rows rows = rows_of(&r);
    for (size_t at = 0; at < AHEAD_BYTES && at < rows.row_bytes; at += LINE_BYTES)
        for (size_t i = 0; i < rows.n_rows; i++)
            _mm_prefetch(rows.at.p + i * rows.at.stride + at, _MM_HINT_T0);
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
    vf acc[VECTORS][PASS_M], column[VECTORS][COLUMNS_MAX];
    struct column_state state[VECTORS];
    struct column_rows at[VECTORS];
    size_t k = 0;
    UNROLL for (size_t g = 0; g < vectors; g++)
    {
        state[g] = (struct column_state){.scale = v_zero()};
        at[g] = rows_from(&w->at, g * SIMD_LANES);
        UNROLL for (size_t i = 0; i < m; i++) acc[g][i] = v_zero();
    }
    if (w->n_rows == vectors * SIMD_LANES)
        for (; k + per_call <= w->n_k; k += per_call) {
            prefetch(w, next, dtype, vectors, k / per_call, column_offset(dtype, k));
            UNROLL for (size_t g = 0; g < vectors; g++) columns(dtype, column[g], &at[g], k, w->n_k - k, &state[g]);
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
            columns_edge(dtype, column[0], &at[g], k, n_rows, w->n_k - k, &state[g]);
            multiply(acc[g], column[0], k, n_k, x, m);
        }
    }
    UNROLL for (size_t g = 0; g < vectors; g++) UNROLL for (size_t i = 0; i < m; i++)
        v_store(out + i * MATVEC_ROWS + g * SIMD_LANES, acc[g][i]);
}

/* ---- FP8 and FP4 ----------------------------------------------------------------------------------------------- */

/* Multiplying every code by its scale would be an operation a weight. Scales are powers of two, so the sums can be kept in
 * units of the scale of the block in hand: fma(x, code, sum / scale) is fma(x, code * scale, sum) / scale to the last bit
 * as long as nothing overflows or becomes subnormal. That holds when scales are from 2^-24 to 1 and inputs 0 or from 2^-60
 * to 2^40 in magnitude: every product and sum is a multiple of 2^-83 (an input's last bit) * 2^-9 (a code's) * 2^-24 =
 * 2^-116, at least 2^-124 in units of 2^8, and at most 2^40 * 448 * n_k, 2^24 times that in units of 2^-24. Of other
 * numbers each weight is formed. */
#define LEAST_SCALE (127 - 24)
#define MOST_SCALE 127
#define LEAST_INPUT 0x1p-60f
#define MOST_INPUT 0x1p40f

struct matvec_input SIMD_NAME(matvec_input)(const float *x, size_t stride, size_t m, size_t n_k)
{
    struct matvec_input in = {.x = x, .stride = stride, .m = m, .n_k = n_k, .is_moderate = n_k <= 1 << 24};
    for (size_t i = 0; i < m; i++) {
        vf bad = v_zero(); /* not 0 in a lane that has seen one */
        for (size_t k = 0; k < n_k; k += SIMD_LANES) {
            vf v = v_abs(v_load_n(x + i * stride + k, n_k - k < SIMD_LANES ? n_k - k : SIMD_LANES));
            vf low = v_select(v_lt(v, v_set(LEAST_INPUT)), v, v_zero());
            bad = v_max(bad, v_max(low, v_select(v_lt(v, v_set(MOST_INPUT)), v_zero(), v_set(1.0f))));
        }
        float lanes[SIMD_LANES];
        v_store(lanes, bad);
        for (size_t j = 0; j < SIMD_LANES; j++)
            in.is_moderate &= lanes[j] == 0.0f;
    }
    return in;
}

static bool scales_are_moderate(enum dtype dtype, const struct rows *w)
{
    size_t scales[2], n_rows = w->n_rows, first = w->at.scale_row;
    scale_shape(dtype, 1, w->n_k, scales);
    if (dtype == DTYPE_F8_E4M3) {
        n_rows = (first + n_rows - 1) / F8_BLOCK + 1;
        first /= F8_BLOCK;
        n_rows -= first;
    }
    unsigned bad = 0;
    for (size_t i = 0; i < n_rows; i++) {
        const uint8_t *row = w->at.scales + (first + i) * w->at.scale_stride;
        for (size_t k = 0; k < scales[1]; k++)
            bad |= (uint8_t)(row[k] - LEAST_SCALE) > MOST_SCALE - LEAST_SCALE;
    }
    return !bad;
}

/* Units of the codes of column k's block. */
SIMD_INLINE vf code_unit(enum dtype dtype, const struct column_state *s)
{
    return s->scale * v_set(dtype == DTYPE_F8_E4M3 ? 256.0f : 1.0f);
}

/* Of powers of two. */
SIMD_INLINE vf quotient(vf a, vf b) { return v_from_bits(v_add_i(v_sub_i(v_bits(a), v_bits(b)), v_set_i(0x3f800000))); }

/* As matvec_pass, for moderate numbers, whole vectors of rows and whole calls. */
SIMD_INLINE void matvec_units(enum dtype dtype, const size_t vectors, const struct rows *w, const float *const *x,
                              const size_t m, float *out, const struct rows *next)
{
    const size_t per_call = columns_per_call(dtype), block = dtype == DTYPE_F8_E4M3 ? F8_BLOCK : F4_BLOCK;
    vf acc[VECTORS][PASS_M], unit[VECTORS], code[COLUMNS_MAX];
    struct column_state state[VECTORS];
    struct column_rows at[VECTORS];
    UNROLL for (size_t g = 0; g < vectors; g++)
    {
        state[g] = (struct column_state){.scale = v_zero()};
        at[g] = rows_from(&w->at, g * SIMD_LANES);
        unit[g] = v_set(1.0f);
        UNROLL for (size_t i = 0; i < m; i++) acc[g][i] = v_zero();
    }
    for (size_t k = 0; k < w->n_k; k += per_call) {
        prefetch(w, next, dtype, vectors, k / per_call, column_offset(dtype, k));
        UNROLL for (size_t g = 0; g < vectors; g++)
        {
            if (k % block == 0) {
                column_scales(dtype, &at[g], SIMD_LANES, k, w->n_k - k, &state[g]);
                vf new_unit = code_unit(dtype, &state[g]);
                UNROLL for (size_t i = 0; i < m; i++) acc[g][i] = acc[g][i] * quotient(unit[g], new_unit);
                unit[g] = new_unit;
            }
            const char *p = at[g].p + column_offset(dtype, k);
            if (dtype == DTYPE_F8_E4M3)
                codes_f8(code, p, at[g].stride);
            else
                codes_f4(code, p, at[g].stride, k, &state[g]);
            UNROLL for (size_t j = 0; j < per_call; j++) UNROLL for (size_t i = 0; i < m; i++) acc[g][i] =
                v_fma(v_set(x[i][k + j]), code[j], acc[g][i]);
        }
    }
    UNROLL for (size_t g = 0; g < vectors; g++) UNROLL for (size_t i = 0; i < m; i++)
        v_store(out + i * MATVEC_ROWS + g * SIMD_LANES, acc[g][i] * unit[g]);
}

/* ---- any dtype ------------------------------------------------------------------------------------------------- */

static struct rows part_of(const struct rows *w, size_t first, size_t n)
{
    struct rows part = *w;
    part.at = rows_from(&w->at, first);
    part.n_rows = w->n_rows - first < n ? w->n_rows - first : n;
    return part;
}

SIMD_INLINE void matvec_rows(enum dtype dtype, const size_t vectors, const struct rows *w, const float *const *x,
                             size_t m, bool is_moderate, float *out, const struct rows *next)
{
    const size_t n = vectors * SIMD_LANES;
    const bool has_units = dtype == DTYPE_F8_E4M3 || dtype == DTYPE_F4_E2M1;
    for (size_t first = 0; first < w->n_rows; first += n) {
        struct rows part = part_of(w, first, n), part_next = first + n < w->n_rows ? part_of(w, first + n, n) : *next;
        if (has_units && is_moderate && part.n_rows == n && part.n_k % columns_per_call(dtype) == 0 &&
            scales_are_moderate(dtype, &part)) {
            if (m == 1)
                matvec_units(dtype, vectors, &part, x, 1, out + first, &part_next);
            else
                matvec_units(dtype, vectors, &part, x, 2, out + first, &part_next);
        } else if (m == 1)
            matvec_pass(dtype, vectors, &part, x, 1, out + first, &part_next);
        else
            matvec_pass(dtype, vectors, &part, x, 2, out + first, &part_next);
    }
}

typedef void matvec_fn(const struct rows *w, const float *const *x, size_t m, bool is_moderate, float *out,
                       const struct rows *next);

#define MATVEC_DTYPE(name, dtype, vectors)                                                                             \
    static void matvec_##name(const struct rows *w, const float *const *x, size_t m, bool is_moderate, float *out,     \
                              const struct rows *next)                                                                 \
    {                                                                                                                  \
        matvec_rows(dtype, vectors, w, x, m, is_moderate, out, next);                                                  \
    }

/* Memory likes few streams: 16 rows. Eight bits and less take more arithmetic a byte, which one chain of 16 lanes would stretch. */
#define STREAMED_VECTORS (16 / SIMD_LANES)

MATVEC_DTYPE(f32, DTYPE_F32, STREAMED_VECTORS)
MATVEC_DTYPE(f16, DTYPE_F16, STREAMED_VECTORS)
MATVEC_DTYPE(bf16, DTYPE_BF16, STREAMED_VECTORS)
MATVEC_DTYPE(q8_0, DTYPE_Q8_0, VECTORS)
MATVEC_DTYPE(f8, DTYPE_F8_E4M3, VECTORS)
MATVEC_DTYPE(f4, DTYPE_F4_E2M1, VECTORS)

void SIMD_NAME(matvec)(struct weight_rows r, const struct matvec_input *in, float out[MATVEC_MAX_M * MATVEC_ROWS],
                       const struct weight_rows *next)
{
    static matvec_fn *const by_dtype[] = {
        [DTYPE_F32] = matvec_f32,   [DTYPE_F16] = matvec_f16,    [DTYPE_BF16] = matvec_bf16,
        [DTYPE_Q8_0] = matvec_q8_0, [DTYPE_F8_E4M3] = matvec_f8, [DTYPE_F4_E2M1] = matvec_f4};
    const struct rows rows = rows_of(&r), next_rows = next ? rows_of(next) : rows;
    for (size_t i = 0; i < in->m; i += PASS_M) { /* the second pass finds the rows in the cache */
        const float *pair[PASS_M] = {in->x + i * in->stride, in->x + (i + 1) * in->stride};
        size_t m = in->m - i < PASS_M ? in->m - i : PASS_M;
        by_dtype[r.w->dtype](&rows, pair, m, in->is_moderate, out + i * MATVEC_ROWS, &next_rows);
    }
}
