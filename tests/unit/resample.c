/* The fast inner loops of image_resize give the bytes of the plain ones, on random taps and weights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "image/resample.h"

#include <cmocka.h>

static uint32_t noise_state = 1;

static uint32_t noise(uint32_t n)
{
    noise_state = noise_state * 1664525 + 1013904223;
    return (noise_state >> 8) % n;
}

/* Weights that add up to 2^22 with negative ones among them, like a cubic kernel's. */
static struct axis make_axis(size_t n_in, size_t n_out, size_t max_taps)
{
    struct axis a = {.n_out = n_out, .max_taps = max_taps};
    a.stride = (max_taps + RESAMPLE_LANES - 1) / RESAMPLE_LANES * RESAMPLE_LANES;
    a.first = calloc(n_out, sizeof *a.first);
    a.n = calloc(n_out, sizeof *a.n);
    a.hi = calloc(n_out * a.stride, sizeof *a.hi);
    a.lo = calloc(n_out * a.stride, sizeof *a.lo);
    for (size_t i = 0; i < n_out; i++) {
        a.n[i] = 1 + noise((uint32_t)max_taps);
        a.first[i] = noise((uint32_t)(n_in - a.n[i] + 1));
        for (size_t k = 0; k < a.n[i]; k++) {
            int32_t mean = (1 << RESAMPLE_WEIGHT_BITS) / (int32_t)a.n[i];
            int32_t q = mean + (int32_t)noise(4000000 / (uint32_t)a.n[i]) - 2000000 / (int32_t)a.n[i];
            a.lo[i * a.stride + k] = (int16_t)(q & 2047);
            a.hi[i * a.stride + k] = (int16_t)(q >> RESAMPLE_LOW_BITS);
        }
    }
    return a;
}

static void axis_free(struct axis *a)
{
    free(a->first);
    free(a->n);
    free(a->hi);
    free(a->lo);
}

static void rows(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        size_t w = 1 + noise(300), taps = 1 + noise((uint32_t)(w < 70 ? w : 70)), n_out = 1 + noise(50);
        size_t stride = w + RESAMPLE_LANES;
        struct axis a = make_axis(w, n_out, taps);
        int16_t *planes = malloc(3 * stride * sizeof *planes);
        uint8_t *got = malloc(3 * n_out + 1), *want = malloc(3 * n_out);
        for (size_t i = 0; i < 3 * stride; i++)
            planes[i] = (int16_t)noise(256);
        got[3 * n_out] = 0xa5;
        resample_row(got, planes, stride, &a);
        resample_row_portable(want, planes, stride, &a);
        assert_memory_equal(got, want, 3 * n_out);
        assert_int_equal(got[3 * n_out], 0xa5);
        free(planes);
        free(got);
        free(want);
        axis_free(&a);
    }
}

static void columns(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        size_t bytes = 1 + noise(1200), taps = 1 + noise(40);
        struct axis a = make_axis(taps, 3, taps);
        uint8_t *data = malloc((taps + 1) * bytes), *got = malloc(bytes + 1), *want = malloc(bytes);
        const uint8_t **tap_rows = malloc((taps + 1) * sizeof *tap_rows);
        for (size_t i = 0; i < (taps + 1) * bytes; i++)
            data[i] = (uint8_t)noise(256);
        for (size_t k = 0; k <= taps; k++)
            tap_rows[k] = data + k * bytes;
        for (size_t i = 0; i < 3; i++) {
            got[bytes] = 0xa5;
            resample_column(got, bytes, tap_rows, &a, i);
            resample_column_portable(want, bytes, tap_rows, &a, i);
            assert_memory_equal(got, want, bytes);
            assert_int_equal(got[bytes], 0xa5);
        }
        free(data);
        free(got);
        free(want);
        free(tap_rows);
        axis_free(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows), cmocka_unit_test(columns)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
