/* What the wgmma attention kernels share: a warpgroup owns 64 queries of one head of 64 dims; keys and values are tiles
 * (tile_offset) of N keys. Queries, scores, weights and outputs stay in registers in the accumulator's layout, where a
 * thread has two rows, g and g + 8 of its warp's 16.
 *
 * Softmax without a maximum for each tile: the exponent of a row is taken relative to m, a past maximum of that
 * row; as long as a thread's sum over a tile stays below SUM_LIMIT, m stays (the weights are floats, a common
 * factor of up to 2^10 costs them no precision, and f16 holds them). When it does not, and in the first tile, where
 * m is -inf, the row takes its true maximum and what was summed is rescaled. This saves a comparison a score, the
 * shuffles and the rescaling of nearly all tiles. The rule looks at nothing but the row, so a result does not
 * depend on the rows beside it. */
#ifndef FATHOM_KERNEL_CUDA_ATTENTION_WGMMA_CUH
#define FATHOM_KERNEL_CUDA_ATTENTION_WGMMA_CUH

#include "kernel/cuda/wgmma.cuh"

static constexpr int HEAD_DIM = 64;

#ifdef FATHOM_HAS_WGMMA

static constexpr float SUM_LIMIT = 1024.0f;

/* Position in a ring of N slots that are filled and emptied in order. */
template <int N> struct ring_position {
    int slot = 0;
    uint32_t parity = 0;

    __device__ __forceinline__ void advance()
    {
        if (++slot == N) {
            slot = 0;
            parity ^= 1;
        }
    }
};

/* Rows g and g + 8 of a warp's queries as the a of four products; NULL: zeros. */
template <typename T>
__device__ __forceinline__ void load_queries(uint32_t (&q)[4][4], const T *row0, const T *row1, int lane)
{
    const int t = lane % 4;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        q[i][0] = row0 ? *reinterpret_cast<const uint32_t *>(row0 + i * 16 + t * 2) : 0;
        q[i][1] = row1 ? *reinterpret_cast<const uint32_t *>(row1 + i * 16 + t * 2) : 0;
        q[i][2] = row0 ? *reinterpret_cast<const uint32_t *>(row0 + i * 16 + 8 + t * 2) : 0;
        q[i][3] = row1 ? *reinterpret_cast<const uint32_t *>(row1 + i * 16 + 8 + t * 2) : 0;
    }
}

/* s = q · tile^T, issued and not waited for. */
template <typename T, int N>
__device__ __forceinline__ void issue_scores(float (&s)[N / 2], const uint32_t (&q)[4][4], uint32_t tile)
{
    const uint64_t b = wgmma_descriptor(tile);
#pragma unroll
    for (int i = 0; i < 4; i++)
        wgmma<T, N, B_ROWS_ARE_N>::multiply(s, q[i], b + i * (32 >> 4), i > 0);
}

/* o += p · tile, issued and not waited for. */
template <typename T, int N>
__device__ __forceinline__ void issue_values(float (&o)[32], const uint32_t (&p)[N / 4], uint32_t tile)
{
    const uint64_t b = wgmma_descriptor(tile);
#pragma unroll
    for (int i = 0; i < N / 16; i++)
        wgmma<T, 64, B_ROWS_ARE_K>::multiply(o, p + 4 * i, b + i * (2048 >> 4), 1);
}

struct softmax_state {
    float m[2] = {-INFINITY, -INFINITY}; /* of rows g and g + 8, times log2 e          */
    float l[2] = {0, 0};                 /* this thread's share of the sum of weights */
};

/* Weights p of a tile of R groups of P keys: 2^(s * scale + column[key of the group] + row_bias[group] - m); sums
 * is this thread's share of the rows' sums. COLUMNS false: no column term. */
template <typename T, int P, int R, bool COLUMNS>
__device__ __forceinline__ void exponentials(uint32_t (&p)[P * R / 4], float (&sums)[2], const float (&s)[P * R / 2],
                                             const float (&column)[COLUMNS ? P / 2 : 1], const float (&row_bias)[R][2],
                                             const float (&m)[2], float scale)
{
    float sum[4];
#pragma unroll
    for (int r = 0; r < R; r++) {
        const float base0 = row_bias[r][0] - m[0], base1 = row_bias[r][1] - m[1];
#pragma unroll
        for (int j = 0; j < P / 8; j++) {
            const int i = (r * (P / 8) + j) * 4;
            float x[4];
#pragma unroll
            for (int e = 0; e < 4; e++) {
                float base = e < 2 ? base0 : base1;
                x[e] = COLUMNS ? fmaf(s[i + e], scale, column[COLUMNS ? j * 4 + e : 0]) + base
                               : fmaf(s[i + e], scale, base);
                x[e] = exp2_fast(x[e]);
                sum[e] = r + j == 0 ? x[e] : sum[e] + x[e];
            }
            p[i / 2] = pack2<T>(x[0], x[1]);
            p[i / 2 + 1] = pack2<T>(x[2], x[3]);
        }
    }
    sums[0] = sum[0] + sum[1];
    sums[1] = sum[2] + sum[3];
}

/* One step of the online softmax over the scores s of a tile: weights into p, m and l brought up to date. True when
 * some row of the warp took a new maximum: the rows of o are then to be multiplied by alpha, as soon as no product
 * is adding to them. Products that touch other registers may be in flight. */
template <typename T, int P, int R, bool COLUMNS>
__device__ __forceinline__ bool softmax_tile(uint32_t (&p)[P * R / 4], struct softmax_state &state, float (&alpha)[2],
                                             const float (&s)[P * R / 2], const float (&column)[COLUMNS ? P / 2 : 1],
                                             const float (&row_bias)[R][2], float scale)
{
    float sums[2];
    exponentials<T, P, R, COLUMNS>(p, sums, s, column, row_bias, state.m, scale);
    const bool high[2] = {!(sums[0] <= SUM_LIMIT), !(sums[1] <= SUM_LIMIT)};
    const bool rescale = __any_sync(FULL_WARP, high[0] || high[1]);
    if (rescale) {
        float top[2] = {-INFINITY, -INFINITY};
#pragma unroll
        for (int r = 0; r < R; r++)
#pragma unroll
            for (int j = 0; j < P / 8; j++)
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    float x =
                        fmaf(s[(r * (P / 8) + j) * 4 + e], scale, COLUMNS ? column[COLUMNS ? j * 4 + e : 0] : 0.0f);
                    top[e / 2] = fmaxf(top[e / 2], x + row_bias[r][e / 2]);
                }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float next = fmaxf(state.m[h], quad_max(top[h]));
            if (quad_max(high[h] ? 1.0f : 0.0f) == 0.0f)
                next = state.m[h];
            alpha[h] = exp2_fast(state.m[h] - next);
            state.m[h] = next;
            state.l[h] *= alpha[h];
        }
        exponentials<T, P, R, COLUMNS>(p, sums, s, column, row_bias, state.m, scale);
    }
    state.l[0] += sums[0];
    state.l[1] += sums[1];
    return rescale;
}

__device__ __forceinline__ void rescale_outputs(float (&o)[32], const float (&alpha)[2])
{
#pragma unroll
    for (int i = 0; i < 32; i++)
        o[i] *= alpha[i % 4 / 2];
}

/* Divides o by the sums and writes a warp's 16 rows of 128 bytes; row(r) is where row r goes, NULL: nowhere.
 * staging: the warp's own, OUTPUT_STAGING_BYTES. */
static constexpr int OUTPUT_PITCH_BYTES = TILE_ROW_BYTES + 16; /* 8 rows in different banks */
static constexpr int OUTPUT_STAGING_BYTES = 16 * OUTPUT_PITCH_BYTES;
template <typename T, typename Row>
__device__ __forceinline__ void store_outputs(const float (&o)[32], const struct softmax_state &state, uint8_t *staging,
                                              int lane, Row row)
{
    const int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const float inverse = 1.0f / quad_sum(state.l[h]);
#pragma unroll
        for (int j = 0; j < 8; j++)
            *reinterpret_cast<uint32_t *>(staging + (g + h * 8) * OUTPUT_PITCH_BYTES + j * 16 + t * 4) =
                pack2<T>(o[j * 4 + h * 2] * inverse, o[j * 4 + h * 2 + 1] * inverse);
    }
    __syncwarp(); /* staging written by the warp -> read by other lanes */
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int r = i * 4 + lane / 8, chunk = lane % 8;
        T *to = row(r);
        if (to)
            *reinterpret_cast<uint4 *>(to + chunk * 8) =
                *reinterpret_cast<const uint4 *>(staging + r * OUTPUT_PITCH_BYTES + chunk * 16);
    }
}

#endif

#endif
