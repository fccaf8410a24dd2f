/* Values that enter a run, leave it or change their place; position tables resized. Memory-bound: one read and one write
 * an element. */
#include "kernel/cuda/exact.cuh"
#include "kernel/cuda/ops.h"

namespace
{

constexpr int THREADS = 256;

/* y[i] = x[rows[i / cols], i % cols] as stored; rows NULL: the row itself. */
template <typename T, typename S>
__global__ void copy_kernel(T *y, size_t y_stride, const S *x, size_t x_stride, const int32_t *rows, size_t n,
                            unsigned cols)
{
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= n)
        return;
    size_t row = i / cols, col = i % cols, from = rows ? (size_t)rows[row] : row;
    y[row * y_stride + col] = from_float<T>(to_float(x[from * x_stride + col]));
}

template <typename T>
void launch_copy(struct run *run, struct tensor *y, const struct tensor *x, const int32_t *rows, const char *op)
{
    const size_t n = y->shape[0] * y->shape[1];
    if (!n)
        return;
    with_dtype(x->dtype, [&](auto s) {
        using S = decltype(s);
        launch_on(copy_kernel<T, S>, blocks_of(n, THREADS), THREADS, 0, gpu_of(run)->stream)(
            (T *)y->data, y->stride[0], (const S *)x->data, x->stride[0], rows, n, (unsigned)y->shape[1]);
    });
    gpu_check(run, cudaGetLastError(), op);
}

__global__ void positions_kernel(int32_t *pos, int32_t first, size_t n)
{
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < n)
        pos[i] = first + (int32_t)i;
}

/* ---- tables: the arithmetic of ref/resize.c, an output element a thread ---------------------------------------- */

template <typename T, typename S>
__global__ void resize_1d_kernel(T *y, const S *x, size_t n_in, size_t n_out, size_t dim)
{
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= n_out * dim)
        return;
    size_t r = i / dim, d = i % dim;
    float s = __fsub_rn(__fmul_rn(__fadd_rn((float)r, 0.5f), __fdiv_rn((float)n_in, (float)n_out)), 0.5f);
    s = s > 0 ? s : 0;
    size_t at = (size_t)s, next = at + 1 < n_in ? at + 1 : n_in - 1;
    float f = __fsub_rn(s, (float)at);
    y[i] = from_float<T>(__fadd_rn(__fmul_rn(__fsub_rn(1.0f, f), to_float(x[at * dim + d])),
                                   __fmul_rn(f, to_float(x[next * dim + d]))));
}

__device__ double cubic(double t)
{
    const double a = -0.5;
    t = fabs(t);
    if (t < 1)
        return __dadd_rn(__dmul_rn(__dmul_rn(__dsub_rn(__dmul_rn(a + 2, t), a + 3), t), t), 1);
    if (t < 2)
        return __dmul_rn(a, __dsub_rn(__dmul_rn(__dadd_rn(__dmul_rn(__dsub_rn(t, 5), t), 8), t), 4));
    return 0;
}

struct taps {
    double center, filter, sum;
    int lo, hi;
};

__device__ taps bicubic_taps(int x, int n_in, int n_out)
{
    taps t;
    double scale = (double)n_in / (double)n_out, support;
    t.filter = scale > 1 ? scale : 1;
    support = 2 * t.filter;
    t.center = __dmul_rn((double)x + 0.5, scale);
    double first = trunc(__dadd_rn(__dsub_rn(t.center, support), 0.5));
    double last = trunc(__dadd_rn(__dadd_rn(t.center, support), 0.5));
    t.lo = first > 0 ? (int)first : 0;
    t.hi = last < (double)n_in ? (int)last : n_in;
    t.sum = 0;
    for (int k = t.lo; k < t.hi; k++)
        t.sum = __dadd_rn(t.sum, cubic(__dadd_rn(__dsub_rn((double)k, t.center), 0.5) / t.filter));
    return t;
}

__device__ float tap_weight(const taps &t, int k)
{
    return (float)(cubic(__dadd_rn(__dsub_rn((double)k, t.center), 0.5) / t.filter) / t.sum);
}

/* A block makes one output row, its threads the channels. */
template <typename T, typename S>
__global__ void resize_2d_kernel(T *y, const S *x, int side, int g, int dim)
{
    DYNAMIC_SHARED(float, weights); /* [taps across], then [taps down] */
    const taps across = bicubic_taps(blockIdx.x % g, side, g), down = bicubic_taps(blockIdx.x / g, side, g);
    const int n_across = across.hi - across.lo, n_down = down.hi - down.lo;
    for (int k = threadIdx.x; k < n_across + n_down; k += THREADS)
        weights[k] = k < n_across ? tap_weight(across, across.lo + k) : tap_weight(down, down.lo + k - n_across);
    __syncthreads(); /* weights written -> read */
    for (int d = threadIdx.x; d < dim; d += THREADS) {
        float sum = 0;
        if (side == g) {
            sum = to_float(x[(size_t)blockIdx.x * dim + d]);
        } else {
            for (int i = 0; i < n_down; i++) {
                float row = 0;
                for (int k = 0; k < n_across; k++)
                    row = __fadd_rn(row, __fmul_rn(weights[k], to_float(x[((size_t)(down.lo + i) * side + across.lo +
                                                                           k) * dim + d])));
                sum = __fadd_rn(sum, __fmul_rn(weights[n_across + i], row));
            }
        }
        y[(size_t)blockIdx.x * dim + d] = from_float<T>(sum);
    }
}

} // namespace

extern "C" void upload_cuda(struct run *run, struct tensor *y, const float *x)
{
    const size_t n = tensor_elements(y);
    cudaStream_t stream = gpu_of(run)->stream;
    if (y->dtype == DTYPE_F32) {
        gpu_check(run, cudaMemcpyAsync(y->data, x, n * sizeof *x, cudaMemcpyHostToDevice, stream), "upload");
        return;
    }
    struct arena_mark mark = arena_save(run->arena);
    struct tensor floats = run_alloc_f32(run, 1, n), flat = tensor_2d(y->dtype, y->data, 1, n);
    if (run_ok(run)) {
        gpu_check(run, cudaMemcpyAsync(floats.data, x, n * sizeof *x, cudaMemcpyHostToDevice, stream), "upload");
        launch_copy<bf16>(run, &flat, &floats, NULL, "upload");
    }
    arena_restore(run->arena, mark);
}

extern "C" void upload_ids_cuda(struct run *run, int32_t *y, const int32_t *x, size_t n)
{
    gpu_check(run, cudaMemcpyAsync(y, x, n * sizeof *x, cudaMemcpyHostToDevice, gpu_of(run)->stream), "upload_ids");
}

/* Waits, so what went wrong before shows here. */
extern "C" void download_cuda(struct run *run, float *y, const struct tensor *x)
{
    struct gpu *gpu = gpu_of(run);
    struct arena_mark mark = arena_save(run->arena);
    struct tensor from = *x;
    const size_t cols = x->shape[1];
    if (x->dtype != DTYPE_F32) {
        from = run_alloc_f32(run, x->shape[0], cols);
        if (run_ok(run))
            launch_copy<float>(run, &from, x, NULL, "download");
    }
    if (run_ok(run) && x->shape[0] && cols)
        gpu_check(run,
                  cudaMemcpy2DAsync(y, cols * sizeof *y, from.data, from.stride[0] * sizeof *y, cols * sizeof *y,
                                    x->shape[0], cudaMemcpyDeviceToHost, gpu->stream),
                  "download");
    if (run_ok(run))
        gpu_check(run,
                  cudaMemcpyAsync(gpu->host_fault, gpu->fault, sizeof *gpu->fault, cudaMemcpyDeviceToHost, gpu->stream),
                  "download");
    if (run_ok(run))
        gpu_check(run, cudaStreamSynchronize(gpu->stream), "the GPU");
    if (run_ok(run) && *gpu->host_fault) {
        cudaMemsetAsync(gpu->fault, 0, sizeof *gpu->fault, gpu->stream);
        run_fail(run, FATHOM_ENUMERIC, "softmax_topk: a row has no probabilities, its logits hold NaN or infinity");
    }
    arena_restore(run->arena, mark);
}

extern "C" void copy_cuda(struct run *run, struct tensor *y, const struct tensor *x)
{
    with_act(run, [&](auto t) { launch_copy<decltype(t)>(run, y, x, NULL, "copy"); });
}

extern "C" void embed_cuda(struct run *run, struct tensor *y, const struct tensor *table, const int32_t *ids)
{
    with_act(run, [&](auto t) { launch_copy<decltype(t)>(run, y, table, ids, "embed"); });
}

extern "C" void positions_cuda(struct run *run, int32_t *pos, int32_t first, size_t n)
{
    if (!n)
        return;
    launch_on(positions_kernel, blocks_of(n, THREADS), THREADS, 0, gpu_of(run)->stream)(pos, first, n);
    gpu_check(run, cudaGetLastError(), "positions");
}

extern "C" void resize_1d_cuda(struct run *run, struct tensor *y, const struct tensor *x)
{
    const size_t n = y->shape[0] * y->shape[1];
    with_act(run, [&](auto t) {
        with_dtype(x->dtype, [&](auto s) {
            using T = decltype(t);
            using S = decltype(s);
            launch_on(resize_1d_kernel<T, S>, blocks_of(n, THREADS), THREADS, 0, gpu_of(run)->stream)(
                (T *)y->data, (const S *)x->data, x->shape[0], y->shape[0], y->shape[1]);
        });
    });
    gpu_check(run, cudaGetLastError(), "resize_1d");
}

extern "C" void resize_2d_cuda(struct run *run, struct tensor *y, const struct tensor *x, size_t side, size_t g)
{
    const size_t shared = 2 * (side + 2) * sizeof(float);
    if (shared > 48 << 10) {
        run_fail(run, FATHOM_EUNSUPPORTED, "resize_2d: a table of %zu rows is too large", side);
        return;
    }
    with_act(run, [&](auto t) {
        with_dtype(x->dtype, [&](auto s) {
            using T = decltype(t);
            using S = decltype(s);
            launch_on(resize_2d_kernel<T, S>, (unsigned)(g * g), THREADS, shared, gpu_of(run)->stream)(
                (T *)y->data, (const S *)x->data, (int)side, (int)g, (int)y->shape[1]);
        });
    });
    gpu_check(run, cudaGetLastError(), "resize_2d");
}
