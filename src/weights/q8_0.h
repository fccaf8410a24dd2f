/* ggml's Q8_0: 32 weights share a scale d = max |x| / 127, stored as f16; each is the int8 nearest to x / d (ties away
 * from zero), computed with the unrounded d. */
#ifndef FATHOM_WEIGHTS_Q8_0_H
#define FATHOM_WEIGHTS_Q8_0_H

#include "kernel/tensor.h"

/* n elements, a multiple of 32; dst and src hold n / 32 * 34 bytes of blocks. Finite input gives finite output: a scale
 * beyond f16 is cut to its largest. */
void q8_0_from_f32(uint8_t *dst, const float *src, size_t n);
void q8_0_to_f32(float *dst, const uint8_t *src, size_t n);

#endif
