/* Relative-position and prefix attention against float64 (golden_misc), at every level of this processor. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "golden/golden.h"
#include "kernel/kernel.h"
#include "weights/synth.h"

static struct safetensors golden;

static int setup(void **state)
{
    (void)state;
    golden = golden_open("tests/golden/golden_misc.safetensors");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    safetensors_close(&golden);
    return 0;
}

/* A run on an arena that also holds the inputs. */
struct level_run {
    struct run run;
    struct arena arena;
};

static bool level_start(struct level_run *l, size_t level, bool large)
{
    static const char *const names[] = {"ref", "avx2", "avx512"};
    const struct kernels *kernels = kernels_select(names[level]);
    if (!kernels || strcmp(kernels->name, names[level]) != 0 || (large && level == 0))
        return false;
    *l = (struct level_run){.run = {.kernels = kernels}};
    l->run.arena = &l->arena;
    arena_init(&l->arena, SIZE_MAX);
    assert_int_equal(pool_create(2, &l->run.pool, NULL), FATHOM_OK);
    return true;
}

static void level_end(struct level_run *l)
{
    assert_string_equal(l->run.err.message, "");
    pool_destroy(l->run.pool);
    arena_release(&l->arena);
}

/* [batch, heads, n, d], synth values of the given name, into columns [first, first + heads * d) of rows [batch * n]. */
static void fill_heads(struct run *run, struct tensor *rows, size_t first, size_t n_heads, size_t n, size_t d,
                       const char *name, float amp)
{
    size_t batch = rows->shape[0] / n;
    float *all = run_scratch(run, batch * n_heads * n * d, sizeof *all);
    synth_fill_f32_rounded(all, name, 0, batch * n_heads * n * d, 0, amp, NULL);
    for (size_t b = 0; b < batch; b++)
        for (size_t h = 0; h < n_heads; h++)
            for (size_t i = 0; i < n; i++)
                memcpy((float *)tensor_row(rows, b * n + i) + first + h * d, all + ((b * n_heads + h) * n + i) * d,
                       d * sizeof *all);
}

/* y [batch * n, heads * d] against every step-th row of [batch, heads, n, d], in float64 rounded once. */
static void check(const struct tensor *y, const char *name, size_t n_heads, size_t n, size_t d, size_t step)
{
    const struct tensor *want = golden_get(&golden, name);
    size_t batch = y->shape[0] / n, kept = (n + step - 1) / step;
    assert_int_equal(tensor_elements(want), batch * n_heads * kept * d);
    for (size_t i = 0; i < tensor_elements(want); i++) {
        size_t row = i / d % kept * step, head = i / d / kept % n_heads, b = i / d / kept / n_heads;
        float got = ((const float *)tensor_row(y, b * n + row))[head * d + i % d];
        if (!(fabsf(got - ((const float *)want->data)[i]) <= 1e-5f))
            fail_msg("%s: element %zu is %.9g, expected %.9g", name, i, (double)got,
                     (double)((const float *)want->data)[i]);
    }
}

static void test_relpos(void **state)
{
    static const struct {
        const char *tag;
        size_t batch, n_heads, h, w, d, step;
    } cases[] = {
        {"tiny", 1, 2, 4, 4, 16, 1},   {"rect", 2, 2, 5, 9, 64, 1},    {"window", 3, 4, 14, 14, 64, 7},
        {"g48", 1, 2, 48, 48, 64, 97}, {"g64", 1, 2, 64, 64, 64, 173}, {"odd", 1, 1, 7, 3, 32, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t level = 0; level < 3; level++) {
            struct level_run l;
            size_t heads = cases[i].n_heads, d = cases[i].d, n = cases[i].h * cases[i].w, c = heads * d;
            char name[64];
            if (!level_start(&l, level, n > 200))
                continue;
            struct tensor qkv = run_alloc(&l.run, cases[i].batch * n, 3 * c);
            struct tensor y = run_alloc(&l.run, cases[i].batch * n, c);
            struct tensor rel_h = run_alloc(&l.run, 2 * cases[i].h - 1, d),
                          rel_w = run_alloc(&l.run, 2 * cases[i].w - 1, d);
            for (size_t part = 0; part < 3; part++) {
                snprintf(name, sizeof name, "relpos.%s.%c", cases[i].tag, "qkv"[part]);
                fill_heads(&l.run, &qkv, part * c, heads, n, d, name, 1.0f);
            }
            snprintf(name, sizeof name, "relpos.%s.rel_pos_h", cases[i].tag);
            synth_fill_f32_rounded(rel_h.data, name, 0, tensor_elements(&rel_h), 0, 0.25f, NULL);
            snprintf(name, sizeof name, "relpos.%s.rel_pos_w", cases[i].tag);
            synth_fill_f32_rounded(rel_w.data, name, 0, tensor_elements(&rel_w), 0, 0.25f, NULL);
            attention_relpos(&l.run, &y, &qkv, NULL, &rel_h, &rel_w,
                             (struct relpos_shape){cases[i].batch, cases[i].h, cases[i].w, heads, 0});
            snprintf(name, sizeof name, "relpos.%s.out", cases[i].tag);
            check(&y, name, heads, n, d, cases[i].step);
            level_end(&l);
        }
}

static void test_prefix(void **state)
{
    static const struct {
        const char *tag;
        size_t batch, n_heads, n_kv_heads, prefix, n, d, step;
    } cases[] = {
        {"s288", 2, 14, 2, 144, 288, 64, 41}, {"s512", 1, 14, 2, 256, 512, 64, 67}, {"small", 1, 2, 1, 3, 8, 16, 1},
        {"allprefix", 1, 2, 2, 8, 8, 16, 1},  {"noprefix", 1, 2, 2, 0, 8, 16, 1},   {"uneven", 1, 4, 2, 5, 21, 32, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t level = 0; level < 3; level++) {
            struct level_run l;
            size_t heads = cases[i].n_heads, kv_heads = cases[i].n_kv_heads, d = cases[i].d, n = cases[i].n;
            size_t rows = cases[i].batch * n;
            char name[64];
            if (!level_start(&l, level, n > 200))
                continue;
            struct tensor q = run_alloc(&l.run, rows, heads * d), k = run_alloc(&l.run, rows, kv_heads * d);
            struct tensor v = run_alloc(&l.run, rows, kv_heads * d), y = run_alloc(&l.run, rows, heads * d);
            snprintf(name, sizeof name, "mixed.%s.q", cases[i].tag);
            fill_heads(&l.run, &q, 0, heads, n, d, name, 1.5f);
            snprintf(name, sizeof name, "mixed.%s.k", cases[i].tag);
            fill_heads(&l.run, &k, 0, kv_heads, n, d, name, 1.5f);
            snprintf(name, sizeof name, "mixed.%s.v", cases[i].tag);
            fill_heads(&l.run, &v, 0, kv_heads, n, d, name, 1.0f);
            attention_prefix(&l.run, &y, &q, &k, &v, heads, kv_heads, cases[i].batch, cases[i].prefix);
            snprintf(name, sizeof name, "mixed.%s.out", cases[i].tag);
            check(&y, name, heads, n, d, cases[i].step);
            level_end(&l);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_relpos),
        cmocka_unit_test(test_prefix),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
