/* The attention of DeepSeek-V4: attention_sparse, index_scores, index_topk, compress and rope_pairs against their formulas
 * in double precision, and every level, thread count and chunking against the bits of the scalar definition. */
#include "kernels/kernel_run.h"

#include <math.h>
#include <stdio.h>

/* ---- attention_sparse -------------------------------------------------------------------------------------------- */

struct attention_case {
    size_t n, pos, n_heads, d, window, ratio, top_k, n_all;
};

struct attention_data {
    struct matrix q, rows, entries, sinks;
    int32_t *chosen;
};

static size_t n_before(const struct attention_case *a) { return a->pos < a->window - 1 ? a->pos : a->window - 1; }

static struct attention_data attention_random(const struct attention_case *a, uint64_t seed)
{
    struct attention_data x = {.q = matrix_random(a->n, a->n_heads * a->d, 3, 2.0f, FATHOM_F32, seed),
                               .rows = matrix_random(n_before(a) + a->n, a->d, 0, 1.0f, FATHOM_F32, seed + 1),
                               .sinks = matrix_random(1, a->n_heads, 0, 2.0f, FATHOM_F32, seed + 3)};
    size_t n_entries = a->ratio ? (a->pos + a->n) / a->ratio : 0;
    x.entries = matrix_random(n_entries + 1, a->d, 0, 1.0f, FATHOM_F32, seed + 2);
    x.chosen = malloc((a->n * a->top_k + 1) * sizeof *x.chosen);
    assert_non_null(x.chosen);
    for (size_t i = a->n_all; i < a->n; i++) { /* spread over what the query may see, ascending */
        size_t seen = a->ratio ? (a->pos + i + 1) / a->ratio : 0;
        for (size_t k = 0; k < a->top_k; k++)
            x.chosen[(i - a->n_all) * a->top_k + k] =
                seen <= a->top_k ? (k < seen ? (int32_t)k : -1) : (int32_t)(k * seen / a->top_k);
    }
    return x;
}

static void attention_free(struct attention_data *x)
{
    matrix_free(&x->q), matrix_free(&x->rows), matrix_free(&x->entries), matrix_free(&x->sinks);
    free(x->chosen);
}

static struct sparse_keys keys_of(const struct attention_case *a, const struct attention_data *x)
{
    struct sparse_keys keys = {
        .window = x->rows.t, .n_window = a->window, .chosen = x->chosen, .n_all = a->n_all, .top_k = a->top_k};
    keys.ratio = a->ratio;
    if (a->ratio)
        keys.entries = tensor_rows(&x->entries.t, 0, (a->pos + a->n) / a->ratio);
    return keys;
}

/* Queries [first, end) only, with the window rows that they need. */
static bool attend(struct matrix *y, const struct attention_case *a, const struct attention_data *x, const char *level,
                   int n_threads, size_t first, size_t end)
{
    struct kernel_run k;
    if (!kernel_run_init(&k, level, n_threads, FATHOM_F32))
        return false;
    struct attention_case part = *a;
    part.pos = a->pos + first;
    part.n = end - first;
    struct sparse_keys keys = keys_of(a, x);
    keys.window = tensor_rows(&x->rows.t, n_before(a) + first - n_before(&part), n_before(&part) + part.n);
    keys.n_all = a->n_all <= first ? 0 : a->n_all < end ? a->n_all - first : part.n;
    keys.chosen += (first > a->n_all ? first - a->n_all : 0) * a->top_k;
    struct tensor sinks = tensor_1d(DTYPE_F32, x->sinks.t.data, a->n_heads);
    struct tensor q = tensor_rows(&x->q.t, first, part.n), out = tensor_rows(&y->t, first, part.n);
    attention_sparse(&k.run, &out, &q, &sinks, &keys, a->n_heads, part.pos);
    kernel_run_finish(&k);
    assert_canaries(y);
    return true;
}

static void attention_formula(const struct attention_case *a, const struct attention_data *x, const struct matrix *y)
{
    for (size_t i = 0; i < a->n; i++)
        for (size_t h = 0; h < a->n_heads; h++) {
            const float *keys[4096], *q = matrix_at(&x->q, i, h * a->d);
            size_t n = 0, p = a->pos + i, first = p + 1 < a->window ? 0 : p + 1 - a->window;
            for (size_t t = first; t <= p; t++)
                keys[n++] = matrix_at(&x->rows, t + n_before(a) - a->pos, 0);
            size_t seen = a->ratio ? (p + 1) / a->ratio : 0;
            for (size_t e = 0; e < seen && (i < a->n_all || e < a->top_k); e++)
                keys[n++] =
                    matrix_at(&x->entries, i < a->n_all ? e : (size_t)x->chosen[(i - a->n_all) * a->top_k + e], 0);
            double sum = exp((double)*matrix_at(&x->sinks, 0, h)), out[128] = {0};
            for (size_t j = 0; j < n; j++) {
                double dot = 0;
                for (size_t c = 0; c < a->d; c++)
                    dot += (double)q[c] * (double)keys[j][c];
                double weight = exp(dot / sqrt((double)a->d));
                sum += weight;
                for (size_t c = 0; c < a->d; c++)
                    out[c] += weight * (double)keys[j][c];
            }
            for (size_t c = 0; c < a->d; c++)
                assert_true(fabs(out[c] / sum - (double)*matrix_at(y, i, h * a->d + c)) < 1e-5);
        }
}

static void attention(void **state)
{
    static const struct attention_case cases[] = {
        {1, 0, 1, 16, 8, 0, 1, 1},        {3, 0, 4, 32, 8, 4, 2, 3},       {5, 2, 7, 16, 4, 4, 3, 2},
        {40, 0, 4, 16, 8, 4, 3, 15},      {9, 300, 13, 48, 128, 4, 20, 0}, {1, 700, 37, 128, 128, 4, 64, 0},
        {20, 130, 5, 16, 128, 16, 1, 20}, {17, 65, 2, 24, 64, 4, 5, 0},    {6, 500, 40, 16, 1, 4, 100, 3},
        {2, 63, 6, 64, 64, 8, 1, 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct attention_case *a = &cases[i];
        struct attention_data x = attention_random(a, 10 * i);
        struct matrix want = matrix_alloc(a->n, a->n_heads * a->d, 5), got;
        assert_true(attend(&want, a, &x, "ref", 1, 0, a->n));
        attention_formula(a, &x, &want);
        for (size_t level = 0; level < N_KERNEL_LEVELS; level++)
            for (size_t chunk = 1; chunk <= a->n; chunk += chunk == 1 ? 4 : a->n) {
                got = matrix_alloc(a->n, a->n_heads * a->d, 5);
                bool has = true;
                for (size_t first = 0; first < a->n && has; first += chunk)
                    has = attend(&got, a, &x, kernel_levels[level], 1 + (int)(i % 3), first,
                                 first + chunk < a->n ? first + chunk : a->n);
                if (has)
                    assert_same_bits(&got, &want, kernel_levels[level]);
                matrix_free(&got);
            }
        matrix_free(&want);
        attention_free(&x);
    }
}

/* All entries by themselves, and the same ones as a choice. */
static void no_choice_is_all(void **state)
{
    struct attention_case a = {4, 70, 6, 32, 16, 4, 20, 4};
    struct attention_data x = attention_random(&a, 5);
    (void)state;
    for (size_t level = 0; level < N_KERNEL_LEVELS; level++) {
        struct matrix all = matrix_alloc(4, 6 * 32, 0), chosen = matrix_alloc(4, 6 * 32, 0);
        a.n_all = 4;
        bool has = attend(&all, &a, &x, kernel_levels[level], 2, 0, 4);
        a.n_all = 0;
        for (size_t i = 0; i < 4; i++)
            for (size_t k = 0; k < 20; k++)
                x.chosen[i * 20 + k] = k < (71 + i) / 4 ? (int32_t)k : -1;
        if (has && attend(&chosen, &a, &x, kernel_levels[level], 2, 0, 4))
            assert_same_bits(&chosen, &all, kernel_levels[level]);
        matrix_free(&all), matrix_free(&chosen);
    }
    attention_free(&x);
}

/* A sink far above the scores takes everything; one far below nothing. */
static void extreme_sinks(void **state)
{
    struct attention_case a = {1, 0, 2, 16, 4, 0, 1, 1};
    struct attention_data x = attention_random(&a, 9);
    (void)state;
    *matrix_at(&x.sinks, 0, 0) = 1e30f;
    *matrix_at(&x.sinks, 0, 1) = -1e30f;
    for (size_t level = 0; level < N_KERNEL_LEVELS; level++) {
        struct matrix y = matrix_alloc(1, 32, 0);
        if (attend(&y, &a, &x, kernel_levels[level], 1, 0, 1))
            for (size_t j = 0; j < 16; j++) {
                assert_true(*matrix_at(&y, 0, j) == 0.0f);
                assert_true(*matrix_at(&y, 0, 16 + j) == *matrix_at(&x.rows, 0, j));
            }
        matrix_free(&y);
    }
    attention_free(&x);
}

/* ---- the indexer --------------------------------------------------------------------------------------------------- */

static void scores(void **state)
{
    static const struct {
        size_t n, pos, n_heads, dim, ratio;
    } cases[] = {{1, 3, 1, 8, 4},      {1, 0, 2, 8, 4},    {30, 0, 4, 32, 4}, {3, 2100, 13, 16, 4},
                 {2, 4500, 64, 16, 4}, {7, 250, 6, 24, 2}, {9, 77, 5, 128, 3}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = cases[i].n, pos = cases[i].pos, n_heads = cases[i].n_heads, dim = cases[i].dim;
        size_t n_max = (pos + n) / cases[i].ratio, n_panels = (n_max + 15) / 16;
        struct matrix q = matrix_random(n, n_heads * dim, 1, 1.0f, FATHOM_F32, i);
        struct matrix w = matrix_random(n, n_heads, 2, 1.0f, FATHOM_F32, i + 1);
        struct matrix keys = matrix_random(n_panels * dim, 16, 0, 1.0f, FATHOM_F32, i + 2), want = {0};
        struct index_keys index = {keys.t.data, dim, cases[i].ratio};
        for (size_t level = 0; level < N_KERNEL_LEVELS; level++) {
            struct kernel_run k;
            struct matrix got = matrix_alloc(n, n_max, 7);
            if (kernel_run_init(&k, kernel_levels[level], 1 + (int)level, FATHOM_F32)) {
                index_scores(&k.run, &got.t, &q.t, &w.t, &index, pos);
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
        for (size_t row = 0; row < n; row++)
            for (size_t c = 0; c < n_max; c++) {
                double sum = 0;
                for (size_t h = 0; h < n_heads; h++) {
                    double dot = 0;
                    for (size_t j = 0; j < dim; j++)
                        dot += (double)*matrix_at(&q, row, h * dim + j) *
                               (double)*matrix_at(&keys, c / 16 * dim + j, c % 16);
                    sum += (double)*matrix_at(&w, row, h) * (dot > 0 ? dot : 0);
                }
                if (c < (pos + row + 1) / cases[i].ratio)
                    assert_true(fabs(sum - (double)*matrix_at(&want, row, c)) < 1e-4);
                else
                    assert_int_equal(f32_bits(*matrix_at(&want, row, c)), CANARY);
            }
        matrix_free(&q), matrix_free(&w), matrix_free(&keys), matrix_free(&want);
    }
}

/* Whether a is before b in the order of choice. */
static bool better(const float *s, size_t a, size_t b) { return s[a] > s[b] || (s[a] == s[b] && a < b); }

static void choices(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        size_t n_max = 1 + seed * 7 % 150, ratio = 1 + seed % 4, n = seed % 3 + 1, top_k = 1 + seed * 5 % 40;
        size_t pos = n_max * ratio - n;
        if (n_max * ratio < n)
            continue;
        struct matrix s = matrix_random(n, n_max, 3, 1.0f, FATHOM_F32, seed);
        for (size_t r = 0; r < n; r++)
            for (size_t c = 0; c < n_max && seed % 2; c++) { /* many equals, zeros of both signs, infinities */
                float x = rintf(*matrix_at(&s, r, c) * 3.0f);
                *matrix_at(&s, r, c) = x == 3.0f ? INFINITY : x == -3.0f ? -INFINITY : x;
            }
        for (size_t level = 0; level < N_KERNEL_LEVELS; level++) {
            struct kernel_run k;
            int32_t chosen[3 * 40];
            if (!kernel_run_init(&k, kernel_levels[level], 2, FATHOM_F32))
                continue;
            index_topk(&k.run, chosen, &s.t, ratio, top_k, pos);
            kernel_run_finish(&k);
            for (size_t r = 0; r < n; r++) {
                const float *row = matrix_at(&s, r, 0);
                size_t seen = (pos + r + 1) / ratio, at = 0;
                for (size_t c = 0; c < seen; c++) {
                    size_t n_better = 0;
                    for (size_t o = 0; o < seen; o++)
                        n_better += better(row, o, c);
                    if (n_better < top_k)
                        assert_int_equal(chosen[r * top_k + at++], c);
                }
                while (at < top_k)
                    assert_int_equal(chosen[r * top_k + at++], -1);
            }
        }
        matrix_free(&s);
    }
}

static void nan_scores(void **state)
{
    (void)state;
    for (size_t level = 0; level < N_KERNEL_LEVELS; level++) {
        struct kernel_run k;
        struct matrix s = matrix_random(2, 5, 0, 1.0f, FATHOM_F32, 1);
        int32_t chosen[4];
        *matrix_at(&s, 1, 3) = NAN;
        if (kernel_run_init(&k, kernel_levels[level], 2, FATHOM_F32)) {
            index_topk(&k.run, chosen, &s.t, 4, 2, 14); /* 3 candidates, then 4 */
            assert_int_equal(k.run.err.status, FATHOM_ENUMERIC);
            assert_string_equal(k.run.err.message, "index_topk: an index score of position 15 is NaN");
            k.run.err = (struct fathom_err){0};
            index_topk(&k.run, chosen, &s.t, 4, 2, 13); /* the NaN is no candidate */
            kernel_run_finish(&k);
        }
        matrix_free(&s);
    }
}

/* ---- compress and rope_pairs --------------------------------------------------------------------------------------- */

static void compression(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 24; seed++) {
        struct compress_shape shape = {1 + seed % 5, seed % 2, seed % 4 == 1};
        size_t d = 3 + seed, width = shape.overlap ? 2 * d : d, n = 1 + seed * 3 % 11, before = shape.has_previous;
        size_t rows = (n + before) * shape.ratio;
        struct matrix v = matrix_random(rows, width, 2, 1.0f, FATHOM_F32, seed), want = {0};
        struct matrix s = matrix_random(rows, width, 1, 9.0f, FATHOM_F32, seed + 1);
        struct matrix ape = matrix_random(shape.ratio, width, 0, 1.0f, FATHOM_F32, seed + 2);
        for (size_t level = 0; level < N_KERNEL_LEVELS; level++) {
            struct kernel_run k;
            struct matrix got = matrix_alloc(n, d, 4);
            if (kernel_run_init(&k, kernel_levels[level], 3, FATHOM_F32)) {
                compress(&k.run, &got.t, &v.t, &s.t, &ape.t, shape);
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
        for (size_t w = 0; w < n; w++)
            for (size_t j = 0; j < d; j++) {
                double sum = 0, acc = 0;
                size_t own = (w + before) * shape.ratio, first = shape.overlap && own > 0 ? own - shape.ratio : own;
                for (size_t t = first; t < own + shape.ratio; t++) {
                    size_t column = shape.overlap && t >= own ? d + j : j;
                    double weight =
                        exp((double)*matrix_at(&s, t, column) + (double)*matrix_at(&ape, t % shape.ratio, column));
                    sum += weight;
                    acc += weight * (double)*matrix_at(&v, t, column);
                }
                assert_true(fabs(acc / sum - (double)*matrix_at(&want, w, j)) < 1e-5);
            }
        matrix_free(&v), matrix_free(&s), matrix_free(&ape), matrix_free(&want);
    }
}

static void rotation(void **state)
{
    static const float frequencies[] = {1.0f, 0.687656045f, 0.01f};
    int32_t pos[10];
    (void)state;
    for (int i = 0; i < 10; i++)
        pos[i] = i * i * 12345;
    struct matrix x = matrix_random(10, 3 * 11, 2, 1.0f, FATHOM_F32, 1), want = {0};
    for (size_t level = 0; level < N_KERNEL_LEVELS; level++) {
        struct kernel_run k;
        struct matrix got = matrix_copy(&x);
        if (!kernel_run_init(&k, kernel_levels[level], 2, FATHOM_F32)) {
            matrix_free(&got);
            continue;
        }
        rope_pairs(&k.run, &got.t, 3, pos, frequencies, 3, false);
        if (level > 0)
            assert_same_bits(&got, &want, kernel_levels[level]);
        else
            want = matrix_copy(&got);
        rope_pairs(&k.run, &got.t, 3, pos, frequencies, 3, true); /* and back */
        for (size_t r = 0; r < 10; r++)
            for (size_t c = 0; c < 33; c++)
                assert_true(fabsf(*matrix_at(&got, r, c) - *matrix_at(&x, r, c)) < 1e-6f);
        kernel_run_finish(&k);
        assert_canaries(&got);
        matrix_free(&got);
    }
    for (size_t r = 0; r < 10; r++)
        for (size_t h = 0; h < 3; h++) {
            for (size_t c = 0; c < 5; c++) /* the channels in front are left alone */
                assert_true(*matrix_at(&want, r, h * 11 + c) == *matrix_at(&x, r, h * 11 + c));
            for (size_t i = 0; i < 3; i++) {
                float angle = (float)pos[r] * frequencies[i];
                const float *from = matrix_at(&x, r, h * 11 + 5 + 2 * i), *to = matrix_at(&want, r, h * 11 + 5 + 2 * i);
                double c = cos((double)angle), s = sin((double)angle), a = (double)from[0], b = (double)from[1];
                assert_true(fabs(a * c - b * s - (double)to[0]) < 1e-6);
                assert_true(fabs(a * s + b * c - (double)to[1]) < 1e-6);
            }
        }
    matrix_free(&x), matrix_free(&want);
}

static void misfits(void **state)
{
    struct kernel_run k;
    struct matrix x = matrix_random(4, 32, 0, 1.0f, FATHOM_F32, 1), y = matrix_alloc(4, 32, 0);
    struct tensor sinks = tensor_1d(DTYPE_F32, x.t.data, 2), window = tensor_cols(&x.t, 0, 16);
    struct sparse_keys keys = {.window = window, .n_window = 8, .n_all = 4};
    (void)state;
    assert_true(kernel_run_init(&k, "ref", 1, FATHOM_F32));
    attention_sparse(&k.run, &y.t, &x.t, &sinks, &keys, 2, 1); /* the row before the first query is not there */
    assert_int_equal(k.run.err.status, FATHOM_EINVAL);
    k.run.err = (struct fathom_err){0};
    keys.entries = tensor_cols(&x.t, 0, 16);
    keys.ratio = 1;
    keys.entries.shape[0] = 3; /* the last query sees four */
    attention_sparse(&k.run, &y.t, &x.t, &sinks, &keys, 2, 0);
    assert_int_equal(k.run.err.status, FATHOM_EINVAL);
    k.run.err = (struct fathom_err){0};
    keys.entries.shape[0] = 4;
    keys.n_all = 2; /* but nothing chosen for the others */
    attention_sparse(&k.run, &y.t, &x.t, &sinks, &keys, 2, 0);
    assert_int_equal(k.run.err.status, FATHOM_EINVAL);
    k.run.err = (struct fathom_err){0};
    keys.n_all = 4;
    attention_sparse(&k.run, &y.t, &x.t, &sinks, &keys, 2, 0);
    kernel_run_finish(&k);
    matrix_free(&x), matrix_free(&y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention),   cmocka_unit_test(no_choice_is_all), cmocka_unit_test(extreme_sinks),
        cmocka_unit_test(scores),      cmocka_unit_test(choices),          cmocka_unit_test(nan_scores),
        cmocka_unit_test(compression), cmocka_unit_test(rotation),         cmocka_unit_test(misfits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
