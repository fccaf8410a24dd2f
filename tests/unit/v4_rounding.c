/* The roundings of official numerics: their formats' values, and what they leave alone. */
#include "nn/v4_rounding.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "base/half.h"

#include <cmocka.h>

static void keys(void **state)
{
    float x[96 + 8] = {0}, y[96 + 8];
    (void)state;
    x[0] = 448, x[1] = 17.1f, x[2] = -0.3f; /* scale 1: steps of 2 at 17, of 2^-5 at 0.3 */
    x[64] = 452, x[65] = 17.1f;             /* a block of 32, of scale 2: steps of 32 at 452, of 2 at 17 */
    x[96] = 1.00390625f;                    /* rotated: bfloat16 alone, ties to even */
    x[97] = 17.1f;
    memcpy(y, x, sizeof y);
    v4_round_key(y, 96 + 8, 8);
    assert_true(y[0] == 448 && y[1] == 18 && y[2] == -0.3125f);
    assert_true(y[64] == 448 && y[65] == 18);
    assert_true(y[96] == 1 && y[97] == 17.125f);
    float small[64] = {1e-5f}; /* the scale of 1e-4 at least: 2^-22 */
    v4_round_key(small, 64, 0);
    assert_true(fabsf(small[0] / 1e-5f - 1) < 1.0f / 16);
    float bad[64] = {NAN, INFINITY, 1};
    v4_round_key(bad, 64, 0);
    assert_true(isnan(bad[0]) && isinf(bad[1]));
}

/* Of one channel the Hadamard matrix makes equal magnitudes, which FP4 holds up to its scale; and back. */
static void index_heads(void **state)
{
    float x[128] = {0};
    (void)state;
    assert_true(v4_can_round_index(128) && v4_can_round_index(32) && !v4_can_round_index(96) && !v4_can_round_index(0));
    x[5] = 16;
    v4_round_index(x, 128);
    for (size_t i = 0; i < 128; i++) /* 16 / sqrt(128) = 1.414: to bfloat16, over 0.25: 5.66, nearest code 6 */
        assert_true(fabsf(x[i]) == 1.5f && (signbit(x[i]) != 0) == __builtin_parity((unsigned)i & 5u));
    float a[64], b[64], dot = 0, rounded = 0;
    for (size_t i = 0; i < 64; i++) {
        a[i] = bf16_round(sinf((float)i));
        b[i] = bf16_round(cosf((float)(3 * i)) + a[i]);
        dot += a[i] * b[i];
    }
    v4_round_index(a, 64), v4_round_index(b, 64);
    for (size_t i = 0; i < 64; i++)
        rounded += a[i] * b[i];
    assert_true(fabsf(rounded - dot) < 0.2f * fabsf(dot)); /* the rotation cancels, the rounding stays */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(keys), cmocka_unit_test(index_heads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
