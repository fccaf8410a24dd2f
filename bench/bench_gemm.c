/* bench_gemm [ISA [ROUNDS [THREADS]]]: linear at the towers' shapes with f32, bf16 and q8_0 weights, against the FMA peak
 * and, where its library is there, against OpenBLAS on float32, in interleaved rounds; the result is checked first.
 *
 * OpenBLAS picks its kernels by the processor's model number and takes its slowest for models that it does not know, so
 * its choice is made here, for the same instruction set, unless OPENBLAS_CORETYPE is set. Its threads watch for work for
 * a while after a call; each of its calls is followed by a pause so that ours do not share the processors with them. */
#include <dlfcn.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/half.h"
#include "bench.h"

typedef void sgemm_fn(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda,
                      const float *b, int ldb, float beta, float *c, int ldc);

struct blas {
    sgemm_fn *sgemm;
    void (*set_threads)(int);
};

static const struct shape {
    size_t m, k, n;
} shapes[] = {
    {4096, 768, 2304}, {4096, 768, 768}, {4096, 768, 3072}, {4096, 3072, 768}, {1024, 768, 3072},
    {1024, 3072, 768}, {1024, 768, 768}, {512, 896, 896},   {512, 896, 4864},  {512, 4864, 896},
    {256, 1280, 1280}, {100, 1280, 896}, {32, 1280, 1280},  {8, 1280, 1280},
};

static const enum dtype dtypes[] = {DTYPE_F32, DTYPE_BF16, DTYPE_Q8_0};
#define N_DTYPES (sizeof dtypes / sizeof *dtypes)

static struct blas find_blas(const char *isa)
{
    struct blas b = {0};
    setenv("OPENBLAS_CORETYPE", strcmp(isa, "avx512") == 0 ? "SkylakeX" : "Haswell", 0);
    void *library = dlopen("libopenblas.so.0", RTLD_NOW);
    if (library) {
        *(void **)&b.sgemm = dlsym(library, "cblas_sgemm");
        *(void **)&b.set_threads = dlsym(library, "openblas_set_num_threads");
    }
    if (!b.sgemm || !b.set_threads)
        b = (struct blas){0};
    return b;
}

/* Weights of any dtype with values that all of them can hold. */
static struct tensor make_weights(struct run *run, enum dtype dtype, size_t n, size_t k)
{
    struct tensor w = tensor_2d(dtype, run_scratch(run, dtype_bytes(dtype, n * k), 1), n, k);
    bench_check(run->err.status, &run->err);
    for (size_t i = 0; i < n * k; i++) {
        int q = (int)(i * 2654435761u >> 8 & 0x7f) - 64;
        float value = (float)q * 0x1p-7f;
        uint16_t scale = f16_from_f32(0x1p-7f);
        uint8_t *block = (uint8_t *)w.data + i / Q8_0_BLOCK * Q8_0_BLOCK_BYTES;
        switch (dtype) {
        case DTYPE_F32: ((float *)w.data)[i] = value; break;
        case DTYPE_BF16: ((uint16_t *)w.data)[i] = bf16_from_f32(value); break;
        default: memcpy(block, &scale, sizeof scale); block[2 + i % Q8_0_BLOCK] = (uint8_t)q;
        }
    }
    return w;
}

static void check(const struct tensor *y, const struct tensor *x, const struct tensor *w)
{
    for (size_t i = 0; i < 50; i++) {
        size_t row = i * 7919 % y->shape[0], col = i * 104729 % y->shape[1];
        const float *a = tensor_row(x, row), *b = tensor_row(w, col);
        double sum = 0, magnitude = 0;
        for (size_t k = 0; k < x->shape[1]; k++) {
            sum += (double)a[k] * (double)b[k];
            magnitude += fabs((double)a[k] * (double)b[k]);
        }
        if (!(fabs(sum - (double)((float *)tensor_row(y, row))[col]) <= 1e-5 * magnitude)) {
            fprintf(stderr, "wrong result at row %zu, column %zu\n", row, col);
            exit(1);
        }
    }
}

/* Each rate is taken over some 15 ms after a call that wakes the threads, as in a tower, where they have no time to sleep. */
#define TIMED_MS 15

static double flops(const struct tensor *y, const struct tensor *x)
{
    return 2.0 * (double)x->shape[0] * (double)x->shape[1] * (double)y->shape[1];
}

static double run_linear(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w)
{
    size_t n = 0;
    linear(run, y, x, w, NULL);
    double start = clock_ms();
    for (; n == 0 || clock_ms() - start < TIMED_MS; n++)
        linear(run, y, x, w, NULL);
    bench_check(run->err.status, &run->err);
    return flops(y, x) * (double)n / (clock_ms() - start) * 1e3;
}

static void call_blas(const struct blas *blas, struct tensor *y, const struct tensor *x, const struct tensor *w)
{
    enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };
    int m = (int)x->shape[0], k = (int)x->shape[1], n = (int)y->shape[1];
    blas->sgemm(ROW_MAJOR, PLAIN, TRANSPOSED, m, n, k, 1.0f, x->data, k, w->data, k, 0.0f, y->data, n);
}

static double run_blas(const struct blas *blas, struct tensor *y, const struct tensor *x, const struct tensor *w)
{
    size_t n = 0;
    call_blas(blas, y, x, w);
    double start = clock_ms();
    for (; n == 0 || clock_ms() - start < TIMED_MS; n++)
        call_blas(blas, y, x, w);
    double rate = flops(y, x) * (double)n / (clock_ms() - start) * 1e3;
    nanosleep(&(struct timespec){.tv_nsec = 40000000}, NULL);
    return rate;
}

static void bench_shape(struct run *run, const struct blas *blas, const struct shape *s, size_t n_rounds)
{
    struct arena_mark mark = arena_save(run->arena);
    struct tensor x = bench_matrix(run, s->m, s->k, 1.0f, 1), y = run_alloc(run, s->m, s->n), w[N_DTYPES];
    struct samples rate[N_DTYPES] = {0}, share[N_DTYPES] = {0}, blas_rate = {0}, ratio = {0};
    bench_check(run->err.status, &run->err);
    for (size_t d = 0; d < N_DTYPES; d++) {
        w[d] = make_weights(run, dtypes[d], s->n, s->k);
        run_linear(run, &y, &x, &w[d]);
        check(&y, &x, &w[0]);
    }
    for (size_t r = 0; r < n_rounds; r++) {
        double peak = bench_fma_peak(run), theirs = blas->sgemm ? run_blas(blas, &y, &x, &w[0]) : 0;
        for (size_t d = 0; d < N_DTYPES; d++) {
            double ours = run_linear(run, &y, &x, &w[d]);
            samples_add(&rate[d], ours * 1e-9);
            samples_add(&share[d], ours / peak);
            if (d == 0 && theirs > 0) {
                samples_add(&ratio, ours / theirs);
                samples_add(&blas_rate, theirs * 1e-9);
            }
        }
    }
    printf("%2d %5zu %5zu %5zu ", pool_threads(run->pool), s->m, s->k, s->n);
    for (size_t d = 0; d < N_DTYPES; d++)
        printf("  %-4s %6.1f +-%2.0f %% %.2f", dtype_name(dtypes[d]), samples_median(&rate[d]),
               samples_spread(&rate[d]), samples_median(&share[d]));
    if (ratio.n)
        printf("  OpenBLAS %6.1f +-%2.0f %%, ours/theirs %.2f", samples_median(&blas_rate), samples_spread(&blas_rate),
               samples_median(&ratio));
    printf("\n");
    fflush(stdout);
    arena_restore(run->arena, mark);
}

int main(int argc, char **argv)
{
    size_t n_rounds = argc > 2 ? (size_t)atoi(argv[2]) : 15;
    int all = pool_default_threads(), only = argc > 3 ? atoi(argv[3]) : 0;
    struct blas blas = {0};
    for (int n_threads = 1; n_threads <= all; n_threads = n_threads == all ? all + 1 : all) {
        if (only && only != n_threads)
            continue;
        struct run run = bench_run(argc > 1 ? argv[1] : NULL, n_threads);
        if (!blas.sgemm)
            blas = find_blas(run.kernels->name);
        if (blas.sgemm)
            blas.set_threads(n_threads);
        printf("%s, %d threads, FMA peak %.0f GFLOP/s; threads, M, K, N; GFLOP/s, spread, share of the peak\n",
               run.kernels->name, n_threads, bench_fma_peak(&run) * 1e-9);
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            bench_shape(&run, &blas, &shapes[i], n_rounds);
        pool_destroy(run.pool);
        arena_release(run.arena);
        free(run.arena);
    }
    return 0;
}
