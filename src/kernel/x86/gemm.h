/* Matrix products with weights left as they are stored: C [m, n] = A [m, k] B [n, k]^T for one job or many in one fork.
 * What A is (rows, gathered rows, windows of a map) and what becomes of C (bias and activation, SwiGLU, a weighted sum)
 * are the caller's functions. */
#ifndef FATHOM_KERNEL_X86_GEMM_H
#define FATHOM_KERNEL_X86_GEMM_H

#include "kernel/kernel.h"
#include "kernel/x86/simd.h"

struct gemm_job;

/* Writes elements [k, k + n_k) of row `row` of A. */
typedef void gemm_read_fn(const struct gemm_job *job, float *to, size_t row, size_t k, size_t n_k);

/* Gets n_cols finished sums of one row: c[0..n_cols) are outputs col, col + 1, ...; of a job with two weights, c holds
 * them for the first and c2 for the second. */
typedef void gemm_finish_fn(const struct gemm_job *job, size_t row, size_t col, size_t n_cols, float *c,
                            const float *c2);

struct gemm_job {
    size_t m, n, k;
    const struct tensor *w, *w2; /* [n, k]; w2 NULL: one matrix                                       */
    const float *x;              /* rows of A; NULL: they come from read                              */
    size_t x_stride;             /* in elements                                                       */
    const int32_t *rows;         /* row i of A is row rows[i] of x; NULL: row i                       */
    gemm_read_fn *read;
    gemm_finish_fn *finish;
    const void *ctx; /* for read and finish                                                           */
    float *c;        /* where partial sums wait, [m, n]; the finished row is here too when finish is  */
    size_t c_stride; /* called. NULL: in the thread's scratch                                         */
};

/* Every output of every job once, in any order. */
void SIMD_NAME(gemm)(struct run *run, const struct gemm_job *jobs, size_t n_jobs);

/* All jobs have the same n; each output column sees the jobs in order. */
void SIMD_NAME(gemm_in_order)(struct run *run, const struct gemm_job *jobs, size_t n_jobs);

#endif
