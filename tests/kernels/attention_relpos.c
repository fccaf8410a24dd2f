/* attention_relpos: every level and thread count gives the bits of the scalar definition, and windows are what the
 * explicitly padded computation gives. */
#include "kernels/kernel_run.h"

#include <math.h>
#include <stdio.h>

struct shape {
    size_t n_views, gh, gw, n_heads, d, window;
};

struct inputs {
    struct matrix qkv, pad, rel_h, rel_w;
};

static struct inputs make_inputs(const struct shape *s, float amp, enum fathom_dtype act)
{
    size_t c = s->n_heads * s->d, kh = s->window ? s->window : s->gh, kw = s->window ? s->window : s->gw;
    return (struct inputs){
        .qkv = matrix_random(s->n_views * s->gh * s->gw, 3 * c, 5, amp, act, 1),
        .pad = matrix_random(1, 3 * c, 0, amp, act, 2),
        .rel_h = matrix_random(2 * kh - 1, s->d, 0, 0.5f, act, 3),
        .rel_w = matrix_random(2 * kw - 1, s->d, 0, 0.5f, act, 4),
    };
}

static void free_inputs(struct inputs *in)
{
    matrix_free(&in->qkv);
    matrix_free(&in->pad);
    matrix_free(&in->rel_h);
    matrix_free(&in->rel_w);
}

/* False when this processor lacks the level. */
static bool attend(struct matrix *y, const struct shape *s, const struct inputs *in, const char *level, int n_threads,
                   enum fathom_dtype act)
{
    struct kernel_run k;
    struct relpos_shape shape = {s->n_views, s->gh, s->gw, s->n_heads, s->window};
    struct tensor pad = tensor_1d(DTYPE_F32, in->pad.t.data, in->pad.t.shape[1]);
    if (!kernel_run_init(&k, level, n_threads, act))
        return false;
    *y = matrix_alloc(s->n_views * s->gh * s->gw, s->n_heads * s->d, 3);
    attention_relpos(&k.run, &y->t, &in->qkv.t, &pad, &in->rel_h.t, &in->rel_w.t, shape);
    kernel_run_finish(&k);
    assert_canaries(y);
    return true;
}

static void expect_equal(const struct shape *s, const struct inputs *in, enum fathom_dtype act)
{
    struct matrix expected;
    assert_true(attend(&expected, s, in, "ref", 1, act));
    for (size_t level = 1; level < N_KERNEL_LEVELS; level++)
        for (int n_threads = 1; n_threads <= 3; n_threads += 2) {
            struct matrix got;
            char what[128];
            if (!attend(&got, s, in, kernel_levels[level], n_threads, act))
                continue;
            snprintf(what, sizeof what, "%s, %d threads, %zu views %zux%zu, %zu heads of %zu, window %zu",
                     kernel_levels[level], n_threads, s->n_views, s->gh, s->gw, s->n_heads, s->d, s->window);
            assert_same_bits(&got, &expected, what);
            matrix_free(&got);
        }
    matrix_free(&expected);
}

static const struct shape shapes[] = {
    {1, 1, 1, 1, 16, 0},  {1, 4, 4, 2, 16, 0},    {2, 5, 9, 2, 64, 0},    {1, 7, 3, 1, 32, 0},  {1, 14, 14, 2, 64, 0},
    {1, 16, 7, 1, 48, 0}, {1, 3, 33, 2, 80, 0},   {1, 2, 100, 1, 16, 0},  {1, 9, 40, 1, 64, 0}, {1, 3, 70, 1, 128, 0},
    {1, 6, 5, 3, 24, 0},  {2, 15, 17, 2, 64, 14}, {1, 14, 28, 2, 32, 14}, {3, 5, 5, 1, 16, 14}, {1, 10, 10, 2, 80, 4},
    {1, 7, 9, 1, 24, 4},  {1, 20, 19, 1, 16, 18},
};

static void test_levels_agree(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int act = FATHOM_F32; act <= FATHOM_BF16; act++) {
            struct inputs in = make_inputs(&shapes[i], 1.0f, act);
            expect_equal(&shapes[i], &in, act);
            free_inputs(&in);
        }
}

/* Scores so far apart that probabilities become subnormal or zero, infinite dot products, and stray NaN and Inf. */
static void test_levels_agree_on_extremes(void **state)
{
    (void)state;
    static const struct shape s[] = {{1, 5, 20, 2, 16, 0}, {1, 9, 6, 1, 32, 4}};
    static const float strange[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e-40f};
    for (size_t i = 0; i < sizeof s / sizeof *s; i++) {
        for (float amp = 6.0f; amp < 1e30f; amp *= amp) {
            struct inputs in = make_inputs(&s[i], amp, FATHOM_F32);
            expect_equal(&s[i], &in, FATHOM_F32);
            free_inputs(&in);
        }
        for (size_t j = 0; j < 3 * sizeof strange / sizeof *strange; j++) {
            struct inputs in = make_inputs(&s[i], 1.0f, FATHOM_F32);
            size_t c = s[i].n_heads * s[i].d;
            *matrix_at(&in.qkv, 7 + j, j % 3 * c + j) = strange[j / 3]; /* in q, k and v */
            expect_equal(&s[i], &in, FATHOM_F32);
            free_inputs(&in);
        }
    }
}

/* The tables and the padding may be stored in fewer bits. */
static void test_narrow_tables(void **state)
{
    (void)state;
    const struct shape s = {1, 9, 10, 2, 16, 4};
    uint16_t rel[2][7 * 16], pad[3 * 32];
    struct inputs in = make_inputs(&s, 1.0f, FATHOM_BF16);
    for (size_t i = 0; i < 7 * 16; i++) {
        rel[0][i] = bf16_from_f32(*matrix_at(&in.rel_h, i / 16, i % 16));
        rel[1][i] = bf16_from_f32(*matrix_at(&in.rel_w, i / 16, i % 16));
    }
    for (size_t i = 0; i < 3 * 32; i++)
        pad[i] = bf16_from_f32(*matrix_at(&in.pad, 0, i));
    struct tensor rel_h = tensor_2d(DTYPE_BF16, rel[0], 7, 16), rel_w = tensor_2d(DTYPE_BF16, rel[1], 7, 16);
    struct tensor narrow_pad = tensor_1d(DTYPE_BF16, pad, 3 * 32);
    struct matrix expected;
    assert_true(attend(&expected, &s, &in, "ref", 1, FATHOM_F32));
    for (size_t level = 0; level < N_KERNEL_LEVELS; level++) {
        struct kernel_run k;
        struct matrix y = matrix_alloc(90, 32, 0);
        if (kernel_run_init(&k, kernel_levels[level], 1, FATHOM_F32)) {
            attention_relpos(&k.run, &y.t, &in.qkv.t, &narrow_pad, &rel_h, &rel_w,
                             (struct relpos_shape){1, 9, 10, 2, 4});
            kernel_run_finish(&k);
            assert_same_bits(&y, &expected, kernel_levels[level]);
        }
        matrix_free(&y);
    }
    matrix_free(&expected);
    free_inputs(&in);
}

/* Each window written out with its padding, and taken as a view that sees itself. */
static void test_windows_are_padded_views(void **state)
{
    (void)state;
    const struct shape s = {2, 15, 20, 2, 32, 7};
    const size_t windows_h = 3, windows_w = 3, n = 7, c = 3 * 2 * 32;
    const struct shape written = {2 * windows_h * windows_w, n, n, 2, 32, 0};
    struct inputs in = make_inputs(&s, 1.0f, FATHOM_F32), out = in;
    out.qkv = matrix_alloc(written.n_views * n * n, c, 0);
    for (size_t row = 0; row < out.qkv.t.shape[0]; row++) {
        size_t window = row / (n * n), view = window / (windows_h * windows_w);
        size_t y = window / windows_w % windows_h * n + row / n % n, x = window % windows_w * n + row % n;
        const float *from = matrix_at(&in.pad, 0, 0);
        if (y < s.gh && x < s.gw)
            from = matrix_at(&in.qkv, (view * s.gh + y) * s.gw + x, 0);
        memcpy(matrix_at(&out.qkv, row, 0), from, c * sizeof(float));
    }
    for (size_t level = 0; level < N_KERNEL_LEVELS; level++) {
        struct matrix got, expected;
        if (!attend(&got, &s, &in, kernel_levels[level], 2, FATHOM_F32))
            continue;
        assert_true(attend(&expected, &written, &out, kernel_levels[level], 2, FATHOM_F32));
        for (size_t row = 0; row < got.t.shape[0]; row++) {
            size_t view = row / (s.gh * s.gw), y = row / s.gw % s.gh, x = row % s.gw;
            size_t window = (view * windows_h + y / n) * windows_w + x / n;
            assert_memory_equal(matrix_at(&got, row, 0), matrix_at(&expected, (window * n + y % n) * n + x % n, 0),
                                2 * 32 * sizeof(float));
        }
        matrix_free(&got);
        matrix_free(&expected);
    }
    matrix_free(&out.qkv);
    free_inputs(&in);
}

/* The peak of the scratch grows with the tokens, not with their square. */
static void test_scratch_is_linear(void **state)
{
    (void)state;
    size_t peak[2];
    for (size_t i = 0; i < 2; i++) {
        struct kernel_run k;
        struct shape s = {1, 16 << i, 16 << i, 4, 64, 0};
        struct inputs in = make_inputs(&s, 1.0f, FATHOM_F32);
        struct matrix y = matrix_alloc(s.gh * s.gw, 4 * 64, 0);
        if (!kernel_run_init(&k, kernels_select(NULL)->name, 2, FATHOM_F32))
            fail();
        attention_relpos(&k.run, &y.t, &in.qkv.t, NULL, &in.rel_h.t, &in.rel_w.t,
                         (struct relpos_shape){1, s.gh, s.gw, 4, 0});
        peak[i] = k.arena.peak_bytes;
        kernel_run_finish(&k);
        matrix_free(&y);
        free_inputs(&in);
    }
    assert_true(peak[1] <= 4 * peak[0]);
}

static void test_out_of_memory_is_an_error(void **state)
{
    (void)state;
    for (size_t level = 0; level < N_KERNEL_LEVELS; level++) {
        struct kernel_run k;
        struct shape s = {1, 8, 8, 2, 16, 0};
        struct inputs in = make_inputs(&s, 1.0f, FATHOM_F32);
        struct matrix y = matrix_alloc(64, 32, 0);
        if (kernel_run_init(&k, kernel_levels[level], 1, FATHOM_F32)) {
            k.arena.limit_bytes = 64;
            attention_relpos(&k.run, &y.t, &in.qkv.t, NULL, &in.rel_h.t, &in.rel_w.t,
                             (struct relpos_shape){1, 8, 8, 2, 0});
            assert_int_equal(k.run.err.status, FATHOM_ENOMEM);
            pool_destroy(k.run.pool);
            arena_release(&k.arena);
        }
        matrix_free(&y);
        free_inputs(&in);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels_agree),      cmocka_unit_test(test_levels_agree_on_extremes),
        cmocka_unit_test(test_narrow_tables),     cmocka_unit_test(test_windows_are_padded_views),
        cmocka_unit_test(test_scratch_is_linear), cmocka_unit_test(test_out_of_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
