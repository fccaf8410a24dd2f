/* bf16 products on Hopper: a block makes 128 x 128 outputs (with swiglu 128 x 64 of each weight) with two warpgroups of 64
 * rows; a ninth warp has the copy engine fill a ring of steps of 64 columns of x and w. Two blocks share a multiprocessor,
 * so that one computes while the other begins or ends. Sums in float32, in wgmma's order.
 *
 * With swiglu the lower half of the tile of w is gate's and the upper half up's, so a thread holds both sums of an output.
 * Limit: the tensor cores, 128 * 128 * 64 products a step for 32 KiB from the L2 cache. */
#include "kernel/cuda/exact.cuh"
#include "kernel/cuda/wgmma.cuh"
#include "kernel/cuda/gemm.h"
#include "kernel/cuda/gemm_store.cuh"

namespace
{

constexpr int ROWS = 128, COLS = 128, STEP = 64, STAGES = 3;
constexpr int CONSUMERS = 256, THREADS = CONSUMERS + 32;
constexpr int TILE_BYTES = ROWS * TILE_ROW_BYTES;

struct gemm_maps {
    CUtensorMap x, w, up; /* [rows, k], box: 64 columns of a tile's rows */
};

struct gemm_shared {
    alignas(1024) uint8_t x[STAGES][TILE_BYTES];
    uint8_t w[STAGES][TILE_BYTES];
    uint64_t full[STAGES];  /* the copy engine's bytes have arrived        */
    uint64_t empty[STAGES]; /* both warpgroups are done with the stage     */
};
static_assert(2 * (sizeof(gemm_shared) + 1024) <= 227 * 1024, "two blocks fit into a multiprocessor");

template <typename Y, bool SWIGLU>
__global__ __launch_bounds__(THREADS, 2) void wgmma_kernel(const __grid_constant__ gemm_maps maps, gemm_arguments a)
{
#ifdef FATHOM_HAS_WGMMA
    DYNAMIC_SHARED(uint8_t, memory);
    auto &sm = *reinterpret_cast<gemm_shared *>(memory);
    constexpr int OUT_COLS = SWIGLU ? COLS / 2 : COLS;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row0 = blockIdx.x * ROWS, col0 = blockIdx.y * OUT_COLS, n_steps = (a.k + STEP - 1) / STEP;

    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            barrier_init(&sm.full[i], 1);
            barrier_init(&sm.empty[i], 2);
        }
        barrier_init_fence();
    }
    __syncthreads(); /* barriers initialised -> used by all */

    if (warp == CONSUMERS / 32) {
        if (lane == 0)
            for (int step = 0; step < n_steps; step++) {
                const int stage = step % STAGES;
                if (step >= STAGES)
                    barrier_wait(&sm.empty[stage], step / STAGES % 2 ^ 1);
                barrier_arrive_expect(&sm.full[stage], 2 * TILE_BYTES);
                copy_box_2d(shared_address(sm.x[stage]), &maps.x, step * STEP, row0, &sm.full[stage]);
                copy_box_2d(shared_address(sm.w[stage]), &maps.w, step * STEP, col0, &sm.full[stage]);
                if (SWIGLU)
                    copy_box_2d(shared_address(sm.w[stage]) + TILE_BYTES / 2, &maps.up, step * STEP, col0,
                                &sm.full[stage]);
            }
        return;
    }

    const int group = warp / 4;
    float acc[64];
    for (int step = 0; step < n_steps; step++) {
        const int stage = step % STAGES;
        barrier_wait(&sm.full[stage], step / STAGES % 2);
        const uint64_t x = wgmma_descriptor(shared_address(sm.x[stage]) + group * 64 * TILE_ROW_BYTES);
        const uint64_t w = wgmma_descriptor(shared_address(sm.w[stage]));
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < STEP / 16; k++)
            wgmma_shared(acc, x + k * (32 >> 4), w + k * (32 >> 4), step + k > 0);
        wgmma_commit();
        wgmma_wait<1>(); /* the last step's products are done, so its stage may be filled */
        keep_order(acc);
        if (step > 0 && threadIdx.x % 128 == 0)
            barrier_arrive(&sm.empty[(step - 1) % STAGES]);
    }
    wgmma_wait<0>();
    keep_order(acc);

    const int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int row = row0 + warp * 16 + h * 8 + g;
        if (row >= a.n)
            continue;
        Y *y = (Y *)a.y + (size_t)row * a.y_stride;
#pragma unroll
        for (int j = 0; j < OUT_COLS / 8; j++) {
            const int col = col0 + j * 8 + t * 2;
            if (col >= a.m)
                break;
            const int at = j * 4 + h * 2, up = (at + 32) % 64;
            store_pair<Y, SWIGLU>(a, y, col, acc[at], acc[at + 1], acc[up], acc[up + 1]);
        }
    }
#endif
}

template <typename Y, bool SWIGLU>
enum fathom_status launch(const gemm_arguments &a, const gemm_weights &w, cudaStream_t stream, struct fathom_err *err)
{
    const size_t x_extent[2] = {(size_t)a.k, (size_t)a.n}, w_extent[2] = {(size_t)a.k, (size_t)a.m};
    const int x_box[2] = {STEP, ROWS}, w_box[2] = {STEP, SWIGLU ? COLS / 2 : COLS};
    gemm_maps maps;
    enum fathom_status status = tensor_map(&maps.x, a.x, 2, x_extent, &a.x_stride, x_box, err);
    if (!status)
        status = tensor_map(&maps.w, w.w[0], 2, w_extent, &a.w_stride, w_box, err);
    if (!status)
        status = tensor_map(&maps.up, SWIGLU ? w.up[0] : w.w[0], 2, w_extent, &a.w_stride, w_box, err);
    if (status)
        return status;
    auto kernel = wgmma_kernel<Y, SWIGLU>;
    cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)sizeof(gemm_shared));
    if (error)
        return cuda_status(error, "linear", err);
    const dim3 grid(blocks_of(a.n, ROWS), blocks_of(a.m, SWIGLU ? COLS / 2 : COLS));
    launch_on(kernel, grid, THREADS, sizeof(gemm_shared), stream)(maps, a);
    return cuda_status(cudaGetLastError(), "linear", err);
}

} // namespace

bool gemm_wgmma(struct run *run, const struct gemm_arguments *a, const struct gemm_weights *w, bool y_is_f32)
{
    const struct gpu *gpu = gpu_of(run);
    if (gpu->at.major != 9 || gpu->at.minor != 0 || a->offsets || a->x_rows || a->k % 8 || a->m % 2 ||
        a->x_stride % 8 || a->w_stride % 8 || a->y_stride % 2 || (uintptr_t)a->x % 16 || (uintptr_t)w->w[0] % 16 ||
        (uintptr_t)a->y % 8 || (a->swiglu && (uintptr_t)w->up[0] % 16) || blocks_of(a->m, COLS / 2) > 65535)
        return false;
    struct fathom_err err = {};
    enum fathom_status status = a->swiglu   ? launch<bf16, true>(*a, *w, gpu->stream, &err)
                                : y_is_f32 ? launch<float, false>(*a, *w, gpu->stream, &err)
                                           : launch<bf16, false>(*a, *w, gpu->stream, &err);
    if (status)
        run_fail(run, status, "%s", err.message);
    return true;
}
