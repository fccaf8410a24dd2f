/* kernel/math.h against double precision. */
#include "kernel/math.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Walks the floats of [from, to] in steps of about 2^-12 of their size. */
static float step_up(float x)
{
    float step = fabsf(x) * 0x1p-12f;
    return x + (step > 1e-6f ? step : 1e-6f);
}

static void exp_is_close(void **state)
{
    (void)state;
    for (float x = -87.0f; x < 88.7f; x = step_up(x))
        assert_true(fabs((double)exp_f32(x) / exp((double)x) - 1) < 2 * 0x1p-23);
    for (float x = -104.0f; x < -87.0f; x = step_up(x)) /* subnormal results */
        assert_true(fabs((double)exp_f32(x) - exp((double)x)) <= 0x1p-149);
    assert_true(exp_f32(0.0f) == 1.0f && exp_f32(-0.0f) == 1.0f);
    assert_true(exp_f32(-1e30f) == 0.0f && exp_f32(-INFINITY) == 0.0f);
    assert_true(exp_f32(1e30f) > 3.3e38f && exp_f32(INFINITY) > 3.3e38f);
    assert_true(isnan(exp_f32(NAN)));
}

static void gelu_is_close(void **state)
{
    (void)state;
    for (float x = -20.0f; x < 20.0f; x = step_up(x)) {
        double exact = 0.5 * (double)x * erfc(-(double)x * M_SQRT1_2);
        assert_true(fabs((double)gelu_f32(x) - exact) < 1.5e-7 * fmax(1, fabs((double)x)));
    }
    assert_true(gelu_f32(1e30f) == 1e30f && gelu_f32(INFINITY) == INFINITY);
    assert_true(gelu_f32(-1e30f) == 0.0f && gelu_f32(0.0f) == 0.0f);
    assert_true(isnan(gelu_f32(NAN)));
}

static void sigmoids_are_close(void **state)
{
    (void)state;
    for (float x = -80.0f; x < 80.0f; x = step_up(x)) {
        double s = 1 / (1 + exp(-(double)x)), q = 1 / (1 + exp(-1.702 * (double)x));
        assert_true(fabs((double)sigmoid_f32(x) / s - 1) < 4e-7);
        assert_true(fabs((double)silu_f32(x) - (double)x * s) <= 4e-7 * fabs((double)x * s));
        assert_true(fabs((double)quick_gelu_f32(x) - (double)x * q) < 1e-5 * fmax(fabs((double)x * q), 1e-6));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_is_close),
        cmocka_unit_test(gelu_is_close),
        cmocka_unit_test(sigmoids_are_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
