/* The public side of the operations: what does not fit is refused with a message, the first error stays, the trace sees
 * every operation; and the levels to choose from. */
#include "kernels/weights.h"

#include <stdio.h>

static void levels(void **state)
{
    (void)state;
    assert_ptr_equal(kernels_select("ref"), &kernels_ref);
    assert_non_null(kernels_select(NULL));
    assert_non_null(kernels_select("avx512"));
    assert_null(kernels_select("avx"));
    assert_null(kernels_select(""));
}

static void shapes_are_checked(void **state)
{
    (void)state;
    struct kernel_run k;
    assert_true(kernel_run_init(&k, "ref", 1, FATHOM_F32));
    struct matrix x = matrix_random(2, 4, 0, 1.0f, FATHOM_F32, 1), y = matrix_alloc(2, 3, 0);
    struct weight w = weight_random(DTYPE_BF16, 3, 5, 0, 1), q = weight_random(DTYPE_Q8_0, 3, 32, 0, 1);
    linear(&k.run, &y.t, &x.t, &w.t, NULL);
    assert_int_equal(k.run.err.status, FATHOM_EINVAL);
    assert_string_equal(k.run.err.message,
                        "linear: shapes or dtypes do not fit: y [2, 3] f32, x [2, 4] f32, w [3, 5] bf16");

    /* The first error stays, and nothing is done after it. */
    add(&k.run, &x.t, &y.t);
    assert_non_null(strstr(k.run.err.message, "linear"));
    w.t.shape[1] = 4;
    linear(&k.run, &y.t, &x.t, &w.t, NULL);
    assert_int_equal(f32_bits(*matrix_at(&y, 0, 0)), CANARY);

    const struct tensor bad_bias = tensor_1d(DTYPE_F16, x.t.data, 3), long_bias = tensor_1d(DTYPE_F32, x.t.data, 4);
    const struct tensor *biases[] = {&bad_bias, &long_bias};
    for (int i = 0; i < 2; i++) {
        k.run.err = (struct fathom_err){0};
        linear_gelu(&k.run, &y.t, &x.t, &w.t, biases[i]);
        assert_non_null(strstr(k.run.err.message, "linear_gelu: "));
    }
    k.run.err = (struct fathom_err){0};
    struct tensor part = tensor_cols(&x.t, 0, 4);
    q.t.shape[1] = 4;
    linear(&k.run, &y.t, &part, &q.t, NULL); /* not whole blocks */
    assert_int_equal(k.run.err.status, FATHOM_EINVAL);
    k.run.err = (struct fathom_err){0};
    kernel_run_finish(&k);
    matrix_free(&x), matrix_free(&y), weight_free(&w), weight_free(&q);
}

static void conv_shapes_are_checked(void **state)
{
    (void)state;
    struct kernel_run k;
    assert_true(kernel_run_init(&k, "ref", 1, FATHOM_F32));
    float x[64] = {0}, y[64], w[64] = {0};
    const struct conv2d_shape bad[] = {{0, 1, 0},       {3, 0, 1}, {3, 1, 0}, {9, 1, 1}, {3, 1, SIZE_MAX / 2 + 1},
                                       {SIZE_MAX, 1, 1}};
    struct tensor map = tensor_4d(DTYPE_F32, x, 1, 4, 4, 2), out = tensor_4d(DTYPE_F32, y, 1, 4, 4, 1);
    struct tensor weights = tensor_4d(DTYPE_F32, w, 1, 2, 3, 3);
    conv2d(&k.run, &out, &map, &weights, NULL, (struct conv2d_shape){3, 1, 1});
    assert_true(run_ok(&k.run));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        k.run.err = (struct fathom_err){0};
        conv2d(&k.run, &out, &map, &weights, NULL, bad[i]);
        assert_int_equal(k.run.err.status, FATHOM_EINVAL);
    }
    k.run.err = (struct fathom_err){0};
    kernel_run_finish(&k);
}

static void ids_and_positions_are_checked(void **state)
{
    (void)state;
    struct kernel_run k;
    assert_true(kernel_run_init(&k, "ref", 1, FATHOM_F32));
    struct matrix y = matrix_alloc(2, 4, 0), q = matrix_random(3, 16, 0, 1.0f, FATHOM_F32, 1);
    struct weight table = weight_random(DTYPE_F32, 5, 4, 0, 1);
    static const int32_t bad_ids[][2] = {{4, 5}, {-1, 0}};
    for (int i = 0; i < 2; i++) {
        embed(&k.run, &y.t, &table.t, bad_ids[i]);
        assert_int_equal(k.run.err.status, FATHOM_EINVAL);
        k.run.err = (struct fathom_err){0};
    }
    struct kv_layer kv = {.k = y.t.data, .v = y.t.data, .n_kv_heads = 1, .head_dim = 16, .capacity = ATTENTION_TILE};
    struct matrix out = matrix_alloc(3, 16, 0);
    static const size_t bad_pos[] = {ATTENTION_TILE - 2, ATTENTION_TILE, SIZE_MAX, SIZE_MAX - 1};
    for (int i = 0; i < 4; i++) {
        attention_causal(&k.run, &out.t, &q.t, &q.t, &q.t, &kv, 1, bad_pos[i]);
        assert_int_equal(k.run.err.status, FATHOM_ELIMIT);
        k.run.err = (struct fathom_err){0};
    }
    kernel_run_finish(&k);
    matrix_free(&y), matrix_free(&q), matrix_free(&out), weight_free(&table);
}

static void memory_runs_out_cleanly(void **state)
{
    (void)state;
    for (size_t l = 0; l < N_KERNEL_LEVELS; l++)
        for (size_t limit = 0; limit < 3000; limit += 500) {
            struct kernel_run k;
            if (!kernel_run_init(&k, kernel_levels[l], 2, FATHOM_F32))
                continue;
            k.arena.limit_bytes = limit;
            struct matrix x = matrix_random(9, 200, 0, 1.0f, FATHOM_F32, 1), y = matrix_alloc(9, 3000, 0);
            struct weight w = weight_random(DTYPE_F32, 3000, 200, 0, 1);
            swiglu(&k.run, &y.t, &x.t, &w.t, &w.t);
            assert_int_equal(k.run.err.status, FATHOM_ENOMEM);
            assert_canaries(&y);
            struct tensor t = run_alloc(&k.run, 1, 1);
            assert_null(t.data);
            k.run.err = (struct fathom_err){0};
            t = run_alloc_map(&k.run, SIZE_MAX, 2, 3, 4);
            assert_null(t.data);
            assert_int_equal(k.run.err.status, FATHOM_ENOMEM);
            k.run.err = (struct fathom_err){0};
            kernel_run_finish(&k);
            matrix_free(&x), matrix_free(&y), weight_free(&w);
        }
}

static void memory_messages_give_sizes(void **state)
{
    (void)state;
    struct kernel_run k;
    assert_true(kernel_run_init(&k, "ref", 1, FATHOM_F32));
    run_alloc(&k.run, (size_t)1 << 30, 2);
    assert_string_equal(k.run.err.message, "out of memory: 8589934592 bytes for activations, 0 of 1073741824 in use");
    k.run.err = (struct fathom_err){0};
    k.arena.limit_bytes = SIZE_MAX;
    run_alloc(&k.run, SIZE_MAX / 2, 3);
    assert_string_equal(k.run.err.message,
                        "out of memory: activations would need more than this machine can address, 0 in use");
    k.run.err = (struct fathom_err){0};
    kernel_run_finish(&k);
}

static bool count_down(void *ctx)
{
    int *left = ctx;
    return --*left > 0;
}

static void every_operation_can_be_cancelled(void **state)
{
    (void)state;
    struct kernel_run k;
    int left = 3;
    assert_true(kernel_run_init(&k, "ref", 1, FATHOM_F32));
    struct matrix x = matrix_random(2, 4, 0, 1.0f, FATHOM_F32, 1), y = matrix_random(2, 4, 0, 1.0f, FATHOM_F32, 2);
    float *first = x.t.data, before = *first, step = *(float *)y.t.data;
    k.run.keep_going = count_down;
    k.run.keep_going_ctx = &left;
    for (int i = 0; i < 5; i++)
        add(&k.run, &x.t, &y.t);
    assert_true(*first == before + step + step);
    assert_int_equal(k.run.err.status, FATHOM_ECANCELLED);
    assert_int_equal(left, 0); /* not asked again */
    k.run.err = (struct fathom_err){0};
    kernel_run_finish(&k);
    matrix_free(&x), matrix_free(&y);
}

struct log {
    char text[200];
};

static void note(void *ctx, const char *op, const struct tensor *out)
{
    struct log *log = ctx;
    char shape[96];
    size_t n = strlen(log->text);
    snprintf(log->text + n, sizeof log->text - n, "%s %s;", op, tensor_shape_text(out, shape));
}

static void trace_sees_operations(void **state)
{
    (void)state;
    struct kernel_run k;
    struct log log = {0};
    assert_true(kernel_run_init(&k, "ref", 1, FATHOM_F32));
    k.run.trace = note;
    k.run.trace_ctx = &log;
    struct matrix x = matrix_random(2, 4, 0, 1.0f, FATHOM_F32, 1), y = matrix_alloc(2, 3, 0);
    struct weight w = weight_random(DTYPE_BF16, 3, 4, 0, 1), d = weight_random(DTYPE_BF16, 4, 3, 0, 2);
    struct matrix z = matrix_alloc(2, 4, 0);
    linear_quick_gelu(&k.run, &y.t, &x.t, &w.t, NULL);
    mlp(&k.run, &z.t, &x.t, &(struct mlp_weights){w.t, w.t, d.t});
    add(&k.run, &z.t, &x.t);
    add(&k.run, &z.t, &y.t); /* refused: not traced */
    assert_string_equal(log.text, "linear_quick_gelu [2, 3];swiglu [2, 3];linear [2, 4];add [2, 4];");
    k.run.err = (struct fathom_err){0};
    kernel_run_finish(&k);
    matrix_free(&x), matrix_free(&y), matrix_free(&z), weight_free(&w), weight_free(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels),
        cmocka_unit_test(shapes_are_checked),
        cmocka_unit_test(conv_shapes_are_checked),
        cmocka_unit_test(ids_and_positions_are_checked),
        cmocka_unit_test(memory_runs_out_cleanly),
        cmocka_unit_test(memory_messages_give_sizes),
        cmocka_unit_test(every_operation_can_be_cancelled),
        cmocka_unit_test(trace_sees_operations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
