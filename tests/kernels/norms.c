/* layernorm, rmsnorm and rope: every level gives the bits of the scalar definitions, and those compute what they say. */
#include "kernels/kernel_run.h"

#include <math.h>
#include <stdio.h>

enum { N_EXTREMES = 4 };

/* 0: ordinary values; otherwise zeros, huge values, or NaN and infinities here and there. */
static void make_extreme(struct matrix *m, int kind, uint64_t seed)
{
    for (size_t r = 0; r < m->t.shape[0]; r++)
        for (size_t c = 0; c < m->t.shape[1]; c++) {
            float *x = matrix_at(m, r, c), pick = random_f32(&seed);
            if (kind == 1)
                *x = r % 2 ? 0.0f : -0.0f;
            else if (kind == 2)
                *x = bf16_round(*x * 1e30f);
            else if (kind == 3 && pick > 0.98f)
                *x = pick > 0.993f ? NAN : pick > 0.986f ? INFINITY : -INFINITY;
        }
}

/* Weights in either dtype. */
static struct tensor weights(const struct matrix *m, enum dtype dtype, uint16_t *narrow)
{
    size_t n = m->t.shape[1];
    if (dtype == DTYPE_F32)
        return tensor_1d(DTYPE_F32, m->t.data, n);
    for (size_t i = 0; i < n; i++)
        narrow[i] = bf16_from_f32(*matrix_at(m, 0, i));
    return tensor_1d(DTYPE_BF16, narrow, n);
}

static void norms_once(size_t rows, size_t cols, enum fathom_dtype act, enum dtype dtype, int extreme)
{
    uint16_t narrow[2][3072];
    struct matrix x = matrix_random(rows, cols, 3, 2.0f, act, rows * cols);
    struct matrix w = matrix_random(1, cols, 0, 1.0f, FATHOM_F32, 7),
                  b = matrix_random(1, cols, 0, 1.0f, FATHOM_F32, 8);
    struct tensor wt = weights(&w, dtype, narrow[0]), bt = weights(&b, dtype, narrow[1]);
    make_extreme(&x, extreme, 3);
    struct matrix expected[2];
    for (size_t level = 0; level < N_KERNEL_LEVELS; level++)
        for (int op = 0; op < 2; op++)
            for (int in_place = 0; in_place < 2; in_place++) {
                struct kernel_run k;
                struct matrix in = matrix_copy(&x), out = matrix_alloc(rows, cols, 5);
                struct tensor *y = in_place ? &in.t : &out.t;
                char what[96];
                if (!kernel_run_init(&k, kernel_levels[level], 2, act))
                    continue;
                if (op == 0)
                    layernorm(&k.run, y, &in.t, &wt, &bt, 1e-6f);
                else
                    rmsnorm(&k.run, y, &in.t, &wt, 1e-6f);
                kernel_run_finish(&k);
                snprintf(what, sizeof what, "%s %s %zux%zu", kernel_levels[level], op ? "rmsnorm" : "layernorm", rows,
                         cols);
                assert_canaries(&in);
                assert_canaries(&out);
                struct matrix *got = in_place ? &in : &out;
                if (level == 0 && !in_place)
                    expected[op] = matrix_copy(got);
                else
                    assert_same_bits(got, &expected[op], what);
                matrix_free(&in);
                matrix_free(&out);
            }
    matrix_free(&expected[0]);
    matrix_free(&expected[1]);
    matrix_free(&x);
    matrix_free(&w);
    matrix_free(&b);
}

static void test_norms_equal_ref(void **state)
{
    (void)state;
    static const size_t shapes[][2] = {{1, 1},    {3, 7},   {2, 16},   {5, 17},  {4, 64},
                                       {33, 100}, {7, 768}, {2, 1283}, {1, 3072}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int act = FATHOM_F32; act <= FATHOM_BF16; act++)
            for (int extreme = 0; extreme < N_EXTREMES; extreme++) {
                norms_once(shapes[i][0], shapes[i][1], act, DTYPE_F32, extreme);
                norms_once(shapes[i][0], shapes[i][1], act, DTYPE_BF16, extreme);
            }
}

/* Against double precision. */
static void test_norms_are_right(void **state)
{
    (void)state;
    enum { ROWS = 6, COLS = 301 };
    const double eps = 1e-5;
    struct kernel_run k;
    struct matrix x = matrix_random(ROWS, COLS, 0, 3.0f, FATHOM_F32, 1), ln = matrix_alloc(ROWS, COLS, 0);
    struct matrix w = matrix_random(1, COLS, 0, 1.0f, FATHOM_F32, 2),
                  b = matrix_random(1, COLS, 0, 1.0f, FATHOM_F32, 3);
    struct matrix rms = matrix_alloc(ROWS, COLS, 0);
    struct tensor wt = tensor_1d(DTYPE_F32, w.t.data, COLS), bt = tensor_1d(DTYPE_F32, b.t.data, COLS);
    for (size_t r = 0; r < ROWS; r++)
        for (size_t c = 0; c < COLS; c++)
            *matrix_at(&x, r, c) += (float)r; /* means other than 0 */
    assert_true(kernel_run_init(&k, "ref", 1, FATHOM_F32));
    layernorm(&k.run, &ln.t, &x.t, &wt, &bt, (float)eps);
    rmsnorm(&k.run, &rms.t, &x.t, &wt, (float)eps);
    kernel_run_finish(&k);
    for (size_t r = 0; r < ROWS; r++) {
        double sum = 0, squares = 0, mean_square = 0;
        for (size_t c = 0; c < COLS; c++)
            sum += *matrix_at(&x, r, c);
        double mean = sum / COLS;
        for (size_t c = 0; c < COLS; c++) {
            double v = *matrix_at(&x, r, c);
            squares += (v - mean) * (v - mean);
            mean_square += v * v;
        }
        for (size_t c = 0; c < COLS; c++) {
            double v = *matrix_at(&x, r, c), wc = *matrix_at(&w, 0, c), bc = *matrix_at(&b, 0, c);
            assert_true(fabs((v - mean) / sqrt(squares / COLS + eps) * wc + bc - *matrix_at(&ln, r, c)) < 2e-6);
            assert_true(fabs(v / sqrt(mean_square / COLS + eps) * wc - *matrix_at(&rms, r, c)) < 2e-6);
        }
    }
    matrix_free(&x);
    matrix_free(&w);
    matrix_free(&b);
    matrix_free(&ln);
    matrix_free(&rms);
}

static void rope_once(size_t rows, size_t n_heads, size_t d, enum fathom_dtype act, int extreme)
{
    int32_t pos[64];
    struct matrix x = matrix_random(rows, n_heads * d, 4, 2.0f, act, d), expected = {0};
    make_extreme(&x, extreme, 5);
    for (size_t r = 0; r < rows; r++)
        pos[r] = (int32_t)(r * 131);
    for (size_t level = 0; level < N_KERNEL_LEVELS; level++) {
        struct kernel_run k;
        struct matrix got = matrix_copy(&x);
        if (!kernel_run_init(&k, kernel_levels[level], 3, act))
            continue;
        rope(&k.run, &got.t, n_heads, pos, 10000.0f);
        kernel_run_finish(&k);
        assert_canaries(&got);
        if (level == 0)
            expected = matrix_copy(&got);
        else
            assert_same_bits(&got, &expected, kernel_levels[level]);
        matrix_free(&got);
    }
    matrix_free(&expected);
    matrix_free(&x);
}

static void test_rope_equals_ref(void **state)
{
    (void)state;
    static const size_t shapes[][3] = {{1, 1, 2}, {3, 2, 16}, {5, 3, 34}, {20, 2, 64}, {64, 10, 128}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int act = FATHOM_F32; act <= FATHOM_BF16; act++)
            for (int extreme = 0; extreme < N_EXTREMES; extreme++)
                rope_once(shapes[i][0], shapes[i][1], shapes[i][2], act, extreme);
}

/* Pairs lie half a head apart and turn by pos * theta^(-2j/d). */
static void test_rope_turns_pairs(void **state)
{
    (void)state;
    enum { D = 8 };
    const int32_t pos[2] = {0, 3};
    struct kernel_run k;
    struct matrix x = matrix_random(2, 2 * D, 0, 1.0f, FATHOM_F32, 4), before = matrix_copy(&x);
    assert_true(kernel_run_init(&k, "ref", 1, FATHOM_F32));
    rope(&k.run, &x.t, 2, pos, 100.0f);
    kernel_run_finish(&k);
    for (size_t r = 0; r < 2; r++)
        for (size_t h = 0; h < 2; h++)
            for (size_t j = 0; j < D / 2; j++) {
                double angle = pos[r] * pow(100.0, -2.0 * (double)j / D);
                double a = *matrix_at(&before, r, h * D + j), b = *matrix_at(&before, r, h * D + j + D / 2);
                assert_true(fabs(a * cos(angle) - b * sin(angle) - *matrix_at(&x, r, h * D + j)) < 1e-6);
                assert_true(fabs(b * cos(angle) + a * sin(angle) - *matrix_at(&x, r, h * D + j + D / 2)) < 1e-6);
            }
    matrix_free(&x);
    matrix_free(&before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_norms_equal_ref),
        cmocka_unit_test(test_norms_are_right),
        cmocka_unit_test(test_rope_equals_ref),
        cmocka_unit_test(test_rope_turns_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
