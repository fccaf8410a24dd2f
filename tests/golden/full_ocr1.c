/* DeepSeek-OCR at its published size with synth-v1 weights made in memory, stage by stage against the reference
 * (golden_ocr): within 2e-4 in float32. A failure names the first stage that differs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/context.h"
#include "golden/golden.h"
#include "weights/synth.h"
#include "weights/synth_weights.h"

#define LIMIT 2e-4

static struct safetensors golden;
static struct fathom_model *model;

static int setup(void **state)
{
    struct model_config config = config_ocr1_published();
    struct weights *w = NULL;
    struct pool *pool = NULL;
    struct fathom_err err = {0};

    (void)state;
    golden = golden_open("tests/golden/golden_ocr.safetensors");
    if (pool_create(pool_default_threads(), &pool, &err) || synth_ocr_weights(&w, &config, pool, &err) ||
        model_from_weights(&model, w, &config, &err))
        fail_msg("%s", err.message);
    pool_destroy(pool);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fathom_model_close(model);
    safetensors_close(&golden);
    return 0;
}

static struct fathom_context *create(void)
{
    const struct fathom_context_options options = {.n_ctx = 960};
    struct fathom_context *ctx = NULL;
    struct fathom_err err = {0};
    if (fathom_context_create(model, &options, &ctx, &err))
        fail_msg("%s", err.message);
    return ctx;
}

static void check_view(struct fathom_context *ctx, const float *pixels, size_t side, const char *kind, size_t view)
{
    static const char *const stages[3] = {"sam", "clip", "projector"};
    struct run run = context_run(ctx);
    struct arena_mark mark = arena_save(run.arena);
    struct ocr1_view v = ocr1_view_forward(&run, &model->ocr1, pixels, side, 1);
    const struct tensor *got[3] = {&v.sam, &v.clip, &v.projector};
    char name[64];

    assert_string_equal(run.err.message, "");
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "ocr1.%s.%s", kind, stages[i]);
        golden_check_stage(&golden, name, got[i], view, side == 1024 ? 17 : 9, LIMIT);
    }
    arena_restore(run.arena, mark);
}

/* Six tiles, two across and three down, and the global view: stages, the assembled block, the logits. */
static void test_gundam(void **state)
{
    enum { tile = 3 * 640 * 640, base = 3 * 1024 * 1024, n_block = 903, dim = 1280, n_vocab = 129280, row_step = 29 };
    struct fathom_context *ctx = create();
    float *local = malloc(6 * tile * sizeof *local), *global = malloc(base * sizeof *global);
    struct fathom_err err = {0};

    (void)state;
    assert_non_null(local);
    assert_non_null(global);
    synth_fill_f32_rounded(local, "input.local_640", 0, 6 * tile, 0, 1, ctx->pool);
    synth_fill_f32_rounded(global, "input.global_1024", 0, base, 0, 1, ctx->pool);
    check_view(ctx, local, 640, "local", 0);
    check_view(ctx, local + tile, 640, "local", 1);
    check_view(ctx, global, 1024, "global", 0);

    struct picture picture = {global, local, 6, 2, 3, 640, 1024};
    struct run run = context_run(ctx);
    assert_int_equal(ocr1_image_tokens(&model->ocr1, &picture), n_block);
    struct tensor block = run_alloc(&run, n_block, dim);
    ocr1_picture_forward(&run, &model->ocr1, &picture, &block, NULL, NULL);
    assert_string_equal(run.err.message, "");
    const struct tensor *rows = golden_get(&golden, "ocr1.gundam_2x3.sequence_rows");
    for (size_t r = 0; r < rows->shape[0]; r++) {
        double distance = relative_l2(tensor_row(&block, r * row_step), (const float *)rows->data + r * dim, dim);
        if (!(distance <= LIMIT))
            fail_msg("row %zu of the block is %.2e away", r * row_step, distance);
    }

    const struct tensor *ids = golden_get(&golden, "ocr1.input_ids"), *want = golden_get(&golden, "ocr1.logits.last");
    struct context_image image = {&block, 128815};
    if (context_append(ctx, ids->data, tensor_elements(ids), &image, 0, NULL, NULL, &err))
        fail_msg("%s", err.message);
    double distance = relative_l2(ctx->logits, want->data, n_vocab);
    print_message("ocr1.logits.last: %.2e\n", distance);
    assert_true(distance <= LIMIT);
    free(local);
    free(global);
    fathom_context_destroy(ctx);
}

/* Image tokens of every mode and grid (spec deepseek-ocr §2.1). */
static void test_token_counts(void **state)
{
    static const struct {
        size_t side, n;
    } modes[] = {{512, 73}, {640, 111}, {1024, 273}, {1280, 421}};
    static const struct {
        size_t across, down, n;
    } grids[] = {{1, 2, 493},  {2, 1, 483},  {1, 3, 603},  {3, 1, 583},  {1, 4, 713},  {4, 1, 683},
                 {1, 5, 823},  {5, 1, 783},  {1, 6, 933},  {6, 1, 883},  {2, 2, 693},  {2, 3, 903},
                 {3, 2, 893},  {3, 3, 1203}, {2, 4, 1113}, {4, 2, 1093}, {1, 7, 1043}, {7, 1, 983},
                 {1, 8, 1153}, {8, 1, 1083}, {1, 9, 1263}, {9, 1, 1183}};

    (void)state;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        struct picture p = {.base_side = modes[i].side, .across = 1, .down = 1};
        assert_int_equal(ocr1_image_tokens(&model->ocr1, &p), modes[i].n);
    }
    for (size_t i = 0; i < sizeof grids / sizeof *grids; i++) {
        struct picture p = {.n_local = grids[i].across * grids[i].down,
                            .across = grids[i].across,
                            .down = grids[i].down,
                            .tile_side = 640,
                            .base_side = 1024};
        assert_int_equal(ocr1_image_tokens(&model->ocr1, &p), grids[i].n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_token_counts), cmocka_unit_test(test_gundam)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
