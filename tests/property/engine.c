/* What must not change the answer: the number of threads, the instruction set, the chunks of a prefill, what was read
 * before. And what a page's reader is told: stages, text, status, cost; and what it gets from a damaged model. */
#include <stdlib.h>
#include <string.h>

#include "engine/context.h"
#include "golden/golden.h"
#include "image/views.h"
#include "tiny_model.h"
#include "weights/synth.h"

#define N_IDS 150

static struct fathom_model *model;

static int setup(void **state)
{
    struct fathom_err err = {0};
    (void)state;
    if (!(model = tiny_model(&err)) || tokenizer_open(&model->tokenizer, "models/mini/tokenizer.json", &err))
        fail_msg("%s", err.message);
    model->image_id = tokenizer_find(model->tokenizer, "<image>");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fathom_model_close(model);
    return 0;
}

static struct fathom_context *create(int n_threads, const char *isa, enum fathom_dtype dtype)
{
    const struct fathom_context_options options = {.n_threads = n_threads, .isa = isa, .dtype = dtype};
    struct fathom_context *ctx = NULL;
    struct fathom_err err = {0};
    if (fathom_context_create(model, &options, &ctx, &err))
        fail_msg("%s", err.message);
    return ctx;
}

static void append(struct fathom_context *ctx, const int32_t *ids, size_t n, size_t chunk)
{
    struct fathom_err err = {0};
    if (context_append(ctx, ids, n, NULL, chunk, NULL, NULL, &err))
        fail_msg("%s", err.message);
}

static void make_ids(int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)(synth_raw("engine.ids", i) * 2000);
}

/* Logits and the whole cache, so that a difference that has not reached the logits is seen as well. */
static void check_same(const struct fathom_context *a, const struct fathom_context *b)
{
    assert_memory_equal(a->logits, b->logits, 2048 * sizeof(float));
    assert_int_equal(a->kv.n_tok, b->kv.n_tok);
    for (size_t l = 0; l < a->kv.n_layers; l++) {
        const struct kv_layer *x = &a->kv.layers[l], *y = &b->kv.layers[l];
        for (size_t h = 0; h < x->n_kv_heads; h++) {
            size_t at = h * x->capacity * x->head_dim, n = a->kv.n_tok * x->head_dim;
            size_t whole = a->kv.n_tok / KV_LANES * KV_LANES * x->head_dim; /* k: complete groups of lanes */
            assert_memory_equal(x->v + at, y->v + at, n * sizeof(float));
            assert_memory_equal(x->k + at, y->k + at, whole * sizeof(float));
        }
    }
}

static void test_chunks(void **state)
{
    const size_t sizes[] = {1, 3, 16, 63, 64, 65, 149};
    const enum fathom_dtype dtypes[] = {FATHOM_F32, FATHOM_BF16};
    int32_t ids[N_IDS];

    (void)state;
    make_ids(ids, N_IDS);
    for (size_t d = 0; d < 2; d++) {
        struct fathom_context *whole = create(1, NULL, dtypes[d]), *parts = create(2, NULL, dtypes[d]);
        append(whole, ids, N_IDS, N_IDS);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            context_reset(parts);
            append(parts, ids, N_IDS, sizes[i]);
            check_same(whole, parts);
        }
        context_reset(parts); /* a mixture: prefill, then steps, then prefill again */
        append(parts, ids, 70, 33);
        for (size_t i = 70; i < 80; i++)
            append(parts, &ids[i], 1, 0);
        append(parts, ids + 80, N_IDS - 80, 0);
        check_same(whole, parts);
        fathom_context_destroy(whole);
        fathom_context_destroy(parts);
    }
}

static void test_threads_and_levels(void **state)
{
    static const char *const levels[] = {"ref", "avx2", "avx512"};
    int32_t ids[N_IDS];
    struct fathom_context *one = create(1, NULL, FATHOM_F32);

    (void)state;
    make_ids(ids, N_IDS);
    append(one, ids, N_IDS, 0);
    for (int n = 2; n <= 8; n++) {
        struct fathom_context *many = create(n, NULL, FATHOM_F32);
        append(many, ids, N_IDS, 41);
        check_same(one, many);
        fathom_context_destroy(many);
    }
    for (size_t i = 0; i < 3; i++) {
        struct fathom_context *other = create(2, levels[i], FATHOM_F32);
        append(other, ids, N_IDS, 0);
        check_same(one, other);
        fathom_context_destroy(other);
    }
    fathom_context_destroy(one);
}

static void test_vision(void **state)
{
    enum { side = 768, n = 3 * side * side };
    float *pixels = malloc(n * sizeof *pixels), *first = malloc(144 * 64 * sizeof *first);

    (void)state;
    assert_non_null(pixels);
    assert_non_null(first);
    synth_fill_f32(pixels, "engine.pixels", 0, n, 0, 1, NULL);
    for (int n_threads = 1; n_threads <= 8; n_threads += n_threads < 3 ? 1 : 5) {
        struct fathom_context *ctx = create(n_threads, NULL, FATHOM_F32);
        struct run run = context_run(ctx);
        struct ocr2_view v = ocr2_view_forward(&run, &model->ocr2, pixels, side, 1);
        assert_string_equal(run.err.message, "");
        if (n_threads == 1)
            memcpy(first, v.projector.data, 144 * 64 * sizeof *first);
        assert_memory_equal(first, v.projector.data, 144 * 64 * sizeof *first);
        fathom_context_destroy(ctx);
    }
    free(pixels);
    free(first);
}

/* The tower's memory beyond weights grows no faster than the number of its tokens. */
static void test_tower_memory(void **state)
{
    const size_t sides[] = {640, 1280};
    double per_token[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        size_t side = sides[i], n = 3 * side * side;
        float *pixels = calloc(n, sizeof *pixels);
        struct fathom_context *ctx = create(1, NULL, FATHOM_F32);
        struct run run = context_run(ctx);
        assert_non_null(pixels);
        sam_forward(&run, &model->ocr2.sam, pixels, side, 1);
        assert_string_equal(run.err.message, "");
        per_token[i] = (double)ctx->arena.peak_bytes / (double)(side / 16 * (side / 16));
        fathom_context_destroy(ctx);
        free(pixels);
    }
    assert_true(per_token[1] <= per_token[0]);
}

/* ---- pages ----------------------------------------------------------------------------------------------------- */

#define WIDTH 1000
#define HEIGHT 700

struct heard {
    char text[8192], raw[8192];
    size_t n_text, n_stages, n_pages, stop_after;
    enum fathom_page_status status;
    struct fathom_stats stats;
    struct fathom_err err;
};

static bool on_stage(void *user, const char *stage, size_t done, size_t total)
{
    struct heard *h = user;
    assert_non_null(stage);
    assert_true(done <= total);
    return ++h->n_stages != h->stop_after;
}

static bool on_text(void *user, const char *text, size_t n)
{
    struct heard *h = user;
    assert_true(h->n_text + n < sizeof h->text);
    memcpy(h->text + h->n_text, text, n);
    h->n_text += n;
    return true;
}

static bool on_page(void *user, const struct fathom_page *page)
{
    struct heard *h = user;
    h->n_pages++;
    h->status = page->status;
    h->stats = page->stats;
    h->err = page->err;
    assert_int_equal(page->width, page->rgb ? WIDTH : 0);
    assert_int_equal(page->height, page->rgb ? HEIGHT : 0);
    assert_true(strlen(page->raw) < sizeof h->raw);
    memcpy(h->raw, page->raw, strlen(page->raw) + 1);
    assert_non_null(page->markdown);
    return true;
}

static enum fathom_status read_page(struct fathom_context *ctx, struct fathom_read_options options, struct heard *h,
                                    struct fathom_err *err)
{
    const struct fathom_callbacks callbacks = {.user = h, .on_stage = on_stage, .on_text = on_text, .on_page = on_page};
    uint8_t *rgb = malloc(WIDTH * HEIGHT * 3);
    assert_non_null(rgb);
    for (size_t i = 0; i < WIDTH * HEIGHT * 3; i++)
        rgb[i] = (uint8_t)(i * 7 ^ i >> 9);
    enum fathom_status status = fathom_read_pixels(ctx, rgb, WIDTH, HEIGHT, &options, &callbacks, err);
    free(rgb);
    return status;
}

static void test_page(void **state)
{
    struct fathom_context *ctx = create(2, NULL, FATHOM_F32);
    struct fathom_read_options options = fathom_read_defaults();
    struct heard first = {0}, again = {0};
    struct fathom_err err = {0};

    (void)state;
    options.max_tokens = 24;
    assert_int_equal(read_page(ctx, options, &first, &err), FATHOM_OK);
    assert_int_equal(first.n_pages, 1);
    assert_int_equal(first.status, FATHOM_PAGE_TRUNCATED);
    assert_int_equal(first.stats.n_output_tokens, 24);
    assert_int_equal(first.stats.n_views, 7); /* 1000 x 700: three tiles across, two down, and the global view */
    assert_true(first.stats.n_prompt_tokens > 6 * 144 + 256 + 1);
    assert_true(first.stats.vision_flop > 0 && first.stats.prefill_flop > 0 && first.stats.decode_bytes > 0);
    assert_true(first.stats.vision_peak_bytes <= first.stats.arena_peak_bytes);
    assert_string_equal(first.text, first.raw);
    options.temperature = 0.8f; /* something else in between, then the same bytes again */
    options.seed = 5;
    struct heard other = {0};
    assert_int_equal(read_page(ctx, options, &other, &err), FATHOM_OK);
    assert_string_not_equal(other.raw, first.raw);
    options.temperature = 0;
    assert_int_equal(read_page(ctx, options, &again, &err), FATHOM_OK);
    assert_string_equal(again.raw, first.raw);
    assert_int_equal(ctx->arena.used_bytes, 0);
    fathom_context_destroy(ctx);
}

static void test_cancel(void **state)
{
    struct fathom_context *ctx = create(1, NULL, FATHOM_F32);
    struct fathom_read_options options = fathom_read_defaults();
    struct fathom_err err = {0};

    (void)state;
    options.max_tokens = 4;
    for (size_t stop = 1; stop <= 9; stop += 4) {
        struct heard h = {.stop_after = stop};
        assert_int_equal(read_page(ctx, options, &h, &err), FATHOM_ECANCELLED);
        assert_int_equal(ctx->arena.used_bytes, 0);
    }
    fathom_context_destroy(ctx);
}

static void test_prompt_errors(void **state)
{
    struct fathom_context *ctx = create(1, NULL, FATHOM_F32);
    struct fathom_read_options options = fathom_read_defaults();
    struct heard h = {0};
    struct fathom_err err = {0};

    (void)state;
    options.prompt = "no picture named";
    assert_int_equal(read_page(ctx, options, &h, &err), FATHOM_OK); /* the page failed, the job did not */
    assert_int_equal(h.status, FATHOM_PAGE_FAILED);
    assert_int_equal(h.err.status, FATHOM_EINVAL);
    fathom_context_destroy(ctx);
}

static void test_max_pixels(void **state)
{
    static const char file[] = "tests/cases/mini/line00.png";
    struct fathom_context *ctx = create(1, NULL, FATHOM_F32);
    struct fathom_read_options options = fathom_read_defaults();
    struct heard h = {0};
    const struct fathom_callbacks callbacks = {.user = &h, .on_page = on_page};
    struct fathom_err err = {0};

    (void)state;
    options.max_tokens = 1;
    options.max_pixels = 1;
    assert_int_equal(fathom_read_file(ctx, file, &options, &callbacks, &err), FATHOM_OK);
    assert_int_equal(h.status, FATHOM_PAGE_FAILED);
    assert_non_null(strstr(h.err.message, "the limit is 1 in all"));
    fathom_context_destroy(ctx);
}

static void test_not_finite(void **state)
{
    struct model_config c = tiny_config();
    struct weights *w = NULL;
    struct fathom_model *damaged = NULL, *good = model;
    struct fathom_err err = {0};
    struct heard h = {0};

    (void)state;
    assert_int_equal(synth_ocr_weights(&w, &c, NULL, &err), FATHOM_OK);
    ((uint16_t *)weights_find(w, "model.layers.1.self_attn.o_proj.weight")->tensor.data)[77] = 0x7fc0;
    assert_int_equal(model_from_weights(&damaged, w, &c, &err), FATHOM_OK);
    assert_int_equal(tokenizer_open(&damaged->tokenizer, "models/mini/tokenizer.json", &err), FATHOM_OK);
    damaged->image_id = good->image_id;
    model = damaged;
    struct fathom_context *ctx = create(1, NULL, FATHOM_F32);
    model = good;
    assert_int_equal(read_page(ctx, fathom_read_defaults(), &h, &err), FATHOM_OK);
    assert_int_equal(h.status, FATHOM_PAGE_FAILED);
    assert_int_equal(h.err.status, FATHOM_ENUMERIC);
    assert_non_null(strstr(h.err.message, "model.layers.1.self_attn.o_proj.weight"));
    fathom_context_destroy(ctx);
    fathom_model_close(damaged);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunks),        cmocka_unit_test(test_threads_and_levels),
        cmocka_unit_test(test_vision),        cmocka_unit_test(test_tower_memory),
        cmocka_unit_test(test_page),          cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_prompt_errors), cmocka_unit_test(test_max_pixels),
        cmocka_unit_test(test_not_finite),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
