/* Products with few rows of x, straight from the stored weights. */
#ifndef FATHOM_KERNEL_X86_MATVEC_H
#define FATHOM_KERNEL_X86_MATVEC_H

#include "kernel/tensor.h"
#include "kernel/x86/simd.h"

#define MATVEC_ROWS (2 * SIMD_LANES) /* outputs of one call */
#define MATVEC_MAX_M 4               /* rows of x */

struct weight_rows { /* rows [first, first + n) of w, n <= MATVEC_ROWS */
    const struct tensor *w;
    size_t first, n;
};

static inline size_t matvec_blocks(size_t rows) { return (rows + MATVEC_ROWS - 1) / MATVEC_ROWS; }

/* The rows of w in block number `block`. */
static inline struct weight_rows matvec_block(const struct tensor *w, size_t block)
{
    size_t first = block * MATVEC_ROWS, left = w->shape[0] - first;
    return (struct weight_rows){w, first, left < MATVEC_ROWS ? left : MATVEC_ROWS};
}

/* Cuts n_blocks into runs for the pool, run i being blocks [starts[i], starts[i + 1]), and returns their number; starts has
 * room for n_blocks + 1. Runs get shorter towards the end: long ones keep the memory busy, short ones let threads end at
 * the same time although memory does not serve them equally. */
static inline size_t matvec_runs(size_t n_blocks, int n_threads, size_t *starts)
{
    size_t n = 0;
    starts[0] = 0;
    while (starts[n] < n_blocks) {
        size_t length = (n_blocks - starts[n]) / (3 * (size_t)n_threads);
        starts[n + 1] = starts[n] + (length > 0 ? length : 1);
        n++;
    }
    return n;
}

struct matvec_input { /* m rows of n_k values */
    const float *x;
    size_t stride, m, n_k;
    bool is_moderate; /* see matvec_simd.c */
};

/* Looks at the values. */
struct matvec_input SIMD_NAME(matvec_input)(const float *x, size_t stride, size_t m, size_t n_k);

/* out[i * MATVEC_ROWS + r] = x_i . row (first + r) of w, for i < m and r < n. next: what the caller will read afterwards,
 * or NULL. */
void SIMD_NAME(matvec)(struct weight_rows rows, const struct matvec_input *x, float out[MATVEC_MAX_M * MATVEC_ROWS],
                       const struct weight_rows *next);

/* For the first rows of a task, which were nobody's next: asks for what a call reads first. */
void SIMD_NAME(matvec_begin)(struct weight_rows rows);

#endif
