/* Matrix products on the GPU: y [n, m] = epilogue(x [n, k] w [m, k]^T + bias [m]), or with two weights the inner half of a
 * SwiGLU MLP, y = silu(x w^T) * (x up^T). Plain, or in groups: rows offsets[g] .. offsets[g + 1] - 1 of y meet the
 * weights of group g, which is how the experts of a mixture see their tokens. */
#ifndef FATHOM_KERNEL_CUDA_GEMM_H
#define FATHOM_KERNEL_CUDA_GEMM_H

#include "kernel/cuda/gpu.h"

#define MAX_GROUPS 128

struct gemm_arguments {
    const void *x; /* activations, rows x_stride elements apart */
    size_t x_stride;
    const int32_t *x_rows; /* row of x that is row i of the product; NULL: row i */
    void *y;               /* activations, or float32 when y_is_f32 */
    size_t y_stride;
    const void *bias; /* NULL: none */
    size_t w_stride;  /* of all weights */
    int n, m, k;
    int n_groups;           /* 1: plain                                    */
    const int32_t *offsets; /* [n_groups + 1], on the device; NULL: plain  */
    enum epilogue epilogue;
    bool swiglu; /* weights.up is there */
};

struct gemm_weights { /* by value into the kernels */
    const void *w[MAX_GROUPS], *up[MAX_GROUPS];
};

/* Sums in the order of kernel.h, any shape and alignment. T: activations; swiglu is not for this one. */
void gemm_exact(struct run *run, const struct gemm_arguments *a, const struct gemm_weights *w, enum dtype w_dtype,
                bool y_is_f32);

/* bf16 by mma.sync, any device; false: this shape or alignment is not for it, nothing was done. */
bool gemm_mma(struct run *run, const struct gemm_arguments *a, const struct gemm_weights *w, bool y_is_f32);

/* bf16 by wgmma on Hopper, plain products of many rows; false as above. */
bool gemm_wgmma(struct run *run, const struct gemm_arguments *a, const struct gemm_weights *w, bool y_is_f32);

/* bf16, at most GEMV_MAX_ROWS plain rows, as fast as the weights can be read; false as above. */
#define GEMV_MAX_ROWS 4
bool gemv(struct run *run, const struct gemm_arguments *a, const struct gemm_weights *w, bool y_is_f32);

/* The fastest of these that fits; with swiglu, or in groups, too. scratch for swiglu comes from the arena. */
void gemm(struct run *run, const struct gemm_arguments *a, const struct gemm_weights *w, enum dtype w_dtype,
          bool y_is_f32);

/* y = silu(gate) * up, [n, m] each with packed rows. */
void silu_times(struct run *run, void *y, size_t y_stride, const void *gate, const void *up, size_t n, size_t m);

/* [first, end) of the rows of tile number *tile of rows_a_tile rows, and its group; false: no such tile. */
#ifdef __CUDACC__
struct gemm_place {
    int first, end, group;
};
__device__ __forceinline__ bool find_tile(struct gemm_place &p, const struct gemm_arguments &a, int tile, int tile_rows)
{
    if (!a.offsets) {
        p.group = 0;
        p.first = tile * tile_rows;
        p.end = a.n;
        return p.first < p.end;
    }
    for (p.group = 0; p.group < a.n_groups; p.group++) {
        const int begin = a.offsets[p.group];
        p.end = a.offsets[p.group + 1];
        const int tiles = (p.end - begin + tile_rows - 1) / tile_rows;
        if (tile < tiles) {
            p.first = begin + tile * tile_rows;
            return true;
        }
        tile -= tiles;
    }
    return false;
}
#endif

static inline unsigned row_tiles(const struct gemm_arguments *a, int tile_rows)
{
    unsigned tiles = (unsigned)((a->n + tile_rows - 1) / tile_rows);
    return a->offsets ? tiles + (unsigned)a->n_groups : tiles; /* each group may end with a part of a tile */
}

#endif
