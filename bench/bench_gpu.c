/* bench_gpu [ROUNDS [f32|bf16|exact]]: DeepSeek-OCR-2 at its published size with synthetic weights on a GPU (8 GB of its
 * memory, 7 GB of ours): the rows of docs/gpu.md's list of stages, each the median of ROUNDS (default 15) after three that
 * warm up, with half the distance of the quartiles. Times are those of a caller who waits: pictures begin as floats in
 * this process's memory, results end there. That they are right is what tests/cuda shows. */
#include <string.h>

#include "bench.h"
#include "engine/context.h"
#include "engine/cost.h"
#include "engine/vision.h"
#include "weights/synth.h"
#include "weights/synth_weights.h"

#define N_WARM_UP 3
#define N_STEPS 64
#define N_CTX 500 /* tokens in the cache while decoding is measured */

struct bench {
    struct fathom_model *model;
    struct fathom_context *ctx;
    float *pixels; /* eight views of 1024 px */
    int32_t *ids;  /* a page's, and N_CTX + N_STEPS others */
    float *out;
};

/* One of the things to measure: its time in ms, and the multiplications and additions or bytes of it. */
struct row {
    const char *name, *unit;
    double (*measure)(const struct bench *b, size_t n, double *work);
    size_t n;
};

static void check_run(const struct run *run) { bench_check(run->err.status, &run->err); }

static double tower(const struct bench *b, size_t n_views, double *work)
{
    struct run run = context_run(b->ctx);
    struct arena_mark mark = arena_save(run.arena);
    double start = clock_ms();
    struct tensor t = sam_forward(&run, &b->ctx->network->ocr2.sam, b->pixels, 1024, n_views);
    struct tensor last = tensor_rows(&t, t.shape[0] - 1, 1);
    download(&run, b->out, &last); /* waits */
    double ms = clock_ms() - start;
    check_run(&run);
    arena_restore(run.arena, mark);
    *work = (double)n_views * sam_flop(&b->model->config.sam, 1024);
    return ms;
}

/* From pixels to the logits of the first token: a global view and n tiles, and ten tokens of prompt. */
static double first_token(const struct bench *b, size_t n_tiles, double *work)
{
    const struct model_config *c = &b->model->config;
    struct run run = context_run(b->ctx);
    struct arena_mark mark = arena_save(run.arena);
    struct picture picture = {.global = b->pixels, .tile_side = 768, .base_side = 1024};
    struct fathom_err err = {0};
    if (n_tiles)
        picture.local = b->pixels, picture.n_local = n_tiles, picture.across = 2, picture.down = n_tiles / 2;
    size_t n = vision_tokens(b->model, &picture);
    for (size_t i = 0; i < n; i++)
        b->ids[i] = c->image_id;

    context_reset(b->ctx);
    double start = clock_ms();
    struct tensor block = run_alloc(&run, n, c->decoder.dim);
    vision_forward(&run, b->ctx->network, &picture, &block, NULL, NULL);
    check_run(&run);
    struct context_image image = {&block, c->image_id};
    bench_check(context_append(b->ctx, b->ids, n + 10, &image, 0, NULL, NULL, &err), &err);
    double ms = clock_ms() - start;
    arena_restore(run.arena, mark);
    *work = vision_flop(b->model, &picture) + decoder_flop(&c->decoder, 0, n + 10);
    return ms;
}

static double step(const struct bench *b, size_t n_ctx, double *work)
{
    struct fathom_err err = {0};
    const int32_t *ids = b->ids + 2048;
    context_reset(b->ctx);
    bench_check(context_append(b->ctx, ids, n_ctx - N_STEPS / 2, NULL, 0, NULL, NULL, &err), &err);
    double start = clock_ms();
    for (size_t i = 0; i < N_STEPS; i++)
        bench_check(context_append(b->ctx, &ids[i], 1, NULL, 0, NULL, NULL, &err), &err);
    *work = decoder_step_bytes(b->ctx->network->decoder, &b->ctx->kv, n_ctx);
    return (clock_ms() - start) / N_STEPS;
}

static const struct row rows[] = {
    {"SAM tower, 1 view of 1024 px", "TFLOP/s", tower, 1},
    {"SAM tower, 8 views of 1024 px", "TFLOP/s", tower, 8},
    {"first token, 1 view", "TFLOP/s", first_token, 0},
    {"first token, 6 tiles and a view", "TFLOP/s", first_token, 6},
    {"a token, 500 in the cache", "TB/s", step, N_CTX},
};

/* False when there is no GPU. */
static bool prepare(struct bench *b, const struct fathom_context_options *options)
{
    struct model_config config = config_ocr2_published();
    struct fathom_err err = {0};
    struct device *device;
    struct weights *w = NULL;
    struct pool *pool = NULL;
    char why[256];
    size_t n_pixels = (size_t)8 * 3 * 1024 * 1024, n_ids = 2048 + N_CTX + N_STEPS;

    if (device_open(options->device, options->exact, &device, why, &err)) {
        printf("nothing measured: %s\n", err.message);
        return false;
    }
    device->close(device);
    bench_check(pool_create(pool_default_threads(), &pool, &err), &err);
    bench_check(synth_ocr_weights(&w, &config, pool, &err), &err);
    bench_check(model_from_weights(&b->model, w, &config, &err), &err);
    double start = clock_ms();
    bench_check(fathom_context_create(b->model, options, &b->ctx, &err), &err);
    printf("%s; weights copied in %.1f s\n", fathom_context_device(b->ctx, NULL), (clock_ms() - start) / 1e3);
    b->pixels = malloc(n_pixels * sizeof *b->pixels);
    b->ids = malloc(n_ids * sizeof *b->ids);
    b->out = malloc(config.decoder.vocab_size * sizeof *b->out);
    if (!b->pixels || !b->ids || !b->out)
        exit(1);
    synth_fill_f32(b->pixels, "bench.pixels", 0, n_pixels, 0, 1, pool);
    for (size_t i = 0; i < n_ids; i++)
        b->ids[i] = (int32_t)(synth_raw("bench.ids", i) * 128000);
    pool_destroy(pool);
    return true;
}

int main(int argc, char **argv)
{
    size_t n_rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 15;
    const char *mode = argc > 2 ? argv[2] : "bf16";
    const struct fathom_context_options options = {.dtype = strcmp(mode, "f32") == 0 ? FATHOM_F32 : FATHOM_BF16,
                                                   .n_ctx = 2048,
                                                   .device = "cuda",
                                                   .exact = strcmp(mode, "exact") == 0};
    struct samples times[sizeof rows / sizeof *rows] = {0};
    double work[sizeof rows / sizeof *rows];
    struct bench b = {0};
    if (n_rounds < 1 || n_rounds > BENCH_MAX_ROUNDS) {
        fprintf(stderr, "rounds: 1 to %d\n", BENCH_MAX_ROUNDS);
        return 2;
    }
    if (!prepare(&b, &options))
        return 0;
    for (size_t r = 0; r < N_WARM_UP + n_rounds; r++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            double ms = rows[i].measure(&b, rows[i].n, &work[i]);
            if (r >= N_WARM_UP)
                samples_add(&times[i], ms);
        }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        printf("%-34s %9.3f ms ± %4.1f %%  %8.2f %s\n", rows[i].name, samples_median(&times[i]),
               samples_spread(&times[i]), work[i] / (samples_median(&times[i]) * 1e9), rows[i].unit);
    printf("memory beyond weights and cache: %.1f MiB; weights %.1f MiB\n", (double)b.ctx->arena.backed_bytes / 0x1p20,
           (double)b.ctx->placement.bytes / 0x1p20);
    fathom_context_destroy(b.ctx);
    fathom_model_close(b.model);
    free(b.pixels);
    free(b.ids);
    free(b.out);
    return 0;
}
