/* Weights are stored row by row, [out, in]; the kernels want, for one k, a vector over neighbouring outputs. Rows are loaded 16
 * bytes at a time, four rows to a register of 16 lanes (two to one of 8), and 4 x 4 blocks are transposed inside the 128-bit
 * parts. */
#ifndef FATHOM_KERNEL_X86_TURN_H
#define FATHOM_KERNEL_X86_TURN_H

#include "kernel/x86/simd.h"

SIMD_INLINE __m128i load_16_bytes(const char *p) { return _mm_loadu_si128((const __m128i *)p); }

/* out[j]: 32-bit words j = 0..3 of the rows at p, p + stride, ... */
SIMD_INLINE void columns_i32(vi out[4], const char *p, size_t stride)
{
    vi r[4];
#if SIMD_LANES == 16
    const char *p4 = p + 4 * stride, *p8 = p + 8 * stride, *p12 = p + 12 * stride;
    UNROLL for (size_t j = 0; j < 4; j++)
    {
        r[j] = _mm512_castsi128_si512(load_16_bytes(p + j * stride));
        r[j] = _mm512_mask_broadcast_i32x4(r[j], 0x00f0, load_16_bytes(p4 + j * stride));
        r[j] = _mm512_mask_broadcast_i32x4(r[j], 0x0f00, load_16_bytes(p8 + j * stride));
        r[j] = _mm512_mask_broadcast_i32x4(r[j], 0xf000, load_16_bytes(p12 + j * stride));
    }
    vi a = _mm512_unpacklo_epi32(r[0], r[1]), b = _mm512_unpacklo_epi32(r[2], r[3]);
    vi c = _mm512_unpackhi_epi32(r[0], r[1]), d = _mm512_unpackhi_epi32(r[2], r[3]);
    out[0] = _mm512_unpacklo_epi64(a, b), out[1] = _mm512_unpackhi_epi64(a, b);
    out[2] = _mm512_unpacklo_epi64(c, d), out[3] = _mm512_unpackhi_epi64(c, d);
#else
    const char *p4 = p + 4 * stride;
    UNROLL for (size_t j = 0; j < 4; j++) r[j] = _mm256_inserti128_si256(
        _mm256_castsi128_si256(load_16_bytes(p + j * stride)), load_16_bytes(p4 + j * stride), 1);
    vi a = _mm256_unpacklo_epi32(r[0], r[1]), b = _mm256_unpacklo_epi32(r[2], r[3]);
    vi c = _mm256_unpackhi_epi32(r[0], r[1]), d = _mm256_unpackhi_epi32(r[2], r[3]);
    out[0] = _mm256_unpacklo_epi64(a, b), out[1] = _mm256_unpackhi_epi64(a, b);
    out[2] = _mm256_unpacklo_epi64(c, d), out[3] = _mm256_unpackhi_epi64(c, d);
#endif
}

#endif
