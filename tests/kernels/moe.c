/* moe: every level, thread count and grouping of tokens gives the bits of the scalar definition. */
#include "kernels/weights.h"

#include <math.h>
#include <stdio.h>

#define MAX_EXPERTS 16

struct layer {
    struct weight router, gate[MAX_EXPERTS + 1], up[MAX_EXPERTS + 1], down[MAX_EXPERTS + 1];
    struct mlp_weights experts[MAX_EXPERTS];
    struct moe_weights w;
};

static struct mlp_weights make_mlp(struct layer *l, size_t e, enum dtype dtype, size_t hidden, size_t dim,
                                   uint64_t seed)
{
    l->gate[e] = weight_random(dtype, hidden, dim, 0, seed + 100 * e);
    l->up[e] = weight_random(dtype, hidden, dim, 0, seed + 100 * e + 1);
    l->down[e] = weight_random(dtype, dim, hidden, 0, seed + 100 * e + 2);
    return (struct mlp_weights){l->gate[e].t, l->up[e].t, l->down[e].t};
}

static void make_layer(struct layer *l, enum dtype dtype, size_t n_experts, size_t top_k, size_t dim, size_t hidden,
                       size_t shared_hidden, uint64_t seed)
{
    memset(l, 0, sizeof *l);
    l->router = weight_random(seed % 2 ? DTYPE_F32 : DTYPE_BF16, n_experts, dim, 0, seed);
    for (size_t e = 0; e < n_experts; e++)
        l->experts[e] = make_mlp(l, e, dtype, hidden, dim, seed + 7);
    l->w = (struct moe_weights){.router = l->router.t,
                                .experts = l->experts,
                                .n_experts = n_experts,
                                .top_k = top_k,
                                .norm_topk = seed % 3 == 0,
                                .routed_scale = seed % 2 ? 1.0f : 2.5f};
    if (shared_hidden)
        l->w.shared = make_mlp(l, n_experts, dtype, shared_hidden, dim, seed + 9);
}

static void free_layer(struct layer *l)
{
    weight_free(&l->router);
    for (size_t e = 0; e <= MAX_EXPERTS; e++)
        weight_free(&l->gate[e]), weight_free(&l->up[e]), weight_free(&l->down[e]);
}

/* False when this processor lacks the level. */
static bool compute(struct matrix *y, const struct matrix *x, const struct layer *l, const char *level, int n_threads,
                    size_t rows, enum fathom_dtype act)
{
    struct kernel_run k;
    size_t n = x->t.shape[0];
    if (!kernel_run_init(&k, level, n_threads, act))
        return false;
    *y = matrix_alloc(n, x->t.shape[1], 5);
    for (size_t first = 0; first < n; first += rows) {
        size_t m = n - first < rows ? n - first : rows;
        struct tensor part = tensor_rows(&x->t, first, m), out = tensor_rows(&y->t, first, m);
        moe(&k.run, &out, &part, &l->w);
    }
    kernel_run_finish(&k);
    assert_canaries(y);
    return true;
}

static void random_layers(void **state)
{
    (void)state;
    static const size_t ns[] = {1, 2, 3, 9, 40, 70};
    for (uint64_t i = 0; i < 32; i++) {
        enum dtype dtype = weight_dtypes[i % N_WEIGHT_DTYPES];
        enum fathom_dtype act = i / 2 % 2 ? FATHOM_BF16 : FATHOM_F32;
        size_t n = ns[i % 6], n_experts = 1 + i * 5 % MAX_EXPERTS, top_k = 1 + i % (n_experts < 6 ? n_experts : 6);
        size_t dim = weight_cols(dtype, 35 + i), hidden = weight_cols(dtype, 17 + i);
        struct layer l;
        struct matrix x = matrix_random(n, dim, i % 3, 1.0f, act, i), expected, got;
        make_layer(&l, dtype, n_experts, top_k, dim, hidden, i % 5 ? 2 * hidden : 0, i);
        assert_true(compute(&expected, &x, &l, "ref", 1, SIZE_MAX, act));
        for (size_t level = 1; level < N_KERNEL_LEVELS; level++)
            for (int variant = 0; variant < 2; variant++) {
                char what[120];
                int n_threads = 1 + (int)((i + level) % 4);
                snprintf(what, sizeof what, "layer %d, %s, %s, %zu tokens, %d threads, variant %d", (int)i,
                         kernel_levels[level], dtype_name(dtype), n, n_threads, variant);
                if (!compute(&got, &x, &l, kernel_levels[level], n_threads, variant ? 1 + i % 2 * 6 : SIZE_MAX, act))
                    continue;
                assert_same_bits(&got, &expected, what);
                matrix_free(&got);
            }
        matrix_free(&x), matrix_free(&expected);
        free_layer(&l);
    }
}

/* More tokens than one pass takes, all at one expert. */
static void many_tokens(void **state)
{
    (void)state;
    struct layer l;
    struct matrix x = matrix_random(1100, 8, 0, 1.0f, FATHOM_F32, 1), expected, got;
    make_layer(&l, DTYPE_F32, 3, 1, 8, 5, 4, 1);
    for (size_t r = 0; r < 1100; r++)
        *matrix_at(&x, r, 0) = 50.0f;
    weight_set(&l.router, 0, 0, 1.0f), weight_set(&l.router, 1, 0, -1.0f), weight_set(&l.router, 2, 0, 0.0f);
    assert_true(compute(&expected, &x, &l, "ref", 1, SIZE_MAX, FATHOM_F32));
    for (size_t level = 1; level < N_KERNEL_LEVELS; level++)
        if (compute(&got, &x, &l, kernel_levels[level], 3, SIZE_MAX, FATHOM_F32)) {
            assert_same_bits(&got, &expected, kernel_levels[level]);
            matrix_free(&got);
        }
    matrix_free(&x), matrix_free(&expected);
    free_layer(&l);
}

/* The sum by its formula, from the parts. */
static void formula(void **state)
{
    (void)state;
    struct layer l;
    struct matrix x = matrix_random(1, 24, 0, 1.0f, FATHOM_F32, 3), y;
    make_layer(&l, DTYPE_F32, 8, 3, 24, 10, 12, 3);
    assert_true(compute(&y, &x, &l, "ref", 1, SIZE_MAX, FATHOM_F32));
    struct kernel_run k;
    assert_true(kernel_run_init(&k, "ref", 1, FATHOM_F32));
    struct matrix logits = matrix_alloc(1, 8, 0), part = matrix_alloc(1, 24, 0);
    double expected[24] = {0}, sum = 0;
    int32_t ids[3];
    float weights[3];
    linear(&k.run, &logits.t, &x.t, &l.router.t, NULL);
    softmax_topk(&k.run, &logits.t, 3, ids, weights);
    for (int i = 0; i < 3; i++)
        sum += (double)weights[i]; /* seed 3: normalised, scale 1 */
    for (int i = 0; i < 4; i++) {
        mlp(&k.run, &part.t, &x.t, i < 3 ? &l.experts[ids[i]] : &l.w.shared);
        for (size_t c = 0; c < 24; c++)
            expected[c] += (i < 3 ? (double)weights[i] / sum : 1.0) * (double)*matrix_at(&part, 0, c);
    }
    for (size_t c = 0; c < 24; c++)
        assert_true(fabs(expected[c] - (double)*matrix_at(&y, 0, c)) < 1e-5);
    kernel_run_finish(&k);
    matrix_free(&x), matrix_free(&y), matrix_free(&logits), matrix_free(&part);
    free_layer(&l);
}

static void nan_is_said(void **state)
{
    (void)state;
    struct layer l;
    make_layer(&l, DTYPE_BF16, 4, 2, 16, 8, 0, 2);
    weight_set(&l.router, 2, 3, NAN);
    for (size_t level = 0; level < N_KERNEL_LEVELS; level++)
        for (size_t n = 1; n < 8; n += 6) {
            struct matrix x = matrix_random(n, 16, 0, 1.0f, FATHOM_F32, 1), y = matrix_alloc(n, 16, 0);
            struct kernel_run k;
            if (kernel_run_init(&k, kernel_levels[level], 2, FATHOM_F32)) {
                moe(&k.run, &y.t, &x.t, &l.w);
                assert_int_equal(k.run.err.status, FATHOM_ENUMERIC);
                assert_string_equal(k.run.err.message,
                                    "softmax_topk: row 0 has no probabilities, its logits hold NaN or infinity");
                k.run.err = (struct fathom_err){0};
                kernel_run_finish(&k);
            }
            matrix_free(&x), matrix_free(&y);
        }
    free_layer(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(formula), cmocka_unit_test(random_layers),
                                       cmocka_unit_test(many_tokens), cmocka_unit_test(nan_is_said)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
