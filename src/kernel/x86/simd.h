/* The lanes in which the vector kernels are written. Each *_simd.c is compiled once with SIMD_AVX2 (8 lanes) and once
 * with SIMD_AVX512 (16 lanes). Vectors of floats take the operators + - * /; nothing is fused unless v_fma says so.
 *
 *   vf        floats              v16       16 floats at either width, for sums whose order is part of the definition
 *   vi        32-bit integers     *_n       the first n lanes only, n <= SIMD_LANES: nothing beyond is touched, loads
 *   vmask     one truth a lane              fill with zero
 *
 * exp, sigmoid, silu, gelu, quick_gelu and round_bf16 give the bits of kernel/math.h and base/half.h. */
#ifndef FATHOM_KERNEL_X86_SIMD_H
#define FATHOM_KERNEL_X86_SIMD_H

#include <immintrin.h>
#include <stddef.h>

#include "kernel/math.h"

#if defined(SIMD_AVX512)
#define SIMD_NAME(name) name##_avx512
#define SIMD_LANES 16
typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vmask;
#elif defined(SIMD_AVX2)
#define SIMD_NAME(name) name##_avx2
#define SIMD_LANES 8
typedef __m256 vf;
typedef __m256i vi;
typedef __m256i vmask;
#else
#error "compile with SIMD_AVX2 or SIMD_AVX512"
#endif

#define SIMD_INLINE static inline __attribute__((always_inline))

/* In front of a loop whose bounds are constants once inlined: its arrays then live in registers. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

/* ---- loads, stores, constants -------------------------------------------------------------------------------- */

#if SIMD_LANES == 16
SIMD_INLINE vf v_set(float x) { return _mm512_set1_ps(x); }
SIMD_INLINE vf v_zero(void) { return _mm512_setzero_ps(); }
SIMD_INLINE vf v_load(const float *p) { return _mm512_loadu_ps(p); }
SIMD_INLINE void v_store(float *p, vf x) { _mm512_storeu_ps(p, x); }
SIMD_INLINE vmask v_first(size_t n) { return (vmask)((1u << n) - 1); }
SIMD_INLINE vf v_load_n(const float *p, size_t n) { return _mm512_maskz_loadu_ps(v_first(n), p); }
SIMD_INLINE void v_store_n(float *p, vf x, size_t n) { _mm512_mask_storeu_ps(p, v_first(n), x); }
SIMD_INLINE vi v_set_i(int x) { return _mm512_set1_epi32(x); }
SIMD_INLINE vi v_bits(vf x) { return _mm512_castps_si512(x); }
SIMD_INLINE vf v_from_bits(vi x) { return _mm512_castsi512_ps(x); }
/* 16-bit integers, zero-extended. */
SIMD_INLINE vi v_load_u16(const uint16_t *p) { return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)); }
SIMD_INLINE vi v_load_u16_n(const uint16_t *p, size_t n)
{
    return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(v_first(n), p));
}
SIMD_INLINE vf v_load_f16(const uint16_t *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)); }
SIMD_INLINE vf v_load_f16_n(const uint16_t *p, size_t n)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(v_first(n), p));
}
SIMD_INLINE vi v_shl(vi x, int n) { return _mm512_slli_epi32(x, (unsigned)n); }
#else
SIMD_INLINE vf v_set(float x) { return _mm256_set1_ps(x); }
SIMD_INLINE vf v_zero(void) { return _mm256_setzero_ps(); }
SIMD_INLINE vf v_load(const float *p) { return _mm256_loadu_ps(p); }
SIMD_INLINE void v_store(float *p, vf x) { _mm256_storeu_ps(p, x); }
SIMD_INLINE vmask v_first(size_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
SIMD_INLINE vf v_load_n(const float *p, size_t n) { return _mm256_maskload_ps(p, v_first(n)); }
SIMD_INLINE void v_store_n(float *p, vf x, size_t n) { _mm256_maskstore_ps(p, v_first(n), x); }
SIMD_INLINE vi v_set_i(int x) { return _mm256_set1_epi32(x); }
SIMD_INLINE vi v_bits(vf x) { return _mm256_castps_si256(x); }
SIMD_INLINE vf v_from_bits(vi x) { return _mm256_castsi256_ps(x); }
SIMD_INLINE __m128i v_tail_u16(const uint16_t *p, size_t n)
{
    uint16_t t[8] = {0};
    __builtin_memcpy(t, p, n * sizeof *p);
    return _mm_loadu_si128((const __m128i *)t);
}
SIMD_INLINE vi v_load_u16(const uint16_t *p) { return _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)); }
SIMD_INLINE vi v_load_u16_n(const uint16_t *p, size_t n) { return _mm256_cvtepu16_epi32(v_tail_u16(p, n)); }
SIMD_INLINE vf v_load_f16(const uint16_t *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }
SIMD_INLINE vf v_load_f16_n(const uint16_t *p, size_t n) { return _mm256_cvtph_ps(v_tail_u16(p, n)); }
SIMD_INLINE vi v_shl(vi x, int n) { return _mm256_slli_epi32(x, n); }
#endif

SIMD_INLINE vf v_load_bf16(const uint16_t *p) { return v_from_bits(v_shl(v_load_u16(p), 16)); }
SIMD_INLINE vf v_load_bf16_n(const uint16_t *p, size_t n) { return v_from_bits(v_shl(v_load_u16_n(p, n), 16)); }

/* ---- arithmetic ---------------------------------------------------------------------------------------------- */

#if SIMD_LANES == 16
SIMD_INLINE vf v_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }   /* a * b + c, rounded once */
SIMD_INLINE vf v_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); } /* c - a * b, rounded once */
SIMD_INLINE vf v_max(vf a, vf b) { return _mm512_max_ps(a, b); }              /* a > b ? a : b */
SIMD_INLINE vf v_min(vf a, vf b) { return _mm512_min_ps(a, b); }              /* a < b ? a : b */
SIMD_INLINE vf v_sqrt(vf x) { return _mm512_sqrt_ps(x); }
SIMD_INLINE vf v_abs(vf x) { return _mm512_abs_ps(x); }
SIMD_INLINE vf v_neg(vf x) { return _mm512_xor_ps(x, v_set(-0.0f)); }
SIMD_INLINE vmask v_lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
SIMD_INLINE vmask v_is_nan(vf x) { return _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q); }
SIMD_INLINE vf v_select(vmask m, vf yes, vf no) { return _mm512_mask_blend_ps(m, no, yes); }
SIMD_INLINE vf v_rint(vf x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
SIMD_INLINE vi v_to_int(vf x) { return _mm512_cvtps_epi32(x); }
SIMD_INLINE vf v_from_int(vi x) { return _mm512_cvtepi32_ps(x); }
SIMD_INLINE vi v_add_i(vi a, vi b) { return _mm512_add_epi32(a, b); }
SIMD_INLINE vi v_sub_i(vi a, vi b) { return _mm512_sub_epi32(a, b); }
SIMD_INLINE vi v_and_i(vi a, vi b) { return _mm512_and_si512(a, b); }
SIMD_INLINE vi v_or_i(vi a, vi b) { return _mm512_or_si512(a, b); }
SIMD_INLINE vi v_xor_i(vi a, vi b) { return _mm512_xor_si512(a, b); }
SIMD_INLINE vi v_shr(vi x, int n) { return _mm512_srli_epi32(x, (unsigned)n); } /* zeros come in */
SIMD_INLINE vi v_sar(vi x, int n) { return _mm512_srai_epi32(x, (unsigned)n); } /* the sign comes in */
#else
SIMD_INLINE vf v_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
SIMD_INLINE vf v_fnma(vf a, vf b, vf c) { return _mm256_fnmadd_ps(a, b, c); }
SIMD_INLINE vf v_max(vf a, vf b) { return _mm256_max_ps(a, b); }
SIMD_INLINE vf v_min(vf a, vf b) { return _mm256_min_ps(a, b); }
SIMD_INLINE vf v_sqrt(vf x) { return _mm256_sqrt_ps(x); }
SIMD_INLINE vf v_abs(vf x) { return _mm256_andnot_ps(v_set(-0.0f), x); }
SIMD_INLINE vf v_neg(vf x) { return _mm256_xor_ps(x, v_set(-0.0f)); }
SIMD_INLINE vmask v_lt(vf a, vf b) { return v_bits(_mm256_cmp_ps(a, b, _CMP_LT_OQ)); }
SIMD_INLINE vmask v_is_nan(vf x) { return v_bits(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)); }
SIMD_INLINE vf v_select(vmask m, vf yes, vf no) { return _mm256_blendv_ps(no, yes, v_from_bits(m)); }
SIMD_INLINE vf v_rint(vf x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
SIMD_INLINE vi v_to_int(vf x) { return _mm256_cvtps_epi32(x); }
SIMD_INLINE vf v_from_int(vi x) { return _mm256_cvtepi32_ps(x); }
SIMD_INLINE vi v_add_i(vi a, vi b) { return _mm256_add_epi32(a, b); }
SIMD_INLINE vi v_sub_i(vi a, vi b) { return _mm256_sub_epi32(a, b); }
SIMD_INLINE vi v_and_i(vi a, vi b) { return _mm256_and_si256(a, b); }
SIMD_INLINE vi v_or_i(vi a, vi b) { return _mm256_or_si256(a, b); }
SIMD_INLINE vi v_xor_i(vi a, vi b) { return _mm256_xor_si256(a, b); }
SIMD_INLINE vi v_shr(vi x, int n) { return _mm256_srli_epi32(x, n); }
SIMD_INLINE vi v_sar(vi x, int n) { return _mm256_srai_epi32(x, n); }
#endif

/* ---- the functions of kernel/math.h and base/half.h ----------------------------------------------------------- */

/* e^x = polynomial * 2^n. */
SIMD_INLINE vf v_exp_polynomial(vf x, vf *n)
{
    *n = v_rint(x * v_set(1.44269504f));
    vf r = v_fma(*n, v_set(-0.693359375f), x);
    r = v_fma(*n, v_set(2.12194440e-4f), r);
    vf p = v_set(1.9875691500e-4f);
    p = v_fma(p, r, v_set(1.3981999507e-3f));
    p = v_fma(p, r, v_set(8.3334519073e-3f));
    p = v_fma(p, r, v_set(4.1665795894e-2f));
    p = v_fma(p, r, v_set(1.6666665459e-1f));
    p = v_fma(p, r, v_set(5.0000001201e-1f));
    return v_fma(p, r * r, r) + v_set(1.0f);
}

/* p * 2^n, rounded once, for integers n in [-150, 128]: two steps where there is no instruction. */
SIMD_INLINE vf v_scale(vf p, vf n)
{
#if SIMD_LANES == 16
    return _mm512_scalef_ps(p, n);
#else
    vi i = v_to_int(n), half = v_sar(i, 1), bias = v_set_i(127);
    p = p * v_from_bits(v_shl(v_add_i(half, bias), 23));
    return p * v_from_bits(v_shl(v_add_i(v_sub_i(i, half), bias), 23));
#endif
}

SIMD_INLINE vf v_exp(vf x)
{
    vf n, p = v_exp_polynomial(v_min(v_max(x, v_set(-104.0f)), v_set(88.72f)), &n);
    return v_select(v_is_nan(x), x, v_scale(p, n));
}

/* v_exp for x <= 0 or NaN. It is quicker, above all where x is so low that the result is zero: forming that by
 * arithmetic would be an underflow, which costs the processor a hundred cycles. */
SIMD_INLINE vf v_exp_nonpositive(vf x)
{
    vf n;
#if SIMD_LANES == 16
    vmask counts = _mm512_cmp_ps_mask(x, v_set(-104.0f), _CMP_NLE_UQ);
    vf p = v_exp_polynomial(x, &n);
    return _mm512_maskz_scalef_ps(counts, p, n);
#else
    vf counts = _mm256_cmp_ps(x, v_set(-104.0f), _CMP_NLE_UQ);
    vf p = v_exp_polynomial(_mm256_and_ps(x, counts), &n);
    return _mm256_and_ps(v_scale(p, n), counts);
#endif
}

SIMD_INLINE vf v_sigmoid(vf x) { return v_set(1.0f) / (v_set(1.0f) + v_exp(v_neg(x))); }
SIMD_INLINE vf v_silu(vf x) { return x / (v_set(1.0f) + v_exp(v_neg(x))); }
SIMD_INLINE vf v_quick_gelu(vf x) { return x / (v_set(1.0f) + v_exp(v_set(-1.702f) * x)); }

SIMD_INLINE vf v_gelu(vf x)
{
    vf u = v_abs(x), q = v_set(gelu_poly[9]);
    q = v_fma(q, u, v_set(gelu_poly[8]));
    q = v_fma(q, u, v_set(gelu_poly[7]));
    q = v_fma(q, u, v_set(gelu_poly[6]));
    q = v_fma(q, u, v_set(gelu_poly[5]));
    q = v_fma(q, u, v_set(gelu_poly[4]));
    q = v_fma(q, u, v_set(gelu_poly[3]));
    q = v_fma(q, u, v_set(gelu_poly[2]));
    q = v_fma(q, u, v_set(gelu_poly[1]));
    q = v_fma(q, u, v_set(gelu_poly[0]));
    vf tail = v_set(0.5f) * v_exp(v_neg(q * u));
    return x * v_select(v_lt(x, v_zero()), tail, v_set(1.0f) - tail);
}

SIMD_INLINE vf v_round_bf16(vf x)
{
    vi u = v_bits(x), high = v_set_i(-65536);
    vi odd = v_and_i(v_shr(u, 16), v_set_i(1));
    vf rounded = v_from_bits(v_and_i(v_add_i(u, v_add_i(odd, v_set_i(0x7fff))), high));
    vf quiet = v_from_bits(v_and_i(v_or_i(u, v_set_i(0x400000)), high));
    return v_select(v_is_nan(x), quiet, rounded);
}

/* ---- sixteen lanes at either width --------------------------------------------------------------------------- */

#define V16_VECTORS (16 / SIMD_LANES)

typedef struct {
    vf v[V16_VECTORS];
} v16;

SIMD_INLINE v16 v16_set(float x)
{
    v16 r;
    for (int i = 0; i < V16_VECTORS; i++)
        r.v[i] = v_set(x);
    return r;
}

SIMD_INLINE v16 v16_load(const float *p)
{
    v16 r;
    for (int i = 0; i < V16_VECTORS; i++)
        r.v[i] = v_load(p + i * SIMD_LANES);
    return r;
}

/* Lanes of a vector that starts `before` elements into 16 of which n count. */
SIMD_INLINE size_t v16_lanes(size_t n, size_t before)
{
    return n <= before ? 0 : n - before < SIMD_LANES ? n - before : SIMD_LANES;
}

SIMD_INLINE v16 v16_load_n(const float *p, size_t n)
{
    v16 r;
    for (size_t i = 0; i < V16_VECTORS; i++)
        r.v[i] = v_load_n(p + i * SIMD_LANES, v16_lanes(n, i * SIMD_LANES));
    return r;
}

SIMD_INLINE void v16_store(float *p, v16 x)
{
    for (int i = 0; i < V16_VECTORS; i++)
        v_store(p + i * SIMD_LANES, x.v[i]);
}

SIMD_INLINE void v16_store_n(float *p, v16 x, size_t n)
{
    for (size_t i = 0; i < V16_VECTORS; i++)
        v_store_n(p + i * SIMD_LANES, x.v[i], v16_lanes(n, i * SIMD_LANES));
}

SIMD_INLINE v16 v16_add(v16 a, v16 b)
{
    for (int i = 0; i < V16_VECTORS; i++)
        a.v[i] = a.v[i] + b.v[i];
    return a;
}

SIMD_INLINE v16 v16_fma(v16 a, v16 b, v16 c)
{
    for (int i = 0; i < V16_VECTORS; i++)
        c.v[i] = v_fma(a.v[i], b.v[i], c.v[i]);
    return c;
}

/* Lane i plus lane i + half, for halves 8, 4, 2, 1. */
SIMD_INLINE float v16_fold_add(v16 x)
{
#if SIMD_LANES == 16
    __m256 a = _mm512_castps512_ps256(x.v[0]) + _mm512_extractf32x8_ps(x.v[0], 1);
#else
    __m256 a = x.v[0] + x.v[1];
#endif
    __m128 b = _mm256_castps256_ps128(a) + _mm256_extractf128_ps(a, 1);
    b = b + _mm_movehl_ps(b, b);
    return _mm_cvtss_f32(b) + _mm_cvtss_f32(_mm_movehdup_ps(b));
}

/* The largest lane; lanes are not NaN. */
SIMD_INLINE float v16_fold_max(v16 x)
{
#if SIMD_LANES == 16
    __m256 a = _mm256_max_ps(_mm512_castps512_ps256(x.v[0]), _mm512_extractf32x8_ps(x.v[0], 1));
#else
    __m256 a = _mm256_max_ps(x.v[0], x.v[1]);
#endif
    __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(b, _mm_movehdup_ps(b)));
}

#endif
