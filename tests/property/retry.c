/* Reading again: which attempts follow a page that looped or found the context full, which of them counts, what a caller
 * is told; and the modes of both models with real views. The model is tiny and its head is zero: it says the same token
 * until the no-repeat guard forbids it, and then ends the page. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/context.h"
#include "golden/golden.h"
#include "tiny_model.h"

#define WIDTH 700 /* two tiles across and two down; a half of it needs none */
#define HEIGHT 780

static struct fathom_model *ocr1, *ocr2;

static struct fathom_model *open_model(struct model_config config)
{
    struct fathom_err err = {0};
    struct fathom_model *m = tiny_model_of(config, &err);
    if (!m || tokenizer_open(&m->tokenizer, "models/mini/tokenizer.json", &err))
        fail_msg("%s", err.message);
    m->image_id = tokenizer_find(m->tokenizer, "<image>");
    const struct tensor *head = &weights_find(m->weights, "lm_head.weight")->tensor;
    memset(head->data, 0, dtype_bytes(head->dtype, head->shape[0] * head->shape[1]));
    return m;
}

static int setup(void **state)
{
    (void)state;
    ocr1 = open_model(tiny_ocr1_config());
    ocr2 = open_model(tiny_config());
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fathom_model_close(ocr1);
    fathom_model_close(ocr2);
    return 0;
}

struct heard {
    char attempts[256], announced[256]; /* "first: looped, wide guard: ok*, " */
    size_t n_text, n_stages, stop_at_attempt, n_told, stop_at_stage;
    size_t text_after[8]; /* bytes of text during each attempt */
    enum fathom_page_status status;
    struct fathom_stats stats;
    struct fathom_err err;
    size_t n_raw, n_pages;
};

static bool on_stage(void *user, const char *stage, size_t done, size_t total)
{
    struct heard *h = user;
    assert_true(done <= total);
    (void)stage;
    return ++h->n_stages != h->stop_at_stage;
}

static bool on_text(void *user, const char *text, size_t n)
{
    struct heard *h = user;
    (void)text;
    h->text_after[h->n_told] += n;
    return true;
}

static bool on_attempt(void *user, const char *what)
{
    struct heard *h = user;
    size_t n = strlen(h->announced);
    snprintf(h->announced + n, sizeof h->announced - n, "%s, ", what);
    return ++h->n_told != h->stop_at_attempt;
}

static bool on_page(void *user, const struct fathom_page *page)
{
    struct heard *h = user;
    size_t at = 0, n_chosen = 0;
    for (size_t i = 0; i < page->n_attempts; i++) {
        const struct fathom_attempt *a = &page->attempts[i];
        at += (size_t)snprintf(h->attempts + at, sizeof h->attempts - at, "%s: %s%s, ", a->what,
                               fathom_page_status_name(a->status), a->chosen ? "*" : "");
        n_chosen += a->chosen;
    }
    h->n_pages++;
    h->status = page->status;
    h->stats = page->stats;
    h->err = page->err;
    h->n_raw = strlen(page->raw);
    assert_int_equal(n_chosen, page->status != FATHOM_PAGE_FAILED);
    return true;
}

static const struct fathom_callbacks all = {
    .on_stage = on_stage, .on_text = on_text, .on_page = on_page, .on_attempt = on_attempt};

static enum fathom_status read_page(const struct fathom_model *model, size_t n_ctx,
                                    const struct fathom_read_options *options, struct fathom_callbacks callbacks,
                                    struct heard *h)
{
    const struct fathom_context_options context = {.n_threads = 2, .n_ctx = n_ctx};
    struct fathom_context *ctx;
    struct fathom_err err = {0};
    uint8_t *rgb = malloc(WIDTH * HEIGHT * 3);
    assert_non_null(rgb);
    for (size_t i = 0; i < WIDTH * HEIGHT * 3; i++)
        rgb[i] = (uint8_t)(i * 7 ^ i >> 9);
    if (fathom_context_create(model, &context, &ctx, &err))
        fail_msg("%s", err.message);
    *h = (struct heard){.stop_at_attempt = h->stop_at_attempt, .stop_at_stage = h->stop_at_stage};
    callbacks.user = h;
    enum fathom_status status = fathom_read_pixels(ctx, rgb, WIDTH, HEIGHT, options, &callbacks, &err);
    assert_int_equal(ctx->arena.used_bytes, 0);
    fathom_context_destroy(ctx);
    free(rgb);
    return status;
}

/* A guard that sees nothing: every attempt but the one with the wide guard loops. */
static struct fathom_read_options blind_guard(void)
{
    struct fathom_read_options o = fathom_read_defaults();
    o.ngram_window = 1;
    return o;
}

static struct fathom_read_options no_guard(void)
{
    struct fathom_read_options o = fathom_read_defaults();
    o.ngram = 0;
    return o;
}

static void check(const struct fathom_model *model, size_t n_ctx, const struct fathom_read_options *options,
                  const char *attempts, enum fathom_page_status status)
{
    struct heard h = {0};
    assert_int_equal(read_page(model, n_ctx, options, all, &h), FATHOM_OK);
    assert_string_equal(h.attempts, attempts);
    assert_int_equal(h.status, status);
}

static void test_ladder(void **state)
{
    struct fathom_read_options o = fathom_read_defaults();
    (void)state;
    check(ocr2, 0, &o, "first: ok*, ", FATHOM_PAGE_OK);
    o = blind_guard();
    check(ocr2, 0, &o, "first: looped, wide guard: ok*, ", FATHOM_PAGE_RETRIED);
    o.no_retry = true;
    check(ocr2, 0, &o, "first: looped*, ", FATHOM_PAGE_LOOPED);

    o = no_guard(); /* off is off, in the other attempts too */
    check(ocr2, 0, &o, "first: looped, mode base: looped, free prompt: looped, halves: looped*, ", FATHOM_PAGE_LOOPED);
    o.mode = FATHOM_MODE_BASE; /* the other mode is the one with tiles */
    check(ocr2, 0, &o, "first: looped, mode gundam: looped, free prompt: looped, halves: looped*, ",
          FATHOM_PAGE_LOOPED);
    o = no_guard();
    o.prompt = "<image>\nFree OCR.";
    check(ocr2, 0, &o, "first: looped, mode base: looped, halves: looped*, ", FATHOM_PAGE_LOOPED);
    o.prompt = "<image>\nDescribe this image in detail."; /* a caller's own question is asked about the whole page */
    check(ocr2, 0, &o, "first: looped*, mode base: looped, ", FATHOM_PAGE_LOOPED);
    o.mode = FATHOM_MODE_SMALL;
    check(ocr1, 0, &o, "first: looped*, mode gundam: looped, ", FATHOM_PAGE_LOOPED);
}

/* A limit that the caller set is no reason to read again; a context that is too small is one: a half needs less. */
static void test_full(void **state)
{
    struct fathom_read_options o = fathom_read_defaults();
    struct heard h = {0};
    (void)state;
    o.max_tokens = 5;
    check(ocr2, 0, &o, "first: truncated*, ", FATHOM_PAGE_TRUNCATED);

    o = fathom_read_defaults();
    assert_int_equal(read_page(ocr2, 0, &o, all, &h), FATHOM_OK);
    size_t n_ctx = (h.stats.n_prompt_tokens / 64 + 1) * 64; /* the cache comes in 64s */
    o.ngram = (int)(n_ctx - h.stats.n_prompt_tokens) + 5;   /* after as many tokens the model ends the page */
    check(ocr2, n_ctx, &o, "first: truncated, halves: ok*, ", FATHOM_PAGE_RETRIED);
    assert_int_equal(read_page(ocr2, n_ctx, &o, all, &h), FATHOM_OK);
    assert_int_equal(h.stats.n_views, 2); /* one a half */
    assert_int_equal(h.stats.n_output_tokens, 2 * o.ngram);
}

/* Too long a prompt is found before the tower runs. */
static void test_no_room(void **state)
{
    struct fathom_read_options o = fathom_read_defaults();
    struct heard h = {0};
    (void)state;
    assert_int_equal(read_page(ocr2, 512, &o, all, &h), FATHOM_OK);
    assert_int_equal(h.status, FATHOM_PAGE_FAILED);
    assert_int_equal(h.err.status, FATHOM_ELIMIT);
    if (!strstr(h.err.message, "leaves no room in the context of 512; 833 are the picture's, without tiles they would "
                               "be 257"))
        fail_msg("%s", h.err.message);
    assert_int_equal(h.n_stages, 0);
    assert_string_equal(h.attempts, "");
    o.mode = FATHOM_MODE_BASE;
    check(ocr2, 512, &o, "first: ok*, ", FATHOM_PAGE_OK);
    assert_int_equal(read_page(ocr2, 256, &o, all, &h), FATHOM_OK);
    assert_int_equal(h.err.status, FATHOM_ELIMIT);
    o.prompt = "no picture";
    assert_int_equal(read_page(ocr2, 0, &o, all, &h), FATHOM_OK);
    assert_int_equal(h.err.status, FATHOM_EINVAL);
    assert_int_equal(h.n_stages, 0);
}

static void test_callbacks(void **state)
{
    struct fathom_read_options o = no_guard();
    struct fathom_callbacks some = all;
    struct heard h = {0};
    (void)state;
    assert_int_equal(read_page(ocr2, 0, &o, all, &h), FATHOM_OK);
    assert_string_equal(h.announced, "mode base, free prompt, halves, ");
    for (size_t i = 0; i < 4; i++)
        assert_true(h.text_after[i] > h.n_raw / 4);
    size_t n_first = h.text_after[0];
    some.on_attempt = NULL; /* who is not told of attempts gets the text of the first alone */
    assert_int_equal(read_page(ocr2, 0, &o, some, &h), FATHOM_OK);
    assert_string_equal(h.attempts, "first: looped, mode base: looped, free prompt: looped, halves: looped*, ");
    assert_int_equal(h.text_after[0], n_first);

    h.stop_at_attempt = 2;
    assert_int_equal(read_page(ocr2, 0, &o, all, &h), FATHOM_ECANCELLED);
    assert_string_equal(h.attempts, "first: looped*, mode base: looped, ");
    assert_int_equal(h.status, FATHOM_PAGE_TRUNCATED);
}

/* Whenever a callback says no, the page ends with the text so far and nothing is left behind. The stages are told between
 * the operations of a view, not only after it. */
static void test_cancel(void **state)
{
    struct fathom_read_options o = no_guard();
    struct heard whole = {0}, h = {0};
    (void)state;
    assert_int_equal(read_page(ocr2, 0, &o, all, &whole), FATHOM_OK);
    assert_true(whole.n_stages > 8 * 30);
    for (size_t at = 1; at < whole.n_stages; at = at * 3 + 1) {
        h.stop_at_stage = at;
        assert_int_equal(read_page(ocr2, 0, &o, all, &h), FATHOM_ECANCELLED);
        assert_int_equal(h.n_stages, at);
        assert_int_equal(h.n_pages, 1);
        assert_int_equal(h.status, FATHOM_PAGE_TRUNCATED);
    }
}

static void test_modes(void **state)
{
    static const struct {
        enum fathom_mode mode;
        int max_tiles;
        size_t n_views, n_tokens;
    } modes[] = {
        {FATHOM_MODE_TINY, 0, 1, 73},     {FATHOM_MODE_SMALL, 0, 1, 111},  {FATHOM_MODE_BASE, 0, 1, 273},
        {FATHOM_MODE_LARGE, 0, 1, 421},   {FATHOM_MODE_GUNDAM, 0, 5, 693}, {FATHOM_MODE_DEFAULT, 0, 5, 693},
        {FATHOM_MODE_GUNDAM, 3, 3, 493}, /* two down */
        {FATHOM_MODE_DEFAULT, 2, 3, 493},
    };
    static const char prompt[] = "\n<|grounding|>Convert the document to markdown.";
    struct fathom_read_options o = fathom_read_defaults();
    size_t n_prompt;
    struct heard h = {0};
    (void)state;
    assert_int_equal(fathom_count_tokens(ocr1, prompt, strlen(prompt), true, &n_prompt, NULL), FATHOM_OK);
    o.max_tokens = 1;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        o.mode = modes[i].mode;
        o.max_tiles = modes[i].max_tiles;
        assert_int_equal(read_page(ocr1, 0, &o, all, &h), FATHOM_OK);
        assert_string_equal(h.err.message, "");
        assert_int_equal(h.stats.n_views, modes[i].n_views);
        assert_int_equal(h.stats.n_prompt_tokens, 1 + modes[i].n_tokens + n_prompt);
    }
    o.mode = FATHOM_MODE_LARGE;
    o.max_tiles = 0;
    assert_int_equal(read_page(ocr2, 0, &o, all, &h), FATHOM_OK);
    assert_int_equal(h.status, FATHOM_PAGE_FAILED);
    assert_int_equal(h.err.status, FATHOM_EUNSUPPORTED);
}

static enum fathom_choice pass_over(void *user, const struct fathom_page *page)
{
    (void)user;
    assert_int_equal(page->number, 1);
    assert_int_equal(page->width, WIDTH);
    assert_int_equal(page->height, HEIGHT);
    assert_non_null(page->rgb);
    assert_string_equal(page->raw, "");
    assert_string_equal(page->markdown, "");
    return FATHOM_SKIP;
}

static enum fathom_choice stop(void *user, const struct fathom_page *page)
{
    (void)user, (void)page;
    return FATHOM_STOP;
}

static enum fathom_choice take(void *user, const struct fathom_page *page)
{
    (void)user, (void)page;
    return FATHOM_READ;
}

/* A page that the caller skips costs nothing and is not handed over. */
static void test_choice(void **state)
{
    (void)state;
    struct fathom_read_options o = fathom_read_defaults();
    struct fathom_callbacks callbacks = all;
    struct heard h = {0};
    callbacks.on_pixels = pass_over;
    assert_int_equal(read_page(ocr2, 0, &o, callbacks, &h), FATHOM_OK);
    assert_int_equal(h.n_pages + h.n_stages, 0);
    callbacks.on_pixels = stop;
    assert_int_equal(read_page(ocr2, 0, &o, callbacks, &h), FATHOM_ECANCELLED);
    assert_int_equal(h.n_pages + h.n_stages, 0);
    callbacks.on_pixels = take;
    assert_int_equal(read_page(ocr2, 0, &o, callbacks, &h), FATHOM_OK);
    assert_int_equal(h.n_pages, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ladder),    cmocka_unit_test(test_full),   cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_callbacks), cmocka_unit_test(test_cancel), cmocka_unit_test(test_modes),
        cmocka_unit_test(test_choice),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
