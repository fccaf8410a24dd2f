/* bench_network [ISA [ROUNDS]]: DeepSeek-OCR-2 at its published size with synthetic weights in memory (6.8 GB), with all
 * threads: the SAM tower and the whole vision half on a 1024 px view and prefill against the multiply-add peak, decoding
 * against the read bandwidth, each measured before and after every stage in the same round. Also the memory that the
 * vision half takes beyond the weights at 1024 px, and the tower's by side. That the stages are right is what
 * tests/golden/full_ocr2 shows. */
#include <string.h>

#include "bench.h"
#include "engine/context.h"
#include "engine/cost.h"
#include "engine/vision.h"
#include "weights/synth.h"
#include "weights/synth_weights.h"

#define N_PROMPT 267
#define N_STEPS 24
#define N_CTX 512

struct stage {
    const char *name, *unit;
    struct samples ms, rate, share;
};

static void add_round(struct stage *s, double ms, double work, double peak)
{
    samples_add(&s->ms, ms);
    samples_add(&s->rate, work / (ms * 1e-3));
    samples_add(&s->share, work / (ms * 1e-3) / peak);
}

static void print_stage(const struct stage *s)
{
    printf("%-28s %9.1f ms ± %4.1f %%  %8.1f %s  %.3f of the peak ± %.1f %%\n", s->name, samples_median(&s->ms),
           samples_spread(&s->ms), samples_median(&s->rate) / 1e9, s->unit, samples_median(&s->share),
           samples_spread(&s->share));
}

static void check_run(const struct run *run) { bench_check(run->err.status, &run->err); }

/* The peaks around a stage: the mean of before and after. */
static double mean(double a, double b) { return (a + b) / 2; }

static void measure_memory(struct fathom_context *ctx, const float *pixels)
{
    static const size_t sides[] = {512, 640, 768, 1024, 1280};
    const struct ocr2 *m = &ctx->model->ocr2;
    printf("\nThe tower's memory beyond the weights, by side\n");
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        struct run run = context_run(ctx);
        struct arena_mark mark = arena_save(run.arena);
        size_t n = sides[i] / 16 * (sides[i] / 16);
        arena_reset_peak(run.arena);
        sam_forward(&run, &m->sam, pixels, sides[i], 1);
        check_run(&run);
        printf("  %4zu px  %5zu tokens  %6.1f MiB  %6.0f bytes a token\n", sides[i], n,
               (double)run.arena->peak_bytes / 0x1p20, (double)run.arena->peak_bytes / (double)n);
        arena_restore(run.arena, mark);
    }
}

int main(int argc, char **argv)
{
    const char *isa = argc > 1 ? argv[1] : NULL;
    size_t n_rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 5, n_pixels = 3 * 1280 * 1280;
    struct model_config config = config_ocr2_published();
    struct fathom_err err = {0};
    struct weights *w = NULL;
    struct pool *pool = NULL;
    struct fathom_model *model = NULL;
    struct fathom_context *ctx = NULL;
    const struct fathom_context_options options = {.isa = isa, .n_ctx = N_CTX + 512};
    int32_t ids[N_CTX];

    bench_check(pool_create(pool_default_threads(), &pool, &err), &err);
    bench_check(synth_ocr_weights(&w, &config, pool, &err), &err);
    bench_check(model_from_weights(&model, w, &config, &err), &err);
    bench_check(fathom_context_create(model, &options, &ctx, &err), &err);
    float *pixels = malloc(n_pixels * sizeof *pixels);
    if (!pixels)
        return 1;
    synth_fill_f32(pixels, "bench.pixels", 0, n_pixels, 0, 1, pool);
    for (size_t i = 0; i < N_CTX; i++)
        ids[i] = (int32_t)(synth_raw("bench.ids", i) * 128000);

    struct run peaks = context_run(ctx);
    struct picture picture = {.global = pixels, .across = 1, .down = 1, .base_side = 1024};
    struct stage sam = {.name = "SAM tower, 1024 px", .unit = "GFLOP/s"};
    struct stage vision = {.name = "vision, 1024 px", .unit = "GFLOP/s"};
    struct stage prefill = {.name = "prefill, 267 tokens", .unit = "GFLOP/s"};
    struct stage decode = {.name = "decode, a token at 512", .unit = "GB/s"};
    struct samples fma = {0}, read = {0};
    size_t vision_bytes = 0;

    for (size_t r = 0; r < n_rounds + 1; r++) { /* the first round warms up */
        struct run run = context_run(ctx);
        struct arena_mark mark = arena_save(run.arena);
        double fma0 = bench_fma_peak(&peaks), t0 = clock_ms();
        sam_forward(&run, &model->ocr2.sam, pixels, 1024, 1);
        double t1 = clock_ms(), fma1 = bench_fma_peak(&peaks);
        arena_restore(run.arena, mark);

        arena_reset_peak(run.arena);
        struct tensor block = run_alloc(&run, vision_tokens(model, &picture), config.decoder.dim);
        double t2 = clock_ms();
        vision_forward(&run, model, &picture, &block, NULL, NULL);
        double t3 = clock_ms(), fma2 = bench_fma_peak(&peaks);
        check_run(&run);
        vision_bytes = run.arena->peak_bytes;
        arena_restore(run.arena, mark);

        context_reset(ctx);
        double t4 = clock_ms();
        bench_check(context_append(ctx, ids, N_PROMPT, NULL, 0, NULL, NULL, &err), &err);
        double t5 = clock_ms(), fma3 = bench_fma_peak(&peaks);

        bench_check(context_append(ctx, ids + N_PROMPT, N_CTX - N_PROMPT - 1, NULL, 0, NULL, NULL, &err), &err);
        double read0 = bench_read_peak(&peaks), t6 = clock_ms();
        for (size_t i = 0; i < N_STEPS; i++)
            bench_check(context_append(ctx, &ids[i], 1, NULL, 0, NULL, NULL, &err), &err);
        double t7 = clock_ms(), read1 = bench_read_peak(&peaks);
        if (r == 0)
            continue;
        add_round(&sam, t1 - t0, sam_flop(&config.sam, 1024), mean(fma0, fma1));
        add_round(&vision, t3 - t2, vision_flop(model, &picture), mean(fma1, fma2));
        add_round(&prefill, t5 - t4, decoder_flop(&config.decoder, 0, N_PROMPT), mean(fma2, fma3));
        double bytes = decoder_step_bytes(model->decoder, &ctx->kv, N_CTX + N_STEPS / 2);
        add_round(&decode, (t7 - t6) / N_STEPS, bytes, mean(read0, read1));
        samples_add(&fma, mean(fma0, fma3));
        samples_add(&read, mean(read0, read1));
    }
    printf("%s, %d threads; multiply-add peak %.1f GFLOP/s ± %.1f %%, reading %.2f GB/s ± %.1f %%; %zu rounds\n",
           ctx->kernels->name, pool_threads(ctx->pool), samples_median(&fma) / 1e9, samples_spread(&fma),
           samples_median(&read) / 1e9, samples_spread(&read), n_rounds);
    print_stage(&sam);
    print_stage(&vision);
    print_stage(&prefill);
    print_stage(&decode);
    printf("vision memory beyond the weights, 1024 px: %.1f MiB\n", (double)vision_bytes / 0x1p20);
    measure_memory(ctx, pixels);
    free(pixels);
    fathom_context_destroy(ctx);
    fathom_model_close(model);
    pool_destroy(pool);
    return 0;
}
