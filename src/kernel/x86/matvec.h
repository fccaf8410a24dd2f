/* Products with few rows of x, straight from the stored weights. */
#ifndef FATHOM_KERNEL_X86_MATVEC_H
#define FATHOM_KERNEL_X86_MATVEC_H

#include "kernel/tensor.h"
#include "kernel/x86/simd.h"

#define MATVEC_ROWS (2 * SIMD_LANES) /* outputs of one call */
#define MATVEC_MAX_M 4               /* rows of x */

/* out[i * MATVEC_ROWS + r] = x_i . row (first + r) of w, for i < m and r < n_rows <= MATVEC_ROWS. Rows of x are
 * x_stride elements apart. next: where the caller will read the next MATVEC_ROWS rows, of the same stride, or NULL. */
void SIMD_NAME(matvec)(const struct tensor *w, size_t first, size_t n_rows, const float *x, size_t x_stride, size_t m,
                       float out[MATVEC_MAX_M * MATVEC_ROWS], const void *next);

#endif
