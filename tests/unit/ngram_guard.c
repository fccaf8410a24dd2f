#include "text/ngram_guard.h"

#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define VOCAB 8

/* The rule of spec §6.1 word by word: sets of ids, no shortcuts. */
static size_t oracle(const struct ngram_guard *g, const int32_t *out, long n_out, float *logits)
{
    bool banned[VOCAB] = {false};
    size_t n_banned = 0;
    if (g->n <= 0 || n_out < g->n)
        return 0;
    long first = n_out - g->window > 0 ? n_out - g->window : 0;
    for (long i = first; i <= n_out - g->n; i++) {
        bool equal = true;
        for (long k = 0; k < g->n - 1; k++)
            equal = equal && out[i + k] == out[n_out - (g->n - 1) + k];
        if (equal)
            banned[out[i + g->n - 1]] = true;
    }
    for (int32_t id = 0; id < VOCAB; id++)
        if (banned[id] && id != g->allowed[0] && id != g->allowed[1]) {
            logits[id] = -INFINITY;
            n_banned++;
        }
    return n_banned;
}

static void test_equals_the_rule(void **state)
{
    (void)state;
    unsigned seed = 7;
    size_t n_bans = 0;
    for (int round = 0; round < 20000; round++) {
        int32_t out[64];
        long n_out = rand_r(&seed) % 64;
        int ids = 1 + rand_r(&seed) % VOCAB;
        for (long i = 0; i < n_out; i++)
            out[i] = rand_r(&seed) % ids;
        struct ngram_guard g = {.n = 1 + rand_r(&seed) % 6,
                                .window = rand_r(&seed) % 8 ? 1 + rand_r(&seed) % 70 : INT_MAX,
                                .allowed = {rand_r(&seed) % VOCAB, rand_r(&seed) % 2 ? -1 : rand_r(&seed) % VOCAB}};
        float logits[VOCAB], expected[VOCAB];
        for (int id = 0; id < VOCAB; id++)
            logits[id] = expected[id] = (float)id;
        size_t n_expected = oracle(&g, out, n_out, expected);
        assert_int_equal(ngram_guard_apply(&g, out, (size_t)n_out, logits, VOCAB), n_expected);
        assert_memory_equal(logits, expected, sizeof logits);
        n_bans += n_expected;
    }
    assert_true(n_bans > 10000);
}

static void test_starts_inside_the_window_count(void **state)
{
    (void)state;
    const int32_t out[] = {1, 2, 3, 0, 0, 0, 1, 2};
    for (int window = 1; window <= 8; window++) {
        float logits[VOCAB] = {0};
        struct ngram_guard g = {.n = 3, .window = window, .allowed = {-1, -1}};
        assert_int_equal(ngram_guard_apply(&g, out, 8, logits, VOCAB), window == 8);
        assert_true((logits[3] == -INFINITY) == (window == 8));
    }
}

static void test_whitelist(void **state)
{
    (void)state;
    const int32_t out[] = {1, 2, 1, 3, 1};
    float logits[VOCAB] = {0};
    struct ngram_guard g = {.n = 2, .window = 90, .allowed = {3, -1}};
    assert_int_equal(ngram_guard_apply(&g, out, 5, logits, VOCAB), 1);
    assert_true(logits[2] == -INFINITY && logits[3] == 0);
    g.allowed[1] = 2;
    logits[2] = 0;
    assert_int_equal(ngram_guard_apply(&g, out, 5, logits, VOCAB), 0);
}

static void test_off_and_out_of_range(void **state)
{
    (void)state;
    const int32_t out[] = {1, 1, 1, 1};
    float logits[VOCAB] = {0};
    struct ngram_guard off[] = {{0, 90, {-1, -1}}, {-1, 90, {-1, -1}}, {2, 0, {-1, -1}}, {5, 90, {-1, -1}}};
    for (size_t i = 0; i < sizeof off / sizeof *off; i++)
        assert_int_equal(ngram_guard_apply(&off[i], out, 4, logits, VOCAB), 0);
    const int32_t strange[] = {-7, 99, -7, 99, -7, INT32_MIN, -7};
    struct ngram_guard g = {2, 90, {-1, -1}};
    assert_int_equal(ngram_guard_apply(&g, strange, 7, logits, VOCAB), 0);
    assert_int_equal(ngram_guard_apply(&g, NULL, 0, logits, VOCAB), 0);
    for (int id = 0; id < VOCAB; id++)
        assert_true(logits[id] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_the_rule),
        cmocka_unit_test(test_starts_inside_the_window_count),
        cmocka_unit_test(test_whitelist),
        cmocka_unit_test(test_off_and_out_of_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
