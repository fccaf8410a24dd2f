/* The three attentions as kernel.h defines them, to the bit, for activations in float32 or bf16 and heads of up to 128: dot
 * products as one chain, the online softmax over tiles of keys with its 16 lanes of sums. A block has 16 queries of one
 * head; keys and values pass through shared memory as floats. float32 units; made to be right, not fast. */
#include "kernel/cuda/exact.cuh"
#include "kernel/cuda/attention_exact.h"

namespace
{

constexpr int THREADS = 128, QUERIES = 16, MAX_DIM = 128;

/* Rows of shared memory, d + 1 floats apart: neighbouring keys lie in different banks. */
struct plan {
    int d, tile; /* keys of a tile, at most */
    __host__ __device__ size_t floats(int factors) const
    {
        return (size_t)(2 * tile + QUERIES) * (d + 1) + QUERIES * (tile + 1) + 3 * QUERIES +
               (size_t)QUERIES * factors;
    }
};

/* A problem has, all for the block's head:
 *     const T *query(int i)      of query i of the block, NULL: there is none;     T *output(int i)
 *     int n_tiles()              that some query of the block sees
 *     int n_keys(int tile)       and of these
 *     const T *key(int tile, int i), *value(int tile, int i)
 *     int visible(int i, int tile)                       how many of the tile's keys query i sees, from the first on
 *     void prepare(float *factors, const float *q, int d)         q [QUERIES][d + 1]; called by all threads, then a barrier
 *     float bias(const float *factors, int i, int tile, int k, float s)                 s with the bias terms added */
template <typename T, typename Problem>
__global__ __launch_bounds__(THREADS) void exact_kernel(Problem problem, plan p, float scale)
{
    DYNAMIC_SHARED(float, memory);
    const int d = p.d, pitch = d + 1, tile_pitch = p.tile + 1;
    float *keys = memory, *values = keys + p.tile * pitch, *q = values + p.tile * pitch;
    float *scores = q + QUERIES * pitch, *alphas = scores + QUERIES * tile_pitch, *factors = alphas + 3 * QUERIES;
    problem.start();

    for (int i = threadIdx.x; i < QUERIES * d; i += THREADS) {
        const T *from = problem.query(i / d);
        q[i / d * pitch + i % d] = from ? to_float(from[i % d]) : 0.0f;
    }
    __syncthreads(); /* q written -> read */
    problem.prepare(factors, q, d);

    /* Sums: thread (query, lane) = (threadIdx / 8, threadIdx % 8) has the lanes `lane` and lane + 8. */
    const int own_query = threadIdx.x / 8, own_lane = threadIdx.x % 8;
    float max = -INFINITY, sums[2] = {0, 0};
    /* Values: dims threadIdx % 64 and 64 more, queries (threadIdx / 64) * 8 .. + 7. */
    const int dim = threadIdx.x % 64, first_query = threadIdx.x / 64 * 8;
    float acc[2][8] = {};

    const int n_tiles = problem.n_tiles();
    for (int tile = 0; tile < n_tiles; tile++) {
        const int n = problem.n_keys(tile);
        __syncthreads(); /* factors written; the last tile read -> overwritten */
        for (int i = threadIdx.x; i < n * d; i += THREADS) {
            keys[i / d * pitch + i % d] = to_float(problem.key(tile, i / d)[i % d]);
            values[i / d * pitch + i % d] = to_float(problem.value(tile, i / d)[i % d]);
        }
        __syncthreads(); /* keys and values written -> read */
        for (int i = threadIdx.x; i < QUERIES * n; i += THREADS) {
            const int query = i / n, k = i % n;
            float s = 0;
            for (int j = 0; j < d; j++)
                s = fmaf(q[query * pitch + j], keys[k * pitch + j], s);
            scores[query * tile_pitch + k] = problem.bias(factors, query, tile, k, __fmul_rn(s, scale));
        }
        __syncthreads(); /* scores written -> read */
        {
            float *s = scores + own_query * tile_pitch;
            const int visible = problem.visible(own_query, tile);
            float top = max;
            for (int k = own_lane; k < visible; k += 8)
                top = s[k] > top ? s[k] : top;
            for (int i = 4; i > 0; i /= 2) {
                const float other = __shfl_xor_sync(0xffffffffu, top, i, 8);
                top = other > top ? other : top;
            }
            if (visible > 0) {
                const float alpha = exp_f32(__fsub_rn(max, top));
                max = top;
                for (int h = 0; h < 2; h++) {
                    sums[h] = __fmul_rn(sums[h], alpha);
                    for (int k = own_lane + 8 * h; k < visible; k += 16) {
                        s[k] = exp_f32(__fsub_rn(s[k], top));
                        sums[h] = __fadd_rn(sums[h], s[k]);
                    }
                }
                if (own_lane == 0)
                    alphas[own_query] = alpha;
            } else if (own_lane == 0) {
                alphas[own_query] = 1.0f;
            }
            for (int k = visible + own_lane; k < n; k += 8)
                s[k] = 0.0f;
        }
        __syncthreads(); /* weights and alphas written -> read */
        for (int c = 0; c < 2; c++) {
            const int j = dim + 64 * c;
            if (j >= d)
                break;
            for (int i = 0; i < 8; i++)
                acc[c][i] = __fmul_rn(acc[c][i], alphas[first_query + i]);
            for (int k = 0; k < n; k++) {
                const float v = values[k * pitch + j];
                for (int i = 0; i < 8; i++) /* a weight of 0 is a key that is not there: even a NaN in v stays out */
                    if (k < problem.visible(first_query + i, tile))
                        acc[c][i] = fmaf(scores[(first_query + i) * tile_pitch + k], v, acc[c][i]);
            }
        }
    }

    float sum = __fadd_rn(sums[0], sums[1]); /* lane i plus lane i + 8, then as fold_lanes */
    for (int i = 4; i > 0; i /= 2)
        sum = __fadd_rn(sum, __shfl_down_sync(0xffffffffu, sum, i, 8));
    if (own_lane == 0)
        alphas[QUERIES + own_query] = __fdiv_rn(1.0f, sum);
    __syncthreads(); /* inverses written -> read */
    for (int c = 0; c < 2; c++)
        for (int i = 0; i < 8; i++) {
            T *y = problem.output(first_query + i);
            if (y && dim + 64 * c < d)
                y[dim + 64 * c] = from_float<T>(__fmul_rn(acc[c][i], alphas[QUERIES + first_query + i]));
        }
}

/* ---- sequences: prefix and causal ------------------------------------------------------------------------------- */

template <typename T> struct sequence_problem {
    sequence_arguments a;
    int n_blocks;
    int head, first;
    size_t sequence;

    __device__ void start()
    {
        first = blockIdx.x % n_blocks * QUERIES;
        head = blockIdx.x / n_blocks % a.n_heads;
        sequence = blockIdx.x / n_blocks / a.n_heads;
    }
    __device__ const T *query(int i) const
    {
        if (first + i >= a.n)
            return nullptr;
        return (const T *)a.q + (sequence * a.n + first + i) * a.q_stride + (size_t)head * a.d;
    }
    __device__ T *output(int i) const
    {
        if (first + i >= a.n)
            return nullptr;
        return (T *)a.y + (sequence * a.n + first + i) * a.y_stride + (size_t)head * a.d;
    }
    /* Keys that query i sees, all tiles together. */
    __device__ int n_seen(int i) const { return min(a.n_keys, max(a.prefix, a.pos + min(first + i, a.n - 1) + 1)); }
    __device__ int n_tiles() const { return (n_seen(QUERIES - 1) + ATTENTION_TILE - 1) / ATTENTION_TILE; }
    __device__ int n_keys(int tile) const { return min(n_seen(QUERIES - 1) - tile * ATTENTION_TILE, ATTENTION_TILE); }
    __device__ const T *at(const void *p, size_t stride, size_t head_stride, size_t sequence_stride, int tile,
                           int i) const
    {
        return (const T *)p + sequence * sequence_stride + (head / (a.n_heads / a.n_kv_heads)) * head_stride +
               (size_t)(tile * ATTENTION_TILE + i) * stride;
    }
    __device__ const T *key(int tile, int i) const
    {
        return at(a.k, a.k_stride, a.k_head_stride, a.k_sequence_stride, tile, i);
    }
    __device__ const T *value(int tile, int i) const
    {
        return at(a.v, a.v_stride, a.v_head_stride, a.v_sequence_stride, tile, i);
    }
    __device__ int visible(int i, int tile) const
    {
        return max(0, min(ATTENTION_TILE, n_seen(i) - tile * ATTENTION_TILE));
    }
    __device__ void prepare(float *, const float *, int) const {}
    __device__ float bias(const float *, int, int, int, float s) const { return s; }
};

/* ---- relative positions: a tile is a row of the key grid --------------------------------------------------------- */

template <typename T, typename R> struct relpos_problem {
    relpos_exact_arguments a;
    int n_blocks;
    int head, first, view, y0, x0, vh, vw; /* vh, vw: the window's part inside of the map */

    __device__ void start()
    {
        first = blockIdx.x % n_blocks * QUERIES;
        head = blockIdx.x / n_blocks % a.n_heads;
        const int window = blockIdx.x / n_blocks / a.n_heads;
        x0 = window % a.n_wx * a.kw;
        y0 = window / a.n_wx % a.n_wy * a.kh;
        view = window / a.n_wx / a.n_wy;
        vh = min(a.kh, a.gh - y0);
        vw = min(a.kw, a.gw - x0);
    }
    __device__ bool exists(int i) const { return first + i < vh * vw; }
    __device__ int qy(int i) const { return exists(i) ? (first + i) / vw : 0; }
    __device__ int qx(int i) const { return exists(i) ? (first + i) % vw : 0; }
    __device__ size_t token(int y, int x) const { return ((size_t)view * a.gh + y0 + y) * a.gw + x0 + x; }
    __device__ const T *query(int i) const
    {
        return exists(i) ? (const T *)a.qkv + token(qy(i), qx(i)) * a.qkv_stride + (size_t)head * a.d : nullptr;
    }
    __device__ T *output(int i) const
    {
        return exists(i) ? (T *)a.y + token(qy(i), qx(i)) * a.y_stride + (size_t)head * a.d : nullptr;
    }
    __device__ int n_tiles() const { return first < vh * vw ? a.kh : 0; }
    __device__ int n_keys(int) const { return a.kw; }
    __device__ const T *part(int which, int y, int x) const
    {
        const size_t column = (size_t)(which * a.n_heads + head) * a.d;
        return y < vh && x < vw ? (const T *)a.qkv + token(y, x) * a.qkv_stride + column : (const T *)a.pad + column;
    }
    __device__ const T *key(int tile, int i) const { return part(1, tile, i); }
    __device__ const T *value(int tile, int i) const { return part(2, tile, i); }
    __device__ int visible(int, int) const { return a.kw; }
    /* factors [QUERIES][kh + kw]: q·rel_h of each key row, q·rel_w of each column */
    __device__ void prepare(float *factors, const float *q, int d) const
    {
        const int n = a.kh + a.kw;
        for (int i = threadIdx.x; i < QUERIES * n; i += THREADS) {
            const int query = i / n, k = i % n;
            const R *table = k < a.kh ? (const R *)a.rel_h + (size_t)(qy(query) + a.kh - 1 - k) * d
                                      : (const R *)a.rel_w + (size_t)(qx(query) + a.kw - 1 - (k - a.kh)) * d;
            float s = 0;
            for (int j = 0; j < d; j++)
                s = fmaf(q[query * (d + 1) + j], to_float(table[j]), s);
            factors[i] = s;
        }
    }
    __device__ float bias(const float *factors, int i, int tile, int k, float s) const
    {
        const float *f = factors + i * (a.kh + a.kw);
        return __fadd_rn(__fadd_rn(s, f[tile]), f[a.kh + k]);
    }
};

template <typename T, typename Problem>
void launch(struct run *run, Problem problem, int n_queries, size_t n_groups, plan p, int factors, const char *op)
{
    auto kernel = exact_kernel<T, Problem>;
    const size_t bytes = p.floats(factors) * sizeof(float);
    problem.n_blocks = (n_queries + QUERIES - 1) / QUERIES;
    if (p.d > MAX_DIM || bytes > gpu_of(run)->at.block_shared_bytes || n_groups * problem.n_blocks > 0x7fffffff) {
        run_fail(run, FATHOM_EUNSUPPORTED, "%s: heads of %d or a grid too large for the GPU", op, p.d);
        return;
    }
    cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (!error) {
        launch_on(kernel, (unsigned)(n_groups * problem.n_blocks), THREADS, bytes, gpu_of(run)->stream)(
            problem, p, 1.0f / sqrtf((float)p.d));
        error = cudaGetLastError();
    }
    gpu_check(run, error, op);
}

} // namespace

void attention_sequence_exact(struct run *run, const struct sequence_arguments *a, size_t n_seqs, const char *op)
{
    with_act(run, [&](auto t) {
        using T = decltype(t);
        sequence_problem<T> problem = {};
        problem.a = *a;
        launch<T>(run, problem, a->n, n_seqs * a->n_heads, plan{a->d, ATTENTION_TILE}, 0, op);
    });
}

void attention_relpos_exact(struct run *run, const struct relpos_exact_arguments *a, enum dtype table_dtype)
{
    with_act(run, [&](auto t) {
        with_dtype(table_dtype, [&](auto r) {
            using T = decltype(t);
            relpos_problem<T, decltype(r)> problem = {};
            problem.a = *a;
            launch<T>(run, problem, a->kh * a->kw, (size_t)a->n_views * a->n_wy * a->n_wx * a->n_heads,
                      plan{a->d, a->kw}, a->kh + a->kw, "attention_relpos");
        });
    });
}
