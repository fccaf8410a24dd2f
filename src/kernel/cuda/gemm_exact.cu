/* The product as kernel.h defines it: for each output one chain of fused multiply-adds over ascending k. float32 units; a
 * block makes 64 x 64 outputs, a thread 4 x 4. Limit: the float32 rate, of which the loads from shared memory leave
 * about half. */
#include "kernel/cuda/exact.cuh"
#include "kernel/cuda/gemm.h"

namespace
{

constexpr int TILE = 64, STEP = 16, THREADS = 256;

template <typename T, typename W, typename Y>
__global__ __launch_bounds__(THREADS) void exact_kernel(gemm_arguments a, const __grid_constant__ gemm_weights weights)
{
    __shared__ float xs[STEP][TILE + 4], ws[STEP][TILE + 4];
    gemm_place place;
    if (!find_tile(place, a, blockIdx.x, TILE))
        return;
    const int col0 = blockIdx.y * TILE, ty = threadIdx.x / 16, tx = threadIdx.x % 16;
    const int load_row = threadIdx.x / 4, load_k = threadIdx.x % 4 * 4;
    const T *x = nullptr;
    const W *w = nullptr;
    if (place.first + load_row < place.end) {
        const int row = place.first + load_row;
        x = (const T *)a.x + (size_t)(a.x_rows ? a.x_rows[row] : row) * a.x_stride;
    }
    if (col0 + load_row < a.m)
        w = (const W *)weights.w[place.group] + (size_t)(col0 + load_row) * a.w_stride;

    float acc[4][4] = {};
    for (int k0 = 0; k0 < a.k; k0 += STEP) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int k = k0 + load_k + i;
            xs[load_k + i][load_row] = x && k < a.k ? to_float(x[k]) : 0.0f;
            ws[load_k + i][load_row] = w && k < a.k ? to_float(w[k]) : 0.0f;
        }
        __syncthreads(); /* this step written -> read */
#pragma unroll
        for (int k = 0; k < STEP; k++) {
            float xv[4], wv[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                xv[i] = xs[k][ty * 4 + i];
                wv[i] = ws[k][tx * 4 + i];
            }
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++)
                    acc[i][j] = fmaf(xv[i], wv[j], acc[i][j]);
        }
        __syncthreads(); /* read -> overwritten by the next step */
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int row = place.first + ty * 4 + i, col = col0 + tx * 4 + j;
            if (row >= place.end || col >= a.m)
                continue;
            float v = acc[i][j];
            if (a.bias)
                v = __fadd_rn(v, to_float(((const W *)a.bias)[col]));
            ((Y *)a.y)[row * a.y_stride + col] = from_float<Y>(finish<Y>(v, a.epilogue));
        }
}

template <typename T>
__global__ void silu_times_kernel(T *y, size_t y_stride, const T *gate, const T *up, size_t n, unsigned m)
{
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < n)
        y[i / m * y_stride + i % m] = from_float<T>(__fmul_rn(stored<T>(silu_f32(to_float(gate[i]))), to_float(up[i])));
}

} // namespace

void gemm_exact(struct run *run, const struct gemm_arguments *a, const struct gemm_weights *w, enum dtype w_dtype,
                bool y_is_f32)
{
    const dim3 grid(row_tiles(a, TILE), blocks_of(a->m, TILE));
    cudaStream_t stream = gpu_of(run)->stream;
    with_act(run, [&](auto t) {
        with_dtype(w_dtype, [&](auto u) {
            using T = decltype(t);
            using W = decltype(u);
            if (y_is_f32)
                launch_on(exact_kernel<T, W, float>, grid, THREADS, 0, stream)(*a, *w);
            else
                launch_on(exact_kernel<T, W, T>, grid, THREADS, 0, stream)(*a, *w);
        });
    });
    gpu_check(run, cudaGetLastError(), "linear");
}

void silu_times(struct run *run, void *y, size_t y_stride, const void *gate, const void *up, size_t n, size_t m)
{
    with_act(run, [&](auto t) {
        using T = decltype(t);
        launch_on(silu_times_kernel<T>, blocks_of(n * m, THREADS), THREADS, 0, gpu_of(run)->stream)(
            (T *)y, y_stride, (const T *)gate, (const T *)up, n * m, (unsigned)m);
    });
    gpu_check(run, cudaGetLastError(), "swiglu");
}
