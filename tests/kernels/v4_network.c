/* The rest of DeepSeek-V4's network: hyper_split, hyper_merge, route and moe_chosen against their formulas in double
 * precision, and every level and thread count against the bits of the scalar definition. */
#include "kernels/weights.h"

#include <stdio.h>

/* ---- hyper-connections --------------------------------------------------------------------------------------------- */

struct hyper {
    struct matrix x, fn, base, scale, u;
    struct hyper_weights w;
    struct hyper_shape shape;
    size_t n, dim;
};

static struct hyper hyper_random(size_t n, size_t dim, size_t s, bool is_head, uint64_t seed)
{
    size_t n_out = is_head ? s : s * (s + 2);
    struct hyper h = {.n = n, .dim = dim, .shape = {s, 20, 1e-6f, 1e-6f}};
    h.x = matrix_random(n, s * dim, 3, 2.0f, FATHOM_F32, seed);
    h.u = matrix_random(n, dim, 1, 1.0f, FATHOM_F32, seed + 1);
    h.fn = matrix_random(n_out, s * dim, 0, 1.0f / sqrtf((float)dim), FATHOM_F32, seed + 2);
    h.base = matrix_random(1, n_out, 0, 1.0f, FATHOM_F32, seed + 3);
    h.scale = matrix_random(1, 3, 0, 1.0f, FATHOM_F32, seed + 4);
    h.w = (struct hyper_weights){h.fn.t, tensor_1d(DTYPE_F32, h.base.t.data, n_out),
                                 tensor_1d(DTYPE_F32, h.scale.t.data, is_head ? 1 : 3)};
    return h;
}

static void hyper_free(struct hyper *h)
{
    matrix_free(&h->x), matrix_free(&h->u), matrix_free(&h->fn), matrix_free(&h->base), matrix_free(&h->scale);
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* The 24 numbers of a token (for four streams) by the steps of the paper. */
static void coefficients(const struct hyper *h, size_t row, bool is_head, double pre[8], double post[8],
                         double comb[8][8])
{
    size_t s = h->shape.n_streams, n_out = is_head ? s : s * (s + 2);
    double square = 0, eps = 1e-6, m[80];
    for (size_t i = 0; i < s * h->dim; i++)
        square += (double)*matrix_at(&h->x, row, i) * (double)*matrix_at(&h->x, row, i);
    double rho = 1 / sqrt(square / (double)(s * h->dim) + eps);
    for (size_t o = 0; o < n_out; o++) {
        double dot = 0;
        for (size_t i = 0; i < s * h->dim; i++)
            dot += (double)*matrix_at(&h->fn, o, i) * (double)*matrix_at(&h->x, row, i);
        size_t part = o < s ? 0 : o < 2 * s ? 1 : 2;
        m[o] = dot * rho * (double)*matrix_at(&h->scale, 0, part) + (double)*matrix_at(&h->base, 0, o);
    }
    for (size_t i = 0; i < s; i++)
        pre[i] = sigmoid(m[i]) + eps;
    if (is_head)
        return;
    for (size_t j = 0; j < s; j++) {
        double sum = 0;
        post[j] = 2 * sigmoid(m[s + j]);
        for (size_t c = 0; c < s; c++)
            sum += comb[j][c] = exp(m[2 * s + j * s + c]);
        for (size_t c = 0; c < s; c++)
            comb[j][c] = comb[j][c] / sum + eps;
    }
    for (int step = 1; step < 40; step++) /* columns, rows, columns, ... */
        for (size_t a = 0; a < s; a++) {
            double sum = 0;
            for (size_t b = 0; b < s; b++)
                sum += step % 2 ? comb[b][a] : comb[a][b];
            for (size_t b = 0; b < s; b++)
                *(step % 2 ? &comb[b][a] : &comb[a][b]) /= sum + eps;
        }
}

static void check_hyper(const struct hyper *h, const struct matrix *in, const struct matrix *mix,
                        const struct matrix *out)
{
    size_t s = h->shape.n_streams;
    for (size_t row = 0; row < h->n; row++) {
        double pre[8], post[8], comb[8][8];
        coefficients(h, row, !mix, pre, post, comb);
        for (size_t i = 0; i < h->dim; i++) {
            double sum = 0;
            for (size_t j = 0; j < s; j++)
                sum += pre[j] * (double)*matrix_at(&h->x, row, j * h->dim + i);
            assert_true(fabs(sum - (double)*matrix_at(in, row, i)) < 2e-5);
            for (size_t c = 0; mix && c < s; c++) {
                sum = post[c] * (double)*matrix_at(&h->u, row, i);
                for (size_t j = 0; j < s; j++)
                    sum += comb[j][c] * (double)*matrix_at(&h->x, row, j * h->dim + i);
                assert_true(fabs(sum - (double)*matrix_at(out, row, c * h->dim + i)) < 2e-5);
            }
        }
        for (size_t a = 0; mix && a < s; a++) { /* doubly stochastic */
            double row_sum = 0, column_sum = 0;
            for (size_t b = 0; b < s; b++) {
                row_sum += (double)*matrix_at(mix, row, s + a * s + b);
                column_sum += (double)*matrix_at(mix, row, s + b * s + a);
            }
            assert_true(fabs(row_sum - 1) < 1e-3 && fabs(column_sum - 1) < 1e-5);
        }
    }
}

static void hyper_connections(void **state)
{
    static const struct {
        size_t n, dim, s;
    } cases[] = {{1, 16, 4}, {1, 1, 1}, {9, 65, 4}, {5, 130, 3}, {3, 40, 8}, {70, 7, 2}};
    (void)state;
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        bool is_head = i % 2;
        size_t n = cases[i / 2].n, dim = cases[i / 2].dim, s = cases[i / 2].s;
        struct hyper h = hyper_random(n, dim, s, is_head, 10 * i);
        struct matrix in[N_KERNEL_LEVELS], mix[N_KERNEL_LEVELS], out[N_KERNEL_LEVELS];
        for (size_t level = 0; level < N_KERNEL_LEVELS; level++) {
            struct kernel_run k;
            in[level] = matrix_alloc(n, dim, 2), mix[level] = matrix_alloc(n, s * (s + 1), 1);
            out[level] = matrix_copy(&h.x);
            if (!kernel_run_init(&k, kernel_levels[level], 1 + (int)level, FATHOM_F32))
                continue;
            hyper_split(&k.run, &in[level].t, is_head ? NULL : &mix[level].t, &h.x.t, &h.w, h.shape);
            if (!is_head)
                hyper_merge(&k.run, &out[level].t, &h.u.t, &mix[level].t, s);
            kernel_run_finish(&k);
            assert_canaries(&in[level]), assert_canaries(&mix[level]), assert_canaries(&out[level]);
            assert_same_bits(&in[level], &in[0], kernel_levels[level]);
            if (!is_head)
                assert_same_bits(&mix[level], &mix[0], kernel_levels[level]);
            assert_same_bits(&out[level], &out[0], kernel_levels[level]);
        }
        check_hyper(&h, &in[0], is_head ? NULL : &mix[0], &out[0]);
        for (size_t level = 0; level < N_KERNEL_LEVELS; level++)
            matrix_free(&in[level]), matrix_free(&mix[level]), matrix_free(&out[level]);
        hyper_free(&h);
    }
}

/* ---- route --------------------------------------------------------------------------------------------------------- */

static double score(float logit) { return sqrt(log1p(exp((double)logit))); }

static void routing(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 30; seed++) {
        size_t n = 1 + seed % 5, m = 1 + seed, top_k = 1 + seed % (m < 6 ? m : 6);
        struct matrix logits = matrix_random(n, m, 2, 3.0f, FATHOM_F32, seed), bias;
        bias = matrix_random(1, m, 0, seed % 3 ? 1.0f : 0.0f, FATHOM_F32, seed + 1);
        for (size_t c = 0; c < m && seed % 4 == 0; c++) /* equals */
            for (size_t r = 0; r < n; r++)
                *matrix_at(&logits, r, c) = rintf(*matrix_at(&logits, r, c));
        struct tensor b = tensor_1d(DTYPE_F32, bias.t.data, m);
        for (size_t level = 0; level < N_KERNEL_LEVELS; level++) {
            struct kernel_run k;
            int32_t ids[5 * 6];
            float weights[5 * 6];
            if (!kernel_run_init(&k, kernel_levels[level], 1, FATHOM_F32))
                continue;
            route(&k.run, &logits.t, seed % 2 ? &b : NULL, NULL, NULL, top_k, 1.5f, ids, weights);
            kernel_run_finish(&k);
            for (size_t r = 0; r < n; r++) {
                size_t at = 0;
                double sum = 0;
                for (size_t i = 0; i < top_k; i++)
                    sum += score(*matrix_at(&logits, r, (size_t)ids[r * top_k + i]));
                for (size_t c = 0; c < m; c++) {
                    size_t n_better = 0;
                    float own = (float)score(*matrix_at(&logits, r, c)) + (seed % 2 ? *matrix_at(&bias, 0, c) : 0);
                    for (size_t o = 0; o < m; o++) {
                        float x = (float)score(*matrix_at(&logits, r, o)) + (seed % 2 ? *matrix_at(&bias, 0, o) : 0);
                        n_better += x > own || (x == own && o < c);
                    }
                    if (n_better >= top_k)
                        continue;
                    assert_int_equal(ids[r * top_k + at], c);
                    assert_true(fabs(score(*matrix_at(&logits, r, c)) / sum * 1.5 - (double)weights[r * top_k + at]) <
                                1e-6);
                    at++;
                }
                assert_int_equal(at, top_k);
            }
        }
        matrix_free(&logits), matrix_free(&bias);
    }
}

/* Scores far out: the softplus neither overflows nor loses what is small, and a sum of nothing divides nothing. */
static void extreme_logits(void **state)
{
    struct kernel_run k;
    struct matrix logits = matrix_alloc(3, 2, 0);
    int32_t ids[6];
    float weights[6];
    (void)state;
    *matrix_at(&logits, 0, 0) = 1e30f, *matrix_at(&logits, 0, 1) = -1e30f;
    *matrix_at(&logits, 1, 0) = -30.0f, *matrix_at(&logits, 1, 1) = -32.0f;
    *matrix_at(&logits, 2, 0) = -1e4f, *matrix_at(&logits, 2, 1) = -1e4f;
    assert_true(kernel_run_init(&k, "ref", 1, FATHOM_F32));
    route(&k.run, &logits.t, NULL, NULL, NULL, 2, 1.0f, ids, weights);
    kernel_run_finish(&k);
    assert_true(weights[0] == 1.0f && weights[1] == 0.0f);
    assert_true(fabs((double)(weights[2] / weights[3]) - exp(1.0)) < 1e-4);
    assert_true(weights[4] == 0.0f && weights[5] == 0.0f);
    matrix_free(&logits);
}

static void table(void **state)
{
    int64_t rows[4][2] = {{3, 1}, {0, 4}, {2, 2}, {1, 5}}, *wild = rows[3];
    int32_t tokens[] = {1, 0}, ids[4], bad[] = {2}, wrong[] = {3}, outside[] = {4};
    float weights[4];
    struct kernel_run k;
    struct matrix logits = matrix_random(2, 5, 0, 2.0f, FATHOM_F32, 1);
    struct tensor t = tensor_2d(DTYPE_I64, rows, 4, 2), one = tensor_rows(&logits.t, 0, 1);
    (void)state;
    assert_true(kernel_run_init(&k, "ref", 1, FATHOM_F32));
    route(&k.run, &logits.t, NULL, &t, tokens, 2, 1.0f, ids, weights);
    assert_int_equal(ids[0], 0), assert_int_equal(ids[1], 4); /* the row of token 1 */
    assert_int_equal(ids[2], 1), assert_int_equal(ids[3], 3); /* of token 0, ascending */
    double a = score(*matrix_at(&logits, 1, 1)), b = score(*matrix_at(&logits, 1, 3));
    assert_true(fabs(a / (a + b) - (double)weights[2]) < 1e-6);

    route(&k.run, &one, NULL, &t, bad, 2, 1.0f, ids, weights);
    assert_string_equal(k.run.err.message, "route: token 2 is sent to expert 2 twice");
    assert_int_equal(k.run.err.status, FATHOM_EFORMAT);
    k.run.err = (struct fathom_err){0};
    route(&k.run, &one, NULL, &t, wrong, 2, 1.0f, ids, weights);
    assert_string_equal(k.run.err.message, "route: token 3 is sent to expert 5 of 5");
    k.run.err = (struct fathom_err){0};
    wild[1] = -1;
    route(&k.run, &one, NULL, &t, wrong, 2, 1.0f, ids, weights);
    assert_string_equal(k.run.err.message, "route: token 3 is sent to expert -1 of 5");
    k.run.err = (struct fathom_err){0};
    route(&k.run, &one, NULL, &t, outside, 2, 1.0f, ids, weights);
    assert_string_equal(k.run.err.message, "route: token id 4 at 0 is not in [0, 4)");
    k.run.err = (struct fathom_err){0};
    *matrix_at(&logits, 0, 2) = NAN;
    route(&k.run, &one, NULL, &t, tokens, 2, 1.0f, ids, weights);
    assert_string_equal(k.run.err.message, "route: the score of expert 2 in row 0 is NaN");
    assert_int_equal(k.run.err.status, FATHOM_ENUMERIC);
    k.run.err = (struct fathom_err){0};
    kernel_run_finish(&k);
    matrix_free(&logits);
}

/* ---- moe_chosen ---------------------------------------------------------------------------------------------------- */

#define N_EXPERTS 7

struct layer {
    struct weight m[N_EXPERTS + 1][3];
    struct mlp_weights experts[N_EXPERTS + 1];
};

static void make_layer(struct layer *l, enum dtype dtype, size_t hidden, size_t dim, uint64_t seed)
{
    for (size_t e = 0; e <= N_EXPERTS; e++) {
        l->m[e][0] = weight_random(dtype, hidden, dim, 0, seed + 10 * e);
        l->m[e][1] = weight_random(dtype, hidden, dim, 0, seed + 10 * e + 1);
        l->m[e][2] = weight_random(dtype, dim, hidden, 0, seed + 10 * e + 2);
        l->experts[e] = (struct mlp_weights){l->m[e][0].t, l->m[e][1].t, l->m[e][2].t};
    }
}

static double clamped_expert(const struct layer *l, size_t e, const struct matrix *x, size_t row, size_t out,
                             double limit)
{
    size_t dim = x->t.shape[1], hidden = l->experts[e].gate.shape[0];
    double sum = 0;
    for (size_t i = 0; i < hidden; i++) {
        double g = 0, u = 0;
        for (size_t j = 0; j < dim; j++) {
            g += (double)*matrix_at(x, row, j) * (double)((const float *)tensor_row(&l->m[e][0].t, i))[j];
            u += (double)*matrix_at(x, row, j) * (double)((const float *)tensor_row(&l->m[e][1].t, i))[j];
        }
        g = limit > 0 && g > limit ? limit : g;
        u = limit > 0 ? fmin(fmax(u, -limit), limit) : u;
        sum += g * sigmoid(g) * u * (double)((const float *)tensor_row(&l->m[e][2].t, out))[i];
    }
    return sum;
}

static void experts_chosen(void **state)
{
    static const size_t ns[] = {1, 2, 5, 40};
    (void)state;
    for (uint64_t i = 0; i < 16; i++) {
        enum dtype dtype = i % 4 == 0 ? DTYPE_F32 : weight_dtypes[i % N_WEIGHT_DTYPES];
        size_t n = ns[i / 4], dim = 64, hidden = 32, top_k = 1 + i % 3;
        struct layer l;
        struct matrix x = matrix_random(n, dim, 1, 1.0f, FATHOM_F32, i), want = {0};
        int32_t ids[40 * 3];
        float weights[40 * 3];
        make_layer(&l, dtype, hidden, dim, i);
        for (size_t r = 0; r < n; r++)
            for (size_t k = 0; k < top_k; k++) {
                ids[r * top_k + k] = (int32_t)(k * 2 + (r + i) % 3);
                weights[r * top_k + k] = 0.25f + 0.1f * (float)k;
            }
        struct moe_weights w = {.experts = l.experts, .n_experts = N_EXPERTS, .top_k = top_k};
        w.swiglu_limit = i % 5 ? 0.75f : 0.0f;
        if (i % 2)
            w.shared = l.experts[N_EXPERTS];
        for (size_t level = 0; level < N_KERNEL_LEVELS; level++) {
            struct kernel_run k;
            struct matrix got = matrix_alloc(n, dim, 3);
            if (kernel_run_init(&k, kernel_levels[level], 1 + (int)(i % 3), FATHOM_F32)) {
                moe_chosen(&k.run, &got.t, &x.t, &w, ids, weights);
                kernel_run_finish(&k);
                assert_canaries(&got);
                if (level > 0)
                    assert_same_bits(&got, &want, kernel_levels[level]);
            }
            if (level == 0)
                want = got;
            else
                matrix_free(&got);
        }
        for (size_t r = 0; r < n && dtype == DTYPE_F32; r++)
            for (size_t c = 0; c < dim; c++) {
                double sum = w.shared.gate.data ? clamped_expert(&l, N_EXPERTS, &x, r, c, (double)w.swiglu_limit) : 0.0;
                for (size_t k = 0; k < top_k; k++)
                    sum += (double)weights[r * top_k + k] *
                           clamped_expert(&l, (size_t)ids[r * top_k + k], &x, r, c, (double)w.swiglu_limit);
                assert_true(fabs(sum - (double)*matrix_at(&want, r, c)) < 1e-4);
            }
        for (size_t e = 0; e <= N_EXPERTS; e++)
            for (int j = 0; j < 3; j++)
                weight_free(&l.m[e][j]);
        matrix_free(&x), matrix_free(&want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(hyper_connections), cmocka_unit_test(routing),
                                       cmocka_unit_test(extreme_logits), cmocka_unit_test(table),
                                       cmocka_unit_test(experts_chosen)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
