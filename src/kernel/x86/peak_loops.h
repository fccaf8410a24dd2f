/* The vector loops behind kernel/peak.h. */
#ifndef FATHOM_KERNEL_X86_PEAK_LOOPS_H
#define FATHOM_KERNEL_X86_PEAK_LOOPS_H

#include <stddef.h>

/* n_rounds of independent multiply-adds; returns the operations done, a multiply-add counting two. */
double peak_fma_loop_avx2(size_t n_rounds);
double peak_fma_loop_avx512(size_t n_rounds);

/* Reads n floats once. */
void peak_read_loop_avx2(const float *p, size_t n);
void peak_read_loop_avx512(const float *p, size_t n);

#endif
