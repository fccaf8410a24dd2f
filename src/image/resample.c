#include "image/resample.h"

static size_t padded(size_t n) { return (n + RESAMPLE_LANES - 1) / RESAMPLE_LANES * RESAMPLE_LANES; }

static uint8_t to_u8(uint32_t hi, uint32_t lo)
{
    uint32_t half = 1u << (RESAMPLE_WEIGHT_BITS - 1);
    int32_t v = (int32_t)((hi << RESAMPLE_LOW_BITS) + lo + half) >> RESAMPLE_WEIGHT_BITS;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

void resample_row_portable(uint8_t *dst, const int16_t *planes, size_t plane_stride, const struct axis *a)
{
    for (size_t i = 0; i < a->n_out; i++) {
        const int16_t *hi = a->hi + i * a->stride, *lo = a->lo + i * a->stride;
        for (size_t c = 0; c < 3; c++) {
            const int16_t *p = planes + c * plane_stride + a->first[i];
            uint32_t sum_hi = 0, sum_lo = 0;
            for (size_t k = 0; k < padded(a->n[i]); k++) {
                sum_hi += (uint32_t)(p[k] * hi[k]);
                sum_lo += (uint32_t)(p[k] * lo[k]);
            }
            dst[3 * i + c] = to_u8(sum_hi, sum_lo);
        }
    }
}

/* Bytes [begin, end) of an output row, in blocks whose sums stay in the first-level cache. */
static void column_range(uint8_t *restrict dst, size_t begin, size_t end, const uint8_t *const *rows,
                         const struct axis *a, size_t i)
{
    enum { BLOCK = 512 };
    const int16_t *hi = a->hi + i * a->stride, *lo = a->lo + i * a->stride;
    for (; begin < end; begin += BLOCK) {
        uint32_t sum_hi[BLOCK] = {0}, sum_lo[BLOCK] = {0};
        size_t n = end - begin < BLOCK ? end - begin : BLOCK;
        for (size_t k = 0; k < a->n[i]; k++)
            for (size_t x = 0; x < n; x++) {
                int16_t p = rows[k][begin + x];
                sum_hi[x] += (uint32_t)(p * hi[k]);
                sum_lo[x] += (uint32_t)(p * lo[k]);
            }
        for (size_t x = 0; x < n; x++)
            dst[begin + x] = to_u8(sum_hi[x], sum_lo[x]);
    }
}

void resample_column_portable(uint8_t *dst, size_t bytes, const uint8_t *const *rows, const struct axis *a, size_t i)
{
    column_range(dst, 0, bytes, rows, a, i);
}

#ifdef __SSE2__ /* part of every x86-64: nothing to dispatch */

#include <emmintrin.h>
#include <string.h>

static __m128i load(const void *p) { return _mm_loadu_si128(p); }

static __m128i join(__m128i hi, __m128i lo) { return _mm_add_epi32(_mm_slli_epi32(hi, RESAMPLE_LOW_BITS), lo); }

static __m128i round_off(__m128i sum)
{
    __m128i half = _mm_set1_epi32(1 << (RESAMPLE_WEIGHT_BITS - 1));
    return _mm_srai_epi32(_mm_add_epi32(sum, half), RESAMPLE_WEIGHT_BITS);
}

/* The lanes of a, b, c and d added up: [sum a, sum b, sum c, sum d]. */
static __m128i sum_lanes(__m128i a, __m128i b, __m128i c, __m128i d)
{
    __m128i ab = _mm_add_epi32(_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b));
    __m128i cd = _mm_add_epi32(_mm_unpacklo_epi32(c, d), _mm_unpackhi_epi32(c, d));
    return _mm_add_epi32(_mm_unpacklo_epi64(ab, cd), _mm_unpackhi_epi64(ab, cd));
}

void resample_row(uint8_t *dst, const int16_t *planes, size_t plane_stride, const struct axis *a)
{
    for (size_t i = 0; i < a->n_out; i++) {
        const int16_t *p = planes + a->first[i], *hi = a->hi + i * a->stride, *lo = a->lo + i * a->stride;
        __m128i sum_hi[3] = {_mm_setzero_si128(), _mm_setzero_si128(), _mm_setzero_si128()};
        __m128i sum_lo[3] = {_mm_setzero_si128(), _mm_setzero_si128(), _mm_setzero_si128()};
        for (size_t k = 0; k < a->n[i]; k += RESAMPLE_LANES) {
            __m128i h = load(hi + k), l = load(lo + k);
            for (size_t c = 0; c < 3; c++) {
                __m128i x = load(p + c * plane_stride + k);
                sum_hi[c] = _mm_add_epi32(sum_hi[c], _mm_madd_epi16(x, h));
                sum_lo[c] = _mm_add_epi32(sum_lo[c], _mm_madd_epi16(x, l));
            }
        }
        __m128i v = round_off(sum_lanes(join(sum_hi[0], sum_lo[0]), join(sum_hi[1], sum_lo[1]),
                                        join(sum_hi[2], sum_lo[2]), _mm_setzero_si128()));
        v = _mm_packs_epi32(v, v);
        int rgb = _mm_cvtsi128_si32(_mm_packus_epi16(v, v));
        memcpy(dst + 3 * i, &rgb, 3);
    }
}

/* Sixteen bytes at a time; two rows are interleaved so that one multiply-add takes a tap of each. */
void resample_column(uint8_t *dst, size_t bytes, const uint8_t *const *rows, const struct axis *a, size_t i)
{
    enum { STEP = 16 };
    const int16_t *hi = a->hi + i * a->stride, *lo = a->lo + i * a->stride;
    __m128i zero = _mm_setzero_si128();
    size_t x = 0;
    for (; x + STEP <= bytes; x += STEP) {
        __m128i sum_hi[4] = {zero, zero, zero, zero}, sum_lo[4] = {zero, zero, zero, zero};
        for (size_t k = 0; k < a->n[i]; k += 2) {
            int32_t pair_hi, pair_lo;
            memcpy(&pair_hi, hi + k, sizeof pair_hi);
            memcpy(&pair_lo, lo + k, sizeof pair_lo);
            __m128i h = _mm_set1_epi32(pair_hi), l = _mm_set1_epi32(pair_lo);
            __m128i r0 = load(rows[k] + x), r1 = load(rows[k + 1] + x);
            __m128i first = _mm_unpacklo_epi8(r0, r1), second = _mm_unpackhi_epi8(r0, r1);
            __m128i pairs[4] = {_mm_unpacklo_epi8(first, zero), _mm_unpackhi_epi8(first, zero),
                                _mm_unpacklo_epi8(second, zero), _mm_unpackhi_epi8(second, zero)};
            for (size_t j = 0; j < 4; j++) {
                sum_hi[j] = _mm_add_epi32(sum_hi[j], _mm_madd_epi16(pairs[j], h));
                sum_lo[j] = _mm_add_epi32(sum_lo[j], _mm_madd_epi16(pairs[j], l));
            }
        }
        __m128i low = _mm_packs_epi32(round_off(join(sum_hi[0], sum_lo[0])), round_off(join(sum_hi[1], sum_lo[1])));
        __m128i high = _mm_packs_epi32(round_off(join(sum_hi[2], sum_lo[2])), round_off(join(sum_hi[3], sum_lo[3])));
        _mm_storeu_si128((void *)(dst + x), _mm_packus_epi16(low, high));
    }
    column_range(dst, x, bytes, rows, a, i);
}

#else

void resample_row(uint8_t *dst, const int16_t *planes, size_t plane_stride, const struct axis *a)
{
    resample_row_portable(dst, planes, plane_stride, a);
}

void resample_column(uint8_t *dst, size_t bytes, const uint8_t *const *rows, const struct axis *a, size_t i)
{
    resample_column_portable(dst, bytes, rows, a, i);
}

#endif
