/* softmax_topk, embed and add: every level gives the bits of the scalar definitions. */
#include "kernels/weights.h"

#include <math.h>
#include <stdio.h>

#define MAX_COLS 300

static void topk_known(void **state)
{
    (void)state;
    float logits[] = {0, 1, 1, -INFINITY, 1, 0.5f}, weights[8];
    int32_t ids[8];
    for (size_t l = 0; l < N_KERNEL_LEVELS; l++) {
        struct kernel_run k;
        if (!kernel_run_init(&k, kernel_levels[l], 1, FATHOM_BF16))
            continue;
        struct tensor t = tensor_2d(DTYPE_F32, logits, 1, 6);
        double sum = 1 + 3 * exp(1) + exp(0.5);
        softmax_topk(&k.run, &t, 6, ids, weights);
        static const int32_t order[] = {1, 2, 4, 5, 0, 3};
        for (int i = 0; i < 6; i++) {
            assert_int_equal(ids[i], order[i]);
            assert_true(fabs((double)weights[i] - exp((double)logits[order[i]]) / sum) < 1e-7);
        }
        t.shape[1] = 1;
        softmax_topk(&k.run, &t, 1, ids, weights);
        assert_true(ids[0] == 0 && weights[0] == 1.0f);
        kernel_run_finish(&k);
    }
}

static void topk_levels_agree(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 60; i++) {
        size_t n = 1 + i % 7, m = 1 + i * 37 % MAX_COLS, top_k = 1 + i % (m < 9 ? m : 9);
        struct matrix x = matrix_random(n, m, 3, i % 2 ? 4.0f : 200.0f, FATHOM_F32, i);
        int32_t ids[2][7 * 9];
        float weights[2][7 * 9];
        if (i % 3 == 0) /* many ties */
            for (size_t c = 0; c < m; c++)
                *matrix_at(&x, 0, c) = (float)(c % 3);
        for (size_t l = 0; l < N_KERNEL_LEVELS; l++) {
            struct kernel_run k;
            size_t at = l > 0;
            if (!kernel_run_init(&k, kernel_levels[l], 1, FATHOM_F32))
                continue;
            softmax_topk(&k.run, &x.t, top_k, ids[at], weights[at]);
            kernel_run_finish(&k);
            assert_memory_equal(ids[at], ids[0], n * top_k * sizeof ids[0][0]);
            assert_memory_equal(weights[at], weights[0], n * top_k * sizeof weights[0][0]);
        }
        matrix_free(&x);
    }
}

static void topk_refuses_nan(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY};
    for (size_t l = 0; l < N_KERNEL_LEVELS; l++)
        for (int i = 0; i < 2; i++) {
            struct matrix x = matrix_random(2, 20, 0, 1.0f, FATHOM_F32, 1);
            int32_t ids[4];
            float weights[4];
            struct kernel_run k;
            *matrix_at(&x, 1, 17) = bad[i];
            if (kernel_run_init(&k, kernel_levels[l], 1, FATHOM_F32)) {
                softmax_topk(&k.run, &x.t, 2, ids, weights);
                assert_int_equal(k.run.err.status, FATHOM_ENUMERIC);
                assert_non_null(strstr(k.run.err.message, "row 1"));
                k.run.err = (struct fathom_err){0};
                kernel_run_finish(&k);
            }
            matrix_free(&x);
        }
}

static void embed_levels_agree(void **state)
{
    (void)state;
    static const int32_t ids[] = {6, 0, 3, 3, 5};
    for (uint64_t i = 0; i < 32; i++) {
        enum dtype dtype = weight_dtypes[i % N_UNSCALED_DTYPES];
        enum fathom_dtype act = i / 4 % 2 ? FATHOM_BF16 : FATHOM_F32;
        size_t cols = dtype == DTYPE_Q8_0 ? Q8_0_BLOCK * (1 + i / 8) : 1 + i * 11 % 70;
        struct weight table = weight_random(dtype, 7, cols, i % 3 ? 0 : 32, i);
        struct matrix expected = {0};
        weight_harden(&table, 9, N_HARD_VALUES, i);
        for (size_t l = 0; l < N_KERNEL_LEVELS; l++) {
            struct matrix y = matrix_alloc(5, cols, 2);
            struct kernel_run k;
            if (!kernel_run_init(&k, kernel_levels[l], 1, act)) {
                matrix_free(&y);
                continue;
            }
            embed(&k.run, &y.t, &table.t, ids);
            kernel_run_finish(&k);
            assert_canaries(&y);
            if (l == 0) {
                expected = y;
            } else {
                assert_same_bits(&y, &expected, kernel_levels[l]);
                matrix_free(&y);
            }
        }
        matrix_free(&expected);
        weight_free(&table);
    }
}

/* copy gives what embed gives of the rows in order, into rows with gaps; upload and download are each other's inverse. */
static void data_comes_and_goes(void **state)
{
    (void)state;
    static const int32_t ids[] = {0, 1, 2, 3, 4};
    for (uint64_t i = 0; i < 8; i++) {
        enum fathom_dtype act = i / 4 ? FATHOM_BF16 : FATHOM_F32;
        struct weight table = weight_random(weight_dtypes[i % N_UNSCALED_DTYPES], 5, 64, 0, i);
        struct matrix y = matrix_alloc(5, 64, 3), expected = matrix_alloc(5, 64, 3);
        struct kernel_run k;
        assert_true(kernel_run_init(&k, "ref", 1, act));
        embed(&k.run, &expected.t, &table.t, ids);
        copy(&k.run, &y.t, &table.t);
        assert_same_bits(&y, &expected, "copy");
        assert_canaries(&y);

        float out[5 * 64];
        struct tensor packed = run_alloc(&k.run, 5, 64);
        download(&k.run, out, &y.t);
        upload(&k.run, &packed, out);
        for (size_t row = 0; row < 5; row++)
            assert_memory_equal(tensor_row(&packed, row), tensor_row(&y.t, row), 64 * sizeof(float));
        int32_t *pos = run_scratch(&k.run, 3, sizeof *pos);
        positions(&k.run, pos, 7, 3);
        assert_int_equal(pos[0] * 10000 + pos[1] * 100 + pos[2], 70809);
        assert_true(run_ok(&k.run));
        upload(&k.run, &y.t, out); /* rows with gaps are not packed */
        assert_int_equal(k.run.err.status, FATHOM_EINVAL);
        k.run.err = (struct fathom_err){0};
        positions(&k.run, pos, INT32_MAX, 3);
        assert_int_equal(k.run.err.status, FATHOM_ELIMIT);
        k.run.err = (struct fathom_err){0};
        k.arena.used_bytes = 0;
        kernel_run_finish(&k);
        matrix_free(&y), matrix_free(&expected);
        weight_free(&table);
    }
}

static void add_levels_agree(void **state)
{
    (void)state;
    static const size_t shapes[][2] = {{1, 1}, {3, 15}, {2, 16}, {5, 33}, {3000, 40}, {2, 40000}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int act = FATHOM_F32; act <= FATHOM_BF16; act++) {
            struct matrix x = matrix_random(shapes[s][0], shapes[s][1], 1, 1.0f, (enum fathom_dtype)act, s);
            struct matrix y = matrix_random(shapes[s][0], shapes[s][1], 2, 1.0f, (enum fathom_dtype)act, s + 1);
            struct matrix expected = {0};
            matrix_harden(&x, 7, N_HARD_VALUES, s);
            for (size_t l = 0; l < N_KERNEL_LEVELS; l++) {
                struct matrix got = matrix_copy(&x);
                struct kernel_run k;
                if (kernel_run_init(&k, kernel_levels[l], 3, (enum fathom_dtype)act)) {
                    add(&k.run, &got.t, &y.t);
                    kernel_run_finish(&k);
                    assert_canaries(&got);
                    if (l > 0)
                        assert_same_bits(&got, &expected, kernel_levels[l]);
                }
                if (l == 0)
                    expected = got;
                else
                    matrix_free(&got);
            }
            matrix_free(&x), matrix_free(&y), matrix_free(&expected);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(topk_known),         cmocka_unit_test(topk_levels_agree),   cmocka_unit_test(topk_refuses_nan),
        cmocka_unit_test(embed_levels_agree), cmocka_unit_test(data_comes_and_goes), cmocka_unit_test(add_levels_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
