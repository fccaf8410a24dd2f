/* Operations on rows: norms, rotary positions, sums. The exact forms have the sums of kernel.h: 16 lanes a row, lane
 * j % 16 takes element j. The fast norm, for bf16, gives a block to a row and keeps it in registers: it reads and
 * writes each element once. */
#include "kernel/cuda/exact.cuh"
#include "kernel/cuda/ops.h"

namespace
{

constexpr int THREADS = 256;
constexpr int LANES = 16;

struct norm_arguments {
    const void *x;
    void *y;
    size_t x_stride, y_stride;
    const void *w, *bias; /* bias NULL: rmsnorm */
    int n, m;
    float eps;
};

template <typename T, typename W, bool LAYER>
__global__ __launch_bounds__(THREADS) void norm_exact_kernel(norm_arguments a)
{
    const int row = blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const bool valid = row < a.n; /* all threads take part in the folds */
    const T *x = (const T *)a.x + (valid ? row : 0) * a.x_stride;
    float mean = 0, sum = 0;
    if (LAYER) {
        for (int j = lane; j < a.m; j += LANES)
            sum = __fadd_rn(sum, to_float(x[j]));
        mean = __fdiv_rn(fold_lanes(sum), (float)a.m);
    }
    float squares = 0;
    for (int j = lane; j < a.m; j += LANES) {
        float d = LAYER ? __fsub_rn(to_float(x[j]), mean) : to_float(x[j]);
        squares = fmaf(d, d, squares);
    }
    const float inverse = __fdiv_rn(1.0f, __fsqrt_rn(__fadd_rn(__fdiv_rn(fold_lanes(squares), (float)a.m), a.eps)));
    if (!valid)
        return;
    T *y = (T *)a.y + row * a.y_stride;
    const W *w = (const W *)a.w, *bias = (const W *)a.bias;
    for (int j = lane; j < a.m; j += LANES) {
        float v = to_float(x[j]);
        if (LAYER)
            v = fmaf(__fmul_rn(__fsub_rn(v, mean), inverse), to_float(w[j]), to_float(bias[j]));
        else
            v = __fmul_rn(stored<T>(__fmul_rn(v, inverse)), to_float(w[j]));
        y[j] = from_float<T>(v);
    }
}

/* ---- fast, bf16: rows of at most 8 * FAST_THREADS * FAST_CHUNKS elements, in chunks of 8 ------------------------- */

constexpr int FAST_THREADS = 128, FAST_CHUNKS = 2;

__device__ __forceinline__ float block_sum(float x, float *shared)
{
    for (int i = 16; i > 0; i /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, i);
    if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = x;
    __syncthreads(); /* warps' sums written -> read by all */
    x = 0;
    for (int i = 0; i < FAST_THREADS / 32; i++)
        x += shared[i];
    __syncthreads(); /* read -> overwritten by the next sum */
    return x;
}

template <bool LAYER> __global__ __launch_bounds__(FAST_THREADS) void norm_fast_kernel(norm_arguments a)
{
    __shared__ float shared[FAST_THREADS / 32];
    const bf16 *x = (const bf16 *)a.x + blockIdx.x * a.x_stride;
    const bf16 *w = (const bf16 *)a.w, *bias = (const bf16 *)a.bias;
    bf16 *y = (bf16 *)a.y + blockIdx.x * a.y_stride;
    float v[FAST_CHUNKS][8], sum = 0, mean = 0;
#pragma unroll
    for (int c = 0; c < FAST_CHUNKS; c++) {
        const int j = (c * FAST_THREADS + threadIdx.x) * 8;
        unpack8(v[c], j < a.m ? *(const uint4 *)(x + j) : make_uint4(0, 0, 0, 0));
        if (LAYER)
            for (int i = 0; i < 8; i++)
                sum += v[c][i];
    }
    if (LAYER)
        mean = block_sum(sum, shared) / a.m;
    float squares = 0;
#pragma unroll
    for (int c = 0; c < FAST_CHUNKS; c++)
        if ((c * FAST_THREADS + (int)threadIdx.x) * 8 < a.m)
            for (int i = 0; i < 8; i++) {
                v[c][i] -= mean;
                squares = fmaf(v[c][i], v[c][i], squares);
            }
    const float inverse = 1.0f / sqrtf(block_sum(squares, shared) / a.m + a.eps);
#pragma unroll
    for (int c = 0; c < FAST_CHUNKS; c++) {
        const int j = (c * FAST_THREADS + threadIdx.x) * 8;
        if (j >= a.m)
            break;
        float scale[8], shift[8];
        unpack8(scale, *(const uint4 *)(w + j));
        if (LAYER)
            unpack8(shift, *(const uint4 *)(bias + j));
        alignas(16) bf16 out[8];
        for (int i = 0; i < 8; i++)
            out[i] = from_float<bf16>(LAYER ? fmaf(v[c][i] * inverse, scale[i], shift[i])
                                            : stored<bf16>(v[c][i] * inverse) * scale[i]);
        *(uint4 *)(y + j) = *(const uint4 *)out;
    }
}

bool is_aligned16(const void *p, size_t stride) { return (uintptr_t)p % 16 == 0 && stride % 8 == 0; }

template <bool LAYER> void norm(struct run *run, const norm_arguments &a, enum dtype w, const char *op)
{
    struct gpu *gpu = gpu_of(run);
    if (!a.n || !a.m)
        return;
    const bool fast = !gpu->exact && run->dtype == DTYPE_BF16 && w == DTYPE_BF16 && a.m % 8 == 0 &&
                      a.m <= 8 * FAST_THREADS * FAST_CHUNKS && is_aligned16(a.x, a.x_stride) &&
                      is_aligned16(a.y, a.y_stride) && is_aligned16(a.w, 0) && is_aligned16(a.bias, 0);
    if (fast)
        launch_on(norm_fast_kernel<LAYER>, (unsigned)a.n, FAST_THREADS, 0, gpu->stream)(a);
    else
        with_act(run, [&](auto t) {
            with_dtype(w, [&](auto u) {
                launch_on(norm_exact_kernel<decltype(t), decltype(u), LAYER>, blocks_of(a.n, THREADS / LANES), THREADS, 0, gpu->stream)(a);
            });
        });
    gpu_check(run, cudaGetLastError(), op);
}

norm_arguments arguments_of(struct tensor *y, const struct tensor *x, const struct tensor *w, float eps)
{
    norm_arguments a = {};
    a.x = x->data;
    a.y = y->data;
    a.x_stride = x->stride[0];
    a.y_stride = y->stride[0];
    a.w = w->data;
    a.n = (int)x->shape[0];
    a.m = (int)x->shape[1];
    a.eps = eps;
    return a;
}

template <typename T>
__global__ void add_kernel(T *x, size_t x_stride, const T *y, size_t y_stride, size_t n, unsigned cols)
{
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= n)
        return;
    size_t row = i / cols, col = i % cols;
    T *at = x + row * x_stride + col;
    *at = from_float<T>(__fadd_rn(to_float(*at), to_float(y[row * y_stride + col])));
}

/* The same for packed bf16 in chunks of 8. */
__global__ void add_packed_kernel(uint4 *x, const uint4 *y, size_t n)
{
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= n)
        return;
    float a[8], b[8];
    unpack8(a, x[i]);
    unpack8(b, y[i]);
    alignas(16) bf16 out[8];
    for (int k = 0; k < 8; k++)
        out[k] = from_float<bf16>(a[k] + b[k]);
    x[i] = *(const uint4 *)out;
}

/* Angles of at most 128 pairs come by value: theta^(-j/half) in double precision, from the host. */
constexpr int MAX_PAIRS = 128;
struct frequencies {
    double f[MAX_PAIRS];
};

/* A block a row; its threads make the row's table and then rotate the heads. */
template <typename T>
__global__ void rope_kernel(T *x, size_t stride, int n_heads, int half, const int32_t *pos,
                            const __grid_constant__ frequencies table)
{
    __shared__ float cosines[MAX_PAIRS], sines[MAX_PAIRS];
    for (int j = (int)threadIdx.x; j < half; j += (int)blockDim.x) {
        double s, c;
        sincos((double)pos[blockIdx.x] * table.f[j], &s, &c);
        cosines[j] = stored<T>((float)c);
        sines[j] = stored<T>((float)s);
    }
    __syncthreads(); /* the table written -> read */
    T *row = x + blockIdx.x * stride;
    for (int i = (int)threadIdx.x; i < n_heads * half; i += (int)blockDim.x) {
        const int j = i % half;
        T *low = row + i / half * 2 * half + j, *high = low + half;
        const float a = to_float(*low), b = to_float(*high), c = cosines[j], s = sines[j];
        *low = from_float<T>(__fsub_rn(stored<T>(__fmul_rn(a, c)), stored<T>(__fmul_rn(b, s))));
        *high = from_float<T>(__fadd_rn(stored<T>(__fmul_rn(b, c)), stored<T>(__fmul_rn(a, s))));
    }
}

} // namespace

extern "C" void layernorm_cuda(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w,
                               const struct tensor *bias, float eps)
{
    norm_arguments a = arguments_of(y, x, w, eps);
    a.bias = bias->data;
    if (w->dtype != bias->dtype)
        run_fail(run, FATHOM_EUNSUPPORTED, "layernorm: weights of two dtypes");
    else
        norm<true>(run, a, w->dtype, "layernorm");
}

extern "C" void rmsnorm_cuda(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w,
                             float eps)
{
    norm<false>(run, arguments_of(y, x, w, eps), w->dtype, "rmsnorm");
}

extern "C" void add_cuda(struct run *run, struct tensor *x, const struct tensor *y)
{
    const size_t cols = x->shape[1], n = x->shape[0] * cols;
    cudaStream_t stream = gpu_of(run)->stream;
    if (!n)
        return;
    if (run->dtype == DTYPE_BF16 && x->stride[0] == cols && y->stride[0] == cols && n % 8 == 0 &&
        is_aligned16(x->data, 0) && is_aligned16(y->data, 0))
        launch_on(add_packed_kernel, blocks_of(n / 8, THREADS), THREADS, 0, stream)((uint4 *)x->data, (const uint4 *)y->data,
                                                                             n / 8);
    else
        with_act(run, [&](auto t) {
            using T = decltype(t);
            launch_on(add_kernel<T>, blocks_of(n, THREADS), THREADS, 0, stream)((T *)x->data, x->stride[0],
                                                                         (const T *)y->data, y->stride[0], n,
                                                                         (unsigned)cols);
        });
    gpu_check(run, cudaGetLastError(), "add");
}

extern "C" void rope_cuda(struct run *run, struct tensor *x, size_t n_heads, const int32_t *pos, float theta)
{
    const size_t half = x->shape[1] / n_heads / 2;
    frequencies table;
    if (half > MAX_PAIRS) {
        run_fail(run, FATHOM_EUNSUPPORTED, "rope: heads of %zu, at most %d", 2 * half, 2 * MAX_PAIRS);
        return;
    }
    if (!x->shape[0])
        return;
    for (size_t j = 0; j < half; j++)
        table.f[j] = pow((double)theta, -(double)j / (double)half);
    with_act(run, [&](auto t) {
        using T = decltype(t);
        launch_on(rope_kernel<T>, (unsigned)x->shape[0], 128, 0, gpu_of(run)->stream)((T *)x->data, x->stride[0],
                                                                                (int)n_heads, (int)half, pos, table);
    });
    gpu_check(run, cudaGetLastError(), "rope");
}
