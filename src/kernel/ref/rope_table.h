/* The angles of rope, shared by all levels. half: half the width of a head. */
#ifndef FATHOM_KERNEL_REF_ROPE_TABLE_H
#define FATHOM_KERNEL_REF_ROPE_TABLE_H

#include "kernel/kernel.h"

/* frequencies[j] = theta^(-j/half) */
void rope_frequencies(double *frequencies, size_t half, float theta);

/* cos and sin of pos * frequencies[j], rounded as the run stores them. */
void rope_table(const struct run *run, float *cosines, float *sines, const double *frequencies, size_t half,
                int32_t pos);

#endif
