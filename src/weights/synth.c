#include "weights/synth.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/half.h"

#define GOLDEN_RATIO 0x9E3779B97F4A7C15u
#define TASK_ELEMENTS ((size_t)1 << 16)

enum format { FORMAT_F32, FORMAT_F32_ROUNDED, FORMAT_BF16 };

struct job {
    void *dst;
    enum format format;
    uint64_t state; /* z of the element before the first */
    size_t n;
    float center, amp;
};

static uint64_t fnv1a64(const char *name)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 0x100000001b3u;
    return h;
}

static inline uint32_t top24(uint64_t z)
{
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (uint32_t)((z ^ z >> 31) >> 40);
}

float synth_raw(const char *name, uint64_t i)
{
    return (float)top24(fnv1a64(name) + (i + 1) * GOLDEN_RATIO) * 0x1p-24f;
}

/* 24 bits fit an int32, which the vector units convert directly. A centre of 0 adds nothing: no product is -0. */
static inline float value(uint64_t z, float center, float amp)
{
    float v = (float)(int32_t)top24(z) * 0x1p-23f - 1.0f;
    return center + amp * v;
}

/* Plain loops for the compiler to vectorise; values are never NaN, so the rounding needs no test for it. */
static inline __attribute__((always_inline)) void fill(const struct job *job, size_t first, size_t n)
{
    uint64_t z = job->state + first * GOLDEN_RATIO;
    float center = job->center, amp = job->amp;
    if (job->format == FORMAT_BF16) {
        uint16_t *dst = (uint16_t *)job->dst + first;
        for (size_t i = 0; i < n; i++) {
            uint32_t u = f32_bits(value(z + (i + 1) * GOLDEN_RATIO, center, amp));
            dst[i] = (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
        }
        return;
    }
    float *dst = (float *)job->dst + first;
    for (size_t i = 0; i < n; i++)
        dst[i] = value(z + (i + 1) * GOLDEN_RATIO, center, amp);
    if (job->format == FORMAT_F32_ROUNDED)
        for (size_t i = 0; i < n; i++)
            dst[i] = bf16_round(dst[i]);
}

static void fill_any(const struct job *job, size_t first, size_t n) { fill(job, first, n); }

#ifdef __x86_64__
__attribute__((target("avx2"))) static void fill_avx2(const struct job *job, size_t first, size_t n)
{
    fill(job, first, n);
}

__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl"))) static void fill_avx512(const struct job *job,
                                                                                      size_t first, size_t n)
{
    fill(job, first, n);
}
#endif

static void run_task(void *ctx, size_t task, int thread)
{
    (void)thread;
    const struct job *job = ctx;
    size_t first = task * TASK_ELEMENTS, left = job->n - first;
    size_t n = left < TASK_ELEMENTS ? left : TASK_ELEMENTS;
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl")) {
        fill_avx512(job, first, n);
        return;
    }
    if (__builtin_cpu_supports("avx2")) {
        fill_avx2(job, first, n);
        return;
    }
#endif
    fill_any(job, first, n);
}

static void run_job(struct job *job, const char *name, uint64_t first, struct pool *pool)
{
    job->state = fnv1a64(name) + first * GOLDEN_RATIO;
    size_t n_tasks = (job->n + TASK_ELEMENTS - 1) / TASK_ELEMENTS;
    if (pool && n_tasks > 1) {
        pool_run(pool, n_tasks, run_task, job);
        return;
    }
    for (size_t task = 0; task < n_tasks; task++)
        run_task(job, task, 0);
}

void synth_fill_f32(float *dst, const char *name, uint64_t first, size_t n, float center, float amp, struct pool *pool)
{
    struct job job = {.dst = dst, .format = FORMAT_F32, .n = n, .center = center, .amp = amp};
    run_job(&job, name, first, pool);
}

void synth_fill_f32_rounded(float *dst, const char *name, uint64_t first, size_t n, float center, float amp,
                            struct pool *pool)
{
    struct job job = {.dst = dst, .format = FORMAT_F32_ROUNDED, .n = n, .center = center, .amp = amp};
    run_job(&job, name, first, pool);
}

void synth_fill_bf16(uint16_t *dst, const char *name, uint64_t first, size_t n, float center, float amp,
                     struct pool *pool)
{
    struct job job = {.dst = dst, .format = FORMAT_BF16, .n = n, .center = center, .amp = amp};
    run_job(&job, name, first, pool);
}

static bool has(const char *name, const char *part) { return strstr(name, part) != NULL; }

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && !memcmp(name + n - m, end, m);
}

struct synth_range synth_rule(const char *name, int n_dims, const size_t *shape)
{
    const char *dot = strrchr(name, '.'), *leaf = dot ? dot + 1 : name;
    bool is_norm = strcasestr(name, "norm") || has(name, ".neck.1.") || has(name, ".neck.3.");
    if (is_norm && !strcmp(leaf, "weight"))
        return (struct synth_range){1.0f, 0.25f};
    if (!strcmp(leaf, "bias"))
        return (struct synth_range){0.0f, 0.125f};
    if (!strcmp(leaf, "rel_pos_h") || !strcmp(leaf, "rel_pos_w"))
        return (struct synth_range){0.0f, 0.25f};
    if (!strcmp(leaf, "pos_embed") || has(name, "position_embedding") || !strcmp(leaf, "class_embedding"))
        return (struct synth_range){0.0f, 0.5f};
    if (has(name, "query_") || has(name, "embed_tokens") || !strcmp(leaf, "image_newline") ||
        !strcmp(leaf, "view_seperator"))
        return (struct synth_range){0.0f, 1.0f};
    double fan_in = n_dims > 1 ? 1.0 : (double)shape[0];
    for (int d = 1; d < n_dims; d++)
        fan_in *= (double)shape[d];
    double gain = ends_with(name, "mlp.gate.weight") ? 2.0 : !strcmp(name, "lm_head.weight") ? 4.0 : 1.0;
    return (struct synth_range){0.0f, (float)(gain * sqrt(3.0 / fan_in))};
}
