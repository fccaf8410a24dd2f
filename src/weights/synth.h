/* synth-v1: weights and inputs that any program can make for itself, bit for bit. Element i (row-major) of the tensor
 * called name is
 *     z = fnv1a64(name) + (i + 1) * 0x9E3779B97F4A7C15, then the finaliser of splitmix64, modulo 2^64
 *     u = (z >> 40) * 2^-24, v = 2u - 1, w = center + amp * v in float32, product and sum each rounded
 * and, for weights, w rounded to bf16. */
#ifndef FATHOM_WEIGHTS_SYNTH_H
#define FATHOM_WEIGHTS_SYNTH_H

#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"

/* u of element i, in [0, 1). */
float synth_raw(const char *name, uint64_t i);

/* The same for elements [first, first + n) in bulk. pool may be NULL. _rounded gives float32 that bf16 holds exactly. */
void synth_fill_f32(float *dst, const char *name, uint64_t first, size_t n, float center, float amp, struct pool *pool);
void synth_fill_f32_rounded(float *dst, const char *name, uint64_t first, size_t n, float center, float amp,
                            struct pool *pool);
void synth_fill_bf16(uint16_t *dst, const char *name, uint64_t first, size_t n, float center, float amp,
                     struct pool *pool);

/* The range of a checkpoint's tensor, by its published name. */
struct synth_range {
    float center, amp;
};
struct synth_range synth_rule(const char *name, int n_dims, const size_t *shape);

#endif
