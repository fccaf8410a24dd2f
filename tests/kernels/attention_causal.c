/* attention_prefix and attention_causal: every level and thread count gives the bits of the scalar definitions; a row's
 * bits depend on nothing but what it sees. */
#include "kernels/kernel_run.h"

#include <math.h>
#include <stdio.h>

struct inputs {
    struct matrix q, k, v;
    size_t n_heads, n_kv_heads, d;
};

static struct inputs make_inputs(size_t rows, size_t n_heads, size_t n_kv_heads, size_t d, float amp,
                                 enum fathom_dtype act)
{
    return (struct inputs){
        .q = matrix_random(rows, n_heads * d, 7, amp, act, 1),
        .k = matrix_random(rows, n_kv_heads * d, 2, amp, act, 2),
        .v = matrix_random(rows, n_kv_heads * d, 0, amp, act, 3),
        .n_heads = n_heads,
        .n_kv_heads = n_kv_heads,
        .d = d,
    };
}

static void free_inputs(struct inputs *in)
{
    matrix_free(&in->q);
    matrix_free(&in->k);
    matrix_free(&in->v);
}

/* False when this processor lacks the level, here and below. */
static bool attend_prefix(struct matrix *y, const struct inputs *in, size_t n_seqs, size_t prefix, const char *level,
                          int n_threads, enum fathom_dtype act)
{
    struct kernel_run k;
    if (!kernel_run_init(&k, level, n_threads, act))
        return false;
    *y = matrix_alloc(in->q.t.shape[0], in->q.t.shape[1], 1);
    attention_prefix(&k.run, &y->t, &in->q.t, &in->k.t, &in->v.t, in->n_heads, in->n_kv_heads, n_seqs, prefix);
    kernel_run_finish(&k);
    assert_canaries(y);
    return true;
}

/* Feeds the rows in chunks through a cache whose memory held NaN. */
static bool attend_chunks(struct matrix *y, const struct inputs *in, const size_t *chunks, const char *level,
                          int n_threads, enum fathom_dtype act)
{
    struct kernel_run k;
    size_t n = in->q.t.shape[0], capacity = (n + ATTENTION_TILE - 1) / ATTENTION_TILE * ATTENTION_TILE;
    if (!kernel_run_init(&k, level, n_threads, act))
        return false;
    struct matrix keys = matrix_alloc(in->n_kv_heads * capacity, in->d, 0), values = matrix_copy(&keys);
    struct kv_layer kv = {keys.t.data, values.t.data, in->n_kv_heads, in->d, capacity};
    *y = matrix_alloc(n, in->q.t.shape[1], 1);
    for (size_t pos = 0; pos < n; chunks++) {
        size_t m = *chunks && *chunks < n - pos ? *chunks : n - pos;
        struct tensor q = tensor_rows(&in->q.t, pos, m), out = tensor_rows(&y->t, pos, m);
        struct tensor key_rows = tensor_rows(&in->k.t, pos, m), value_rows = tensor_rows(&in->v.t, pos, m);
        attention_causal(&k.run, &out, &q, &key_rows, &value_rows, &kv, in->n_heads, pos);
        pos += m;
    }
    kernel_run_finish(&k);
    assert_canaries(y);
    assert_canaries(&keys);
    assert_canaries(&values);
    matrix_free(&keys);
    matrix_free(&values);
    return true;
}

static const size_t one_shot[] = {0};

static void test_prefix_levels_agree(void **state)
{
    (void)state;
    static const size_t shapes[][6] = {
        /* n_seqs, rows, heads, kv heads, d, prefix */
        {1, 1, 1, 1, 16, 0},   {1, 8, 2, 1, 16, 3},    {2, 21, 4, 2, 32, 5},     {1, 63, 2, 2, 64, 0},
        {2, 65, 3, 1, 64, 65}, {1, 130, 7, 1, 64, 64}, {1, 200, 14, 2, 64, 100}, {3, 40, 2, 2, 128, 13},
        {1, 70, 5, 5, 80, 1},  {1, 20, 2, 1, 24, 10},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int act = FATHOM_F32; act <= FATHOM_BF16; act++) {
            const size_t *s = shapes[i];
            struct inputs in = make_inputs(s[0] * s[1], s[2], s[3], s[4], 1.5f, act);
            struct matrix expected, got;
            assert_true(attend_prefix(&expected, &in, s[0], s[5], "ref", 1, act));
            for (size_t level = 1; level < N_KERNEL_LEVELS; level++)
                for (int n_threads = 1; n_threads <= 3; n_threads += 2) {
                    char what[128];
                    if (!attend_prefix(&got, &in, s[0], s[5], kernel_levels[level], n_threads, act))
                        continue;
                    snprintf(what, sizeof what, "%s, %d threads, shape %zu, act %d", kernel_levels[level], n_threads, i,
                             act);
                    assert_same_bits(&got, &expected, what);
                    matrix_free(&got);
                }
            matrix_free(&expected);
            free_inputs(&in);
        }
}

static const size_t causal_shapes[][4] = {
    /* rows, heads, kv heads, d */
    {1, 1, 1, 16}, {9, 2, 2, 16}, {64, 2, 1, 32}, {65, 10, 10, 128}, {150, 7, 1, 64}, {200, 4, 2, 16}, {30, 2, 1, 24},
};

static void test_causal_levels_and_chunks_agree(void **state)
{
    (void)state;
    static const size_t decode[200] = {[0 ... 198] = 1};
    static const size_t chunks[][6] = {{0}, {1, 2, 3, 0}, {16, 48, 0}, {5, 1, 1, 59, 7, 0}, {63, 1, 1, 0}, {130, 0}};
    for (size_t i = 0; i < sizeof causal_shapes / sizeof *causal_shapes; i++)
        for (int act = FATHOM_F32; act <= FATHOM_BF16; act++) {
            const size_t *s = causal_shapes[i];
            struct inputs in = make_inputs(s[0], s[1], s[2], s[3], 1.5f, act);
            struct matrix expected, got;
            assert_true(attend_chunks(&expected, &in, one_shot, "ref", 1, act));
            for (size_t level = 0; level < N_KERNEL_LEVELS; level++)
                for (size_t j = 0; j <= sizeof chunks / sizeof *chunks; j++) {
                    const size_t *cut = j < sizeof chunks / sizeof *chunks ? chunks[j] : decode;
                    char what[128];
                    if (!attend_chunks(&got, &in, cut, kernel_levels[level], 1 + (int)j % 3, act))
                        continue;
                    snprintf(what, sizeof what, "%s, shape %zu, act %d, chunks %zu", kernel_levels[level], i, act, j);
                    assert_same_bits(&got, &expected, what);
                    matrix_free(&got);
                }
            matrix_free(&expected);
            free_inputs(&in);
        }
}

static void test_causal_is_prefix_0(void **state)
{
    (void)state;
    struct inputs in = make_inputs(130, 6, 2, 48, 1.0f, FATHOM_F32);
    for (size_t level = 0; level < N_KERNEL_LEVELS; level++) {
        struct matrix a, b;
        if (!attend_prefix(&a, &in, 1, 0, kernel_levels[level], 2, FATHOM_F32))
            continue;
        assert_true(attend_chunks(&b, &in, one_shot, kernel_levels[level], 2, FATHOM_F32));
        assert_same_bits(&a, &b, kernel_levels[level]);
        matrix_free(&a);
        matrix_free(&b);
    }
    free_inputs(&in);
}

/* Rows of a sequence do not feel what is stacked beside it, nor what they cannot see, not even NaN. */
static void test_rows_feel_only_what_they_see(void **state)
{
    (void)state;
    enum { N = 90, PREFIX = 20, STRANGE = 70 };
    struct inputs in = make_inputs(2 * N, 4, 2, 16, 1.0f, FATHOM_F32);
    for (size_t level = 0; level < N_KERNEL_LEVELS; level++) {
        struct matrix whole, apart, part;
        if (!attend_prefix(&whole, &in, 2, PREFIX, kernel_levels[level], 2, FATHOM_F32))
            continue;
        struct inputs second = in;
        second.q.t = tensor_rows(&in.q.t, N, N);
        second.k.t = tensor_rows(&in.k.t, N, N);
        second.v.t = tensor_rows(&in.v.t, N, N);
        assert_true(attend_prefix(&apart, &second, 1, PREFIX, kernel_levels[level], 1, FATHOM_F32));
        part = whole;
        part.t = tensor_rows(&whole.t, N, N);
        assert_same_bits(&apart, &part, kernel_levels[level]);
        matrix_free(&apart);

        struct inputs strange = second;
        strange.k = matrix_copy(&in.k);
        strange.v = matrix_copy(&in.v);
        strange.k.t = tensor_rows(&strange.k.t, N, N);
        strange.v.t = tensor_rows(&strange.v.t, N, N);
        *matrix_at(&strange.k, STRANGE, 3) = NAN;
        *matrix_at(&strange.v, STRANGE, 20) = INFINITY;
        assert_true(attend_prefix(&apart, &strange, 1, PREFIX, kernel_levels[level], 1, FATHOM_F32));
        struct tensor before = tensor_rows(&part.t, 0, STRANGE);
        part.t = before;
        assert_same_bits(&apart, &part, kernel_levels[level]);
        assert_true(isnan(*matrix_at(&apart, STRANGE, 0)));
        matrix_free(&apart);
        matrix_free(&strange.k);
        matrix_free(&strange.v);
        matrix_free(&whole);
    }
    free_inputs(&in);
}

static void test_levels_agree_on_extremes(void **state)
{
    (void)state;
    static const float strange[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e-40f};
    static const size_t chunks[] = {60, 9, 1, 0};
    for (size_t i = 0; i < 3 * sizeof strange / sizeof *strange + 6; i++) {
        struct inputs in = make_inputs(80, 3, 1, 32, i < 6 ? powf(10.0f, (float)i * 4) : 1.0f, FATHOM_F32);
        struct matrix *where[] = {&in.q, &in.k, &in.v}, expected, got;
        if (i >= 6)
            *matrix_at(where[i % 3], i + 20, i) = strange[(i - 6) / 3];
        assert_true(attend_chunks(&expected, &in, one_shot, "ref", 1, FATHOM_F32));
        for (size_t level = 1; level < N_KERNEL_LEVELS; level++) {
            char what[64];
            if (!attend_chunks(&got, &in, chunks, kernel_levels[level], 2, FATHOM_F32))
                continue;
            snprintf(what, sizeof what, "%s, extreme %zu", kernel_levels[level], i);
            assert_same_bits(&got, &expected, what);
            matrix_free(&got);
        }
        matrix_free(&expected);
        free_inputs(&in);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prefix_levels_agree),      cmocka_unit_test(test_causal_levels_and_chunks_agree),
        cmocka_unit_test(test_causal_is_prefix_0),       cmocka_unit_test(test_rows_feel_only_what_they_see),
        cmocka_unit_test(test_levels_agree_on_extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
