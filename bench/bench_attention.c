/* bench_attention [ISA [ROUNDS [NAME]]]: the attentions at the models' real shapes, with 1 and with all threads; all
 * cases, or those whose name holds NAME.
 *
 * Prefill is held against the FMA peak, with 4 d flops for every query and visible key (the relative-position factors
 * and the softmax are not counted, so they cost share); decode against the read bandwidth. Each case is checked in
 * double precision on some rows before it is timed. */
#include <math.h>
#include <string.h>

#include "bench.h"

struct bench {
    const char *name;
    double (*work)(const struct bench *b); /* flops, or bytes when by_bytes */
    void (*make)(struct bench *b, struct run *run);
    void (*step)(struct bench *b, struct run *run, size_t round);
    double (*row_error)(const struct bench *b, size_t row, size_t head);
    bool by_bytes;
    size_t n, n_heads, n_kv_heads, d;            /* rows; heads            */
    size_t side, window;                         /* relpos                 */
    size_t prefix, pos, n_layers;                /* prefix; causal: caches */
    struct tensor q, k, v, y, pad, rel_h, rel_w; /* q: also qkv */
    struct kv_layer *kv;
    struct samples share, rate;
};

/* One query against keys and values given by functions of the key, softmax in double precision: the largest deviation
 * of the row that was computed. */
struct key_set {
    const struct bench *b;
    size_t row, head, n_keys;
    double (*score)(const struct key_set *s, size_t key);
    const float *(*value)(const struct key_set *s, size_t key);
};

static double softmax_error(const struct key_set *s, const float *got)
{
    double *p = malloc(s->n_keys * sizeof *p), max = -INFINITY, sum = 0, worst = 0;
    if (!p)
        return INFINITY;
    for (size_t k = 0; k < s->n_keys; k++) {
        p[k] = s->score(s, k);
        max = fmax(max, p[k]);
    }
    for (size_t k = 0; k < s->n_keys; k++)
        sum += p[k] = exp(p[k] - max);
    for (size_t j = 0; j < s->b->d; j++) {
        double x = 0;
        for (size_t k = 0; k < s->n_keys; k++)
            x += p[k] * s->value(s, k)[j];
        worst = fmax(worst, fabs(x / sum - got[j]));
    }
    free(p);
    return worst;
}

static double dot(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * b[i];
    return sum;
}

static const float *at(const struct tensor *t, size_t row, size_t col)
{
    return (const float *)tensor_row(t, row) + col;
}

/* ---- relative positions --------------------------------------------------------------------------------------- */

static size_t key_side(const struct bench *b) { return b->window ? b->window : b->side; }

static const float *relpos_token(const struct key_set *s, size_t key, size_t part)
{
    const struct bench *b = s->b;
    size_t n = key_side(b), c = (part * b->n_heads + s->head) * b->d;
    size_t y = s->row / b->side / n * n + key / n, x = s->row % b->side / n * n + key % n;
    return y < b->side && x < b->side ? at(&b->q, y * b->side + x, c) : at(&b->pad, 0, c);
}

static const float *relpos_value(const struct key_set *s, size_t key) { return relpos_token(s, key, 2); }

static double relpos_score(const struct key_set *s, size_t key)
{
    const struct bench *b = s->b;
    size_t n = key_side(b), qy = s->row / b->side % n, qx = s->row % b->side % n;
    const float *q = at(&b->q, s->row, s->head * b->d);
    return dot(q, relpos_token(s, key, 1), b->d) / sqrt((double)b->d) +
           dot(q, at(&b->rel_h, qy + n - 1 - key / n, 0), b->d) + dot(q, at(&b->rel_w, qx + n - 1 - key % n, 0), b->d);
}

static double relpos_error(const struct bench *b, size_t row, size_t head)
{
    struct key_set s = {b, row, head, key_side(b) * key_side(b), relpos_score, relpos_value};
    return softmax_error(&s, at(&b->y, row, head * b->d));
}

static double relpos_flops(const struct bench *b)
{
    return 4.0 * (double)(b->n * key_side(b) * key_side(b) * b->n_heads * b->d);
}

static void relpos_make(struct bench *b, struct run *run)
{
    size_t c = b->n_heads * b->d;
    b->n = b->side * b->side;
    b->q = bench_matrix(run, b->n, 3 * c, 1.5f, 1);
    b->y = bench_matrix(run, b->n, c, 0, 1);
    b->pad = bench_matrix(run, 1, 3 * c, 1.5f, 2);
    b->rel_h = bench_matrix(run, 2 * key_side(b) - 1, b->d, 0.25f, 3);
    b->rel_w = bench_matrix(run, 2 * key_side(b) - 1, b->d, 0.25f, 4);
}

static void relpos_step(struct bench *b, struct run *run, size_t round)
{
    struct tensor pad = tensor_1d(DTYPE_F32, b->pad.data, b->pad.shape[1]);
    (void)round;
    attention_relpos(run, &b->y, &b->q, &pad, &b->rel_h, &b->rel_w,
                     (struct relpos_shape){1, b->side, b->side, b->n_heads, b->window});
}

/* ---- prefix and causal ---------------------------------------------------------------------------------------- */

static size_t visible(const struct bench *b, size_t row)
{
    size_t own = b->pos + row + 1;
    return own > b->prefix ? own : b->prefix;
}

/* Of a decode step only the last rows are fed; keys and values of all positions are kept to check it. */
static const float *masked_value(const struct key_set *s, size_t key)
{
    return at(&s->b->v, key, s->head / (s->b->n_heads / s->b->n_kv_heads) * s->b->d);
}

static double masked_score(const struct key_set *s, size_t key)
{
    const struct bench *b = s->b;
    const float *k = at(&b->k, key, s->head / (b->n_heads / b->n_kv_heads) * b->d);
    return dot(at(&b->q, b->pos + s->row, s->head * b->d), k, b->d) / sqrt((double)b->d);
}

static double masked_error(const struct bench *b, size_t row, size_t head)
{
    struct key_set s = {b, row, head, visible(b, row), masked_score, masked_value};
    return softmax_error(&s, at(&b->y, b->pos + row, head * b->d));
}

static double masked_flops(const struct bench *b)
{
    double keys = 0;
    for (size_t row = 0; row < b->n; row++)
        keys += (double)visible(b, row);
    return 4.0 * keys * (double)(b->n_heads * b->d);
}

static double cache_bytes(const struct bench *b)
{
    return 2.0 * sizeof(float) * (double)((b->pos + b->n) * b->n_kv_heads * b->d);
}

static void masked_make(struct bench *b, struct run *run)
{
    size_t rows = b->pos + b->n, capacity = (rows + ATTENTION_TILE - 1) / ATTENTION_TILE * ATTENTION_TILE;
    b->q = bench_matrix(run, rows, b->n_heads * b->d, 1.5f, 1);
    b->k = bench_matrix(run, rows, b->n_kv_heads * b->d, 1.5f, 2);
    b->v = bench_matrix(run, rows, b->n_kv_heads * b->d, 1.0f, 3);
    b->y = bench_matrix(run, rows, b->n_heads * b->d, 0, 3);
    b->kv = run_scratch(run, b->n_layers, sizeof *b->kv);
    for (size_t l = 0; l < b->n_layers; l++) {
        size_t n = b->n_kv_heads * capacity * b->d;
        b->kv[l] = (struct kv_layer){run_scratch(run, n, sizeof(float)), run_scratch(run, n, sizeof(float)),
                                     b->n_kv_heads, b->d, capacity};
        struct tensor q = tensor_rows(&b->q, 0, b->pos), k = tensor_rows(&b->k, 0, b->pos);
        struct tensor v = tensor_rows(&b->v, 0, b->pos), y = tensor_rows(&b->y, 0, b->pos);
        if (b->pos)
            attention_causal(run, &y, &q, &k, &v, &b->kv[l], b->n_heads, 0);
    }
}

static void prefix_step(struct bench *b, struct run *run, size_t round)
{
    (void)round;
    attention_prefix(run, &b->y, &b->q, &b->k, &b->v, b->n_heads, b->n_kv_heads, 1, b->prefix);
}

static void causal_step(struct bench *b, struct run *run, size_t round)
{
    struct tensor q = tensor_rows(&b->q, b->pos, b->n), k = tensor_rows(&b->k, b->pos, b->n);
    struct tensor v = tensor_rows(&b->v, b->pos, b->n), y = tensor_rows(&b->y, b->pos, b->n);
    attention_causal(run, &y, &q, &k, &v, &b->kv[round % b->n_layers], b->n_heads, b->pos);
}

/* ---------------------------------------------------------------------------------------------------------------- */

#define RELPOS .work = relpos_flops, .make = relpos_make, .step = relpos_step, .row_error = relpos_error
#define PREFIX .work = masked_flops, .make = masked_make, .step = prefix_step, .row_error = masked_error
#define CAUSAL .make = masked_make, .step = causal_step, .row_error = masked_error

static struct bench benches[] = {
    {"relpos global 64x64", RELPOS, .side = 64, .n_heads = 12, .d = 64},
    {"relpos global 48x48", RELPOS, .side = 48, .n_heads = 12, .d = 64},
    {"relpos windows 14 of 64x64", RELPOS, .side = 64, .n_heads = 12, .d = 64, .window = 14},
    {"prefix 256 of 512", PREFIX, .n = 512, .n_heads = 14, .n_kv_heads = 2, .d = 64, .prefix = 256},
    {"causal prefill 1131", CAUSAL, .work = masked_flops, .n = 1131, .n_heads = 10, .n_kv_heads = 10, .d = 128,
     .n_layers = 1},
    {"causal decode at 4095", CAUSAL, .work = cache_bytes, .by_bytes = true, .n = 1, .pos = 4095, .n_heads = 10,
     .n_kv_heads = 10, .d = 128, .n_layers = 12},
};
#define N_BENCHES (sizeof benches / sizeof *benches)

static void check(const struct bench *b)
{
    for (size_t i = 0; i < 8; i++) {
        size_t row = b->n * i / 8 + i % b->n, head = i % b->n_heads;
        double error = b->row_error(b, row < b->n ? row : b->n - 1, head);
        if (!(error < 1e-5)) {
            fprintf(stderr, "%s: row %zu head %zu is off by %g\n", b->name, row, head, error);
            exit(1);
        }
    }
}

static void bench_threads(const char *isa, int n_threads, size_t n_rounds, const char *name)
{
    struct run run = bench_run(isa, n_threads);
    struct samples fma = {0}, read = {0};
    for (size_t i = 0; i < N_BENCHES; i++) {
        struct bench *b = &benches[i];
        if (!strstr(b->name, name))
            continue;
        b->share = b->rate = (struct samples){0};
        b->make(b, &run);
        b->step(b, &run, 0);
        bench_check(run.err.status, &run.err);
        check(b);
    }
    for (size_t round = 0; round < n_rounds; round++) {
        double read_peak = bench_read_peak(&run);
        samples_add(&read, read_peak);
        for (size_t i = 0; i < N_BENCHES; i++) {
            struct bench *b = &benches[i];
            if (!strstr(b->name, name))
                continue;
            double peak = b->by_bytes ? read_peak : bench_fma_peak(&run), start = clock_ms();
            size_t n = 0; /* steps in about 100 ms, so that a short one is not measured alone */
            while (n == 0 || clock_ms() - start < 100)
                b->step(b, &run, round + n++);
            double rate = b->work(b) * (double)n / ((clock_ms() - start) * 1e-3);
            samples_add(&b->rate, rate);
            samples_add(&b->share, rate / peak);
            if (!b->by_bytes)
                samples_add(&fma, peak);
        }
    }
    printf("%s, %d thread%s: FMA %.1f GFLOP/s (+-%.1f %%), read %.1f GB/s (+-%.1f %%)\n", run.kernels->name, n_threads,
           n_threads > 1 ? "s" : "", samples_median(&fma) * 1e-9, samples_spread(&fma), samples_median(&read) * 1e-9,
           samples_spread(&read));
    for (size_t i = 0; i < N_BENCHES; i++) {
        const struct bench *b = &benches[i];
        if (!strstr(b->name, name))
            continue;
        printf("  %-28s %7.1f %s (+-%.1f %%)  %.2f of the %s peak\n", b->name, samples_median(&b->rate) * 1e-9,
               b->by_bytes ? "GB/s   " : "GFLOP/s", samples_spread(&b->rate), samples_median(&b->share),
               b->by_bytes ? "read" : "FMA");
    }
    pool_destroy(run.pool);
    arena_release(run.arena);
    free(run.arena);
}

int main(int argc, char **argv)
{
    size_t n_rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 7;
    int n_threads = pool_default_threads();
    if (n_rounds < 1 || n_rounds > BENCH_MAX_ROUNDS) {
        fprintf(stderr, "rounds: 1 to %d\n", BENCH_MAX_ROUNDS);
        return 2;
    }
    const char *isa = argc > 1 ? argv[1] : NULL, *name = argc > 3 ? argv[3] : "";
    bench_threads(isa, 1, n_rounds, name);
    if (n_threads > 1)
        bench_threads(isa, n_threads, n_rounds, name);
    return 0;
}
