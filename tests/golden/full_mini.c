/* The built-in model on 26 pages: along the reference's float32 tokens (golden_mini.json) its own choices are the same,
 * and read freely its text is right. The model is models/mini; FATHOM_MINI names another folder, and for one with float
 * weights (not 8-bit) every choice must agree on the pages where the reference had no close call. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mapfile.h"
#include "base/strbuf.h"
#include "document/layout.h"
#include "engine/context.h"
#include "engine/generate.h"
#include "engine/page_views.h"
#include "engine/sampler.h"
#include "golden/golden.h"
#include "helper/decode.h"
#include "text/prompt.h"

#define CLEAR_GAP 0.005    /* smaller gaps between the two best logits may go either way in float32       */
#define MIN_AGREEMENT 0.99 /* of the 8-bit model's choices                                                */
#define MAX_CER 0.067      /* the float32 model's 5.7 % and at most one point                             */
#define MAX_TOKENS 1500    /* the reference's limit                                                       */
#define MAX_COMPARED 4000  /* characters of a page that shared measure compares                           */

struct totals {
    size_t n_forced, n_agreed, n_edits, n_chars;
    double slowest_ms;
};

static struct fathom_model *model;
static struct fathom_context *ctx;
static bool exact; /* float weights */

static void check(enum fathom_status status, const struct fathom_err *err)
{
    if (status)
        fail_msg("%s", err->message);
}

static int setup(void **state)
{
    const char *dir = getenv("FATHOM_MINI");
    struct fathom_err err = {0};
    (void)state;
    check(fathom_model_open(dir ? dir : "models/mini", &model, &err), &err);
    check(fathom_context_create(model, NULL, &ctx, &err), &err);
    exact = weights_find(model->weights, "lm_head.weight")->tensor.dtype != DTYPE_Q8_0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fathom_context_destroy(ctx);
    fathom_model_close(model);
    return 0;
}

/* Picture and prompt into the context; the logits wait for the first token. */
static void prefill(const char *page, const char *prompt)
{
    char path[256];
    struct image image;
    struct views views;
    struct tokens ids = {0};
    struct fathom_err err = {0};
    struct run run = context_run(ctx);

    snprintf(path, sizeof path, "tests/cases/mini/%s.png", page);
    check(image_load(&image, path, FATHOM_ALPHA_DROP, &image_default_limits, &err), &err);
    check(views_make(&views, image.rgb, image.width, image.height, &model->config.view, &err), &err);
    struct picture picture = views_picture(&views);
    size_t n = ocr2_image_tokens(&model->ocr2, &picture);
    struct arena_mark mark = arena_save(run.arena);
    struct tensor block = run_alloc(&run, n, model->config.decoder.dim);
    ocr2_picture_forward(&run, &model->ocr2, &picture, &block, NULL, NULL);
    check(run.err.status, &run.err);
    check(prompt_build(model->tokenizer, prompt, 0, 1, &n, &ids, &err), &err);
    struct context_image place = {&block, model->image_id};
    context_reset(ctx);
    check(context_append(ctx, ids.ids, ids.n, &place, 0, NULL, NULL, &err), &err);
    arena_restore(run.arena, mark);
    tokens_free(&ids);
    views_free(&views);
    image_free(&image);
}

/* Feeds the reference's tokens and counts where the model would have chosen otherwise. The list has no end token; the
 * choice after its last token is not compared, since the reference may have stopped at its limit. */
static size_t count_disagreements(const struct json *j, const struct json_node *ids, size_t *n)
{
    struct sampler sampler;
    struct fathom_err err = {0};
    size_t differ = 0, done = 0;
    check(sampler_init(&sampler, 0, 1, 0, 0, &err), &err);
    for (const struct json_node *id = json_first(j, ids); id; id = json_next(j, ids, id)) {
        int64_t want = 0;
        assert_true(json_i64(id, &want));
        differ += sampler_next(&sampler, ctx->logits, model->config.decoder.vocab_size) != want;
        int32_t fed = (int32_t)want;
        done++;
        check(context_append(ctx, &fed, 1, NULL, 0, NULL, NULL, &err), &err);
    }
    sampler_release(&sampler);
    *n = done;
    return differ;
}

/* UTF-8 to code points with runs of white space as one blank and none at the ends. */
static size_t normalise(const char *text, uint32_t *out)
{
    size_t n = 0;
    bool blank = false;
    for (const unsigned char *c = (const unsigned char *)text; *c;) {
        size_t len = *c < 0x80 ? 1 : *c < 0xe0 ? 2 : *c < 0xf0 ? 3 : 4;
        uint32_t point = len == 1 ? *c : *c & (0xffu >> (len + 1));
        for (size_t i = 1; i < len; i++)
            point = point << 6 | (c[i] & 0x3fu);
        c += len;
        if (point == ' ' || (point >= 9 && point <= 13) || point == 0xa0) {
            blank = n > 0;
            continue;
        }
        if (blank)
            out[n++] = ' ';
        blank = false;
        out[n++] = point;
    }
    return n < MAX_COMPARED ? n : MAX_COMPARED;
}

static size_t edit_distance(const uint32_t *a, size_t n_a, const uint32_t *b, size_t n_b)
{
    size_t *row = malloc((n_b + 1) * sizeof *row);
    assert_non_null(row);
    for (size_t j = 0; j <= n_b; j++)
        row[j] = j;
    for (size_t i = 1; i <= n_a; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            size_t above = row[j], best = diagonal + (a[i - 1] != b[j - 1]);
            best = above + 1 < best ? above + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            diagonal = above;
            row[j] = best;
        }
    }
    size_t distance = row[n_b];
    free(row);
    return distance;
}

/* Edits between the page's text and what it says, tags stripped from both. */
static void add_errors(const char *page, const char *read, struct totals *t)
{
    char path[256], *file, *want, *got;
    size_t n;
    struct fathom_err err = {0};

    snprintf(path, sizeof path, "tests/cases/mini/%s.txt", page);
    check(file_read(path, 1 << 20, &file, &n, &err), &err);
    check(layout_markdown(file, &want, &err), &err);
    check(layout_markdown(read, &got, &err), &err);
    uint32_t *a = malloc((strlen(want) + 1) * sizeof *a), *b = malloc((strlen(got) + 1) * sizeof *b);
    assert_non_null(a);
    assert_non_null(b);
    size_t n_a = normalise(want, a), n_b = normalise(got, b), edits = edit_distance(a, n_a, b, n_b);
    t->n_edits += edits;
    t->n_chars += n_a;
    print_message("  %-9s %4zu edits of %zu\n", page, edits, n_a);
    free(a);
    free(b);
    free(file);
    free(want);
    free(got);
}

/* From the end of the prompt, whose logits are given; ms: what it took to get there. */
static void read_freely(const char *page, size_t n_prompt, const float *logits, double ms, struct totals *t)
{
    struct generation g;
    struct fathom_err err = {0};
    double start = clock_ms();
    kv_cache_rewind(&ctx->kv, n_prompt);
    memcpy(ctx->logits, logits, model->config.decoder.vocab_size * sizeof *logits);
    check(generate(ctx, &(struct generate_options){.max_tokens = MAX_TOKENS}, &g, &err), &err);
    ms += clock_ms() - start;
    t->slowest_ms = ms > t->slowest_ms ? ms : t->slowest_ms;
    add_errors(page, strbuf_text(&g.text), t);
    generation_release(&g);
}

static void test_pages(void **state)
{
    char *text;
    size_t n_text;
    struct json j = {0};
    struct totals t = {0};
    struct fathom_err err = {0};

    (void)state;
    check(file_read("tests/golden/golden_mini.json", 1 << 20, &text, &n_text, &err), &err);
    check(json_parse(&j, text, n_text, &err), &err);
    float *logits = malloc(model->config.decoder.vocab_size * sizeof *logits);
    assert_non_null(logits);
    const struct json_node *pages = json_get(&j, json_root(&j), "pages");
    assert_non_null(pages);
    for (const struct json_node *key = json_first(&j, pages); key;) {
        const struct json_node *page = json_next(&j, pages, key);
        const struct json_node *prompt = json_get(&j, page, "prompt");
        size_t n;
        double gap, start = clock_ms();
        assert_non_null(prompt);
        assert_true(json_f64(json_get(&j, page, "smallest_gap"), &gap));
        prefill(key->text, prompt->text);
        double ms = clock_ms() - start;
        size_t n_prompt = ctx->kv.n_tok;
        memcpy(logits, ctx->logits, model->config.decoder.vocab_size * sizeof *logits);
        size_t differ = count_disagreements(&j, json_get(&j, page, "ids"), &n);
        if (exact && gap > CLEAR_GAP && differ)
            fail_msg("%s: %zu of %zu choices differ, yet the smallest gap is %g", key->text, differ, n, gap);
        t.n_forced += n;
        t.n_agreed += n - differ;
        read_freely(key->text, n_prompt, logits, ms, &t);
        key = json_next(&j, pages, page);
    }
    double agreement = (double)t.n_agreed / (double)t.n_forced, cer = (double)t.n_edits / (double)t.n_chars;
    print_message("choices that agree: %zu of %zu (%.2f %%); CER %.2f %%; slowest page %.0f ms\n", t.n_agreed,
                  t.n_forced, 100 * agreement, 100 * cer, t.slowest_ms);
    assert_true(agreement >= MIN_AGREEMENT);
    assert_true(cer <= MAX_CER);
    json_free(&j);
    free(text);
    free(logits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pages)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
