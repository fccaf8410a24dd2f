#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "engine/sampler.h"

#include <cmocka.h>

static struct sampler make(float temperature, float top_p, uint64_t seed, size_t n)
{
    struct sampler s;
    struct fathom_err err;
    assert_int_equal(sampler_init(&s, temperature, top_p, seed, n, &err), FATHOM_OK);
    return s;
}

static void test_greedy(void **state)
{
    float logits[] = {1, 5, 3, 5, -INFINITY};
    struct sampler s = make(0, 1, 0, 5);

    (void)state;
    assert_int_equal(sampler_next(&s, logits, 5), 1); /* of equals the lower id */
    logits[1] = -INFINITY;
    assert_int_equal(sampler_next(&s, logits, 5), 3);
    logits[2] = NAN;
    assert_int_equal(sampler_next(&s, logits, 5), -1);
    for (int i = 0; i < 5; i++)
        logits[i] = -INFINITY;
    assert_int_equal(sampler_next(&s, logits, 5), -1);
    assert_int_equal(sampler_next(&s, logits, 0), -1);
}

static void test_frequencies(void **state)
{
    const float p[] = {0.5f, 0.3f, 0.15f, 0.05f};
    float logits[4];
    int count[4] = {0};
    struct sampler s = make(1, 1, 42, 4);

    (void)state;
    for (int i = 0; i < 4; i++)
        logits[i] = logf(p[i]);
    for (int i = 0; i < 20000; i++)
        count[sampler_next(&s, logits, 4)]++;
    for (int i = 0; i < 4; i++)
        assert_true(fabs(count[i] / 20000.0 - (double)p[i]) < 0.012);
    sampler_release(&s);
}

static void test_top_p(void **state)
{
    const float p[] = {0.05f, 0.5f, 0.3f, 0.15f};
    float logits[4];
    int count[4] = {0};
    struct sampler s = make(1, 0.75f, 1, 4);

    (void)state;
    for (int i = 0; i < 4; i++)
        logits[i] = logf(p[i]);
    for (int i = 0; i < 5000; i++)
        count[sampler_next(&s, logits, 4)]++;
    assert_int_equal(count[0], 0);
    assert_int_equal(count[3], 0);
    assert_true(fabs(count[1] / 5000.0 - 0.625) < 0.03);
    sampler_release(&s);
}

static void test_seed(void **state)
{
    float logits[50];
    struct sampler a = make(1.5f, 1, 9, 50), b = make(1.5f, 1, 9, 50);

    (void)state;
    for (int i = 0; i < 50; i++)
        logits[i] = (float)(i % 7);
    for (int i = 0; i < 200; i++)
        assert_int_equal(sampler_next(&a, logits, 50), sampler_next(&b, logits, 50));
    sampler_release(&a);
    sampler_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greedy),
        cmocka_unit_test(test_frequencies),
        cmocka_unit_test(test_top_p),
        cmocka_unit_test(test_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
