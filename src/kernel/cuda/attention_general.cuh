/* Attention by mma.sync for any device of compute capability 8.0 or later: the plain path.
 *
 * A warp owns 16 queries of one head, a block N_WARPS warps; keys and values pass through shared memory in tiles of
 * N_TILE, shared by the block. Head dims up to DIM are padded with zeros. What the keys are and how a score is
 * biased is the Problem's, a struct with these device functions, all seen from one block:
 *     const T *query(int row), T *output(int row)    row 0 .. 16 N_WARPS - 1 of the block; NULL: no such row
 *     int n_tiles()
 *     bool key(int tile, int i, const T *&k, const T *&v)      false: no such key
 *     void prepare(float *scratch, const T *q, int row)   fills a warp's scratch from its 16 queries q[16][DIM + PAD],
 *                                                              the first of which is `row` of the block
 *     float bias(const float *scratch, int tile, int i, int row)  of query `row` of a warp, times log2 e; -inf: hidden
 * The softmax runs over tiles in order with the running maximum of each row. */
#ifndef FATHOM_KERNEL_CUDA_ATTENTION_GENERAL_CUH
#define FATHOM_KERNEL_CUDA_ATTENTION_GENERAL_CUH

#include "kernel/cuda/common.cuh"

namespace general
{

/* One access of 16 bytes more a row, so that the 8 rows of an ldmatrix fall into different banks. */
static constexpr int PAD = 8;

template <typename T, int DIM, int N_TILE, int N_WARPS> struct shared {
    T k[N_TILE][DIM + PAD];
    T v[N_TILE][DIM + PAD];
    T q[N_WARPS][16][DIM + PAD];
};

/* n_rows rows of DIM elements: the first d from row(r, chunk), zeros behind and where row is NULL. */
template <typename T, int DIM, typename Row>
__device__ __forceinline__ void load_rows(T (*to)[DIM + PAD], int n_rows, int d, int thread, int n_threads, Row row)
{
    for (int i = thread; i < n_rows * (DIM / 8); i += n_threads) {
        int r = i / (DIM / 8), c = i % (DIM / 8);
        const T *from = row(r);
        uint4 x = make_uint4(0, 0, 0, 0);
        if (from && c * 8 < d)
            x = *reinterpret_cast<const uint4 *>(from + c * 8);
        *reinterpret_cast<uint4 *>(&to[r][c * 8]) = x;
    }
}

template <typename T, int DIM, int N_TILE, int N_WARPS, typename Problem>
__global__ __launch_bounds__(N_WARPS * 32) void attention(Problem problem, int d, float scale_log2, int warp_floats)
{
    DYNAMIC_SHARED(uint8_t, memory);
    auto &sm = *reinterpret_cast<shared<T, DIM, N_TILE, N_WARPS> *>(memory);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    float *scratch = reinterpret_cast<float *>(memory + sizeof sm) + warp * warp_floats;
    problem.start();

    load_rows<T, DIM>(sm.q[warp], 16, d, lane, 32, [&](int r) { return problem.query(warp * 16 + r); });
    __syncwarp(); /* q written by the warp -> read by all its lanes */
    problem.prepare(scratch, &sm.q[warp][0][0], warp * 16);
    uint32_t q[DIM / 16][4];
#pragma unroll
    for (int i = 0; i < DIM / 16; i++)
        load_matrix4(q[i], shared_address(&sm.q[warp][lane % 16][i * 16 + lane / 16 * 8]));
    __syncwarp(); /* scratch written by the warp -> read in the loop */

    float o[DIM / 8][4] = {}, m[2] = {-INFINITY, -INFINITY}, l[2] = {0, 0};
    const int n_tiles = problem.n_tiles();
    for (int tile = 0; tile < n_tiles; tile++) {
        __syncthreads(); /* the last tile read by all warps -> overwritten */
        load_rows<T, DIM>(sm.k, N_TILE, d, threadIdx.x, N_WARPS * 32, [&](int r) {
            const T *k = nullptr, *v = nullptr;
            return problem.key(tile, r, k, v) ? k : nullptr;
        });
        load_rows<T, DIM>(sm.v, N_TILE, d, threadIdx.x, N_WARPS * 32, [&](int r) {
            const T *k = nullptr, *v = nullptr;
            return problem.key(tile, r, k, v) ? v : nullptr;
        });
        __syncthreads(); /* this tile written -> read by all warps */

        float s[N_TILE / 8][4] = {};
#pragma unroll
        for (int j = 0; j < N_TILE / 16; j++)
#pragma unroll
            for (int i = 0; i < DIM / 16; i++) {
                uint32_t b[4]; /* keys 16 j .. + 7 and + 8 .. 15, both halves of 16 dims */
                load_matrix4(b, shared_address(&sm.k[j * 16 + lane / 16 * 8 + lane % 8][i * 16 + lane / 8 % 2 * 8]));
                mma_16x8x16<T>(s[2 * j], q[i], b[0], b[1]);
                mma_16x8x16<T>(s[2 * j + 1], q[i], b[2], b[3]);
            }

        float top[2] = {-INFINITY, -INFINITY};
#pragma unroll
        for (int j = 0; j < N_TILE / 8; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                float bias = problem.bias(scratch, tile, j * 8 + t * 2 + e % 2, g + e / 2 * 8);
                s[j][e] = fmaf(s[j][e], scale_log2, bias);
                top[e / 2] = fmaxf(top[e / 2], s[j][e]);
            }
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float next = fmaxf(m[r], quad_max(top[r]));
            if (next == -INFINITY)
                next = 0; /* nothing seen yet: every weight is 2^-inf */
            float alpha = exp2_fast(m[r] - next);
            m[r] = next;
            l[r] *= alpha;
#pragma unroll
            for (int j = 0; j < DIM / 8; j++) {
                o[j][2 * r] *= alpha;
                o[j][2 * r + 1] *= alpha;
            }
        }
#pragma unroll
        for (int j = 0; j < N_TILE / 16; j++) {
            uint32_t p[4];
#pragma unroll
            for (int h = 0; h < 2; h++) {
                float(&x)[4] = s[2 * j + h];
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    x[e] = exp2_fast(x[e] - m[e / 2]);
                    l[e / 2] += x[e];
                }
                p[2 * h] = pack2<T>(x[0], x[1]);
                p[2 * h + 1] = pack2<T>(x[2], x[3]);
            }
#pragma unroll
            for (int i = 0; i < DIM / 16; i++) {
                uint32_t b[4]; /* keys 16 j .. + 15 of dims 16 i .. + 7 and + 8 .. 15 */
                load_matrix4_transposed(b, shared_address(&sm.v[j * 16 + lane % 16][i * 16 + lane / 16 * 8]));
                mma_16x8x16<T>(o[2 * i], p, b[0], b[1]);
                mma_16x8x16<T>(o[2 * i + 1], p, b[2], b[3]);
            }
        }
    }

#pragma unroll
    for (int r = 0; r < 2; r++) {
        float inverse = 1.0f / quad_sum(l[r]);
        T *y = problem.output(warp * 16 + g + r * 8);
        if (!y)
            continue;
#pragma unroll
        for (int j = 0; j < DIM / 8; j++)
            if (j * 8 < d)
                *reinterpret_cast<uint32_t *>(y + j * 8 + t * 2) =
                    pack2<T>(o[j][2 * r] * inverse, o[j][2 * r + 1] * inverse);
    }
}

/* Launches with four warps a block, or with fewer where the scratch of four does not fit. d <= 128. */
template <typename T, int DIM, int N_TILE, int N_WARPS, typename Problem>
cudaError_t launch_with(const Problem &problem, int n_rows, size_t n_groups, int d, float scale_log2, int warp_floats,
                        cudaStream_t stream)
{
    size_t bytes = sizeof(shared<T, DIM, N_TILE, N_WARPS>) + sizeof(float) * N_WARPS * (size_t)warp_floats;
    auto kernel = attention<T, DIM, N_TILE, N_WARPS, Problem>;
    cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (error)
        return error;
    Problem p = problem;
    p.n_blocks = (n_rows + N_WARPS * 16 - 1) / (N_WARPS * 16);
    p.block_rows = N_WARPS * 16;
    size_t n_blocks = n_groups * (size_t)p.n_blocks;
    if (n_blocks > 0x7fffffff)
        return cudaErrorInvalidConfiguration;
    launch_on(kernel, (unsigned)n_blocks, N_WARPS * 32, bytes, stream)(p, d, scale_log2, warp_floats);
    return cudaGetLastError();
}

template <typename T, int DIM, int N_TILE, typename Problem>
cudaError_t launch(const Problem &problem, int n_rows, size_t n_groups, int d, float scale_log2, int warp_floats,
                   size_t block_shared_bytes, cudaStream_t stream)
{
    size_t scratch = sizeof(float) * (size_t)warp_floats;
    if (sizeof(shared<T, DIM, N_TILE, 4>) + 4 * scratch <= block_shared_bytes)
        return launch_with<T, DIM, N_TILE, 4>(problem, n_rows, n_groups, d, scale_log2, warp_floats, stream);
    if (sizeof(shared<T, DIM, N_TILE, 1>) + scratch <= block_shared_bytes)
        return launch_with<T, DIM, N_TILE, 1>(problem, n_rows, n_groups, d, scale_log2, warp_floats, stream);
    return cudaErrorInvalidConfiguration;
}

} // namespace general

#endif
