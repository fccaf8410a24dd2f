/* Times the attention kernels alone: bench_attention [rounds [case]] prints one line a case (all, or the one whose
 * number is given), the median over the rounds of a replayed graph of CALLS calls, microseconds a call, with the
 * rate of useful work (4 N^2 d flop a head and window, or half a pair for hidden keys) and of bytes (qkv and y
 * once). Inputs are random; inputs of small cases stay in the L2 cache. */
#include <algorithm>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

#include "kernel/cuda/attention.h"

static const int CALLS = 20;

static void cuda_ok(cudaError_t error, const char *what)
{
    if (error) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
        exit(2);
    }
}
#define CUDA(call) cuda_ok(call, #call)

__global__ static void fill(__nv_bfloat16 *x, size_t n, float amplitude, uint32_t seed)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
        float sum = 0; /* twelve uniform numbers: nearly normal */
        uint32_t z = (uint32_t)i * 2654435761u ^ seed;
        for (int k = 0; k < 12; k++) {
            z ^= z << 13, z ^= z >> 17, z ^= z << 5;
            sum += (float)(z >> 8) * (1.0f / 16777216.0f);
        }
        x[i] = __float2bfloat16((sum - 6.0f) * amplitude);
    }
}

struct buffer {
    struct tensor t = {};

    buffer(size_t rows, size_t cols, float amplitude)
    {
        t.dtype = DTYPE_BF16;
        t.n_dims = 2;
        t.shape[0] = rows;
        t.shape[1] = t.stride[0] = cols;
        t.stride[1] = 1;
        CUDA(cudaMalloc(&t.data, rows * cols * 2));
        fill<<<512, 256>>>((__nv_bfloat16 *)t.data, rows * cols, amplitude, (uint32_t)(rows * 31 + cols));
        CUDA(cudaGetLastError());
    }
    buffer(const buffer &) = delete;
    ~buffer() { cudaFree(t.data); }
};

template <typename Call> static double median_us(int rounds, Call call)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaEvent_t a, b;
    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaEventCreate(&a));
    CUDA(cudaEventCreate(&b));
    struct fathom_err err = {};
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < CALLS; i++)
        if (call(stream, &err)) {
            fprintf(stderr, "%s\n", err.message);
            exit(2);
        }
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    std::vector<double> times;
    for (int i = 0; i < rounds + 3; i++) {
        float ms;
        CUDA(cudaEventRecord(a, stream));
        CUDA(cudaGraphLaunch(exec, stream));
        CUDA(cudaEventRecord(b, stream));
        CUDA(cudaStreamSynchronize(stream));
        CUDA(cudaEventElapsedTime(&ms, a, b));
        if (i >= 3)
            times.push_back(ms * 1000 / CALLS);
    }
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaStreamDestroy(stream));
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

static void bench_relpos(int rounds, size_t views, size_t gh, size_t gw, size_t window, enum cuda_level level)
{
    const size_t heads = 12, d = 64, width = heads * d, n = views * gh * gw;
    const size_t kh = window ? window : gh, kw = window ? window : gw;
    buffer qkv(n, 3 * width, 1), pad(1, 3 * width, 1), rel_h(2 * kh - 1, d, 0.2f), rel_w(2 * kw - 1, d, 0.2f),
        y(n, width, 1);
    struct relpos_shape shape = {views, gh, gw, heads, window};
    double us = median_us(rounds, [&](cudaStream_t stream, struct fathom_err *err) {
        return cuda_attention_relpos(&y.t, &qkv.t, &pad.t, &rel_h.t, &rel_w.t, shape, level, stream, err);
    });
    double flop = 4.0 * (double)(n * heads * kh * kw * d), bytes = 8.0 * (double)(n * width);
    printf("relpos %3zu x %zux%zu window %2zu %-7s %8.1f us %6.1f TFLOP/s %7.1f GB/s\n", views, gh, gw, window,
           level == CUDA_LEVEL_BEST ? "best" : "general", us, flop / us * 1e-6, bytes / us * 1e-3);
}

static void bench_prefix(int rounds, size_t seqs, size_t n, enum cuda_level level)
{
    const size_t heads = 14, kv_heads = 2, d = 64, prefix = n / 2;
    buffer qkv(seqs * n, (heads + 2 * kv_heads) * d, 1), y(seqs * n, heads * d, 1);
    struct tensor q = qkv.t, k = qkv.t, v = qkv.t;
    q.shape[1] = heads * d;
    k.shape[1] = v.shape[1] = kv_heads * d;
    k.data = (__nv_bfloat16 *)qkv.t.data + heads * d;
    v.data = (__nv_bfloat16 *)qkv.t.data + (heads + kv_heads) * d;
    double us = median_us(rounds, [&](cudaStream_t stream, struct fathom_err *err) {
        return cuda_attention_prefix(&y.t, &q, &k, &v, heads, kv_heads, seqs, prefix, level, stream, err);
    });
    double pairs =
        (double)seqs * ((double)prefix * (double)prefix + (double)(n - prefix) * (double)(n + prefix + 1) / 2);
    printf("prefix %3zu x %-5zu prefix %-4zu  %-7s %8.1f us %6.1f TFLOP/s %7.1f GB/s\n", seqs, n, prefix,
           level == CUDA_LEVEL_BEST ? "best" : "general", us, 4 * pairs * (double)(heads * d) / us * 1e-6,
           4.0 * (double)(seqs * n) * (double)(heads + kv_heads) * (double)d / us * 1e-3);
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 30;
    if (rounds < 1) {
        fprintf(stderr, "usage: bench_attention [rounds]\n");
        return 2;
    }
    const int only = argc > 2 ? atoi(argv[2]) : -1;
    int number = 0;
    auto wanted = [&]() { return only < 0 || only == number++; };
    const size_t relpos[][4] = {{1, 64, 64, 0},  {8, 64, 64, 0},  {1, 48, 48, 0},   {6, 48, 48, 0},   {1, 40, 40, 0},
                                {1, 64, 64, 14}, {8, 64, 64, 14}, {25, 14, 14, 14}, {200, 14, 14, 14}};
    for (const size_t(&c)[4] : relpos)
        if (wanted())
            bench_relpos(rounds, c[0], c[1], c[2], c[3], CUDA_LEVEL_BEST);
    for (const size_t(&c)[4] : relpos)
        if (c[0] == 1 && wanted())
            bench_relpos(rounds, c[0], c[1], c[2], c[3], CUDA_LEVEL_GENERAL);
    for (size_t seqs : {1, 8})
        for (size_t n : {288, 512})
            if (wanted())
                bench_prefix(rounds, seqs, n, CUDA_LEVEL_BEST);
    if (wanted())
        bench_prefix(rounds, 8, 512, CUDA_LEVEL_GENERAL);
    return 0;
}
