/* Products of the models: which kernel takes them, convolutions as products, SwiGLU. */
#include <string.h>

#include "kernel/cuda/exact.cuh"
#include "kernel/cuda/gemm.h"
#include "kernel/cuda/ops.h"

namespace
{

/* ---- few rows ---------------------------------------------------------------------------------------------------
 * y [n, m], n <= GEMV_MAX_ROWS: a warp makes WARP_COLS neighbouring outputs of all rows; its lanes take chunks of 8
 * columns in turn. Limit: w is read once. The order of a row's sum does not depend on n. */

constexpr int GEMV_THREADS = 128, WARP_COLS = 2;

template <int N, typename Y, bool SWIGLU>
__global__ __launch_bounds__(GEMV_THREADS) void gemv_kernel(gemm_arguments a, const bf16 *w, const bf16 *up)
{
    const int warp = (blockIdx.x * GEMV_THREADS + threadIdx.x) / 32, lane = threadIdx.x % 32, col0 = warp * WARP_COLS;
    constexpr int SUMS = SWIGLU ? 2 * WARP_COLS : WARP_COLS;
    float acc[N][SUMS] = {};
    const bf16 *rows[SUMS];
#pragma unroll
    for (int c = 0; c < SUMS; c++)
        rows[c] = (SWIGLU && c % 2 ? up : w) + (size_t)min(col0 + (SWIGLU ? c / 2 : c), a.m - 1) * a.w_stride;
    for (int k = lane * 8; k < a.k; k += 256) {
        float x[N][8];
#pragma unroll
        for (int r = 0; r < N; r++)
            unpack8(x[r], *(const uint4 *)((const bf16 *)a.x + r * a.x_stride + k));
#pragma unroll
        for (int c = 0; c < SUMS; c++) {
            float v[8];
            unpack8(v, __ldg((const uint4 *)(rows[c] + k)));
#pragma unroll
            for (int r = 0; r < N; r++)
#pragma unroll
                for (int i = 0; i < 8; i++)
                    acc[r][c] = fmaf(x[r][i], v[i], acc[r][c]);
        }
    }
#pragma unroll
    for (int r = 0; r < N; r++)
#pragma unroll
        for (int c = 0; c < SUMS; c++)
#pragma unroll
            for (int i = 16; i > 0; i /= 2)
                acc[r][c] += __shfl_xor_sync(0xffffffffu, acc[r][c], i);
    if (lane)
        return;
#pragma unroll
    for (int r = 0; r < N; r++)
#pragma unroll
        for (int c = 0; c < WARP_COLS; c++) {
            const int col = col0 + c;
            if (col >= a.m)
                continue;
            Y *y = (Y *)a.y + r * a.y_stride + col;
            if (SWIGLU) {
                *y = from_float<Y>(stored<bf16>(silu_f32(stored<bf16>(acc[r][2 * c % SUMS]))) *
                                   stored<bf16>(acc[r][(2 * c + 1) % SUMS]));
            } else {
                float v = acc[r][c];
                if (a.bias)
                    v += to_float(((const bf16 *)a.bias)[col]);
                *y = from_float<Y>(finish<Y>(v, a.epilogue));
            }
        }
}

template <int N>
void launch_gemv(const gemm_arguments &a, const gemm_weights &w, bool y_is_f32, cudaStream_t stream)
{
    const unsigned blocks = blocks_of(a.m, GEMV_THREADS / 32 * WARP_COLS);
    const bf16 *first = (const bf16 *)w.w[0], *up = (const bf16 *)w.up[0];
    if (a.swiglu)
        launch_on(gemv_kernel<N, bf16, true>, blocks, GEMV_THREADS, 0, stream)(a, first, up);
    else if (y_is_f32)
        launch_on(gemv_kernel<N, float, false>, blocks, GEMV_THREADS, 0, stream)(a, first, up);
    else
        launch_on(gemv_kernel<N, bf16, false>, blocks, GEMV_THREADS, 0, stream)(a, first, up);
}

/* ---- convolution: windows as rows -------------------------------------------------------------------------------- */

constexpr int THREADS = 256;

struct window_arguments {
    const void *x;
    size_t stride[4]; /* view, y, x, channel */
    int h, w, channels, out_h, out_w, kernel, stride_px, pad;
    size_t first, n; /* rows of the result */
};

/* out [n, channels * kernel * kernel], zeros outside of the map. */
template <typename T> __global__ void windows_kernel(T *out, window_arguments a)
{
    const int taps = a.kernel * a.kernel, cols = a.channels * taps;
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= a.n * cols)
        return;
    const int col = (int)(i % cols), c = col / taps, ky = col % taps / a.kernel, kx = col % a.kernel;
    size_t p = a.first + i / cols, positions = (size_t)a.out_h * a.out_w, view = p / positions;
    const int y = (int)(p % positions / a.out_w) * a.stride_px + ky - a.pad;
    const int x = (int)(p % a.out_w) * a.stride_px + kx - a.pad;
    const bool inside = y >= 0 && y < a.h && x >= 0 && x < a.w;
    out[i] = inside ? ((const T *)a.x)[view * a.stride[0] + y * a.stride[1] + x * a.stride[2] + c * a.stride[3]]
                    : from_float<T>(0.0f);
}

gemm_arguments arguments_of(const struct tensor *y, const struct tensor *x, const struct tensor *w,
                            const struct tensor *bias, enum epilogue epilogue)
{
    gemm_arguments a = {};
    a.x = x->data;
    a.x_stride = x->stride[0];
    a.y = y->data;
    a.y_stride = y->stride[0];
    a.bias = bias ? bias->data : NULL;
    a.w_stride = w->stride[0];
    a.n = (int)x->shape[0];
    a.m = (int)w->shape[0];
    a.k = (int)x->shape[1];
    a.n_groups = 1;
    a.epilogue = epilogue;
    return a;
}

} // namespace

bool gemv(struct run *run, const struct gemm_arguments *a, const struct gemm_weights *w, bool y_is_f32)
{
    if (a->offsets || a->x_rows || a->n > GEMV_MAX_ROWS || a->k % 8 || a->x_stride % 8 || a->w_stride % 8 ||
        (uintptr_t)a->x % 16 || (uintptr_t)w->w[0] % 16 || (a->swiglu && (uintptr_t)w->up[0] % 16))
        return false;
    cudaStream_t stream = gpu_of(run)->stream;
    switch (a->n) {
    case 1: launch_gemv<1>(*a, *w, y_is_f32, stream); break;
    case 2: launch_gemv<2>(*a, *w, y_is_f32, stream); break;
    case 3: launch_gemv<3>(*a, *w, y_is_f32, stream); break;
    default: launch_gemv<4>(*a, *w, y_is_f32, stream); break;
    }
    gpu_check(run, cudaGetLastError(), "linear");
    return true;
}

/* gate and up into scratch, then their product. */
static void swiglu_exact(struct run *run, const struct gemm_arguments *a, const struct gemm_weights *w,
                         enum dtype w_dtype)
{
    struct arena_mark mark = arena_save(run->arena);
    struct tensor gate = run_alloc(run, a->n, a->m), up = run_alloc(run, a->n, a->m);
    struct gemm_arguments half = *a;
    static_assert(sizeof w->w == sizeof w->up, "");
    if (run_ok(run)) {
        struct gemm_weights second;
        memcpy(second.w, w->up, sizeof second.w);
        half.swiglu = false;
        half.y_stride = a->m;
        half.y = gate.data;
        gemm_exact(run, &half, w, w_dtype, false);
        half.y = up.data;
        gemm_exact(run, &half, &second, w_dtype, false);
        silu_times(run, a->y, a->y_stride, gate.data, up.data, a->n, a->m);
    }
    arena_restore(run->arena, mark);
}

void gemm(struct run *run, const struct gemm_arguments *a, const struct gemm_weights *w, enum dtype w_dtype,
          bool y_is_f32)
{
    if (!a->n || !a->m || !run_ok(run))
        return;
    const bool fast = run->dtype == DTYPE_BF16 && w_dtype == DTYPE_BF16 && !gpu_of(run)->exact;
    if (fast && (gemv(run, a, w, y_is_f32) || gemm_wgmma(run, a, w, y_is_f32) || gemm_mma(run, a, w, y_is_f32)))
        return;
    if (a->swiglu)
        swiglu_exact(run, a, w, w_dtype);
    else
        gemm_exact(run, a, w, w_dtype, y_is_f32);
}

extern "C" void linear_cuda(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w,
                            const struct tensor *bias, enum epilogue epilogue)
{
    struct gemm_arguments a = arguments_of(y, x, w, bias, epilogue);
    struct gemm_weights weights;
    weights.w[0] = w->data;
    if (bias && bias->dtype != w->dtype)
        run_fail(run, FATHOM_EUNSUPPORTED, "linear: weights of two dtypes");
    else
        gemm(run, &a, &weights, w->dtype, y->dtype == DTYPE_F32);
}

extern "C" void swiglu_cuda(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *gate,
                            const struct tensor *up)
{
    struct gemm_arguments a = arguments_of(y, x, gate, NULL, EPILOGUE_NONE);
    struct gemm_weights weights;
    weights.w[0] = gate->data;
    weights.up[0] = up->data;
    a.swiglu = true;
    if (gate->dtype != up->dtype || gate->stride[0] != up->stride[0])
        run_fail(run, FATHOM_EUNSUPPORTED, "swiglu: gate and up are stored differently");
    else
        gemm(run, &a, &weights, gate->dtype, y->dtype == DTYPE_F32);
}

extern "C" void conv2d_cuda(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w,
                            const struct tensor *bias, struct conv2d_shape s)
{
    const size_t n = y->shape[0] * y->shape[1] * y->shape[2], cols = w->shape[1];
    struct tensor y_rows = tensor_2d(y->dtype, y->data, n, y->shape[3]);
    const bool packed = x->stride[3] == 1 && x->stride[1] == x->shape[2] * x->stride[2] &&
                        x->stride[0] == x->shape[1] * x->stride[1];
    if (s.kernel == 1 && s.stride == 1 && s.pad == 0 && packed) {
        struct tensor rows = tensor_2d(x->dtype, x->data, n, cols);
        rows.stride[0] = x->stride[2];
        linear_cuda(run, &y_rows, &rows, w, bias, EPILOGUE_NONE);
        return;
    }
    struct arena_mark mark = arena_save(run->arena);
    const size_t most = n < run->kernels->max_rows ? n : run->kernels->max_rows;
    struct tensor windows = run_alloc(run, most, cols);
    window_arguments a = {};
    a.x = x->data;
    for (int i = 0; i < 4; i++)
        a.stride[i] = x->stride[i];
    a.h = (int)x->shape[1];
    a.w = (int)x->shape[2];
    a.channels = (int)x->shape[3];
    a.out_h = (int)y->shape[1];
    a.out_w = (int)y->shape[2];
    a.kernel = (int)s.kernel;
    a.stride_px = (int)s.stride;
    a.pad = (int)s.pad;
    for (a.first = 0; a.first < n && run_ok(run); a.first += a.n) {
        a.n = n - a.first < most ? n - a.first : most;
        with_act(run, [&](auto t) {
            using T = decltype(t);
            launch_on(windows_kernel<T>, blocks_of(a.n * cols, THREADS), THREADS, 0, gpu_of(run)->stream)((T *)windows.data, a);
        });
        gpu_check(run, cudaGetLastError(), "conv2d");
        struct tensor part = tensor_rows(&windows, 0, a.n), y_part = tensor_rows(&y_rows, a.first, a.n);
        linear_cuda(run, &y_part, &part, w, bias, EPILOGUE_NONE);
    }
    arena_restore(run->arena, mark);
}
