/* linear, its epilogues and swiglu: every level, thread count and number of rows gives the bits of the scalar
 * definition, for every weight dtype. */
#include "kernels/weights.h"

#include <math.h>
#include <stdio.h>

enum op { LINEAR, LINEAR_GELU, LINEAR_QUICK_GELU, SWIGLU, N_OPS };

struct inputs {
    struct matrix x;
    struct weight w, up;
    struct tensor bias;
    void *bias_data;
    bool biased;
};

static struct inputs make_inputs(size_t m, size_t n, size_t k, enum dtype dtype, enum fathom_dtype act, uint64_t seed)
{
    size_t gap = seed % 3 == 0 ? 32 : 0;
    struct inputs in = {.x = matrix_random(m, k, seed % 5, 1.0f, act, seed + 1),
                        .w = weight_random(dtype, n, k, gap, seed + 2),
                        .up = weight_random(dtype, n, k, gap, seed + 3),
                        .biased = seed % 4 != 0};
    enum dtype bias_dtype = seed % 2 ? DTYPE_F32 : DTYPE_BF16;
    struct weight bias = weight_random(bias_dtype, 1, n, 0, seed + 4);
    in.bias = tensor_1d(bias_dtype, bias.t.data, n);
    in.bias_data = bias.block;
    return in;
}

static void free_inputs(struct inputs *in)
{
    matrix_free(&in->x);
    weight_free(&in->w);
    weight_free(&in->up);
    free(in->bias_data);
}

static void call(struct run *run, enum op op, struct tensor *y, const struct tensor *x, const struct inputs *in)
{
    const struct tensor *bias = in->biased ? &in->bias : NULL;
    switch (op) {
    case LINEAR: linear(run, y, x, &in->w.t, bias); break;
    case LINEAR_GELU: linear_gelu(run, y, x, &in->w.t, bias); break;
    case LINEAR_QUICK_GELU: linear_quick_gelu(run, y, x, &in->w.t, bias); break;
    default: swiglu(run, y, x, &in->w.t, &in->up.t);
    }
}

/* y of all rows in calls of at most `rows` rows; false when this processor lacks the level. */
static bool compute(struct matrix *y, const struct inputs *in, enum op op, const char *level, int n_threads,
                    size_t rows, enum fathom_dtype act)
{
    struct kernel_run k;
    size_t m = in->x.t.shape[0];
    if (!kernel_run_init(&k, level, n_threads, act))
        return false;
    *y = matrix_alloc(m, in->w.t.shape[0], 3);
    for (size_t first = 0; first < m; first += rows) {
        size_t n = m - first < rows ? m - first : rows;
        struct tensor part = tensor_rows(&in->x.t, first, n), out = tensor_rows(&y->t, first, n);
        call(&k.run, op, &out, &part, in);
    }
    kernel_run_finish(&k);
    assert_canaries(y);
    return true;
}

static void check(const struct inputs *in, enum op op, enum fathom_dtype act, uint64_t seed)
{
    struct matrix expected, got;
    assert_true(compute(&expected, in, op, "ref", 1, SIZE_MAX, act));
    for (size_t l = 1; l < N_KERNEL_LEVELS; l++)
        for (int variant = 0; variant < 2; variant++) {
            char what[160];
            int n_threads = 1 + (int)((seed + l + (uint64_t)variant) % 4);
            size_t rows = variant ? 1 + seed % 6 : SIZE_MAX;
            if (!compute(&got, in, op, kernel_levels[l], n_threads, rows, act))
                continue;
            snprintf(what, sizeof what, "op %d, %s, [%zu, %zu] x [%zu] %s, act %d, %d threads, %zu rows a call", op,
                     kernel_levels[l], in->x.t.shape[0], in->x.t.shape[1], in->w.t.shape[0], dtype_name(in->w.t.dtype),
                     act, n_threads, rows);
            assert_same_bits(&got, &expected, what);
            matrix_free(&got);
        }
    matrix_free(&expected);
}

static size_t pick(uint64_t *seed, const size_t *from, size_t n)
{
    return from[(size_t)((random_f32(seed) + 1.0f) * 1e6f) % n];
}

static void random_shapes(void **state)
{
    (void)state;
    static const size_t ms[] = {1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 17, 25, 48, 61},
                        ns[] = {1, 7, 15, 16, 17, 31, 33, 64, 79};
    static const size_t ks[] = {1, 2, 5, 8, 15, 31, 33, 64, 100, 129};
    uint64_t seed = 7;
    for (uint64_t i = 0; i < 240; i++) {
        enum dtype dtype = weight_dtypes[i % N_WEIGHT_DTYPES];
        enum fathom_dtype act = i / 4 % 2 ? FATHOM_BF16 : FATHOM_F32;
        size_t m = pick(&seed, ms, sizeof ms / sizeof *ms), n = pick(&seed, ns, sizeof ns / sizeof *ns);
        size_t k = pick(&seed, ks, sizeof ks / sizeof *ks);
        k = weight_cols(dtype, k);
        struct inputs in = make_inputs(m, n, k, dtype, act, i);
        check(&in, (enum op)(i / 8 % N_OPS), act, i);
        free_inputs(&in);
    }
}

/* More than one block of k, more than one group of outputs, more than one range of rows. */
static void large_shapes(void **state)
{
    (void)state;
    static const size_t shapes[][3] = {{9, 801, 832}, {270, 65, 416}, {530, 40, 96}, {3, 417, 1184}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t d = 0; d < N_WEIGHT_DTYPES; d++) {
            uint64_t seed = s * 10 + d;
            struct inputs in =
                make_inputs(shapes[s][0], shapes[s][1], shapes[s][2], weight_dtypes[d], FATHOM_F32, seed);
            check(&in, s % 2 ? SWIGLU : LINEAR_GELU, FATHOM_F32, seed);
            free_inputs(&in);
        }
}

/* Denormal, huge and tiny numbers; then infinities and NaN, which must come out where the definition has them. */
static void hard_numbers(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 72; i++) {
        enum dtype dtype = weight_dtypes[i % N_WEIGHT_DTYPES];
        struct inputs in = make_inputs(1 + i % 9, 37, 96, dtype, FATHOM_F32, i);
        size_t n_values = i % 3 ? N_HARD_FINITE : N_HARD_VALUES;
        matrix_harden(&in.x, 5, n_values, i);
        weight_harden(&in.w, dtype == DTYPE_Q8_0 ? 3 : 40, n_values, i);
        check(&in, (enum op)(i / 4 % N_OPS), FATHOM_F32, i);
        free_inputs(&in);
    }
}

/* A sum that underflows to -0 keeps its sign: what is padded inside must not be added. */
static void negative_zero_survives(void **state)
{
    (void)state;
    for (size_t l = 0; l < N_KERNEL_LEVELS; l++)
        for (size_t m = 1; m < 20; m += 9) {
            struct inputs in = make_inputs(m, 19, 3, DTYPE_F32, FATHOM_F32, 4);
            in.biased = false;
            struct matrix y;
            for (size_t r = 0; r < m; r++)
                for (size_t c = 0; c < 3; c++)
                    *matrix_at(&in.x, r, c) = -1e-30f;
            for (size_t r = 0; r < 19; r++)
                for (size_t c = 0; c < 3; c++)
                    weight_set(&in.w, r, c, 1e-30f);
            if (compute(&y, &in, LINEAR, kernel_levels[l], 2, SIZE_MAX, FATHOM_F32)) {
                for (size_t r = 0; r < m; r++)
                    for (size_t c = 0; c < 19; c++)
                        assert_int_equal(f32_bits(*matrix_at(&y, r, c)), 0x80000000u);
                matrix_free(&y);
            }
            free_inputs(&in);
        }
}

/* Every code of FP8 and FP4 at every scale, as weights of ones and of rows among others. */
static void every_code(void **state)
{
    (void)state;
    enum { N = 64, K = 256 };
    static uint8_t f8[N][K], f4[N][K / 2], scales[N * K / F4_BLOCK];
    static float x[5 * K], y[5 * N], expected[5 * N];
    struct tensor tx = tensor_2d(DTYPE_F32, x, 5, K), ty = tensor_2d(DTYPE_F32, y, 5, N);
    struct tensor te = tensor_2d(DTYPE_F32, expected, 5, N);
    for (size_t i = 0; i < N * K; i++) {
        f8[i / K][i % K] = (uint8_t)(i % K + i / K * 37);
        f4[i / K][i % K / 2] = (uint8_t)(i % K / 2 + i / K * 37);
    }
    for (int s = 0; s < 256; s++) {
        memset(scales, s, sizeof scales);
        for (size_t at = 0; at < 4; at++) { /* one weight of a row counts: each in turn, over the scales */
            memset(x, 0, sizeof x);
            for (size_t i = 0; i < 5; i++)
                x[i * K + (at * 64 + (size_t)s + i * 13) % K] = 1.0f;
            for (int f = 0; f < 2; f++) {
                struct tensor w = tensor_2d(f ? DTYPE_F4_E2M1 : DTYPE_F8_E4M3, f ? (void *)f4 : (void *)f8, N, K);
                w.scales = scales;
                w.scale_stride = f ? K / F4_BLOCK : K / F8_BLOCK;
                for (size_t l = 0; l < N_KERNEL_LEVELS; l++) {
                    struct kernel_run k;
                    if (!kernel_run_init(&k, kernel_levels[l], 1, FATHOM_F32))
                        continue;
                    linear(&k.run, l ? &ty : &te, &tx, &w, NULL);
                    for (size_t row = 0; row < 5 && l; row++) { /* and by the product for few rows */
                        struct tensor x1 = tensor_rows(&tx, row, 1), y1 = tensor_rows(&ty, row, 1);
                        if (row % 2)
                            linear(&k.run, &y1, &x1, &w, NULL);
                    }
                    kernel_run_finish(&k);
                    for (size_t i = 0; l && i < 5 * N; i++)
                        assert_true(f32_bits(y[i]) == f32_bits(expected[i]) || (isnan(y[i]) && isnan(expected[i])));
                }
            }
        }
    }
}

static void scales_must_be_there(void **state)
{
    (void)state;
    static uint8_t codes[64 * 64], scales[64 * 2];
    float x[64] = {0}, y[64];
    struct kernel_run k;
    struct tensor tx = tensor_2d(DTYPE_F32, x, 1, 64), ty = tensor_2d(DTYPE_F32, y, 1, 64);
    struct tensor w = tensor_2d(DTYPE_F4_E2M1, codes, 64, 64);
    assert_true(kernel_run_init(&k, "ref", 1, FATHOM_F32));
    linear(&k.run, &ty, &tx, &w, NULL);
    assert_string_equal(k.run.err.message, "linear: shapes or dtypes do not fit: y [1, 64] f32, x [1, 64] f32, "
                                           "w [64, 64] f4_e2m1");
    k.run.err = (struct fathom_err){0};
    w.scales = scales;
    w.scale_stride = 1; /* of two */
    linear(&k.run, &ty, &tx, &w, NULL);
    assert_int_equal(k.run.err.status, FATHOM_EINVAL);
    k.run.err = (struct fathom_err){0};
    w.scale_stride = 2;
    linear(&k.run, &ty, &tx, &w, NULL);
    kernel_run_finish(&k);
}

static void known_values(void **state)
{
    (void)state;
    float x[] = {1, 2, 3}, w[] = {1, 0, -1, 2, 2, 2}, b[] = {0.5f, -20.0f}, y[2];
    for (size_t l = 0; l < N_KERNEL_LEVELS; l++) {
        struct kernel_run k;
        if (!kernel_run_init(&k, kernel_levels[l], 2, FATHOM_F32))
            continue;
        struct tensor tx = tensor_2d(DTYPE_F32, x, 1, 3), tw = tensor_2d(DTYPE_F32, w, 2, 3);
        struct tensor tb = tensor_1d(DTYPE_F32, b, 2), ty = tensor_2d(DTYPE_F32, y, 1, 2);
        linear(&k.run, &ty, &tx, &tw, &tb);
        assert_true(y[0] == -1.5f && y[1] == -8.0f);
        linear_gelu(&k.run, &ty, &tx, &tw, &tb);
        assert_true(fabs(y[0] - 0.5 * -1.5 * erfc(1.5 * M_SQRT1_2)) < 1e-7 && fabsf(y[1]) < 1e-12f);
        linear_quick_gelu(&k.run, &ty, &tx, &tw, &tb);
        assert_true(fabs(y[0] - -1.5 / (1 + exp(1.702 * 1.5))) < 1e-6);
        tw.shape[0] = ty.shape[1] = 1;
        swiglu(&k.run, &ty, &tx, &tw, &tw);
        assert_true(fabs(y[0] - 4.0 / (1 + exp(2.0))) < 1e-6);
        kernel_run_finish(&k);
    }
}

static void mlp_is_its_parts(void **state)
{
    (void)state;
    struct matrix x = matrix_random(1030, 9, 0, 1.0f, FATHOM_F32, 1), y = matrix_alloc(1030, 9, 2);
    struct matrix h = matrix_alloc(1030, 13, 0), expected = matrix_alloc(1030, 9, 2);
    struct weight gate = weight_random(DTYPE_BF16, 13, 9, 0, 2), up = weight_random(DTYPE_BF16, 13, 9, 0, 3);
    struct weight down = weight_random(DTYPE_BF16, 9, 13, 0, 4);
    struct mlp_weights w = {gate.t, up.t, down.t};
    struct kernel_run k;
    assert_true(kernel_run_init(&k, "ref", 1, FATHOM_F32));
    mlp(&k.run, &y.t, &x.t, &w);
    swiglu(&k.run, &h.t, &x.t, &gate.t, &up.t);
    linear(&k.run, &expected.t, &h.t, &down.t, NULL);
    kernel_run_finish(&k);
    assert_canaries(&y);
    assert_same_bits(&y, &expected, "mlp");
    matrix_free(&x), matrix_free(&y), matrix_free(&h), matrix_free(&expected);
    weight_free(&gate), weight_free(&up), weight_free(&down);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_values),     cmocka_unit_test(random_shapes),
        cmocka_unit_test(large_shapes),     cmocka_unit_test(hard_numbers),
        cmocka_unit_test(mlp_is_its_parts), cmocka_unit_test(negative_zero_survives),
        cmocka_unit_test(every_code),       cmocka_unit_test(scales_must_be_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
