/* conv2d: every level gives the bits of the scalar definition, for any strides of the map. */
#include "kernels/weights.h"

#include <math.h>
#include <stdio.h>

struct geometry {
    size_t views, h, w, in, out;
    struct conv2d_shape shape;
};

static size_t side_out(size_t side, struct conv2d_shape s) { return (side + 2 * s.pad - s.kernel) / s.stride + 1; }

/* planes: the map is stored channel first and seen through its strides. */
static bool compute(struct matrix *y, const struct geometry *g, const struct matrix *x, bool planes,
                    const struct tensor *w, const struct tensor *bias, const char *level, int n_threads,
                    enum fathom_dtype act)
{
    struct kernel_run k;
    size_t oh = side_out(g->h, g->shape), ow = side_out(g->w, g->shape);
    if (!kernel_run_init(&k, level, n_threads, act))
        return false;
    struct tensor map = tensor_4d(DTYPE_F32, x->t.data, g->views, g->h, g->w, g->in);
    if (planes) {
        map.stride[1] = g->w, map.stride[2] = 1, map.stride[3] = g->h * g->w;
    }
    *y = matrix_alloc(g->views * oh * ow, g->out, 0);
    struct tensor out = tensor_4d(DTYPE_F32, y->t.data, g->views, oh, ow, g->out);
    conv2d(&k.run, &out, &map, w, bias, g->shape);
    kernel_run_finish(&k);
    assert_canaries(y);
    return true;
}

static void check(const struct geometry *g, enum dtype dtype, enum fathom_dtype act, bool planes, uint64_t seed)
{
    size_t taps = g->shape.kernel * g->shape.kernel;
    struct matrix x = matrix_random(1, g->views * g->h * g->w * g->in, 0, 1.0f, act, seed), expected, got;
    struct weight w = weight_random(dtype, g->out, g->in * taps, 0, seed + 1);
    struct weight b = weight_random(DTYPE_F32, 1, g->out, 0, seed + 2);
    struct tensor bias = tensor_1d(DTYPE_F32, b.t.data, g->out), wt = w.t;
    if (dtype != DTYPE_Q8_0 && seed % 2)
        wt = tensor_4d(dtype, w.t.data, g->out, g->in, g->shape.kernel, g->shape.kernel);
    const struct tensor *bias_or_none = seed % 3 ? &bias : NULL;
    assert_true(compute(&expected, g, &x, planes, &wt, bias_or_none, "ref", 1, act));
    for (size_t l = 1; l < N_KERNEL_LEVELS; l++) {
        char what[120];
        snprintf(what, sizeof what, "%s, [%zu, %zu, %zu, %zu] to %zu by %zux%zu stride %zu pad %zu", kernel_levels[l],
                 g->views, g->h, g->w, g->in, g->out, g->shape.kernel, g->shape.kernel, g->shape.stride, g->shape.pad);
        if (!compute(&got, g, &x, planes, &wt, bias_or_none, kernel_levels[l], 1 + (int)(seed % 4), act))
            continue;
        assert_same_bits(&got, &expected, what);
        matrix_free(&got);
    }
    matrix_free(&x), matrix_free(&expected), weight_free(&w), weight_free(&b);
}

static void shapes(void **state)
{
    (void)state;
    static const struct geometry geometries[] = {
        {1, 32, 32, 3, 40, {16, 16, 0}}, {2, 7, 5, 64, 33, {1, 1, 0}}, {1, 6, 9, 32, 17, {3, 1, 1}},
        {2, 8, 8, 32, 20, {3, 2, 1}},    {1, 7, 7, 5, 3, {3, 2, 1}},   {1, 1, 1, 2, 4, {3, 1, 1}},
        {1, 5, 4, 3, 2, {2, 3, 2}},      {3, 4, 4, 7, 9, {1, 2, 0}},   {1, 9, 11, 45, 16, {5, 1, 2}},
        {1, 2, 2, 1, 1, {1, 1, 1}},
    };
    uint64_t seed = 0;
    for (size_t i = 0; i < sizeof geometries / sizeof *geometries; i++)
        for (size_t d = 0; d < N_UNSCALED_DTYPES; d++)
            for (int planes = 0; planes < 2; planes++, seed++) {
                const struct geometry *g = &geometries[i];
                if (weight_dtypes[d] != DTYPE_Q8_0 || g->in * g->shape.kernel * g->shape.kernel % Q8_0_BLOCK == 0)
                    check(g, weight_dtypes[d], seed % 5 ? FATHOM_F32 : FATHOM_BF16, planes, seed);
            }
}

/* A 1x1 convolution is linear; a 2x2 one worked by hand. */
static void known_values(void **state)
{
    (void)state;
    float x[] = {1, 2, 3, 4}, w[] = {1, 10, 100, 1000}, y[9];
    static const float expected[] = {1000, 2100, 200, 3010, 4321, 402, 30, 43, 4};
    for (size_t l = 0; l < N_KERNEL_LEVELS; l++) {
        struct kernel_run k;
        if (!kernel_run_init(&k, kernel_levels[l], 1, FATHOM_F32))
            continue;
        struct tensor map = tensor_4d(DTYPE_F32, x, 1, 2, 2, 1), out = tensor_4d(DTYPE_F32, y, 1, 3, 3, 1);
        struct tensor weights = tensor_4d(DTYPE_F32, w, 1, 1, 2, 2);
        conv2d(&k.run, &out, &map, &weights, NULL, (struct conv2d_shape){2, 1, 1});
        for (int i = 0; i < 9; i++)
            assert_true(y[i] == expected[i]);
        kernel_run_finish(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_values), cmocka_unit_test(shapes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
