/* Attention of sequences whose first `prefix` keys all rows see: row i sees the keys [0, max(prefix, i + 1)),
 *     s = q·k / sqrt d,   y = softmax(s) v,   query head h reads kv head h / (n_heads / n_kv_heads).
 * n_seqs sequences of S rows lie one after the other; q, y [n_seqs S, n_heads d], k, v [n_seqs S, n_kv_heads d],
 * rows 16-byte aligned at any stride: all bf16 or all f16. Sums and softmax in f32; the weights are rounded to the
 * input type for the product with v.
 *
 *   prefix_kernel  d = 64, wgmma. A block has two warpgroups of 64 queries of one head; one thread has the copy engine
 *                  fill a ring of tiles of 64 keys and their values. Tiles that no row of the block sees are not read.
 *   general        anything else, any device (attention_general.cuh).
 *
 * Limit, H200, 8 x 512, 14 heads, prefix 256: 4.7 GFLOP, 6 us at the tensor cores' peak; a block reads its keys and
 * values from the L2 cache, 45 MB in all, which takes about as long. Measured: bench/RESULTS.md. */
#include "kernel/cuda/attention_check.h"
#include "kernel/cuda/attention_general.cuh"
#include "kernel/cuda/attention_wgmma.cuh"

namespace
{

struct prefix_arguments {
    const void *q, *k, *v;
    void *y;
    size_t q_stride, k_stride, v_stride, y_stride; /* elements a row */
    int n_heads, n_kv_heads, d;
    int n, prefix; /* rows of a sequence; prefix <= n */
    float scale;   /* log2 e / sqrt d                 */
};

/* ---- general -------------------------------------------------------------------------------------------------- */

template <typename T, int DIM, int N_TILE> struct prefix_problem {
    prefix_arguments a;
    int n_blocks, block_rows; /* set by the launch */
    /* Of this block: */
    int head, first, n_keys;
    size_t sequence_row;

    __device__ __forceinline__ void start()
    {
        unsigned group = blockIdx.x / n_blocks;
        head = group % a.n_heads;
        sequence_row = (size_t)(group / a.n_heads) * a.n;
        first = (n_blocks - 1 - blockIdx.x % n_blocks) * block_rows; /* the longest first */
        n_keys = min(a.n, max(a.prefix, first + block_rows));
    }
    __device__ __forceinline__ const T *query(int row) const
    {
        if (first + row >= a.n)
            return nullptr;
        return (const T *)a.q + (sequence_row + first + row) * a.q_stride + (size_t)head * a.d;
    }
    __device__ __forceinline__ T *output(int row) const
    {
        if (first + row >= a.n)
            return nullptr;
        return (T *)a.y + (sequence_row + first + row) * a.y_stride + (size_t)head * a.d;
    }
    __device__ __forceinline__ int n_tiles() const { return (n_keys + N_TILE - 1) / N_TILE; }
    __device__ __forceinline__ bool key(int tile, int i, const T *&k, const T *&v) const
    {
        int at = tile * N_TILE + i;
        if (at >= n_keys)
            return false;
        size_t column = (size_t)(head / (a.n_heads / a.n_kv_heads)) * a.d;
        k = (const T *)a.k + (sequence_row + at) * a.k_stride + column;
        v = (const T *)a.v + (sequence_row + at) * a.v_stride + column;
        return true;
    }
    __device__ __forceinline__ void prepare(float *, const T *, int) {}
    __device__ __forceinline__ float bias(const float *, int tile, int i, int row) const
    {
        int query = first + threadIdx.x / 32 * 16 + row;
        return tile * N_TILE + i < min(a.n, max(a.prefix, query + 1)) ? 0.0f : -INFINITY;
    }
};

template <typename T, int DIM, int N_TILE>
cudaError_t launch_general(const prefix_arguments &a, size_t n_groups, const cuda_device &device, cudaStream_t stream)
{
    prefix_problem<T, DIM, N_TILE> problem = {};
    problem.a = a;
    return general::launch<T, DIM, N_TILE>(problem, a.n, n_groups, a.d, a.scale, 0, device.block_shared_bytes, stream);
}

/* ---- wgmma ------------------------------------------------------------------------------------------------------ */

constexpr int PREFIX_TILE = 64;
constexpr int PREFIX_STAGES = 4; /* tile i lives in stage i % 4 and is its filling i / 4 */
constexpr int PREFIX_THREADS = 256;
constexpr int PREFIX_ROWS = PREFIX_THREADS / 2;

struct prefix_maps {
    CUtensorMap k, v; /* [sequence, row, column], box: a tile of one head */
};

struct prefix_shared {
    alignas(1024) uint8_t k[PREFIX_STAGES][PREFIX_TILE * 128];
    uint8_t v[PREFIX_STAGES][PREFIX_TILE * 128];
    uint8_t staging[PREFIX_THREADS / 32][16 * (128 + 16)];
    uint64_t k_full[PREFIX_STAGES], v_full[PREFIX_STAGES];   /* the copy engine's bytes have arrived          */
    uint64_t k_empty[PREFIX_STAGES], v_empty[PREFIX_STAGES]; /* every warp of the block is done with the tile */
};
static_assert(2 * (sizeof(prefix_shared) + 1024) <= 228 * 1024, "two blocks fit into a multiprocessor");

template <typename T>
__global__ __launch_bounds__(PREFIX_THREADS, 2) void prefix_kernel(const __grid_constant__ prefix_maps maps,
                                                                   prefix_arguments a, int n_groups)
{
#ifdef FATHOM_HAS_WGMMA
    DYNAMIC_SHARED(uint8_t, memory);
    auto &sm = *reinterpret_cast<prefix_shared *>(memory);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int group = blockIdx.x % n_groups, head = group % a.n_heads, sequence = group / a.n_heads;
    const int kv_column = head / (a.n_heads / a.n_kv_heads) * HEAD_DIM;
    const int first = (gridDim.x / n_groups - 1 - blockIdx.x / n_groups) * PREFIX_ROWS; /* the longest first */
    const int n_tiles = (min(a.n, max(a.prefix, first + PREFIX_ROWS)) + PREFIX_TILE - 1) / PREFIX_TILE;

    /* Fills the tile's stage, once the tile that was there is done with; nothing for a tile that does not exist. */
    auto fill = [&](bool values, int tile) {
        if (tile >= n_tiles)
            return;
        const int stage = tile % PREFIX_STAGES;
        uint64_t *full = values ? &sm.v_full[stage] : &sm.k_full[stage];
        if (tile >= PREFIX_STAGES)
            barrier_wait(values ? &sm.v_empty[stage] : &sm.k_empty[stage], tile / PREFIX_STAGES % 2 ^ 1);
        barrier_arrive_expect(full, PREFIX_TILE * 128);
        copy_box_3d(shared_address(values ? sm.v[stage] : sm.k[stage]), values ? &maps.v : &maps.k, kv_column,
                    tile * PREFIX_TILE, sequence, full);
    };
    if (threadIdx.x == 0) {
        for (int i = 0; i < PREFIX_STAGES; i++) {
            barrier_init(&sm.k_full[i], 1);
            barrier_init(&sm.v_full[i], 1);
            barrier_init(&sm.k_empty[i], PREFIX_THREADS / 32);
            barrier_init(&sm.v_empty[i], PREFIX_THREADS / 32);
        }
        barrier_init_fence();
        fill(false, 0);
    }

    const int warp_first = first + warp * 16, row[2] = {warp_first + g, warp_first + g + 8};
    const size_t sequence_row = (size_t)sequence * a.n;
    uint32_t q[4][4];
    {
        const T *from[2];
        for (int h = 0; h < 2; h++)
            from[h] = row[h] < a.n ? (const T *)a.q + (sequence_row + row[h]) * a.q_stride + head * HEAD_DIM : nullptr;
        load_queries<T>(q, from[0], from[1], lane);
    }
    __syncthreads(); /* barriers initialised -> used by all */
    if (threadIdx.x == 0)
        for (int i = 1; i <= PREFIX_STAGES; i++) {
            if (i < PREFIX_STAGES)
                fill(false, i);
            fill(true, i - 1);
        }

    float s[PREFIX_TILE / 2], o[32] = {}, alpha[2];
    uint32_t p[PREFIX_TILE / 4];
    softmax_state state;
    auto softmax = [&](int tile) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int n_visible = min(a.n, max(a.prefix, row[h] + 1)) - tile * PREFIX_TILE;
            if (n_visible < PREFIX_TILE)
#pragma unroll
                for (int j = 0; j < PREFIX_TILE / 8; j++)
#pragma unroll
                    for (int e = 0; e < 2; e++)
                        if (j * 8 + t * 2 + e >= n_visible)
                            s[j * 4 + h * 2 + e] = -INFINITY;
        }
        const float no_columns[1] = {0}, no_bias[1][2] = {{0, 0}};
        if (softmax_tile<T, PREFIX_TILE, 1, false>(p, state, alpha, s, no_columns, no_bias, a.scale))
            rescale_outputs(o, alpha);
    };
    auto wait_full = [&](uint64_t *full, int tile) {
        barrier_wait(&full[tile % PREFIX_STAGES], tile / PREFIX_STAGES % 2);
    };
    auto release = [&](uint64_t *empty, int tile) {
        if (lane == 0)
            barrier_arrive(&empty[tile % PREFIX_STAGES]);
    };

    /* A step issues the scores of its tile and the output of the last one and computes its weights. What does not
     * need the products is done before they are waited for: filling stages that the last step gave up, the next
     * tiles' barriers. */
    wait_full(sm.k_full, 0);
    wgmma_fence();
    issue_scores<T, PREFIX_TILE>(s, q, shared_address(sm.k[0]));
    wgmma_commit();
    wait_full(sm.v_full, 0);
    if (n_tiles > 1)
        wait_full(sm.k_full, 1);
    wgmma_wait<0>();
    keep_order(s);
    release(sm.k_empty, 0);
    softmax(0);
    for (int tile = 1; tile < n_tiles; tile++) {
        wgmma_fence();
        issue_scores<T, PREFIX_TILE>(s, q, shared_address(sm.k[tile % PREFIX_STAGES]));
        issue_values<T, PREFIX_TILE>(o, p, shared_address(sm.v[(tile - 1) % PREFIX_STAGES]));
        wgmma_commit();
        if (threadIdx.x == 0) {
            fill(false, tile - 1 + PREFIX_STAGES);
            if (tile > 1)
                fill(true, tile - 2 + PREFIX_STAGES);
        }
        wait_full(sm.v_full, tile);
        wait_full(sm.k_full, min(tile + 1, n_tiles - 1));
        wgmma_wait<0>();
        keep_order(s);
        keep_order(o);
        release(sm.k_empty, tile);
        release(sm.v_empty, tile - 1);
        softmax(tile);
    }
    wgmma_fence();
    issue_values<T, PREFIX_TILE>(o, p, shared_address(sm.v[(n_tiles - 1) % PREFIX_STAGES]));
    wgmma_commit();
    wgmma_wait<0>();
    keep_order(o);

    store_outputs<T>(o, state, sm.staging[warp], lane, [&](int r) {
        const int i = warp_first + r;
        return i < a.n ? (T *)a.y + (sequence_row + i) * a.y_stride + head * HEAD_DIM : (T *)nullptr;
    });
#endif
}

template <typename T>
enum fathom_status launch_wgmma(const prefix_arguments &a, size_t n_seqs, cudaStream_t stream, struct fathom_err *err)
{
    const size_t n = (size_t)a.n, extent[3] = {(size_t)a.n_kv_heads * HEAD_DIM, n, n_seqs};
    const size_t k_stride[2] = {a.k_stride, n * a.k_stride}, v_stride[2] = {a.v_stride, n * a.v_stride};
    const int box[3] = {HEAD_DIM, PREFIX_TILE, 1};
    prefix_maps maps;
    enum fathom_status status = tensor_map(&maps.k, a.k, 3, extent, k_stride, box, err);
    if (!status)
        status = tensor_map(&maps.v, a.v, 3, extent, v_stride, box, err);
    if (status)
        return status;
    auto kernel = prefix_kernel<T>;
    cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)sizeof(prefix_shared));
    if (error)
        return cuda_status(error, "attention_prefix", err);
    const size_t n_blocks = (n + PREFIX_ROWS - 1) / PREFIX_ROWS, n_groups = n_seqs * a.n_heads;
    launch_on(kernel, (unsigned)(n_groups * n_blocks), PREFIX_THREADS, sizeof(prefix_shared), stream)(maps, a, (int)n_groups);
    return cuda_status(cudaGetLastError(), "attention_prefix", err);
}

template <typename T>
enum fathom_status launch(const prefix_arguments &a, size_t n_seqs, enum cuda_level level, const cuda_device &device,
                          cudaStream_t stream, struct fathom_err *err)
{
    if (level == CUDA_LEVEL_BEST && device.major == 9 && device.minor == 0 && a.d == HEAD_DIM)
        return launch_wgmma<T>(a, n_seqs, stream, err);
    const size_t n_groups = n_seqs * a.n_heads;
    return cuda_status(a.d <= 64 ? launch_general<T, 64, 64>(a, n_groups, device, stream)
                                 : launch_general<T, 128, 32>(a, n_groups, device, stream),
                       "attention_prefix", err);
}

} // namespace

extern "C" enum fathom_status cuda_attention_prefix(struct tensor *y, const struct tensor *q, const struct tensor *k,
                                                    const struct tensor *v, size_t n_heads, size_t n_kv_heads,
                                                    size_t n_seqs, size_t prefix, enum cuda_level level,
                                                    struct CUstream_st *stream, struct fathom_err *err)
{
    if (!n_heads || !n_kv_heads || !n_seqs || n_heads > 1024 || n_heads % n_kv_heads)
        return fail(err, FATHOM_EINVAL, "attention_prefix: %zu sequences, %zu heads, %zu kv heads", n_seqs, n_heads,
                    n_kv_heads);
    if (q->n_dims != 2 || !q->shape[0] || q->shape[0] % n_seqs || q->shape[1] % n_heads ||
        (q->dtype != DTYPE_BF16 && q->dtype != DTYPE_F16))
        return fail(err, FATHOM_EINVAL, "attention_prefix: q is not a matrix [n_seqs*S, n_heads*d] of bf16 or f16");
    const size_t d = q->shape[1] / n_heads, rows = q->shape[0], n = rows / n_seqs;
    if (!d || d % 8 || d > 128)
        return fail(err, FATHOM_EUNSUPPORTED, "attention_prefix: head dim %zu is not a multiple of 8 up to 128", d);
    if (n > 1 << 20 || n_seqs > 1 << 15 || n_seqs * n_heads * (n / 16 + 1) > 0x7fffffff)
        return fail(err, FATHOM_ELIMIT, "attention_prefix: %zu sequences of %zu rows are too many", n_seqs, n);
    struct cuda_device device;
    enum fathom_status status = current_device(&device, err);
    if (!status)
        status = check_matrix("q", q, q->dtype, rows, n_heads * d, false, &device, err);
    if (!status)
        status = check_matrix("y", y, q->dtype, rows, n_heads * d, false, &device, err);
    if (!status)
        status = check_matrix("k", k, q->dtype, rows, n_kv_heads * d, false, &device, err);
    if (!status)
        status = check_matrix("v", v, q->dtype, rows, n_kv_heads * d, false, &device, err);
    if (status)
        return fail_at(err, "attention_prefix: ");

    prefix_arguments a = {};
    a.q = q->data;
    a.k = k->data;
    a.v = v->data;
    a.y = y->data;
    a.q_stride = q->stride[0];
    a.k_stride = k->stride[0];
    a.v_stride = v->stride[0];
    a.y_stride = y->stride[0];
    a.n_heads = (int)n_heads;
    a.n_kv_heads = (int)n_kv_heads;
    a.d = (int)d;
    a.n = (int)n;
    a.prefix = (int)(prefix < n ? prefix : n);
    a.scale = LOG2_E / sqrtf((float)d);
    return q->dtype == DTYPE_BF16 ? launch<bf16>(a, n_seqs, level, device, stream, err)
                                  : launch<f16>(a, n_seqs, level, device, stream, err);
}
