/* bench_v4 [ISA [ROUNDS [THREADS [SVG]]]]: three layers of V4-Flash's widths (CSA, HCA, sliding) with 16 experts in FP8 and
 * FP4, weights made up.
 *
 *   decode    native bytes that a step must read, over its time, as a share of the read bandwidth of the same round
 *   products  of 512 rows with FP8, of 192 rows with FP4, as a share of the multiply-add peak of the same round
 *   shortcut  what leaving the indexer out saves by context length, for prefills and for a step: auto and always in turns
 *
 * The saving is measured in one CSA layer and told as a share of V4-Flash's 43 layers, of which 21 are such. Prefills run the
 * attention alone; what the rest of a layer takes comes from a chunk of 512 tokens. SVG: the shares are drawn into that file. */
#include <math.h>
#include <string.h>

#include "bench.h"
#include "models/deepseek_v4.h"
#include "v4_plot.h"
#include "weights/synth_v4.h"

enum { N_LAYERS = 3, CHUNK = 512, N_CTX = 8192 + 16, N_STEPS = 3, FLASH_LAYERS = 43, FLASH_CSA = 21 };

struct bench {
    struct v4 model;
    struct v4_config cfg;
    struct weights *weights;
    struct v4_state *state[2]; /* auto, always */
    struct run run;
    size_t n_rounds;
    struct samples step[2][V4_PLOT_LENGTHS], prefill[2][V4_PLOT_LENGTHS], rest; /* ms; rest: of a layer and a token */
};

/* ---- the model ---------------------------------------------------------------------------------------------------- */

/* Codes of moderate numbers, and scales that bring a sum over a row near 1. */
static void make_up(void *data, const struct v4_tensor *t, size_t n_experts, struct pool *pool)
{
    struct fathom_err err = {0};
    uint8_t *p = data;
    size_t bytes = dtype_bytes(t->dtype, v4_tensor_elements(t));
    uint64_t seed = 1;
    switch (t->dtype) {
    case DTYPE_F8_E4M3:
    case DTYPE_F4_E2M1:
        for (size_t i = 0; i < bytes; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            uint8_t b = (uint8_t)(seed >> 40);
            p[i] = t->dtype == DTYPE_F4_E2M1 ? b : (uint8_t)((b & 0x80) | (0x20 + b % 0x38));
        }
        break;
    case DTYPE_F8_E8M0: memset(p, 127 - 8, bytes); break;
    default: bench_check(synth_v4_fill(data, t, 0, v4_tensor_elements(t), n_experts, pool, &err), &err);
    }
}

static void make_model(struct bench *b)
{
    static const char flash[] = "{\"model_type\": \"deepseek_v4\", \"num_hidden_layers\": 3, \"n_routed_experts\": 16, "
                                "\"num_hash_layers\": 1, \"compress_ratios\": [4, 128, 0], \"vocab_size\": 4096, "
                                "\"quantization_config\": {\"fmt\": \"e4m3\"}}";
    struct fathom_err err = {0};
    struct v4_tensor *tensors;
    size_t n;
    bench_check(v4_config_parse(&b->cfg, flash, sizeof flash - 1, &err), &err);
    bench_check(v4_tensors(&tensors, &n, &b->cfg, &err), &err);
    bench_check(weights_create(&b->weights, &err), &err);
    for (size_t i = 0; i < n; i++) {
        const struct v4_tensor *t = &tensors[i];
        size_t bytes = dtype_bytes(t->dtype, v4_tensor_elements(t));
        void *data = malloc(bytes);
        if (!data)
            bench_check(fail_nomem(&err, bytes, "weights"), &err);
        make_up(data, t, b->cfg.n_experts, b->run.pool);
        struct tensor made = t->n_dims == 1 ? tensor_1d(t->dtype, data, t->shape[0])
                                            : tensor_2d(t->dtype, data, t->shape[0], t->shape[1]);
        if (t->dtype == DTYPE_F4_E2M1)
            made = tensor_2d(DTYPE_I8, data, t->shape[0], t->shape[1] / 2);
        bench_check(weights_add(b->weights, t->name, &made, &err), &err);
    }
    free(tensors);
    bench_check(v4_bind(&b->model, &b->cfg, b->weights, &err), &err);
    for (int i = 0; i < 2; i++) {
        b->state[i] = malloc(sizeof *b->state[i]);
        bench_check(b->state[i] ? v4_state_create(b->state[i], &b->cfg, N_CTX, &err) : FATHOM_ENOMEM, &err);
        b->state[i]->indexer = i ? V4_INDEXER_ALWAYS : V4_INDEXER_AUTO;
        bench_fill(b->state[i]->memory, b->state[i]->memory_bytes / sizeof(float), 0.5f, 3);
    }
}

static double matrix_bytes(const struct tensor *t)
{
    size_t scales[2] = {0};
    if (!t->data)
        return 0;
    if (t->scales)
        scale_shape(t->dtype, t->shape[0], t->shape[1], scales);
    return (double)dtype_bytes(t->dtype, tensor_elements(t)) + (double)(scales[0] * scales[1]);
}

static double mlp_bytes(const struct mlp_weights *w)
{
    return matrix_bytes(&w->gate) + matrix_bytes(&w->up) + matrix_bytes(&w->down);
}

/* What a step with the indexer left out reads: no index query, no head weights. */
static double step_bytes(const struct bench *b)
{
    double sum = matrix_bytes(&b->model.head) + matrix_bytes(&b->model.head_hyper.fn);
    for (size_t l = 0; l < N_LAYERS; l++) {
        const struct v4_layer *w = &b->model.layers[l];
        const struct v4_attention *a = &w->attn;
        sum += matrix_bytes(&w->attn_hyper.fn) + matrix_bytes(&w->ffn_hyper.fn) + matrix_bytes(&w->gate);
        sum += matrix_bytes(&a->q_a) + matrix_bytes(&a->q_b) + matrix_bytes(&a->kv) + matrix_bytes(&a->o_a) +
               matrix_bytes(&a->o_b);
        sum += matrix_bytes(&a->main.value_w) + matrix_bytes(&a->main.score_w) + matrix_bytes(&a->index.value_w) +
               matrix_bytes(&a->index.score_w);
        sum += (double)b->cfg.top_k * mlp_bytes(&w->moe.experts[0]) + mlp_bytes(&w->moe.shared);
    }
    return sum;
}

/* ---- decode ------------------------------------------------------------------------------------------------------- */

/* Milliseconds of a step of the layers and, with_head, the logits, at context length n. */
static double step(struct bench *b, int always, size_t n, int32_t id, bool with_head)
{
    struct run *run = &b->run;
    struct arena_mark mark = arena_save(run->arena);
    struct tensor x = run_alloc(run, 1, b->cfg.n_streams * b->cfg.dim), logits = run_alloc(run, 1, b->cfg.vocab_size);
    b->state[always]->n_tok = n;
    double start = clock_ms();
    v4_embed(run, &b->model, &x, &id);
    v4_forward(run, &b->model, b->state[always], &x, &id);
    if (with_head)
        v4_logits(run, &b->model, &logits, &x);
    start = clock_ms() - start;
    bench_check(run->err.status, &run->err);
    arena_restore(run->arena, mark);
    return start;
}

static void bench_decode(struct bench *b)
{
    struct samples rate = {0}, share = {0};
    double bytes = step_bytes(b);
    step(b, 0, 500, 1, true);
    for (size_t r = 0; r < b->n_rounds; r++) {
        double peak = bench_read_peak(&b->run), ms = 0;
        for (size_t i = 0; i < N_STEPS; i++)
            ms += step(b, 0, 500 + i, (int32_t)(r * 37 + i * 11), true); /* other experts every time */
        peak = fmax(peak, bench_read_peak(&b->run));
        samples_add(&rate, bytes * N_STEPS / ms * 1e-6);
        samples_add(&share, bytes * N_STEPS / ms * 1e3 / peak);
    }
    printf("decode: %.0f MB a step, %.2f GB/s +-%.0f %%, %.2f of the read bandwidth (wanted 0.6)\n", bytes * 1e-6,
           samples_median(&rate), samples_spread(&rate), samples_median(&share));
    fflush(stdout);
}

/* ---- products ----------------------------------------------------------------------------------------------------- */

static void bench_product(struct bench *b, const char *name, size_t m, const struct tensor *w, const struct tensor *up)
{
    struct run *run = &b->run;
    struct samples rate = {0}, share = {0};
    struct arena_mark mark = arena_save(run->arena);
    struct tensor x = bench_matrix(run, m, w->shape[1], 1.0f, 1), y = run_alloc(run, m, w->shape[0]);
    double flop = 2.0 * (double)m * (double)w->shape[0] * (double)w->shape[1] * (up ? 2 : 1);
    for (size_t r = 0; r <= b->n_rounds; r++) {
        double peak = bench_fma_peak(run), start = clock_ms();
        if (up)
            swiglu(run, &y, &x, w, up);
        else
            linear(run, &y, &x, w, NULL);
        double flop_s = flop / (clock_ms() - start) * 1e3;
        bench_check(run->err.status, &run->err);
        peak = fmax(peak, bench_fma_peak(run));
        if (r == 0)
            continue;
        samples_add(&rate, flop_s * 1e-9);
        samples_add(&share, flop_s / peak);
    }
    printf("product of %3zu rows with %s %s [%zu, %zu]: %.0f GFLOP/s +-%.0f %%, %.2f of the peak (wanted 0.6)\n", m,
           name, dtype_name(w->dtype), w->shape[0], w->shape[1], samples_median(&rate), samples_spread(&rate),
           samples_median(&share));
    fflush(stdout);
    arena_restore(run->arena, mark);
}

static void bench_products(struct bench *b)
{
    const struct v4_layer *w = &b->model.layers[0];
    bench_product(b, "wq_b", CHUNK, &w->attn.q_b, NULL);
    bench_product(b, "wo_b", CHUNK, &w->attn.o_b, NULL);
    bench_product(b, "w1 and w3", CHUNK * 6 / 16, &w->moe.experts[0].gate, &w->moe.experts[0].up);
    bench_product(b, "w2", CHUNK * 6 / 16, &w->moe.experts[0].down, NULL);
}

/* ---- the shortcut ------------------------------------------------------------------------------------------------- */

/* Milliseconds of the CSA layer's attention over the tokens pos .. pos + n - 1. */
static double attend(struct bench *b, int always, size_t pos, size_t n)
{
    struct run *run = &b->run;
    struct arena_mark mark = arena_save(run->arena);
    struct tensor a = bench_matrix(run, n, b->cfg.dim, 1.0f, pos), u = run_alloc(run, n, b->cfg.dim);
    double start = clock_ms();
    v4_attend(run, &b->model, 0, b->state[always], &u, &a, pos);
    start = clock_ms() - start;
    bench_check(run->err.status, &run->err);
    arena_restore(run->arena, mark);
    return start;
}

/* All lengths in one go: up to a chunk each from the start, longer ones as sums of chunks; both ways in turns. */
static void bench_prefills(struct bench *b)
{
    double ms[2] = {0};
    size_t i = 0;
    for (; i < V4_PLOT_LENGTHS && v4_plot_lengths[i] < CHUNK; i++)
        for (int always = 0; always < 2; always++)
            samples_add(&b->prefill[always][i], attend(b, always, 0, v4_plot_lengths[i]));
    for (size_t pos = 0; i < V4_PLOT_LENGTHS; pos += CHUNK) {
        for (int k = 0; k < 2; k++) {
            int always = k ^ (int)(pos / CHUNK % 2);
            ms[always] += attend(b, always, pos, CHUNK);
        }
        if (pos + CHUNK == v4_plot_lengths[i]) {
            samples_add(&b->prefill[0][i], ms[0]);
            samples_add(&b->prefill[1][i++], ms[1]);
        }
    }
}

/* What a layer does besides its attention, for one token of a prefill. */
static void bench_rest(struct bench *b)
{
    struct run *run = &b->run;
    struct arena_mark mark = arena_save(run->arena);
    struct tensor x = run_alloc(run, CHUNK, b->cfg.n_streams * b->cfg.dim);
    int32_t ids[CHUNK];
    for (size_t i = 0; i < CHUNK; i++)
        ids[i] = (int32_t)(i * 7 % b->cfg.vocab_size);
    double alone = attend(b, 0, 0, CHUNK), start = clock_ms();
    b->state[0]->n_tok = 0;
    v4_embed(run, &b->model, &x, ids);
    v4_forward(run, &b->model, b->state[0], &x, ids);
    bench_check(run->err.status, &run->err);
    samples_add(&b->rest, fmax(0, (clock_ms() - start) / N_LAYERS - alone) / CHUNK);
    arena_restore(run->arena, mark);
}

static void bench_shortcut(struct bench *b, const char *svg)
{
    struct v4_plot plot = {0};
    for (size_t r = 0; r < b->n_rounds; r++)
        for (size_t i = 0; i < V4_PLOT_LENGTHS; i++)
            for (size_t s = 0; s < 2 * N_STEPS; s++) {
                int always = (int)((s + r + s / 2) % 2);
                samples_add(&b->step[always][i], step(b, always, v4_plot_lengths[i], (int32_t)(r * 37 + s / 2), false));
            }
    for (size_t r = 0; r < (b->n_rounds + 2) / 3; r++) {
        bench_rest(b);
        bench_prefills(b);
    }
    printf("\n| context | a step's layer: auto, ms | always, ms | share of V4-Flash | paper | prefill, attention: "
           "auto, ms |"
           " always, ms | share of V4-Flash | paper |\n|---|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < V4_PLOT_LENGTHS; i++) {
        double n = (double)v4_plot_lengths[i], part = (double)FLASH_CSA / FLASH_LAYERS;
        double step_auto = samples_median(&b->step[0][i]) / N_LAYERS;
        double step_always = samples_median(&b->step[1][i]) / N_LAYERS;
        double pre_auto = samples_median(&b->prefill[0][i]), pre_always = samples_median(&b->prefill[1][i]);
        double rest = samples_median(&b->rest) * n;
        plot.decode[i] = part * N_LAYERS * (step_always - step_auto) / step_always;
        plot.prefill[i] = part * (pre_always - pre_auto) / (pre_always + rest);
        printf("| %zu | %.2f | %.2f | %.2f %% | %.2f %% | %.1f | %.1f | %.2f %% | %.2f %% |\n", v4_plot_lengths[i],
               step_auto, step_always, 100 * plot.decode[i], 100 * v4_paper_decode(v4_plot_lengths[i]), pre_auto,
               pre_always, 100 * plot.prefill[i], 100 * v4_paper_prefill(v4_plot_lengths[i]));
    }
    printf("\nthe rest of a layer takes %.3f ms a token of a prefill\n", samples_median(&b->rest));
    if (svg && !v4_plot_write(&plot, svg)) {
        fprintf(stderr, "cannot write '%s'\n", svg);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    struct bench *b = calloc(1, sizeof *b);
    if (!b)
        return 1;
    b->run = bench_run(argc > 1 && *argv[1] ? argv[1] : NULL,
                       argc > 3 && atoi(argv[3]) > 0 ? atoi(argv[3]) : pool_default_threads());
    b->n_rounds = argc > 2 && atoi(argv[2]) > 0 ? (size_t)atoi(argv[2]) : 9;
    printf("%s, %d threads, %.1f GFLOP/s and %.1f GB/s at most\n", b->run.kernels->name, pool_threads(b->run.pool),
           bench_fma_peak(&b->run) * 1e-9, bench_read_peak(&b->run) * 1e-9);
    make_model(b);
    bench_decode(b);
    bench_products(b);
    bench_shortcut(b, argc > 4 ? argv[4] : NULL);
    return 0;
}
