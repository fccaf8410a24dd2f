/* y [n, dim] = rows ids[0..n) of table, widened to float32. */
#include <math.h>

#include "kernel/x86/finish.h"
#include "kernel/x86/simd_ops.h"

/* 32 values of a block as float32; +0 and NaN as in ref/kernels_ref.c. */
static void widen_q8_0(float *out, const uint8_t *block)
{
    uint16_t half;
    memcpy(&half, block, sizeof half);
    float scale = f16_to_f32(half);
    vf s = v_set(isfinite(scale) ? scale : NAN);
    for (size_t i = 0; i < Q8_0_BLOCK; i += SIMD_LANES) {
#if SIMD_LANES == 16
        vi q = _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(block + sizeof half + i)));
#else
        vi q = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(block + sizeof half + i)));
#endif
        v_store(out + i, v_from_int(q) * s + v_zero());
    }
}

static void widen_row(float *out, const struct tensor *t, size_t row)
{
    const void *p = tensor_row(t, row);
    size_t n = t->shape[1];
    if (t->dtype == DTYPE_F32) {
        memcpy(out, p, n * sizeof *out);
    } else if (t->dtype == DTYPE_Q8_0) {
        for (size_t i = 0; i < n; i += Q8_0_BLOCK)
            widen_q8_0(out + i, (const uint8_t *)p + dtype_bytes(DTYPE_Q8_0, i));
    } else {
        const uint16_t *h = p;
        for (size_t i = 0; i < n; i += SIMD_LANES) {
            size_t lanes = n - i < SIMD_LANES ? n - i : SIMD_LANES;
            v_store_n(out + i, t->dtype == DTYPE_BF16 ? v_load_bf16_n(h + i, lanes) : v_load_f16_n(h + i, lanes),
                      lanes);
        }
    }
}

void SIMD_NAME(embed)(struct run *run, struct tensor *y, const struct tensor *table, const int32_t *ids)
{
    size_t n = y->shape[1];
    for (size_t row = 0; row < y->shape[0]; row++) {
        float *out = tensor_row(y, row);
        widen_row(out, table, (size_t)ids[row]);
        for (size_t i = 0; i < n && run->act == FATHOM_BF16; i += SIMD_LANES) {
            size_t lanes = n - i < SIMD_LANES ? n - i : SIMD_LANES;
            v_store_n(out + i, v_round_bf16(v_load_n(out + i, lanes)), lanes);
        }
    }
}
