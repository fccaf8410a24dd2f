/* The GPU's attention kernels against float64 on the host. Needs a GPU of compute capability 8.0 or later.
 *     test_attention [quick]      quick: small shapes only, for compute-sanitizer
 * Inputs are drawn afresh for every case; outputs start as NaN between canaries. Large cases compare a sample of
 * rows with float64 and all rows of the best kernel with the general one. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

#include "kernel/cuda/attention.h"

static int n_checks, n_failures;
static uint64_t random_state = 0x853c49e6748fea9bull;

#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        n_checks++;                                                                                                    \
        if (!(condition)) {                                                                                            \
            n_failures++;                                                                                              \
            printf("FAILED %s:%d: ", __FILE__, __LINE__);                                                              \
            printf(__VA_ARGS__);                                                                                       \
            printf("\n");                                                                                              \
        }                                                                                                              \
    } while (0)

static void cuda_ok(cudaError_t error, const char *what)
{
    if (error) {
        printf("%s: %s\n", what, cudaGetErrorString(error));
        exit(2);
    }
}
#define CUDA(call) cuda_ok(call, #call)

static uint64_t random_u64(void)
{
    uint64_t z = (random_state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static float random_normal(void)
{
    double u = ((double)(random_u64() >> 11) + 1) / 9007199254740993.0,
           v = (double)(random_u64() >> 11) / 9007199254740992.0;
    return (float)(sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
}

static uint16_t to_16(enum dtype dtype, float x)
{
    uint16_t bits;
    __nv_bfloat16 b = __float2bfloat16(x);
    __half h = __float2half(x);
    memcpy(&bits, dtype == DTYPE_BF16 ? (void *)&b : (void *)&h, 2);
    return bits;
}

static double from_16(enum dtype dtype, uint16_t bits)
{
    return dtype == DTYPE_BF16 ? __bfloat162float(__nv_bfloat16_raw{bits}) : __half2float(__half_raw{bits});
}

/* A matrix on the host and the device, with canaries on both sides there. */
struct matrix {
    enum dtype dtype;
    size_t rows, cols, stride;
    std::vector<uint16_t> host;
    uint16_t *allocation;

    static const size_t GUARD = 64;
    static const uint16_t CANARY = 0x5a5a, POISON = 0xffff; /* a NaN in both types */

    matrix(enum dtype dtype, size_t rows, size_t cols, size_t stride = 0)
        : dtype(dtype), rows(rows), cols(cols), stride(stride ? stride : cols), host(rows * this->stride, POISON)
    {
        CUDA(cudaMalloc(&allocation, (host.size() + 2 * GUARD) * 2));
        std::vector<uint16_t> canary(GUARD, CANARY);
        CUDA(cudaMemcpy(allocation, canary.data(), GUARD * 2, cudaMemcpyHostToDevice));
        CUDA(cudaMemcpy(data() + host.size(), canary.data(), GUARD * 2, cudaMemcpyHostToDevice));
        upload();
    }
    matrix(const matrix &) = delete;
    ~matrix() { cudaFree(allocation); }

    uint16_t *data() { return allocation + GUARD; }
    void upload() { CUDA(cudaMemcpy(data(), host.data(), host.size() * 2, cudaMemcpyHostToDevice)); }
    void download() { CUDA(cudaMemcpy(host.data(), data(), host.size() * 2, cudaMemcpyDeviceToHost)); }
    void poison()
    {
        host.assign(host.size(), POISON);
        upload();
    }
    void fill(float amplitude)
    {
        for (uint16_t &x : host)
            x = to_16(dtype, amplitude * random_normal());
        upload();
    }
    double at(size_t row, size_t col) const { return from_16(dtype, host[row * stride + col]); }
    struct tensor tensor()
    {
        struct tensor t = {};
        t.dtype = dtype;
        t.n_dims = 2;
        t.shape[0] = rows;
        t.shape[1] = cols;
        t.stride[0] = stride;
        t.stride[1] = 1;
        t.data = data();
        return t;
    }
    bool canaries_live()
    {
        uint16_t guard[2][GUARD];
        CUDA(cudaMemcpy(guard[0], allocation, GUARD * 2, cudaMemcpyDeviceToHost));
        CUDA(cudaMemcpy(guard[1], data() + host.size(), GUARD * 2, cudaMemcpyDeviceToHost));
        for (size_t i = 0; i < 2 * GUARD; i++)
            if (guard[i / GUARD][i % GUARD] != CANARY)
                return false;
        return true;
    }
    size_t count_nan() const
    {
        size_t n = 0;
        for (size_t r = 0; r < rows; r++)
            for (size_t c = 0; c < cols; c++)
                n += isnan(at(r, c));
        return n;
    }
};

/* ||a - b|| / ||b|| over all elements. */
static double distance(const matrix &a, const matrix &b)
{
    double d = 0, n = 0;
    for (size_t r = 0; r < a.rows; r++)
        for (size_t c = 0; c < a.cols; c++) {
            double x = a.at(r, c), y = b.at(r, c);
            d += (x - y) * (x - y);
            n += y * y;
        }
    return sqrt(d / n);
}

/* Rounding of the weights and of the result; measured 1.9e-3 and 2.5e-4. */
static double tolerance(enum dtype dtype)
{
    return dtype == DTYPE_BF16 ? 3e-3 : 5e-4;
}

static const char *level_name(enum cuda_level level)
{
    return level == CUDA_LEVEL_BEST ? "best" : "general";
}

/* ---- attention_relpos ------------------------------------------------------------------------------------------- */

struct relpos_case {
    enum dtype dtype;
    struct relpos_shape shape;
    size_t d;
    float amplitude; /* of q and k */
};

struct relpos_data {
    size_t n, width, kh, kw;
    bool pads;
    matrix qkv, pad, rel_h, rel_w, y;

    relpos_data(const relpos_case &c)
        : n(c.shape.n_views * c.shape.gh * c.shape.gw), width(c.shape.n_heads * c.d),
          kh(c.shape.window ? c.shape.window : c.shape.gh), kw(c.shape.window ? c.shape.window : c.shape.gw),
          pads(c.shape.gh % kh || c.shape.gw % kw), qkv(c.dtype, n, 3 * width), pad(c.dtype, 1, 3 * width),
          rel_h(c.dtype, 2 * kh - 1, c.d), rel_w(c.dtype, 2 * kw - 1, c.d), y(c.dtype, n, width)
    {
        qkv.fill(c.amplitude);
        pad.fill(1);
        rel_h.fill(0.2f);
        rel_w.fill(0.2f);
    }
};

static enum fathom_status run_relpos(relpos_data &data, struct relpos_shape shape, enum cuda_level level,
                                     cudaStream_t stream, struct fathom_err *err)
{
    struct tensor y = data.y.tensor(), qkv = data.qkv.tensor(), pad = data.pad.tensor(), h = data.rel_h.tensor(),
                  w = data.rel_w.tensor();
    return cuda_attention_relpos(&y, &qkv, data.pads ? &pad : NULL, &h, &w, shape, level, stream, err);
}

/* One row of one head in float64. */
static void relpos_row(const relpos_case &c, const relpos_data &data, size_t view, size_t py, size_t px, size_t head,
                       std::vector<double> &out)
{
    const size_t d = c.d, kh = data.kh, kw = data.kw, y0 = py / kh * kh, x0 = px / kw * kw, qy = py - y0, qx = px - x0;
    auto value = [&](int part, size_t y, size_t x, size_t i) {
        size_t column = (part * c.shape.n_heads + head) * d + i;
        if (y >= c.shape.gh || x >= c.shape.gw)
            return data.pad.at(0, column);
        return data.qkv.at((view * c.shape.gh + y) * c.shape.gw + x, column);
    };
    std::vector<double> q(d), s(kh * kw), bias_h(kh, 0.0), bias_w(kw, 0.0);
    for (size_t i = 0; i < d; i++)
        q[i] = value(0, py, px, i);
    for (size_t k = 0; k < kh; k++)
        for (size_t i = 0; i < d; i++)
            bias_h[k] += q[i] * data.rel_h.at(qy - k + kh - 1, i);
    for (size_t k = 0; k < kw; k++)
        for (size_t i = 0; i < d; i++)
            bias_w[k] += q[i] * data.rel_w.at(qx - k + kw - 1, i);
    double top = -INFINITY, sum = 0;
    for (size_t k = 0; k < kh * kw; k++) {
        double dot = 0;
        for (size_t i = 0; i < d; i++)
            dot += q[i] * value(1, y0 + k / kw, x0 + k % kw, i);
        s[k] = dot / sqrt((double)d) + bias_h[k / kw] + bias_w[k % kw];
        top = fmax(top, s[k]);
    }
    out.assign(d, 0.0);
    for (size_t k = 0; k < kh * kw; k++) {
        double p = exp(s[k] - top);
        sum += p;
        for (size_t i = 0; i < d; i++)
            out[i] += p * value(2, y0 + k / kw, x0 + k % kw, i);
    }
    for (size_t i = 0; i < d; i++)
        out[i] /= sum;
}

static void test_relpos(const relpos_case &c)
{
    char name[160];
    snprintf(name, sizeof name, "relpos %s %zu x %zux%zu window %zu, %zu heads of %zu, amplitude %g",
             c.dtype == DTYPE_BF16 ? "bf16" : "f16", c.shape.n_views, c.shape.gh, c.shape.gw, c.shape.window,
             c.shape.n_heads, c.d, c.amplitude);
    relpos_data data(c);
    matrix first(c.dtype, data.n, data.width);
    double far[2] = {0, 0};
    for (enum cuda_level level : {CUDA_LEVEL_GENERAL, CUDA_LEVEL_BEST}) {
        struct fathom_err err = {};
        data.y.poison();
        enum fathom_status status = run_relpos(data, c.shape, level, 0, &err);
        CHECK(status == FATHOM_OK, "%s %s: %s", name, level_name(level), err.message);
        CUDA(cudaDeviceSynchronize());
        data.y.download();
        CHECK(data.y.canaries_live(), "%s %s: wrote outside of y", name, level_name(level));
        CHECK(data.y.count_nan() == 0, "%s %s: %zu of %zu elements are NaN", name, level_name(level),
              data.y.count_nan(), data.y.host.size());
        const size_t n_all = data.n * c.shape.n_heads, n_sample = n_all * data.kh * data.kw > 20000000 ? 200 : n_all;
        double difference = 0, norm = 0;
        std::vector<double> row;
        for (size_t i = 0; i < n_sample; i++) {
            size_t at = n_sample == n_all ? i : random_u64() % n_all, token = at / c.shape.n_heads,
                   head = at % c.shape.n_heads;
            size_t x = token % c.shape.gw, y = token / c.shape.gw % c.shape.gh, view = token / c.shape.gw / c.shape.gh;
            relpos_row(c, data, view, y, x, head, row);
            for (size_t k = 0; k < c.d; k++) {
                double e = data.y.at(token, head * c.d + k) - row[k];
                difference += e * e;
                norm += row[k] * row[k];
            }
        }
        far[level] = sqrt(difference / norm);
        CHECK(far[level] <= tolerance(c.dtype), "%s %s: %g from float64", name, level_name(level), far[level]);
        if (level == CUDA_LEVEL_GENERAL)
            first.host = data.y.host;
    }
    double apart = distance(data.y, first);
    CHECK(apart <= 2 * tolerance(c.dtype), "%s: %g between best and general", name, apart);

    /* Again, and the last view by itself: the same bits. */
    first.host = data.y.host;
    data.y.poison();
    CHECK(run_relpos(data, c.shape, CUDA_LEVEL_BEST, 0, NULL) == FATHOM_OK, "%s: second run", name);
    CUDA(cudaDeviceSynchronize());
    data.y.download();
    CHECK(data.y.host == first.host, "%s: a second run differs", name);
    if (c.shape.n_views > 1) {
        const size_t n = data.n / c.shape.n_views, skip = data.n - n;
        struct relpos_shape one = c.shape;
        one.n_views = 1;
        data.y.poison();
        struct tensor y = data.y.tensor(), qkv = data.qkv.tensor(), pad = data.pad.tensor(), h = data.rel_h.tensor(),
                      w = data.rel_w.tensor();
        y.shape[0] = qkv.shape[0] = n;
        y.data = data.y.data() + skip * data.width;
        qkv.data = data.qkv.data() + skip * 3 * data.width;
        CHECK(cuda_attention_relpos(&y, &qkv, &pad, &h, &w, one, CUDA_LEVEL_BEST, 0, NULL) == FATHOM_OK, "%s: one view",
              name);
        CUDA(cudaDeviceSynchronize());
        data.y.download();
        CHECK(
            !memcmp(data.y.host.data() + skip * data.width, first.host.data() + skip * data.width, n * data.width * 2),
            "%s: a view by itself differs", name);
    }
    printf("%s: float64 %.2e (general %.2e)\n", name, far[CUDA_LEVEL_BEST], far[CUDA_LEVEL_GENERAL]);
    fflush(stdout);
}

/* A NaN stays in its window, or in its view. */
static void test_relpos_isolation(size_t window)
{
    relpos_case c = {DTYPE_BF16, {2, 20, 18, 2, window}, 64, 1};
    relpos_data data(c);
    data.qkv.host[(7 * 18 + 6) * data.qkv.cols + 5] = matrix::POISON; /* q of head 0 of token (7, 6)   */
    data.qkv.host[(7 * 18 + 6) * data.qkv.cols + 2 * data.width + 70] =
        matrix::POISON; /* and v of head 1               */
    data.qkv.upload();
    CHECK(run_relpos(data, c.shape, CUDA_LEVEL_BEST, 0, NULL) == FATHOM_OK, "isolation");
    CUDA(cudaDeviceSynchronize());
    data.y.download();
    const size_t rows = window ? window : 20, cols = window ? window : 18;
    CHECK(data.y.count_nan() == 64 + rows * cols, "window %zu: %zu NaN, expected %zu", window, data.y.count_nan(),
          64 + rows * cols);
}

static void test_relpos_graph(void)
{
    relpos_case c = {DTYPE_BF16, {1, 30, 30, 2, 14}, 64, 1};
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CUDA(cudaStreamCreate(&stream));
    for (size_t window : {(size_t)14, (size_t)0}) {
        c.shape.window = window;
        relpos_data direct(c);
        CHECK(run_relpos(direct, c.shape, CUDA_LEVEL_BEST, 0, NULL) == FATHOM_OK, "graph: direct");
        CUDA(cudaDeviceSynchronize());
        direct.y.download();
        std::vector<uint16_t> expected = direct.y.host;
        direct.y.poison();
        struct fathom_err err = {};
        CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        enum fathom_status status = run_relpos(direct, c.shape, CUDA_LEVEL_BEST, stream, &err);
        CUDA(cudaStreamEndCapture(stream, &graph));
        CHECK(status == FATHOM_OK, "graph: %s", err.message);
        CUDA(cudaGraphInstantiate(&exec, graph, 0));
        CUDA(cudaGraphLaunch(exec, stream));
        CUDA(cudaStreamSynchronize(stream));
        direct.y.download();
        CHECK(direct.y.host == expected, "graph: replay differs, window %zu", window);
        CUDA(cudaGraphExecDestroy(exec));
        CUDA(cudaGraphDestroy(graph));
    }
    CUDA(cudaStreamDestroy(stream));
}

static void test_relpos_refusals(void)
{
    relpos_case c = {DTYPE_BF16, {1, 16, 16, 2, 0}, 64, 1};
    relpos_data data(c);
    struct fathom_err err = {};
    const struct tensor y = data.y.tensor(), qkv = data.qkv.tensor(), h = data.rel_h.tensor(), w = data.rel_w.tensor();
    auto call = [&](struct tensor y, struct tensor qkv, struct tensor h, struct tensor w, struct relpos_shape shape) {
        err = {};
        enum fathom_status status = cuda_attention_relpos(&y, &qkv, NULL, &h, &w, shape, CUDA_LEVEL_BEST, 0, &err);
        CHECK(!status || err.message[0], "a refusal without a message");
        return status;
    };
    CHECK(call(y, qkv, h, w, c.shape) == FATHOM_OK, "%s", err.message);
    struct tensor t = qkv;
    t.dtype = DTYPE_F32;
    CHECK(call(y, t, h, w, c.shape) == FATHOM_EINVAL, "f32 qkv");
    t = h;
    t.dtype = DTYPE_F16;
    CHECK(call(y, qkv, t, w, c.shape) == FATHOM_EINVAL, "mixed dtypes");
    t = h;
    t.shape[0]--;
    CHECK(call(y, qkv, t, w, c.shape) == FATHOM_EINVAL, "short table");
    t = y;
    t.shape[0]--;
    CHECK(call(t, qkv, h, w, c.shape) == FATHOM_EINVAL, "short y");
    t = qkv;
    t.data = (char *)t.data + 2;
    CHECK(call(y, t, h, w, c.shape) == FATHOM_EINVAL, "misaligned qkv");
    t = qkv;
    t.data = data.qkv.host.data();
    CHECK(call(y, t, h, w, c.shape) == FATHOM_EINVAL, "qkv on the host");
    t = qkv;
    t.data = NULL;
    CHECK(call(y, t, h, w, c.shape) == FATHOM_EINVAL, "no qkv");
    t = qkv;
    t.stride[0] += 8;
    CHECK(call(y, t, h, w, c.shape) == FATHOM_EINVAL, "gaps in qkv");
    struct relpos_shape shape = c.shape;
    shape.n_heads = 0;
    CHECK(call(y, qkv, h, w, shape) == FATHOM_EINVAL, "no heads");
    shape = c.shape;
    shape.gh = (size_t)1 << 40;
    CHECK(call(y, qkv, h, w, shape) == FATHOM_EINVAL, "2^40 rows");
    shape = c.shape;
    shape.window = 5;
    t = h;
    t.shape[0] = 9;
    CHECK(call(y, qkv, t, t, shape) == FATHOM_EINVAL, "windows beyond the map, no pad");
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaGetLastError());
}

/* ---- attention_prefix ------------------------------------------------------------------------------------------- */

struct prefix_case {
    enum dtype dtype;
    size_t n_seqs, n, prefix, n_heads, n_kv_heads, d;
    float amplitude;
};

static void test_prefix(const prefix_case &c)
{
    char name[160];
    snprintf(name, sizeof name, "prefix %s %zu x %zu, prefix %zu, %zu/%zu heads of %zu, amplitude %g",
             c.dtype == DTYPE_BF16 ? "bf16" : "f16", c.n_seqs, c.n, c.prefix, c.n_heads, c.n_kv_heads, c.d,
             c.amplitude);
    const size_t rows = c.n_seqs * c.n, q_cols = c.n_heads * c.d, kv_cols = c.n_kv_heads * c.d;
    matrix qkv(c.dtype, rows, q_cols + 2 * kv_cols), y(c.dtype, rows, q_cols, q_cols + 8),
        first(c.dtype, rows, q_cols, q_cols + 8);
    qkv.fill(c.amplitude);
    struct tensor q = qkv.tensor(), k = q, v = q, to = y.tensor();
    q.shape[1] = q_cols;
    k.shape[1] = v.shape[1] = kv_cols;
    k.data = qkv.data() + q_cols;
    v.data = qkv.data() + q_cols + kv_cols;
    double far[2] = {0, 0};
    for (enum cuda_level level : {CUDA_LEVEL_GENERAL, CUDA_LEVEL_BEST}) {
        struct fathom_err err = {};
        y.poison();
        enum fathom_status status =
            cuda_attention_prefix(&to, &q, &k, &v, c.n_heads, c.n_kv_heads, c.n_seqs, c.prefix, level, 0, &err);
        CHECK(status == FATHOM_OK, "%s %s: %s", name, level_name(level), err.message);
        CUDA(cudaDeviceSynchronize());
        y.download();
        CHECK(y.canaries_live(), "%s %s: wrote outside of y", name, level_name(level));
        CHECK(y.count_nan() == 0, "%s %s: %zu elements are NaN", name, level_name(level), y.count_nan());
        bool gap = true;
        for (size_t r = 0; r < rows; r++)
            for (size_t i = q_cols; i < q_cols + 8; i++)
                gap &= y.host[r * y.stride + i] == matrix::POISON;
        CHECK(gap, "%s %s: wrote between the rows of y", name, level_name(level));
        const size_t n_all = rows * c.n_heads, n_sample = n_all * c.n > 20000000 ? 1000 : n_all;
        double difference = 0, norm = 0;
        for (size_t i = 0; i < n_sample; i++) {
            size_t at = n_sample == n_all ? i : random_u64() % n_all, row = at / c.n_heads, head = at % c.n_heads;
            size_t start = row / c.n * c.n, n_keys = row - start + 1 > c.prefix ? row - start + 1 : c.prefix;
            n_keys = n_keys < c.n ? n_keys : c.n;
            size_t kv = head / (c.n_heads / c.n_kv_heads) * c.d;
            std::vector<double> s(n_keys), out(c.d, 0.0);
            double top = -INFINITY, sum = 0;
            for (size_t j = 0; j < n_keys; j++) {
                double dot = 0;
                for (size_t e = 0; e < c.d; e++)
                    dot += qkv.at(row, head * c.d + e) * qkv.at(start + j, q_cols + kv + e);
                s[j] = dot / sqrt((double)c.d);
                top = fmax(top, s[j]);
            }
            for (size_t j = 0; j < n_keys; j++) {
                double p = exp(s[j] - top);
                sum += p;
                for (size_t e = 0; e < c.d; e++)
                    out[e] += p * qkv.at(start + j, q_cols + kv_cols + kv + e);
            }
            for (size_t e = 0; e < c.d; e++) {
                double x = y.at(row, head * c.d + e) - out[e] / sum;
                difference += x * x;
                norm += out[e] / sum * (out[e] / sum);
            }
        }
        far[level] = sqrt(difference / norm);
        CHECK(far[level] <= tolerance(c.dtype), "%s %s: %g from float64", name, level_name(level), far[level]);
        if (level == CUDA_LEVEL_GENERAL)
            first.host = y.host;
    }
    double apart = distance(y, first);
    CHECK(apart <= 2 * tolerance(c.dtype), "%s: %g between best and general", name, apart);
    printf("%s: float64 %.2e (general %.2e)\n", name, far[CUDA_LEVEL_BEST], far[CUDA_LEVEL_GENERAL]);
    fflush(stdout);
}

static void test_prefix_refusals(void)
{
    matrix q(DTYPE_BF16, 32, 128), k(DTYPE_BF16, 32, 64), y(DTYPE_BF16, 32, 128);
    q.fill(1);
    k.fill(1);
    struct tensor tq = q.tensor(), tk = k.tensor(), ty = y.tensor();
    struct fathom_err err = {};
    CHECK(!cuda_attention_prefix(&ty, &tq, &tk, &tk, 2, 1, 1, 16, CUDA_LEVEL_BEST, 0, &err), "%s", err.message);
    CHECK(cuda_attention_prefix(&ty, &tq, &tk, &tk, 2, 0, 1, 16, CUDA_LEVEL_BEST, 0, &err), "no kv heads");
    CHECK(cuda_attention_prefix(&ty, &tq, &tk, &tk, 2, 1, 3, 16, CUDA_LEVEL_BEST, 0, &err), "32 rows in 3 sequences");
    CHECK(cuda_attention_prefix(&ty, &tq, &tk, &tk, 3, 1, 1, 16, CUDA_LEVEL_BEST, 0, &err), "128 columns in 3 heads");
    struct tensor t = tk;
    t.data = (char *)t.data + 8;
    CHECK(cuda_attention_prefix(&ty, &tq, &t, &tk, 2, 1, 1, 16, CUDA_LEVEL_BEST, 0, &err), "misaligned k");
    t = tk;
    t.dtype = DTYPE_F16;
    CHECK(cuda_attention_prefix(&ty, &tq, &tk, &t, 2, 1, 1, 16, CUDA_LEVEL_BEST, 0, &err), "f16 v");
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaGetLastError());
}

int main(int argc, char **argv)
{
    const bool quick = argc > 1 && !strcmp(argv[1], "quick");
    int n_devices = 0;
    if (cudaGetDeviceCount(&n_devices) || !n_devices) {
        printf("skipped: no CUDA device\n");
        return 77;
    }
    const relpos_case small[] = {
        {DTYPE_BF16, {1, 4, 64, 2, 0}, 64, 1},   {DTYPE_F16, {2, 5, 48, 2, 0}, 64, 1},
        {DTYPE_BF16, {1, 6, 40, 3, 0}, 64, 2},   {DTYPE_F16, {1, 7, 33, 1, 0}, 64, 1},
        {DTYPE_BF16, {2, 16, 14, 2, 0}, 64, 4},  {DTYPE_BF16, {1, 9, 70, 1, 0}, 64, 1},
        {DTYPE_BF16, {1, 1, 1, 1, 0}, 64, 1},    {DTYPE_BF16, {1, 2, 100, 1, 0}, 64, 1},
        {DTYPE_BF16, {1, 14, 14, 2, 14}, 64, 1}, {DTYPE_F16, {2, 20, 31, 2, 14}, 64, 1},
        {DTYPE_BF16, {2, 15, 17, 2, 8}, 64, 6},  {DTYPE_BF16, {1, 9, 10, 1, 5}, 64, 1},
        {DTYPE_BF16, {1, 20, 20, 1, 16}, 64, 1}, {DTYPE_BF16, {1, 30, 22, 1, 20}, 64, 1},
        {DTYPE_F16, {1, 9, 12, 2, 0}, 80, 1},    {DTYPE_BF16, {1, 9, 12, 2, 7}, 128, 1},
        {DTYPE_BF16, {2, 8, 9, 3, 0}, 24, 1},    {DTYPE_BF16, {1, 130, 3, 1, 0}, 64, 1},
    };
    const relpos_case large[] = {
        {DTYPE_BF16, {1, 64, 64, 12, 0}, 64, 1},  {DTYPE_F16, {1, 64, 64, 12, 0}, 64, 1},
        {DTYPE_BF16, {1, 64, 64, 12, 0}, 64, 4},  {DTYPE_F16, {1, 64, 64, 12, 0}, 64, 4},
        {DTYPE_BF16, {2, 48, 48, 12, 0}, 64, 1},  {DTYPE_BF16, {1, 40, 40, 12, 0}, 64, 1},
        {DTYPE_BF16, {2, 32, 32, 12, 0}, 64, 1},  {DTYPE_BF16, {1, 80, 80, 4, 0}, 64, 1},
        {DTYPE_BF16, {2, 64, 64, 12, 14}, 64, 1}, {DTYPE_F16, {1, 48, 48, 12, 14}, 64, 1},
        {DTYPE_BF16, {1, 40, 40, 12, 14}, 64, 4}, {DTYPE_BF16, {1, 300, 280, 1, 0}, 64, 1},
        {DTYPE_BF16, {1, 96, 48, 1, 0}, 64, 1},   {DTYPE_F16, {1, 128, 47, 1, 0}, 64, 1},
        {DTYPE_BF16, {1, 96, 80, 1, 0}, 64, 1},
    };
    const prefix_case prefixes[] = {
        {DTYPE_BF16, 2, 64, 32, 4, 2, 64, 1},    {DTYPE_BF16, 3, 100, 37, 2, 1, 64, 2},
        {DTYPE_F16, 1, 200, 0, 2, 2, 64, 1},     {DTYPE_BF16, 1, 130, 130, 2, 1, 64, 1},
        {DTYPE_BF16, 1, 130, 999, 2, 1, 64, 1},  {DTYPE_BF16, 1, 1, 0, 1, 1, 64, 1},
        {DTYPE_F16, 2, 70, 20, 2, 1, 128, 1},    {DTYPE_BF16, 2, 288, 144, 14, 2, 64, 1},
        {DTYPE_BF16, 1, 512, 256, 14, 2, 64, 4}, {DTYPE_BF16, 1, 1100, 300, 7, 1, 64, 1},
    };
    for (const relpos_case &c : small)
        test_relpos(c);
    test_relpos_isolation(0);
    test_relpos_isolation(6);
    test_relpos_graph();
    test_relpos_refusals();
    for (const prefix_case &c : prefixes)
        if (!quick || c.n < 300)
            test_prefix(c);
    test_prefix_refusals();
    if (!quick) {
        for (const relpos_case &c : large)
            test_relpos(c);
        test_prefix({DTYPE_BF16, 8, 512, 256, 14, 2, 64, 1});
        test_prefix({DTYPE_F16, 8, 512, 256, 14, 2, 64, 1});
    }
    printf("%d checks, %d failed\n", n_checks, n_failures);
    return n_failures > 0;
}
