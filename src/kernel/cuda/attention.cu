/* The attentions of kernel.h: bf16 goes to the tensor cores (attention.h, and here for the decoder's cache), everything
 * else, and every run that is to be exact, to attention_exact.h.
 *
 * Over the cache, k and v [n_kv_heads][capacity][d]:
 *   prefill  several rows: attention_general.cuh with a causal rule.
 *   step     one row: a block for each head and each part of the cache; half a warp takes a key at a time, 8 dims a lane;
 *            the block that finishes last adds the parts up. Limit: the cache is read once. How the cache is cut
 *            depends on the number of keys alone. */
#include "kernel/cuda/attention_exact.h"
#include "kernel/cuda/attention_general.cuh"
#include "kernel/cuda/exact.cuh"
#include "kernel/cuda/ops.h"

namespace
{

constexpr int THREADS = 256;

template <typename T>
__global__ void append_kernel(T *cache_k, T *cache_v, const T *k, const T *v, size_t k_stride, size_t v_stride, size_t n,
                              int n_kv_heads, int d, size_t capacity, size_t pos)
{
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    const int width = n_kv_heads * d;
    if (i >= n * width)
        return;
    const size_t row = i / width, head = i % width / d, j = i % d, to = (head * capacity + pos + row) * d + j;
    cache_k[to] = k[row * k_stride + i % width];
    cache_v[to] = v[row * v_stride + i % width];
}

/* ---- prefill ----------------------------------------------------------------------------------------------------- */

template <typename T, int DIM, int N_TILE> struct causal_problem {
    sequence_arguments a;
    int n_blocks, block_rows; /* set by the launch */
    int head, first, n_keys;

    __device__ __forceinline__ void start()
    {
        head = blockIdx.x / n_blocks;
        first = (n_blocks - 1 - blockIdx.x % n_blocks) * block_rows; /* the longest first */
        n_keys = min(a.n_keys, a.pos + first + block_rows);
    }
    __device__ __forceinline__ const T *query(int row) const
    {
        return first + row < a.n ? (const T *)a.q + (size_t)(first + row) * a.q_stride + head * a.d : nullptr;
    }
    __device__ __forceinline__ T *output(int row) const
    {
        return first + row < a.n ? (T *)a.y + (size_t)(first + row) * a.y_stride + head * a.d : nullptr;
    }
    __device__ __forceinline__ int n_tiles() const { return (n_keys + N_TILE - 1) / N_TILE; }
    __device__ __forceinline__ bool key(int tile, int i, const T *&k, const T *&v) const
    {
        const int at = tile * N_TILE + i;
        if (at >= n_keys)
            return false;
        const size_t of = (size_t)(head / (a.n_heads / a.n_kv_heads));
        k = (const T *)a.k + of * a.k_head_stride + (size_t)at * a.d;
        v = (const T *)a.v + of * a.v_head_stride + (size_t)at * a.d;
        return true;
    }
    __device__ __forceinline__ void prepare(float *, const T *, int) {}
    __device__ __forceinline__ float bias(const float *, int tile, int i, int row) const
    {
        const int query = first + threadIdx.x / 32 * 16 + row;
        return tile * N_TILE + i <= a.pos + query ? 0.0f : -INFINITY;
    }
};

template <int DIM, int N_TILE>
cudaError_t launch_prefill(const sequence_arguments &a, const struct gpu *gpu)
{
    causal_problem<bf16, DIM, N_TILE> problem = {};
    problem.a = a;
    return general::launch<bf16, DIM, N_TILE>(problem, a.n, a.n_heads, a.d, LOG2_E / sqrtf((float)a.d), 0,
                                              gpu->at.block_shared_bytes, gpu->stream);
}

/* ---- step -------------------------------------------------------------------------------------------------------- */

constexpr int STEP_THREADS = 128, GROUPS = STEP_THREADS / 16, AHEAD = 4, MAX_SPLITS = 32, SPLIT_KEYS = 64;

struct part {
    float m, l, acc[128];
};

/* Thread j of the block adds dimension j of n parts up, which lie `stride` parts apart; its share of y. */
__device__ __forceinline__ void add_parts(float &m, float &l, float &acc, const part *parts, int n, int stride, int j)
{
    m = -INFINITY;
    l = acc = 0;
    for (int i = 0; i < n; i++)
        m = fmaxf(m, parts[i * stride].m);
    for (int i = 0; i < n; i++) {
        const part &p = parts[i * stride];
        const float weight = p.m == -INFINITY ? 0.0f : exp2_fast(p.m - m);
        l = fmaf(p.l, weight, l);
        acc = fmaf(p.acc[j], weight, acc);
    }
}

__global__ __launch_bounds__(STEP_THREADS) void step_kernel(sequence_arguments a, part *parts, int *arrivals,
                                                            int split_keys, float scale)
{
    __shared__ part own[GROUPS];
    __shared__ bool last;
    const int head = blockIdx.x, split = blockIdx.y, n_splits = gridDim.y;
    const int group = threadIdx.x / 16, lane = threadIdx.x % 16;
    const size_t of = head / (a.n_heads / a.n_kv_heads);
    const bf16 *k = (const bf16 *)a.k + of * a.k_head_stride, *v = (const bf16 *)a.v + of * a.v_head_stride;
    const bool active = lane * 8 < a.d;
    const int offset = active ? lane * 8 : 0, begin = split * split_keys, end = min(a.n_keys, begin + split_keys);

    float q[8], acc[8] = {}, m = -INFINITY, l = 0;
    unpack8(q, *(const uint4 *)((const bf16 *)a.q + (size_t)head * a.d + offset));
#pragma unroll
    for (int i = 0; i < 8; i++)
        q[i] = active ? q[i] * scale : 0.0f;
    /* All groups of a warp take the same number of turns, for the shuffles. */
    for (int first = begin; first < end; first += GROUPS * AHEAD) {
        uint4 kp[AHEAD], vp[AHEAD];
        float s[AHEAD], top = m;
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            const int at = min(first + i * GROUPS + group, end - 1);
            kp[i] = *(const uint4 *)(k + (size_t)at * a.d + offset);
            vp[i] = *(const uint4 *)(v + (size_t)at * a.d + offset);
        }
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            float x[8];
            unpack8(x, kp[i]);
            s[i] = 0;
#pragma unroll
            for (int j = 0; j < 8; j++)
                s[i] = fmaf(q[j], x[j], s[i]);
        }
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
#pragma unroll
            for (int j = 8; j > 0; j /= 2)
                s[i] += __shfl_xor_sync(FULL_WARP, s[i], j, 16);
            if (first + i * GROUPS + group >= end)
                s[i] = -INFINITY;
            top = fmaxf(top, s[i]);
        }
        const float alpha = m == -INFINITY ? 0.0f : exp2_fast(m - top);
        m = top;
        l *= alpha;
#pragma unroll
        for (int j = 0; j < 8; j++)
            acc[j] *= alpha;
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            const float p = s[i] == -INFINITY ? 0.0f : exp2_fast(s[i] - m);
            float x[8];
            unpack8(x, vp[i]);
            l += p;
#pragma unroll
            for (int j = 0; j < 8; j++)
                acc[j] = fmaf(p, x[j], acc[j]);
        }
    }
    if (lane == 0) {
        own[group].m = m;
        own[group].l = l;
    }
#pragma unroll
    for (int j = 0; j < 8; j++)
        own[group].acc[lane * 8 + j] = acc[j];
    __syncthreads(); /* the groups' parts written -> read */

    const int j = threadIdx.x;
    float block_acc;
    add_parts(m, l, block_acc, own, GROUPS, 1, j);
    bf16 *y = (bf16 *)a.y + (size_t)head * a.d;
    if (n_splits == 1) {
        if (j < a.d)
            y[j] = __float2bfloat16_rn(block_acc / l);
        return;
    }
    part *mine = parts + head * n_splits + split;
    if (j == 0) {
        mine->m = m;
        mine->l = l;
    }
    mine->acc[j] = block_acc;
    __threadfence(); /* the part written -> read by the block that comes last */
    __syncthreads(); /* by all threads -> counted */
    if (j == 0) {
        last = atomicAdd(&arrivals[head], 1) == n_splits - 1;
        if (last)
            arrivals[head] = 0;
    }
    __syncthreads(); /* last written -> read */
    if (!last)
        return;
    __threadfence(); /* all have arrived -> their parts are read */
    add_parts(m, l, block_acc, parts + head * n_splits, n_splits, 1, j);
    if (j < a.d)
        y[j] = __float2bfloat16_rn(block_acc / l);
}

void launch_step(struct run *run, const sequence_arguments &a)
{
    struct gpu *gpu = gpu_of(run);
    struct arena_mark mark = arena_save(run->arena);
    int n_splits = (a.n_keys + SPLIT_KEYS - 1) / SPLIT_KEYS;
    n_splits = n_splits < MAX_SPLITS ? n_splits : MAX_SPLITS;
    const int split_keys = (a.n_keys + n_splits - 1) / n_splits;
    n_splits = (a.n_keys + split_keys - 1) / split_keys; /* none is empty */
    part *parts = (part *)run_scratch(run, (size_t)a.n_heads * n_splits, sizeof *parts);
    if (run_ok(run)) {
        launch_on(step_kernel, dim3(a.n_heads, n_splits), STEP_THREADS, 0, gpu->stream)(
            a, parts, gpu->arrivals, split_keys, LOG2_E / sqrtf((float)a.d));
        gpu_check(run, cudaGetLastError(), "attention_causal");
    }
    arena_restore(run->arena, mark);
}

/* ---- choice ------------------------------------------------------------------------------------------------------ */

bool is_aligned(const struct tensor *t) { return (uintptr_t)t->data % 16 == 0 && t->stride[0] % 8 == 0; }

sequence_arguments arguments_of(const struct tensor *y, const struct tensor *q, const struct tensor *k,
                                const struct tensor *v, size_t n_heads, size_t n_kv_heads, size_t n)
{
    sequence_arguments a = {};
    a.q = q->data;
    a.k = k->data;
    a.v = v->data;
    a.y = y->data;
    a.q_stride = q->stride[0];
    a.y_stride = y->stride[0];
    a.k_stride = k->stride[0];
    a.v_stride = v->stride[0];
    a.n_heads = (int)n_heads;
    a.n_kv_heads = (int)n_kv_heads;
    a.d = (int)(q->shape[1] / n_heads);
    a.n = a.n_keys = (int)n;
    return a;
}

bool takes_tensor_cores(const struct run *run, int d)
{
    return run->dtype == DTYPE_BF16 && !gpu_of(run)->exact && d % 8 == 0 && d <= 128;
}

} // namespace

extern "C" void attention_relpos_cuda(struct run *run, struct tensor *y, const struct tensor *qkv,
                                      const struct tensor *pad, const struct tensor *rel_h, const struct tensor *rel_w,
                                      struct relpos_shape s)
{
    struct gpu *gpu = gpu_of(run);
    const int d = (int)(y->shape[1] / s.n_heads);
    const bool tables = rel_h->dtype == DTYPE_BF16 && rel_w->dtype == DTYPE_BF16 && (!pad || pad->dtype == DTYPE_BF16);
    if (takes_tensor_cores(run, d) && tables && is_aligned(y) && is_aligned(qkv) && is_aligned(rel_h) &&
        is_aligned(rel_w) && y->stride[0] == y->shape[1] && qkv->stride[0] == qkv->shape[1] &&
        (!pad || (uintptr_t)pad->data % 16 == 0)) {
        struct fathom_err err = {};
        const enum fathom_status status =
            cuda_attention_relpos(y, qkv, pad, rel_h, rel_w, s, CUDA_LEVEL_BEST, gpu->stream, &err);
        if (status)
            run_fail(run, status, "%s", err.message);
        return;
    }
    struct arena_mark mark = arena_save(run->arena);
    struct tensor own_pad = {};
    if (pad) { /* in the activations' dtype */
        struct tensor row = tensor_2d(pad->dtype, pad->data, 1, pad->shape[0]);
        own_pad = run_alloc(run, 1, pad->shape[0]);
        if (run_ok(run))
            copy_cuda(run, &own_pad, &row);
    }
    relpos_exact_arguments a = {};
    a.qkv = qkv->data;
    a.pad = own_pad.data;
    a.rel_h = rel_h->data;
    a.rel_w = rel_w->data;
    a.y = y->data;
    a.qkv_stride = qkv->stride[0];
    a.y_stride = y->stride[0];
    a.n_views = (int)s.n_views;
    a.n_heads = (int)s.n_heads;
    a.d = d;
    a.gh = (int)s.gh;
    a.gw = (int)s.gw;
    a.kh = (int)(s.window ? s.window : s.gh);
    a.kw = (int)(s.window ? s.window : s.gw);
    a.n_wy = (a.gh + a.kh - 1) / a.kh;
    a.n_wx = (a.gw + a.kw - 1) / a.kw;
    if (rel_h->dtype != rel_w->dtype)
        run_fail(run, FATHOM_EUNSUPPORTED, "attention_relpos: tables of two dtypes");
    if (run_ok(run))
        attention_relpos_exact(run, &a, rel_h->dtype);
    arena_restore(run->arena, mark);
}

extern "C" void attention_prefix_cuda(struct run *run, struct tensor *y, const struct tensor *q, const struct tensor *k,
                                      const struct tensor *v, size_t n_heads, size_t n_kv_heads, size_t n_seqs,
                                      size_t prefix)
{
    const size_t n = q->shape[0] / n_seqs;
    sequence_arguments a = arguments_of(y, q, k, v, n_heads, n_kv_heads, n);
    if (!n)
        return;
    if (takes_tensor_cores(run, a.d) && is_aligned(y) && is_aligned(q) && is_aligned(k) && is_aligned(v)) {
        struct fathom_err err = {};
        const enum fathom_status status = cuda_attention_prefix(y, q, k, v, n_heads, n_kv_heads, n_seqs, prefix,
                                                                CUDA_LEVEL_BEST, gpu_of(run)->stream, &err);
        if (status)
            run_fail(run, status, "%s", err.message);
        return;
    }
    a.prefix = (int)prefix;
    a.k_head_stride = a.v_head_stride = (size_t)a.d;
    a.k_sequence_stride = n * a.k_stride;
    a.v_sequence_stride = n * a.v_stride;
    attention_sequence_exact(run, &a, n_seqs, "attention_prefix");
}

extern "C" void attention_causal_cuda(struct run *run, struct tensor *y, const struct tensor *q, const struct tensor *k,
                                      const struct tensor *v, struct kv_layer *kv, size_t n_heads, size_t pos)
{
    struct gpu *gpu = gpu_of(run);
    const size_t n = q->shape[0], width = kv->n_kv_heads * kv->head_dim;
    if (!n)
        return;
    with_act(run, [&](auto t) {
        using T = decltype(t);
        launch_on(append_kernel<T>, blocks_of(n * width, THREADS), THREADS, 0, gpu->stream)(
            (T *)(void *)kv->k, (T *)(void *)kv->v, (const T *)k->data, (const T *)v->data, k->stride[0], v->stride[0],
            n, (int)kv->n_kv_heads, (int)kv->head_dim, kv->capacity, pos);
    });
    gpu_check(run, cudaGetLastError(), "attention_causal");
    sequence_arguments a = arguments_of(y, q, k, v, n_heads, kv->n_kv_heads, n);
    a.k = kv->k;
    a.v = kv->v;
    a.k_stride = a.v_stride = kv->head_dim;
    a.k_head_stride = a.v_head_stride = kv->capacity * kv->head_dim;
    a.pos = (int)pos;
    a.n_keys = (int)(pos + n);
    if (!run_ok(run))
        return;
    if (!takes_tensor_cores(run, a.d) || !is_aligned(q) || !is_aligned(y))
        attention_sequence_exact(run, &a, 1, "attention_causal");
    else if (n == 1 && a.n_heads <= MAX_ARRIVALS)
        launch_step(run, a);
    else
        gpu_check(run, a.d <= 64 ? launch_prefill<64, 64>(a, gpu) : launch_prefill<128, 32>(a, gpu),
                  "attention_causal");
}
