/* bench_matvec [ISA [ROUNDS [THREADS]]]: what a decode step does with weights: linear of one row over more than a gigabyte
 * of matrices, for each weight dtype, and layers of experts of which each step chooses others. Each round also reads the
 * same gigabyte in a plain loop; the share is of that, in the same round. */
#include <string.h>

#include "bench.h"

#define DIM 1280
#define HIDDEN 896
#define SET_BYTES ((size_t)1200 << 20)
#define MAX_MATRICES 2000
#define N_LAYERS 8
#define N_EXPERTS 40
#define TOP_K 6

/* A bit pattern that is a small normal number in every dtype, with some variety. */
static void *make_bytes(struct run *run, size_t bytes)
{
    uint32_t *p = run_scratch(run, bytes / 4 + 1, 4);
    bench_check(run->err.status, &run->err);
    for (size_t i = 0; i <= bytes / 4; i++)
        p[i] = 0x2c102c10u + (uint32_t)(i * 2654435761u >> 29 & 7) * 0x00080008u;
    return p;
}

#define READ_BYTES ((size_t)1 << 20) /* a task */

static void read_task(void *ctx, size_t task, int thread)
{
    (void)thread;
    const uint64_t *p = (const uint64_t *)((const char *)ctx + task * READ_BYTES);
    uint64_t acc[8] = {0};
    for (size_t i = 0; i < READ_BYTES / 8; i += 8) {
        __builtin_prefetch(p + i + 512);
        for (size_t j = 0; j < 8; j++)
            acc[j] ^= p[i + j];
    }
    for (size_t j = 1; j < 8; j++)
        acc[0] ^= acc[j];
    __asm__ volatile("" : : "r"(acc[0])); /* the sum is needed */
}

/* Bytes a second. */
static double read_rate(const struct run *run, void *p, size_t bytes)
{
    double start = clock_ms();
    pool_run(run->pool, bytes / READ_BYTES, read_task, p);
    return (double)(bytes / READ_BYTES * READ_BYTES) / (clock_ms() - start) * 1e3;
}

static void report(const char *name, const struct run *run, const struct samples *rate, const struct samples *share)
{
    printf("%2d threads  %-12s %6.2f GB/s +-%2.0f %%  %.2f of the read bandwidth\n", pool_threads(run->pool), name,
           samples_median(rate), samples_spread(rate), samples_median(share));
    fflush(stdout);
}

static void bench_dtype(struct run *run, enum dtype dtype, size_t n_rounds)
{
    struct arena_mark mark = arena_save(run->arena);
    size_t bytes = dtype_bytes(dtype, (size_t)DIM * DIM), n = SET_BYTES / bytes;
    struct tensor x = bench_matrix(run, 1, DIM, 1.0f, 1), y = run_alloc(run, 1, DIM), w[MAX_MATRICES];
    struct samples rate = {0}, share = {0};
    char *set = make_bytes(run, n * bytes);
    size_t scale_dims[2];
    scale_shape(dtype, DIM, DIM, scale_dims);
    uint8_t *scales = run_scratch(run, scale_dims[0], scale_dims[1]); /* the same for all: a sixteenth at most */
    bench_check(run->err.status, &run->err);
    memset(scales, 120, scale_dims[0] * scale_dims[1]);
    for (size_t i = 0; i < n && i < MAX_MATRICES; i++) {
        w[i] = tensor_2d(dtype, set + i * bytes, DIM, DIM);
        w[i].scales = scales;
        w[i].scale_stride = scale_dims[1];
    }
    for (size_t r = 0; r < n_rounds; r++) {
        double peak = read_rate(run, set, n * bytes), start = clock_ms();
        for (size_t i = 0; i < n; i++)
            linear(run, &y, &x, &w[i], NULL);
        double bytes_s = (double)(n * bytes) / (clock_ms() - start) * 1e3;
        bench_check(run->err.status, &run->err);
        samples_add(&rate, bytes_s * 1e-9);
        samples_add(&share, bytes_s / peak);
    }
    report(dtype_name(dtype), run, &rate, &share);
    arena_restore(run->arena, mark);
}

static struct mlp_weights make_mlp(struct run *run, size_t hidden)
{
    size_t bytes = dtype_bytes(DTYPE_BF16, hidden * DIM);
    char *p = make_bytes(run, 3 * bytes);
    return (struct mlp_weights){tensor_2d(DTYPE_BF16, p, hidden, DIM), tensor_2d(DTYPE_BF16, p + bytes, hidden, DIM),
                                tensor_2d(DTYPE_BF16, p + 2 * bytes, DIM, hidden)};
}

static void bench_experts(struct run *run, size_t n_rounds)
{
    static struct mlp_weights experts[N_LAYERS][N_EXPERTS];
    struct moe_weights layers[N_LAYERS];
    struct arena_mark mark = arena_save(run->arena);
    struct tensor y = run_alloc(run, 1, DIM);
    struct samples rate = {0}, share = {0};
    void *set = make_bytes(run, SET_BYTES);
    for (size_t l = 0; l < N_LAYERS; l++) {
        layers[l] = (struct moe_weights){.router = bench_matrix(run, N_EXPERTS, DIM, 0.1f, l),
                                         .experts = experts[l],
                                         .shared = make_mlp(run, 2 * HIDDEN),
                                         .n_experts = N_EXPERTS,
                                         .top_k = TOP_K,
                                         .routed_scale = 1};
        for (size_t e = 0; e < N_EXPERTS; e++)
            experts[l][e] = make_mlp(run, HIDDEN);
    }
    double bytes = (double)N_LAYERS * DIM * (3.0 * (TOP_K + 2) * HIDDEN * 2 + N_EXPERTS * 4);
    for (size_t r = 0; r < n_rounds; r++) {
        const size_t n_steps = 3;
        double peak = read_rate(run, set, SET_BYTES), seconds = 0;
        for (size_t step = 0; step < n_steps; step++) {
            struct arena_mark input = arena_save(run->arena);
            struct tensor x = bench_matrix(run, 1, DIM, 1.0f, r * n_steps + step); /* other experts every time */
            double start = clock_ms();
            for (size_t l = 0; l < N_LAYERS; l++)
                moe(run, &y, &x, &layers[l]);
            seconds += (clock_ms() - start) * 1e-3;
            arena_restore(run->arena, input);
        }
        bench_check(run->err.status, &run->err);
        samples_add(&rate, bytes * n_steps / seconds * 1e-9);
        samples_add(&share, bytes * n_steps / seconds / peak);
    }
    report("bf16 experts", run, &rate, &share);
    arena_restore(run->arena, mark);
}

int main(int argc, char **argv)
{
    static const enum dtype dtypes[] = {DTYPE_BF16, DTYPE_F32, DTYPE_F16, DTYPE_Q8_0, DTYPE_F8_E4M3, DTYPE_F4_E2M1};
    size_t n_rounds = argc > 2 ? (size_t)atoi(argv[2]) : 11;
    int all = pool_default_threads(), only = argc > 3 ? atoi(argv[3]) : 0;
    for (int n_threads = 1; n_threads <= all; n_threads = n_threads == all ? all + 1 : all) {
        if (only && only != n_threads)
            continue;
        struct run run = bench_run(argc > 1 ? argv[1] : NULL, n_threads);
        printf("%s, %d threads, best read bandwidth %.1f GB/s\n", run.kernels->name, n_threads,
               bench_read_peak(&run) * 1e-9);
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
            bench_dtype(&run, dtypes[d], n_rounds);
        bench_experts(&run, n_rounds);
        pool_destroy(run.pool);
        arena_release(run.arena);
        free(run.arena);
    }
    return 0;
}
