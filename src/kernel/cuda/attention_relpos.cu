/* Attention with decomposed relative positions over a grid of tokens, or over its windows: for query (qy, qx) and key
 * (ky, kx) of a key grid of kh x kw
 *     s = q·k / sqrt d + q·rel_h[qy - ky + kh - 1] + q·rel_w[qx - kx + kw - 1],   y = softmax(s) v.
 * y [n, C], qkv [n, 3C] packed (q, k, v of head i are columns i d of their thirds), pad [3C], rel_h [2 kh - 1, d],
 * rel_w [2 kw - 1, d]: all bf16 or all f16, 16-byte aligned; n = n_views * gh * gw. Sums, factors and softmax in
 * f32; the weights are rounded to the input type for the product with v.
 *
 * A group of keys is a row of the key grid, padded to P columns. Then q·rel_h is one number for a query and a
 * group, and q·rel_w is the same for every group: it stays in registers, in the accumulator's layout, and the bias
 * costs one addition a score. Both are formed by multiplying q with the tables as if they were tiles of keys and
 * picking 2 kh - 1 -> kh of the columns by way of shared memory.
 *
 *   grid_kernel    whole map, d = 64, wgmma. A block has two or three warpgroups of 64 queries and one thread that has
 *                  the copy engine fill a ring of tiles: the tables, then keys and values. At most one block for each
 *                  multiprocessor; it takes several pieces of work, the next one's tiles arrive during the last.
 *   window_kernel  windows of at most 16 x 16, d = 64, wgmma. A block has two warpgroups; all keys and values of a
 *                  window are in shared memory at once. Padding is taken from `pad` on the way there, never written.
 *   general        anything else, any device (attention_general.cuh).
 *
 * Limits, H200: grid 64 x 64 needs 4 N^2 d flop a head, 52 GFLOP for 12 heads, 52 us at the tensor cores' peak and
 * the same for its exponentials at 16 a clock; windows move qkv and y once. Measured shares: bench/RESULTS.md.
 * Against float64 the relative distance is 2e-3 in bf16: rounding the weights and y. */
#include "kernel/cuda/attention_check.h"
#include "kernel/cuda/attention_general.cuh"
#include "kernel/cuda/attention_wgmma.cuh"

namespace
{

struct relpos_arguments {
    const void *qkv, *pad, *rel_h, *rel_w;
    void *y;
    int n_heads, d;
    int gh, gw;     /* the map                                     */
    int kh, kw;     /* the key grid                                */
    int n_wy, n_wx; /* windows down and across a view; 1, 1: none  */
    float scale;    /* log2 e / sqrt d                             */
};

/* One head of one window (or of one view's whole map). */
struct relpos_place {
    int view, y0, x0, head; /* y0, x0: the window's origin in the map */
    int vh, vw;             /* its part inside of the map             */
};

__device__ __forceinline__ relpos_place place_of(const relpos_arguments &a, unsigned group)
{
    relpos_place p;
    p.head = group % a.n_heads;
    unsigned window = group / a.n_heads;
    p.x0 = window % a.n_wx * a.kw;
    p.y0 = window / a.n_wx % a.n_wy * a.kh;
    p.view = window / (a.n_wx * a.n_wy);
    p.vh = min(a.kh, a.gh - p.y0);
    p.vw = min(a.kw, a.gw - p.x0);
    return p;
}

/* Row of qkv and of y that holds (y, x) of the window. */
__device__ __forceinline__ size_t token_of(const relpos_arguments &a, const relpos_place &p, int y, int x)
{
    return ((size_t)p.view * a.gh + p.y0 + y) * a.gw + p.x0 + x;
}

/* q (0), k (1) or v (2) at (y, x) of the window; padding outside of the map. */
template <typename T>
__device__ __forceinline__ const T *token_data(const relpos_arguments &a, const relpos_place &p, int part, int y, int x)
{
    size_t column = (size_t)(part * a.n_heads + p.head) * a.d;
    if (y >= p.vh || x >= p.vw)
        return (const T *)a.pad + column;
    return (const T *)a.qkv + token_of(a, p, y, x) * (3 * (size_t)a.n_heads * a.d) + column;
}

template <typename T>
__device__ __forceinline__ T *token_output(const relpos_arguments &a, const relpos_place &p, int y, int x)
{
    return (T *)a.y + (token_of(a, p, y, x) * a.n_heads + p.head) * a.d;
}

/* ---- general -------------------------------------------------------------------------------------------------- */

template <typename T, int DIM, int N_TILE> struct relpos_problem {
    relpos_arguments a;
    int n_blocks, block_rows; /* set by the launch */
    /* Of this block: */
    relpos_place place;
    int first; /* its first query among those inside of the map */
    int row_tiles;

    __device__ __forceinline__ void start()
    {
        place = place_of(a, blockIdx.x / n_blocks);
        first = blockIdx.x % n_blocks * block_rows;
        row_tiles = (a.kw + N_TILE - 1) / N_TILE;
    }
    __device__ __forceinline__ const T *query(int row) const
    {
        int i = first + row;
        return i < place.vh * place.vw ? token_data<T>(a, place, 0, i / place.vw, i % place.vw) : nullptr;
    }
    __device__ __forceinline__ T *output(int row) const
    {
        int i = first + row;
        return i < place.vh * place.vw ? token_output<T>(a, place, i / place.vw, i % place.vw) : nullptr;
    }
    __device__ __forceinline__ int n_tiles() const { return first < place.vh * place.vw ? a.kh * row_tiles : 0; }
    __device__ __forceinline__ bool key(int tile, int i, const T *&k, const T *&v) const
    {
        int ky = tile / row_tiles, kx = tile % row_tiles * N_TILE + i;
        if (kx >= a.kw)
            return false;
        k = token_data<T>(a, place, 1, ky, kx);
        v = token_data<T>(a, place, 2, ky, kx);
        return true;
    }
    /* scratch: [16][kh] of q·rel_h, then [16][kw] of q·rel_w, times log2 e */
    __device__ __forceinline__ void prepare(float *scratch, const T *q, int row)
    {
        for (int i = threadIdx.x % 32; i < 16 * (a.kh + a.kw); i += 32) {
            bool h = i < 16 * a.kh;
            int side = h ? a.kh : a.kw, at = h ? i : i - 16 * a.kh, query = first + row + at / side;
            int position = h ? query / place.vw : query % place.vw, entry = position - at % side + side - 1;
            float sum = 0;
            if (query < place.vh * place.vw) {
                const T *x = q + at / side * (DIM + general::PAD);
                const T *table = (const T *)(h ? a.rel_h : a.rel_w) + (size_t)entry * a.d;
                for (int c = 0; c < a.d; c += 2) {
                    float2 u = unpack2<T>(*(const uint32_t *)(x + c)), w = unpack2<T>(*(const uint32_t *)(table + c));
                    sum = fmaf(u.y, w.y, fmaf(u.x, w.x, sum));
                }
            }
            scratch[i] = sum * LOG2_E;
        }
    }
    __device__ __forceinline__ float bias(const float *scratch, int tile, int i, int row) const
    {
        int ky = tile / row_tiles, kx = tile % row_tiles * N_TILE + i;
        return kx < a.kw ? scratch[row * a.kh + ky] + scratch[16 * a.kh + row * a.kw + kx] : -INFINITY;
    }
};

template <typename T, int DIM, int N_TILE>
cudaError_t launch_general(const relpos_arguments &a, size_t n_groups, const cuda_device &device, cudaStream_t stream)
{
    relpos_problem<T, DIM, N_TILE> problem = {};
    problem.a = a;
    return general::launch<T, DIM, N_TILE>(problem, a.kh * a.kw, n_groups, a.d, a.scale, 16 * (a.kh + a.kw),
                                           device.block_shared_bytes, stream);
}

/* ---- what both wgmma kernels share ------------------------------------------------------------------------------ */

/* Floats of a warp's scratch: q·rel_w as [16][P + 8], then, in the same place, q·rel_h as [n_rows][16], then
 * outputs. */
constexpr int scratch_floats(int p, int n_rows)
{
    int columns = 16 * (p + 8), rows = 16 * n_rows, staging = 16 * (128 + 16) / 4;
    int most = columns > rows ? columns : rows;
    return most > staging ? most : staging;
}

#ifdef FATHOM_HAS_WGMMA

/* s is q · (rows first .. first + N of a table of 2 side - 1 rows)^T. Of each query at `position` along the axis, the
 * products with rows position - key + side - 1, times log2 e, go to scratch[query * query_pitch + key * key_pitch]. */
template <int N>
__device__ __forceinline__ void scatter_factors(float *scratch, const float (&s)[N / 2], int first, int side,
                                                const int (&position)[2], int query_pitch, int key_pitch, int lane)
{
    const int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int j = 0; j < N / 8; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int row = first + j * 8 + t * 2 + e % 2, key = position[e / 2] + side - 1 - row;
            if ((unsigned)key < (unsigned)side)
                scratch[(g + e / 2 * 8) * query_pitch + key * key_pitch] = s[j * 4 + e] * LOG2_E;
        }
}

/* The column terms of a group in the accumulator's layout; -inf behind the key grid's last column. */
template <int P>
__device__ __forceinline__ void load_columns(float (&column)[P / 2], const float *scratch, int kw, int lane)
{
    const int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int j = 0; j < P / 8; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int key = j * 8 + t * 2 + e % 2;
            column[j * 4 + e] = key < kw ? scratch[(g + e / 2 * 8) * (P + 8) + key] : -INFINITY;
        }
}

template <int R>
__device__ __forceinline__ void load_row_bias(float (&bias)[R][2], const float *scratch, int first, int g)
{
#pragma unroll
    for (int r = 0; r < R; r++) {
        bias[r][0] = scratch[(first + r) * 16 + g];
        bias[r][1] = scratch[(first + r) * 16 + g + 8];
    }
}

#endif

/* ---- the whole map, wgmma -------------------------------------------------------------------------------------- */

constexpr int GRID_ROWS_MAX = 96; /* the row terms of more do not fit into shared memory */

struct grid_maps {
    CUtensorMap qkv;          /* [view, y, x, 3C], box: 64 columns, a row of the grid or R of them */
    CUtensorMap rel_h, rel_w; /* boxes of a tile's rows; zeros behind the last                     */
};

/* A stage is a tile of keys and the tile of their values, or of rel_w and of rel_h. */
template <int N, int N_STAGES> struct grid_shared {
    alignas(1024) uint8_t k[N_STAGES][N * 128];
    uint8_t v[N_STAGES][N * 128];
    uint64_t k_full[N_STAGES], v_full[N_STAGES];   /* the copy engine's bytes have arrived           */
    uint64_t k_empty[N_STAGES], v_empty[N_STAGES]; /* every warp of the block is done with the tile  */
};

template <typename T, int P, int R, int N_GROUPS, int N_STAGES>
__global__ __launch_bounds__((N_GROUPS + 1) * 128, 1) void grid_kernel(const __grid_constant__ grid_maps maps,
                                                                       relpos_arguments a, unsigned n_works,
                                                                       int n_blocks, int warp_floats)
{
#ifdef FATHOM_HAS_WGMMA
    constexpr int N = P * R;
    DYNAMIC_SHARED(uint8_t, memory);
    auto &sm = *reinterpret_cast<grid_shared<N, N_STAGES> *>(memory);
    /* The shuffle tells the compiler that the warp's number, and with it the ring's position, is uniform. */
    const int warp = __shfl_sync(FULL_WARP, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
    const int n = a.gh * a.gw;
    const int table_tiles = (2 * max(a.gh, a.gw) - 1 + N - 1) / N, n_tiles = a.gh / R;

    if (threadIdx.x == 0) {
        for (int i = 0; i < N_STAGES; i++) {
            barrier_init(&sm.k_full[i], 1);
            barrier_init(&sm.v_full[i], 1);
            barrier_init(&sm.k_empty[i], N_GROUPS * 4);
            barrier_init(&sm.v_empty[i], N_GROUPS * 4);
        }
        barrier_init_fence();
    }
    if (a.gw < P) {
        /* Columns behind the grid's last are never filled: they must hold numbers, for 0 * NaN is NaN. */
        for (int i = threadIdx.x; i < (int)(sizeof sm.k + sizeof sm.v) / 16; i += (N_GROUPS + 1) * 128)
            reinterpret_cast<uint4 *>(sm.k)[i] = make_uint4(0, 0, 0, 0);
        fence_async_proxy();
    }
    __syncthreads(); /* barriers initialised, tiles cleared -> used by all */

    ring_position<N_STAGES> ring;
    if (warp / 4 == N_GROUPS) {
        give_registers<24>();
        if (warp % 4 || lane)
            return;
        relpos_place place = {};
        auto copy = [&](uint8_t *to, uint64_t *full, uint64_t *empty, const CUtensorMap *table, int part, int tile) {
            barrier_wait(empty, ring.parity ^ 1);
            barrier_arrive_expect(full, table ? N * 128 : R * a.gw * 128);
            const uint32_t shared = shared_address(to);
            const int column = (part * a.n_heads + place.head) * HEAD_DIM;
            if (table)
                copy_box_2d(shared, table, 0, tile * N, full);
            else if (a.gw == P)
                copy_box_4d(shared, &maps.qkv, column, 0, tile * R, place.view, full);
            else
                for (int r = 0; r < R; r++)
                    copy_box_4d(shared + r * P * 128, &maps.qkv, column, 0, tile * R + r, place.view, full);
        };
        for (unsigned work = blockIdx.x; work < n_works; work += gridDim.x) {
            place = place_of(a, work / n_blocks);
            for (int i = 0; i < table_tiles + n_tiles; i++) {
                const bool table = i < table_tiles;
                const int tile = table ? i : i - table_tiles, stage = ring.slot;
                copy(sm.k[stage], &sm.k_full[stage], &sm.k_empty[stage], table ? &maps.rel_w : nullptr, 1, tile);
                copy(sm.v[stage], &sm.v_full[stage], &sm.v_empty[stage], table ? &maps.rel_h : nullptr, 2, tile);
                ring.advance();
            }
        }
    } else {
        take_registers<N_GROUPS == 2 ? 240 : 160>();
        float *scratch = reinterpret_cast<float *>(memory + sizeof sm) + warp * warp_floats;
        float *scratch_h = scratch + 16 * (P + 8);
        const int g = lane / 4;
        auto release = [&](uint64_t *empty) {
            if (lane == 0)
                barrier_arrive(empty);
        };
        auto first_query = [&](unsigned work) { return (int)(work % n_blocks) * (N_GROUPS * 64) + warp * 16; };
        uint32_t q[4][4];
        auto load_work = [&](unsigned work) {
            const relpos_place place = place_of(a, work / n_blocks);
            const T *row[2];
            for (int h = 0; h < 2; h++) {
                const int i = first_query(work) + g + h * 8;
                row[h] = i < n ? token_data<T>(a, place, 0, i / a.gw, i % a.gw) : nullptr;
            }
            load_queries<T>(q, row[0], row[1], lane);
        };
        load_work(blockIdx.x);
        for (unsigned work = blockIdx.x; work < n_works; work += gridDim.x) {
            if (first_query(work) - warp % 4 * 16 >= n) {
                /* No queries for this warpgroup, in the last block of a map: only the ring moves on. */
                for (int i = 0; i < table_tiles + n_tiles; i++) {
                    barrier_wait(&sm.k_full[ring.slot], ring.parity);
                    release(&sm.k_empty[ring.slot]);
                    barrier_wait(&sm.v_full[ring.slot], ring.parity);
                    release(&sm.v_empty[ring.slot]);
                    ring.advance();
                }
                if (work + gridDim.x < n_works)
                    load_work(work + gridDim.x);
                continue;
            }

            float s[N / 2], column[P / 2];
            auto multiply_table = [&](uint8_t *table, uint64_t *full, uint64_t *empty) {
                barrier_wait(full, ring.parity);
                wgmma_fence();
                issue_scores<T, N>(s, q, shared_address(table));
                wgmma_commit();
                wgmma_wait<0>();
                keep_order(s);
                release(empty);
            };
            {
                const int i0 = first_query(work) + g, i1 = i0 + 8;
                const int qy[2] = {i0 / a.gw, i1 / a.gw}, qx[2] = {i0 % a.gw, i1 % a.gw};
                for (int i = 0; i < table_tiles; i++) {
                    const int stage = ring.slot;
                    multiply_table(sm.k[stage], &sm.k_full[stage], &sm.k_empty[stage]);
                    scatter_factors<N>(scratch, s, i * N, a.gw, qx, P + 8, 1, lane);
                    multiply_table(sm.v[stage], &sm.v_full[stage], &sm.v_empty[stage]);
                    scatter_factors<N>(scratch_h, s, i * N, a.gh, qy, 1, 16, lane);
                    ring.advance();
                }
            }
            __syncwarp(); /* factors written by the warp -> read */
            load_columns<P>(column, scratch, a.gw, lane);

            /* A step issues the scores of its tile and the output of the last one and computes its weights. What does
             * not need the products is done before they are waited for: the row terms, the next tiles' barriers. */
            float o[32] = {}, bias[R][2], alpha[2];
            uint32_t p[N / 4];
            softmax_state state;
            int slot = ring.slot;
            multiply_table(sm.k[slot], &sm.k_full[slot], &sm.k_empty[slot]);
            load_row_bias<R>(bias, scratch_h, 0, g);
            softmax_tile<T, P, R, true>(p, state, alpha, s, column, bias, a.scale);
            barrier_wait(&sm.v_full[slot], ring.parity);
            ring.advance();
            if (n_tiles > 1)
                barrier_wait(&sm.k_full[ring.slot], ring.parity);
            for (int tile = 1; tile < n_tiles; tile++) {
                const int k_slot = ring.slot;
                const uint32_t parity = ring.parity;
                const bool last = tile + 1 == n_tiles;
                wgmma_fence();
                issue_scores<T, N>(s, q, shared_address(sm.k[k_slot]));
                issue_values<T, N>(o, p, shared_address(sm.v[slot]));
                wgmma_commit();
                load_row_bias<R>(bias, scratch_h, tile * R, g);
                ring.advance();
                barrier_wait(&sm.v_full[k_slot], parity);
                barrier_wait(&sm.k_full[last ? k_slot : ring.slot], last ? parity : ring.parity);
                wgmma_wait<0>();
                keep_order(s);
                keep_order(o);
                release(&sm.k_empty[k_slot]);
                release(&sm.v_empty[slot]);
                if (softmax_tile<T, P, R, true>(p, state, alpha, s, column, bias, a.scale))
                    rescale_outputs(o, alpha);
                slot = k_slot;
            }
            wgmma_fence();
            issue_values<T, N>(o, p, shared_address(sm.v[slot]));
            wgmma_commit();
            wgmma_wait<0>();
            keep_order(o);
            release(&sm.v_empty[slot]);

            asm volatile("" : "+r"(work)); /* what follows from work is computed again, not kept through the loop */
            if (work + gridDim.x < n_works)
                load_work(work + gridDim.x); /* overlaps with the stores */
            const relpos_place place = place_of(a, work / n_blocks);
            const int warp_first = first_query(work);
            __syncwarp(); /* factors read -> overwritten by outputs */
            store_outputs<T>(o, state, reinterpret_cast<uint8_t *>(scratch), lane, [&](int r) {
                const int i = warp_first + r;
                return i < n ? token_output<T>(a, place, i / a.gw, i % a.gw) : (T *)nullptr;
            });
            __syncwarp(); /* outputs read -> overwritten by the next factors */
        }
    }
#endif
}

template <typename T, int P, int R, int N_GROUPS, int N_STAGES>
enum fathom_status launch_grid(const relpos_arguments &a, size_t n_views, size_t n_mp, cudaStream_t stream,
                               struct fathom_err *err)
{
    constexpr int N = P * R;
    const size_t width = 3 * (size_t)a.n_heads * HEAD_DIM, gh = (size_t)a.gh, gw = (size_t)a.gw;
    const size_t extent[4] = {width, gw, gh, n_views}, stride[3] = {width, gw * width, gh * gw * width};
    const int box[4] = {HEAD_DIM, a.gw, a.gw == P ? R : 1, 1}, table_box[2] = {HEAD_DIM, N};
    const size_t h_extent[2] = {HEAD_DIM, 2 * gh - 1}, w_extent[2] = {HEAD_DIM, 2 * gw - 1},
                 table_stride[1] = {HEAD_DIM};
    grid_maps maps;
    enum fathom_status status = tensor_map(&maps.qkv, a.qkv, 4, extent, stride, box, err);
    if (!status)
        status = tensor_map(&maps.rel_h, a.rel_h, 2, h_extent, table_stride, table_box, err);
    if (!status)
        status = tensor_map(&maps.rel_w, a.rel_w, 2, w_extent, table_stride, table_box, err);
    if (status)
        return status;
    const int warp_floats = 16 * (P + 8) + 16 * a.gh, n_blocks = (a.gh * a.gw + (N_GROUPS * 64) - 1) / (N_GROUPS * 64);
    const size_t bytes = sizeof(grid_shared<N, N_STAGES>) + sizeof(float) * N_GROUPS * 4 * (size_t)warp_floats;
    const size_t n_all = n_views * a.n_heads * n_blocks;
    if (n_all > 0x7fffffff)
        return fail(err, FATHOM_ELIMIT, "attention_relpos: %zu views are too many", n_views);
    auto kernel = grid_kernel<T, P, R, N_GROUPS, N_STAGES>;
    cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (error)
        return cuda_status(error, "attention_relpos", err);
    const unsigned grid = (unsigned)(n_all < n_mp ? n_all : n_mp);
    launch_on(kernel, grid, (N_GROUPS + 1) * 128, bytes, stream)(maps, a, (unsigned)n_all, n_blocks, warp_floats);
    return cuda_status(cudaGetLastError(), "attention_relpos", err);
}

/* ---- windows, wgmma -------------------------------------------------------------------------------------------- */

constexpr int WINDOW_P = 16; /* columns of a group */
constexpr int WINDOW_MAX = 16;
constexpr int WINDOW_THREADS = 256;

struct window_shared {
    alignas(1024) uint8_t k[WINDOW_MAX * WINDOW_P * 128];
    uint8_t v[WINDOW_MAX * WINDOW_P * 128];
    uint8_t rel_h[32 * 128], rel_w[32 * 128];
    float scratch[WINDOW_THREADS / 32][scratch_floats(WINDOW_P, WINDOW_MAX)];
};

/* A block serves every n_splits-th 64 queries of its window, beginning with those of its number. */
template <typename T, int R>
__global__ __launch_bounds__(WINDOW_THREADS, 2) void window_kernel(relpos_arguments a, int n_splits)
{
#ifdef FATHOM_HAS_WGMMA
    constexpr int N = WINDOW_P * R;
    DYNAMIC_SHARED(uint8_t, memory);
    auto &sm = *reinterpret_cast<window_shared *>(memory);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4;
    const relpos_place place = place_of(a, blockIdx.x / n_splits);
    const int n = place.vh * place.vw, first_unit = blockIdx.x % n_splits * (WINDOW_THREADS / 128);
    if (first_unit * 64 >= n)
        return;
    const int n_tiles = (a.kh + R - 1) / R;
    const uint32_t k = shared_address(sm.k), v = shared_address(sm.v);
    const uint32_t rel_h = shared_address(sm.rel_h), rel_w = shared_address(sm.rel_w);
    {
        /* Of every 32 rows of a tile, two groups, a thread copies one chunk of one row. */
        const int row = threadIdx.x / 8, chunk = threadIdx.x % 8, kx = row % WINDOW_P;
        const uint32_t to = tile_offset(row, chunk);
        copy16_async(rel_w + to, (const T *)a.rel_w + row * HEAD_DIM + chunk * 8, row < 2 * a.kw - 1);
        copy16_async(rel_h + to, (const T *)a.rel_h + row * HEAD_DIM + chunk * 8, row < 2 * a.kh - 1);
        const size_t width = (size_t)a.n_heads * HEAD_DIM, column = width + place.head * HEAD_DIM + chunk * 8;
        const T *pad = (const T *)(a.pad ? a.pad : a.qkv) + column;
        const T *from = (const T *)a.qkv + token_of(a, place, row / WINDOW_P, kx) * (3 * width) + column;
        for (int i = 0, ky = row / WINDOW_P; i < n_tiles * N; i += 32, ky += 2) {
            const T *at = ky < place.vh && kx < place.vw ? from : pad;
            const bool valid = ky < a.kh && kx < a.kw;
            copy16_async(k + to + i * 128, at, valid);
            copy16_async(v + to + i * 128, at + width, valid);
            from += 6 * a.gw * width;
        }
    }

    float *scratch = sm.scratch[warp];
    bool loaded = false;
    for (int unit = first_unit + warp / 4; unit * 64 < n || !loaded; unit += n_splits * (WINDOW_THREADS / 128)) {
        const int warp_first = unit * 64 + warp % 4 * 16;
        int qy[2], qx[2];
        uint32_t q[4][4];
        {
            const T *row[2];
            for (int h = 0; h < 2; h++) {
                const int i = warp_first + g + h * 8;
                qy[h] = i / place.vw;
                qx[h] = i % place.vw;
                row[h] = i < n ? token_data<T>(a, place, 0, qy[h], qx[h]) : nullptr;
            }
            load_queries<T>(q, row[0], row[1], lane);
        }
        if (!loaded) {
            copy_async_wait_all();
            fence_async_proxy();
            __syncthreads(); /* tables, keys and values written by all -> read by wgmma */
            loaded = true;
            if (unit * 64 >= n)
                return;
        }

        float s[N / 2], column[WINDOW_P / 2];
        {
            float f[2][16];
            wgmma_fence();
            issue_scores<T, 32>(f[0], q, rel_w);
            issue_scores<T, 32>(f[1], q, rel_h);
            issue_scores<T, N>(s, q, k);
            wgmma_commit();
            wgmma_wait<0>();
            keep_order(f[0]);
            keep_order(f[1]);
            keep_order(s);
            scatter_factors<32>(scratch, f[0], 0, a.kw, qx, WINDOW_P + 8, 1, lane);
            __syncwarp(); /* q·rel_w written by the warp -> read */
            load_columns<WINDOW_P>(column, scratch, a.kw, lane);
            __syncwarp(); /* q·rel_w read -> overwritten by q·rel_h */
            scatter_factors<32>(scratch, f[1], 0, a.kh, qy, 1, 16, lane);
            for (int i = a.kh * 16 + lane; i < n_tiles * R * 16; i += 32)
                scratch[i] = -INFINITY; /* rows behind the window's last */
            __syncwarp();               /* q·rel_h written by the warp -> read */
        }

        /* While the weights of a tile are computed, the output of the last one is. */
        float o[32] = {}, bias[R][2], alpha[2];
        uint32_t p[2][N / 4];
        softmax_state state;
        load_row_bias<R>(bias, scratch, 0, g);
        softmax_tile<T, WINDOW_P, R, true>(p[0], state, alpha, s, column, bias, a.scale);
        auto step = [&](int tile, const uint32_t(&p_last)[N / 4], uint32_t(&p_now)[N / 4]) {
            wgmma_fence();
            issue_scores<T, N>(s, q, k + tile * N * 128);
            wgmma_commit();
            issue_values<T, N>(o, p_last, v + (tile - 1) * N * 128);
            wgmma_commit();
            load_row_bias<R>(bias, scratch, tile * R, g);
            wgmma_wait<1>();
            keep_order(s);
            const bool rescale = softmax_tile<T, WINDOW_P, R, true>(p_now, state, alpha, s, column, bias, a.scale);
            wgmma_wait<0>();
            keep_order(o);
            if (rescale)
                rescale_outputs(o, alpha);
        };
        auto finish = [&](const uint32_t(&p_last)[N / 4]) {
            wgmma_fence();
            issue_values<T, N>(o, p_last, v + (n_tiles - 1) * N * 128);
            wgmma_commit();
            wgmma_wait<0>();
            keep_order(o);
        };
        int tile = 1;
        for (; tile + 1 < n_tiles; tile += 2) {
            step(tile, p[0], p[1]);
            step(tile + 1, p[1], p[0]);
        }
        if (tile < n_tiles) {
            step(tile, p[0], p[1]);
            finish(p[1]);
        } else {
            finish(p[0]);
        }

        __syncwarp(); /* q·rel_h read -> overwritten by outputs */
        store_outputs<T>(o, state, reinterpret_cast<uint8_t *>(scratch), lane, [&](int r) {
            const int i = warp_first + r;
            return i < n ? token_output<T>(a, place, i / place.vw, i % place.vw) : (T *)nullptr;
        });
        __syncwarp(); /* outputs read -> overwritten by the next queries' factors */
    }
#endif
}

template <typename T, int R>
enum fathom_status launch_window(const relpos_arguments &a, size_t n_groups, cudaStream_t stream,
                                 struct fathom_err *err)
{
    if (n_groups > 0x3fffffff)
        return fail(err, FATHOM_ELIMIT, "attention_relpos: too many windows");
    auto kernel = window_kernel<T, R>;
    const size_t most_splits = (a.kh * a.kw + WINDOW_THREADS / 2 - 1) / (WINDOW_THREADS / 2);
    const size_t n_splits = n_groups < 1000 ? most_splits : 1; /* few windows: more blocks; many: keys are read once */
    cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)sizeof(window_shared));
    if (error)
        return cuda_status(error, "attention_relpos", err);
    launch_on(kernel, (unsigned)(n_groups * n_splits), WINDOW_THREADS, sizeof(window_shared), stream)(a, (int)n_splits);
    return cuda_status(cudaGetLastError(), "attention_relpos", err);
}

/* ---- choice ---------------------------------------------------------------------------------------------------- */

template <typename T>
enum fathom_status launch(const relpos_arguments &a, size_t n_views, bool windows, enum cuda_level level,
                          const cuda_device &device, cudaStream_t stream, struct fathom_err *err)
{
    const size_t n_groups = n_views * a.n_wy * a.n_wx * a.n_heads;
    const bool wgmma = level == CUDA_LEVEL_BEST && device.major == 9 && device.minor == 0 && a.d == 64;
    if (wgmma && windows && a.kh <= WINDOW_MAX)
        return launch_window<T, 2>(a, n_groups, stream, err);
    if (wgmma && !windows && a.gh <= GRID_ROWS_MAX) {
        /* Three warpgroups a block keep the multiprocessor busier, two leave a shorter last round: with three a
         * round takes 5/4 of the time. */
        const size_t n = (size_t)a.gh * a.gw, n_heads = n_views * a.n_heads, n_units = (n + 63) / 64,
                     n_mp = device.n_mp;
        const size_t rounds3 = (n_heads * ((n_units + 2) / 3) + n_mp - 1) / n_mp;
        const size_t rounds2 = (n_heads * ((n_units + 1) / 2) + n_mp - 1) / n_mp;
        const bool two = 4 * rounds2 < 5 * rounds3;
        if (a.gw <= 32 && a.gh % 2 == 0)
            return launch_grid<T, 32, 2, 3, 4>(a, n_views, n_mp, stream, err);
        if (a.gw <= 40 && a.gh % 2 == 0)
            return launch_grid<T, 40, 2, 3, 4>(a, n_views, n_mp, stream, err);
        if (a.gw <= 48 && a.gh % 2 == 0)
            return two ? launch_grid<T, 48, 2, 2, 4>(a, n_views, n_mp, stream, err)
                       : launch_grid<T, 48, 2, 3, 4>(a, n_views, n_mp, stream, err);
        if (a.gw <= 64)
            return two ? launch_grid<T, 64, 1, 2, 4>(a, n_views, n_mp, stream, err)
                       : launch_grid<T, 64, 1, 3, 4>(a, n_views, n_mp, stream, err);
        if (a.gw <= 80)
            return launch_grid<T, 80, 1, 2, 4>(a, n_views, n_mp, stream, err);
    }
    cudaError_t error;
    if (a.d <= 64)
        error = a.kw <= 16 ? launch_general<T, 64, 16>(a, n_groups, device, stream)
                           : launch_general<T, 64, 64>(a, n_groups, device, stream);
    else
        error = launch_general<T, 128, 32>(a, n_groups, device, stream);
    if (error == cudaErrorInvalidConfiguration)
        return fail(err, FATHOM_EUNSUPPORTED, "attention_relpos: a key grid of %d x %d is too large", a.kh, a.kw);
    return cuda_status(error, "attention_relpos", err);
}

} // namespace

extern "C" enum fathom_status cuda_attention_relpos(struct tensor *y, const struct tensor *qkv,
                                                    const struct tensor *pad, const struct tensor *rel_h,
                                                    const struct tensor *rel_w, struct relpos_shape shape,
                                                    enum cuda_level level, struct CUstream_st *stream,
                                                    struct fathom_err *err)
{
    const size_t limit = 1 << 15;
    if (!shape.n_views || !shape.gh || !shape.gw || !shape.n_heads || shape.n_views > limit || shape.gh > limit ||
        shape.gw > limit || shape.window > limit || shape.n_heads > 1024)
        return fail(err, FATHOM_EINVAL, "attention_relpos: %zu views of %zu x %zu, %zu heads, window %zu",
                    shape.n_views, shape.gh, shape.gw, shape.n_heads, shape.window);
    if (qkv->n_dims != 2 || qkv->shape[1] % (3 * shape.n_heads) ||
        (qkv->dtype != DTYPE_BF16 && qkv->dtype != DTYPE_F16))
        return fail(err, FATHOM_EINVAL, "attention_relpos: qkv is not a matrix [n, 3C] of bf16 or f16");
    const size_t d = qkv->shape[1] / (3 * shape.n_heads), width = d * shape.n_heads;
    const size_t n = shape.n_views * shape.gh * shape.gw;
    if (!d || d % 8 || d > 128)
        return fail(err, FATHOM_EUNSUPPORTED, "attention_relpos: head dim %zu is not a multiple of 8 up to 128", d);
    const bool windows = shape.window > 0;
    const size_t kh = windows ? shape.window : shape.gh, kw = windows ? shape.window : shape.gw;
    struct cuda_device device;
    enum fathom_status status = current_device(&device, err);
    if (!status)
        status = check_matrix("qkv", qkv, qkv->dtype, n, 3 * width, true, &device, err);
    if (!status)
        status = check_matrix("y", y, qkv->dtype, n, width, true, &device, err);
    if (!status)
        status = check_matrix("rel_h", rel_h, qkv->dtype, 2 * kh - 1, d, true, &device, err);
    if (!status)
        status = check_matrix("rel_w", rel_w, qkv->dtype, 2 * kw - 1, d, true, &device, err);
    if (!status && pad)
        status = check_matrix("pad", pad, qkv->dtype, 1, 3 * width, true, &device, err);
    if (status)
        return fail_at(err, "attention_relpos: ");
    if (!pad && (shape.gh % kh || shape.gw % kw))
        return fail(err, FATHOM_EINVAL, "attention_relpos: pad is missing, windows of %zu do not divide %zu x %zu",
                    shape.window, shape.gh, shape.gw);

    relpos_arguments a = {};
    a.qkv = qkv->data;
    a.pad = pad ? pad->data : NULL;
    a.rel_h = rel_h->data;
    a.rel_w = rel_w->data;
    a.y = y->data;
    a.n_heads = (int)shape.n_heads;
    a.d = (int)d;
    a.gh = (int)shape.gh;
    a.gw = (int)shape.gw;
    a.kh = (int)kh;
    a.kw = (int)kw;
    a.n_wy = (int)((shape.gh + kh - 1) / kh);
    a.n_wx = (int)((shape.gw + kw - 1) / kw);
    a.scale = LOG2_E / sqrtf((float)d);
    if (qkv->dtype == DTYPE_BF16)
        return launch<bf16>(a, shape.n_views, windows, level, device, stream, err);
    return launch<f16>(a, shape.n_views, windows, level, device, stream, err);
}
