/* bf16 products by mma.sync: a block of 8 warps makes 128 x 128 outputs (with swiglu 128 x 64 of each weight), a warp
 * 64 x 32; x and w pass through shared memory in steps of 64 columns, three steps under way. Sums in float32.
 *
 * With swiglu the tile's rows of w alternate by eights between gate and up, so that a thread holds both sums of an output.
 * Limit: the rate of mma.sync, on Hopper about six tenths of wgmma's. Against gemm_exact: the order of the sums alone. */
#include "kernel/cuda/exact.cuh"
#include "kernel/cuda/common.cuh"
#include "kernel/cuda/gemm.h"
#include "kernel/cuda/gemm_store.cuh"

namespace
{

constexpr int ROWS = 128, COLS = 128, STEP = 64, STAGES = 3, THREADS = 256;
constexpr int TILE_BYTES = ROWS * TILE_ROW_BYTES;
constexpr int SHARED_BYTES = STAGES * 2 * TILE_BYTES;
static_assert(ROWS == COLS, "both tiles are as large");

template <typename Y, bool SWIGLU>
__global__ __launch_bounds__(THREADS, 2) void mma_kernel(gemm_arguments a, const __grid_constant__ gemm_weights weights)
{
    DYNAMIC_SHARED(uint8_t, memory);
    gemm_place place;
    if (!find_tile(place, a, blockIdx.x, ROWS))
        return;
    constexpr int OUT_COLS = SWIGLU ? COLS / 2 : COLS;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, col0 = blockIdx.y * OUT_COLS;
    const int warp_row = warp / 4 * 64, warp_col = warp % 4 * 32;
    const uint32_t base = shared_address(memory);

    /* A thread copies chunk threadIdx.x % 8 of the rows threadIdx.x / 8 + 32 i of both tiles. */
    const int chunk = threadIdx.x % 8;
    const bf16 *x_row[4], *w_row[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int r = threadIdx.x / 8 + 32 * i, row = place.first + r;
        x_row[i] = nullptr;
        if (row < place.end)
            x_row[i] = (const bf16 *)a.x + (size_t)(a.x_rows ? a.x_rows[row] : row) * a.x_stride;
        const int col = SWIGLU ? col0 + r / 16 * 8 + r % 8 : col0 + r;
        const void *w = SWIGLU && r / 8 % 2 ? weights.up[place.group] : weights.w[place.group];
        w_row[i] = col < a.m ? (const bf16 *)w + (size_t)col * a.w_stride : nullptr;
    }
    auto fill = [&](int step) {
        const uint32_t stage = base + step % STAGES * 2 * TILE_BYTES;
        const int k = step * STEP + chunk * 8;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const uint32_t at = tile_offset(threadIdx.x / 8 + 32 * i, chunk);
            copy16_async(stage + at, x_row[i] ? x_row[i] + k : (const bf16 *)a.x, x_row[i] && k < a.k);
            copy16_async(stage + TILE_BYTES + at, w_row[i] ? w_row[i] + k : (const bf16 *)a.x, w_row[i] && k < a.k);
        }
    };

    float acc[4][4][4] = {};
    const int n_steps = (a.k + STEP - 1) / STEP;
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < n_steps)
            fill(s);
        copy_async_commit();
    }
    for (int step = 0; step < n_steps; step++) {
        copy_async_wait<STAGES - 2>();
        __syncthreads(); /* this step written by all -> read; the one before read by all -> overwritten */
        if (step + STAGES - 1 < n_steps)
            fill(step + STAGES - 1);
        copy_async_commit();
        const uint32_t xs = base + step % STAGES * 2 * TILE_BYTES, ws = xs + TILE_BYTES;
#pragma unroll
        for (int k = 0; k < STEP / 16; k++) {
            uint32_t xf[4][4], wf[2][4];
#pragma unroll
            for (int i = 0; i < 4; i++)
                load_matrix4(xf[i], xs + tile_offset(warp_row + i * 16 + lane % 16, k * 2 + lane / 16));
#pragma unroll
            for (int j = 0; j < 2; j++)
                load_matrix4(wf[j], ws + tile_offset(warp_col + j * 16 + lane / 16 * 8 + lane % 8, k * 2 + lane / 8 % 2));
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    mma_16x8x16<bf16>(acc[i][2 * j], xf[i], wf[j][0], wf[j][1]);
                    mma_16x8x16<bf16>(acc[i][2 * j + 1], xf[i], wf[j][2], wf[j][3]);
                }
        }
    }
    copy_async_wait<0>();

    const int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int row = place.first + warp_row + i * 16 + h * 8 + g;
            if (row >= place.end)
                continue;
            Y *y = (Y *)a.y + (size_t)row * a.y_stride;
#pragma unroll
            for (int j = 0; j < 4; j += SWIGLU ? 2 : 1) {
                const int col = SWIGLU ? col0 + warp_col / 2 + j / 2 * 8 + t * 2 : col0 + warp_col + j * 8 + t * 2;
                if (col >= a.m)
                    continue;
                const int up = SWIGLU ? j + 1 : j, e = h * 2;
                store_pair<Y, SWIGLU>(a, y, col, acc[i][j][e], acc[i][j][e + 1], acc[i][up][e], acc[i][up][e + 1]);
            }
        }
}

template <typename Y, bool SWIGLU>
cudaError_t launch(const gemm_arguments &a, const gemm_weights &w, cudaStream_t stream)
{
    auto kernel = mma_kernel<Y, SWIGLU>;
    cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
    if (error)
        return error;
    launch_on(kernel, dim3(row_tiles(&a, ROWS), blocks_of(a.m, SWIGLU ? COLS / 2 : COLS)), THREADS, SHARED_BYTES, stream)(a, w);
    return cudaGetLastError();
}

bool is_aligned(const void *p, size_t stride) { return (uintptr_t)p % 16 == 0 && stride % 8 == 0; }

} // namespace

bool gemm_mma(struct run *run, const struct gemm_arguments *a, const struct gemm_weights *w, bool y_is_f32)
{
    if (a->k % 8 || a->m % 2 || a->y_stride % 2 || !is_aligned(a->x, a->x_stride) || (uintptr_t)a->y % 8 ||
        a->w_stride % 8 || gpu_of(run)->at.block_shared_bytes < (size_t)SHARED_BYTES)
        return false;
    for (int g = 0; g < a->n_groups; g++)
        if (!is_aligned(w->w[g], 0) || (a->swiglu && !is_aligned(w->up[g], 0)))
            return false;
    cudaStream_t stream = gpu_of(run)->stream;
    cudaError_t error = a->swiglu   ? launch<bf16, true>(*a, *w, stream)
                        : y_is_f32 ? launch<float, false>(*a, *w, stream)
                                   : launch<bf16, false>(*a, *w, stream);
    gpu_check(run, error, "linear");
    return true;
}
