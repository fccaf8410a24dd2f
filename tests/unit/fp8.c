/* E4M3, E2M1 and E8M0: every byte against the formats' definitions. */
#include "base/fp8.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* sign * 2^(exponent - bias) * 1.mantissa, or with exponent 0 the subnormal. */
static double minifloat(unsigned code, int exponent_bits, int mantissa_bits, int bias)
{
    int mantissa = (int)(code & ((1u << mantissa_bits) - 1));
    int exponent = (int)(code >> mantissa_bits & ((1u << exponent_bits) - 1));
    double sign = code >> (exponent_bits + mantissa_bits) & 1 ? -1 : 1;
    if (exponent == 0)
        return sign * ldexp(mantissa, 1 - bias - mantissa_bits);
    return sign * ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

static void e4m3(void **state)
{
    (void)state;
    for (unsigned b = 0; b < 256; b++) {
        float x = e4m3_to_f32((uint8_t)b);
        if ((b & 0x7f) == 0x7f) {
            assert_true(isnan(x));
            continue;
        }
        assert_true((double)x == minifloat(b, 4, 3, 7));
        assert_int_equal(signbit(x) != 0, b >> 7);
    }
    assert_true(e4m3_to_f32(0x7e) == 448.0f);
    assert_true(e4m3_to_f32(0x01) == 0x1p-9f);
    assert_true(e4m3_to_f32(0x38) == 1.0f);
}

static void e2m1(void **state)
{
    static const float values[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
    (void)state;
    for (unsigned b = 0; b < 256; b++) { /* the high nibble is another weight's */
        float x = e2m1_to_f32((uint8_t)b);
        assert_true(fabsf(x) == values[b & 7]);
        assert_int_equal(signbit(x) != 0, b >> 3 & 1);
    }
}

static void e8m0(void **state)
{
    (void)state;
    for (int b = 0; b < 255; b++)
        assert_true((double)e8m0_to_f32((uint8_t)b) == ldexp(1, b - 127));
    assert_true(isnan(e8m0_to_f32(255)));
}

/* Every code at every scale: exact, or an infinity where float32 ends. */
static void products(void **state)
{
    (void)state;
    for (int scale = 0; scale < 255; scale++)
        for (unsigned b = 0; b < 256; b++) {
            double small = ldexp((double)e2m1_to_f32((uint8_t)b), scale - 127), wide;
            float product = e2m1_to_f32((uint8_t)b) * e8m0_to_f32((uint8_t)scale);
            assert_true(fabs(small) >= 0x1p128 ? isinf(product) : (double)product == small);
            if ((b & 0x7f) == 0x7f)
                continue;
            wide = ldexp((double)e4m3_to_f32((uint8_t)b), scale - 127);
            product = e4m3_to_f32((uint8_t)b) * e8m0_to_f32((uint8_t)scale);
            assert_true(fabs(wide) >= 0x1p128 ? isinf(product) : (double)product == wide);
        }
}

/* Of all codes the nearest, ties to the even one: looked for among neighbours of every midpoint. */
static void encode(void **state)
{
    (void)state;
    for (unsigned b = 0; b < 256; b++)
        if ((b & 0x7f) != 0x7f)
            assert_int_equal(e4m3_from_f32(e4m3_to_f32((uint8_t)b)), b);
    for (unsigned b = 0; b < 16; b++)
        assert_int_equal(e2m1_from_f32(e2m1_to_f32((uint8_t)b)), b);
    for (unsigned b = 0; b < 0x7e; b++) {
        float low = e4m3_to_f32((uint8_t)b), high = e4m3_to_f32((uint8_t)(b + 1)), middle = (low + high) / 2;
        assert_int_equal(e4m3_from_f32(middle), b % 2 ? b + 1 : b);
        assert_int_equal(e4m3_from_f32(nextafterf(middle, 0)), b);
        assert_int_equal(e4m3_from_f32(-nextafterf(middle, 1e9f)), (b + 1) | 0x80);
    }
    for (unsigned b = 0; b < 7; b++) {
        float middle = (e2m1_to_f32((uint8_t)b) + e2m1_to_f32((uint8_t)(b + 1))) / 2;
        assert_int_equal(e2m1_from_f32(middle), b % 2 ? b + 1 : b);
        assert_int_equal(e2m1_from_f32(nextafterf(middle, 0)), b);
        assert_int_equal(e2m1_from_f32(-nextafterf(middle, 1e9f)), (b + 1) | 8);
    }
    assert_int_equal(e4m3_from_f32(1e9f), 0x7e);
    assert_int_equal(e4m3_from_f32(-INFINITY), 0xfe);
    assert_int_equal(e4m3_from_f32(NAN), 0x7f);
    assert_int_equal(e4m3_from_f32(-0.0f), 0x80);
    assert_int_equal(e4m3_from_f32(1e-40f), 0);
    assert_int_equal(e2m1_from_f32(-100.0f), 15);
}

/* The check values of spec deepseek-v4 §9. */
static void scales(void **state)
{
    (void)state;
    assert_int_equal(e8m0_scale(448, 448), 127);
    assert_int_equal(e8m0_scale(449, 448), 128);
    assert_int_equal(e8m0_scale(1e-4f, 448), 127 - 22);
    assert_int_equal(e8m0_scale(6, 6), 127);
    assert_int_equal(e8m0_scale(6.5f, 6), 128);
    assert_int_equal(e8m0_scale(448 * 0x1p-20f, 448), 107);
    assert_int_equal(e8m0_scale(0, 448), 0);
    assert_int_equal(e8m0_scale(3e38f, 6), 254 - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(e4m3),     cmocka_unit_test(e2m1),   cmocka_unit_test(e8m0),
                                       cmocka_unit_test(products), cmocka_unit_test(encode), cmocka_unit_test(scales)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
