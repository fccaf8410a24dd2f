/* Whole networks on the GPU against the processor: in float32 and, when exact, in bf16 the same bits at every stage; in
 * bf16 on the tensor cores within what bf16 itself costs. The built-in model reads its page to the same text. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "engine/context.h"
#include "engine/vision.h"
#include "tiny_model.h"
#include "weights/synth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* What rounding to bf16 after every operation costs a network of this depth (golden/full_ocr2.c: 1e-2). */
#define BF16_DISTANCE 2e-2

struct setting {
    const char *name;
    enum fathom_dtype dtype;
    bool exact;
};
static bool emulated; /* and therefore slow */
static const struct setting settings[] = {
    {"f32", FATHOM_F32, false}, {"bf16, exact", FATHOM_BF16, true}, {"bf16", FATHOM_BF16, false}};

static struct fathom_context *create(const struct fathom_model *m, const struct setting *s, const char *device)
{
    const struct fathom_context_options options = {
        .dtype = s->dtype, .n_ctx = 1024, .device = device, .exact = s->exact};
    struct fathom_context *ctx = NULL;
    struct fathom_err err = {0};
    if (fathom_context_create(m, &options, &ctx, &err))
        fail_msg("%s: %s", s->name, err.message);
    return ctx;
}

/* The relative distance; with limit 0 fails unless every value is the same. */
static double compare(const char *what, const struct setting *s, const float *got, const float *want, size_t n,
                      double limit)
{
    double difference = 0, norm = 0;
    size_t n_differ = 0;
    for (size_t i = 0; i < n; i++) {
        n_differ += !(got[i] == want[i]);
        difference += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        norm += (double)want[i] * want[i];
    }
    double distance = sqrt(difference / (norm > 0 ? norm : 1));
    if (limit == 0 && n_differ > 0)
        fail_msg("%s, %s: %zu of %zu values differ, relative distance %.3e", s->name, what, n_differ, n, distance);
    return distance;
}

static float *download_new(struct run *run, const struct tensor *t)
{
    float *out = calloc(tensor_elements(t) + 1, sizeof *out);
    assert_non_null(out);
    download(run, out, t);
    if (!run_ok(run))
        fail_msg("%s", run->err.message);
    return out;
}

/* A page of two tiles and a global view (on the emulator smaller, and only small tiles) through both contexts, its tokens and a prompt
 * through the decoder, then steps. */
static void follow(const struct fathom_model *m, const struct setting *s, size_t tile_side, size_t small_side)
{
    size_t base_side = emulated ? small_side : 1024;
    int32_t n_steps = emulated ? 6 : 20;
    struct fathom_context *cpu = create(m, s, "cpu"), *gpu = create(m, s, "cuda"), *both[2] = {cpu, gpu};
    size_t n_tile = 3 * tile_side * tile_side, n_base = 3 * base_side * base_side, dim = m->config.decoder.dim;
    size_t n_vocab = m->config.decoder.vocab_size;
    float *pixels = malloc((2 * n_tile + n_base) * sizeof *pixels), *blocks[2],
          *logits = malloc(n_vocab * sizeof *logits);
    double limit = s->dtype == FATHOM_BF16 && !s->exact ? BF16_DISTANCE : 0;
    assert_non_null(pixels);
    assert_non_null(logits);
    synth_fill_f32(pixels, "pixels", 0, 2 * n_tile + n_base, 0, 1, NULL);
    struct picture picture = {.global = pixels + 2 * n_tile, .tile_side = tile_side, .base_side = base_side};
    if (!emulated || tile_side < 768)
        picture.local = pixels, picture.n_local = picture.across = 2, picture.down = 1;
    size_t n = vision_tokens(m, &picture);
    int32_t *ids = malloc((n + 3) * sizeof *ids);
    assert_non_null(ids);
    ids[0] = 0;
    for (size_t i = 1; i <= n; i++)
        ids[i] = m->config.image_id;
    ids[n + 1] = 17, ids[n + 2] = 5;

    for (int i = 0; i < 2; i++) {
        struct run run = context_run(both[i]);
        struct fathom_err err = {0};
        struct arena_mark mark = arena_save(run.arena);
        struct tensor block = run_alloc(&run, n, dim);
        vision_forward(&run, both[i]->network, &picture, &block, NULL, NULL);
        blocks[i] = download_new(&run, &block);
        struct context_image image = {&block, m->config.image_id};
        if (context_append(both[i], ids, n + 3, &image, 200, NULL, NULL, &err))
            fail_msg("%s", err.message);
        arena_restore(run.arena, mark);
    }
    double distance = compare("vision tokens", s, blocks[1], blocks[0], n * dim, limit), sum = 0;
    if (!(distance <= limit))
        fail_msg("%s: the vision tokens are %.3e away", s->name, distance);
    for (int32_t step = 0; step < n_steps; step++) {
        struct fathom_err err = {0};
        char what[32];
        snprintf(what, sizeof what, "logits %d", (int)step);
        /* a device does not round logits */
        for (size_t i = 0; i < n_vocab; i++)
            logits[i] = s->dtype == FATHOM_BF16 ? bf16_round(gpu->logits[i]) : gpu->logits[i];
        sum += compare(what, s, logits, cpu->logits, n_vocab, limit);
        int32_t id = step * 37 % (int32_t)n_vocab;
        for (int i = 0; i < 2; i++)
            if (context_append(both[i], &id, 1, NULL, 0, NULL, NULL, &err))
                fail_msg("%s", err.message);
    }
    if (!(sum / n_steps <= limit)) /* a near tie of a router may go the other way and put one step further off */
        fail_msg("%s: the logits are %.3e away", s->name, sum / n_steps);
    printf("%s: vision tokens %.2e away, logits %.2e\n", s->name, distance, sum / n_steps);
    for (int i = 0; i < 2; i++) {
        fathom_context_destroy(both[i]);
        free(blocks[i]);
    }
    free(pixels);
    free(ids);
    free(logits);
}

static void ocr2_agrees(void **state)
{
    struct fathom_err err = {0};
    struct fathom_model *m = tiny_model(&err);
    (void)state;
    assert_non_null(m);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        follow(m, &settings[i], 768, 768);
    fathom_model_close(m);
}

static void ocr1_agrees(void **state)
{
    struct fathom_err err = {0};
    struct fathom_model *m = tiny_model_of(tiny_ocr1_config(), &err);
    (void)state;
    assert_non_null(m);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        follow(m, &settings[i], emulated ? 512 : 640, 512);
    fathom_model_close(m);
}

static bool keep_text(void *user, const struct fathom_page *page)
{
    *(char **)user = strdup(page->raw);
    if (page->status != FATHOM_PAGE_OK)
        printf("page %s: %s\n", fathom_page_status_name(page->status), page->err.message);
    return true;
}

/* The same text in float32, and in bf16 when exact; otherwise it is only shown. */
static void built_in_model_reads_the_same(void **state)
{
    struct fathom_model *m = NULL;
    struct fathom_err err = {0};
    (void)state;
    if (emulated)
        skip();
    if (fathom_model_open("models/mini", &m, &err))
        fail_msg("%s", err.message);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        char *text[2] = {NULL, NULL};
        static const char *const devices[] = {"cpu", "cuda"};
        for (int d = 0; d < 2; d++) {
            struct fathom_context_options options = {
                .dtype = settings[i].dtype, .device = devices[d], .exact = settings[i].exact};
            struct fathom_context *ctx = NULL;
            struct fathom_callbacks callbacks = {.user = &text[d], .on_page = keep_text};
            if (fathom_context_create(m, &options, &ctx, &err) ||
                fathom_read_file(ctx, "examples/page.png", NULL, &callbacks, &err))
                fail_msg("%s", err.message);
            fathom_context_destroy(ctx);
        }
        assert_non_null(text[0]);
        assert_non_null(text[1]);
        printf("%s: %zu bytes, %s\n", settings[i].name, strlen(text[1]),
               strcmp(text[0], text[1]) ? "another text" : "the same");
        if (settings[i].dtype == FATHOM_F32 || settings[i].exact)
            assert_string_equal(text[1], text[0]);
        free(text[0]);
        free(text[1]);
    }
    fathom_model_close(m);
}

int main(void)
{
    struct device *device;
    char why[256];
    struct fathom_err err = {0};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ocr2_agrees),
        cmocka_unit_test(ocr1_agrees),
        cmocka_unit_test(built_in_model_reads_the_same),
    };
    if (device_open("cuda", false, &device, why, &err)) {
        printf("no GPU: %s\n", err.message);
        return 77;
    }
    emulated = strcmp(device->name, "emulator") == 0;
    device->close(device);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
