/* Mixtures of experts: the router's choice, rows grouped by expert, and the sum of what the experts gave.
 *
 * Many rows: the (row, expert) pairs are listed by expert, two grouped products run over them, and each row adds its
 * own up in ascending order of expert, so a result does not depend on the order of the list.
 * One row: three kernels read the chosen experts' weights and the shared one's once; the sums are those of gemv. */
#include <string.h>

#include "kernel/cuda/exact.cuh"
#include "kernel/cuda/gemm.h"
#include "kernel/cuda/ops.h"

namespace
{

constexpr int MAX_EXPERTS = 256, MAX_TOP_K = 32, THREADS = 256;

struct route_arguments {
    int n_experts, top_k;
    bool norm_topk, ascending;
    float scale;
};

/* One warp: the top_k of p = softmax(logits [n_experts]), as softmax_topk of kernel.h has them; with `ascending` weighted
 * and in the order of their ids. */
__device__ void route_row(const float *logits, const route_arguments &a, int32_t *ids, float *weights, int *fault)
{
    const int lane = threadIdx.x % 32;
    float max = -INFINITY, sum = 0, p[MAX_EXPERTS / 32];
    for (int j = lane; j < a.n_experts; j += 32)
        max = logits[j] > max ? logits[j] : max;
    for (int i = 16; i > 0; i /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, max, i);
        max = other > max ? other : max;
    }
    if (lane < 16)
        for (int j = lane; j < a.n_experts; j += 16)
            sum = __fadd_rn(sum, exp_f32(__fsub_rn(logits[j], max)));
    sum = __shfl_sync(0xffffffffu, fold_lanes(sum), 0);
    bool is_nan = false;
#pragma unroll
    for (int i = 0; i < MAX_EXPERTS / 32; i++) {
        const int j = lane + 32 * i;
        p[i] = j < a.n_experts ? __fdiv_rn(exp_f32(__fsub_rn(logits[j], max)), sum) : -1.0f;
        is_nan |= p[i] != p[i];
    }
    if (__any_sync(0xffffffffu, is_nan)) {
        if (lane == 0)
            atomicOr(fault, FAULT_ROUTER);
#pragma unroll
        for (int i = 0; i < MAX_EXPERTS / 32; i++)
            p[i] = p[i] != p[i] ? 0.0f : p[i]; /* the choice below stays inside of the experts */
    }
    int id = 0;
    float weight = 0, total = 0;
    for (int k = 0; k < a.top_k; k++) {
        float best = -2.0f;
        int at = 0x7fffffff;
#pragma unroll
        for (int i = 0; i < MAX_EXPERTS / 32; i++)
            if (p[i] > best) {
                best = p[i];
                at = lane + 32 * i;
            }
        for (int i = 16; i > 0; i /= 2) {
            const float other = __shfl_xor_sync(0xffffffffu, best, i);
            const int other_at = __shfl_xor_sync(0xffffffffu, at, i);
            if (other > best || (other == best && other_at < at)) {
                best = other;
                at = other_at;
            }
        }
#pragma unroll
        for (int i = 0; i < MAX_EXPERTS / 32; i++)
            if (at == lane + 32 * i)
                p[i] = -1.0f;
        if (lane == k) {
            id = at;
            weight = best;
        }
        total = __fadd_rn(total, best);
    }
    int rank = lane;
    if (a.ascending) {
        rank = 0;
        for (int k = 0; k < a.top_k; k++)
            rank += __shfl_sync(0xffffffffu, id, k) < id;
        weight = __fmul_rn(a.norm_topk ? __fdiv_rn(weight, total) : weight, a.scale);
    }
    if (lane < a.top_k) {
        ids[rank] = id;
        weights[rank] = weight;
    }
}

__global__ void route_kernel(const float *logits, size_t stride, int n, route_arguments a, int32_t *ids, float *weights,
                             int *fault)
{
    const int row = (blockIdx.x * THREADS + threadIdx.x) / 32;
    if (row < n)
        route_row(logits + row * stride, a, ids + (size_t)row * a.top_k, weights + (size_t)row * a.top_k, fault);
}

/* ---- grouping ---------------------------------------------------------------------------------------------------- */

constexpr int GROUP_THREADS = 1024;

/* One block: offsets [n_experts + 1]; tokens[p] the row of x of pair p of the list; place[i] where pair i = (row, k) is. */
__global__ __launch_bounds__(GROUP_THREADS) void group_kernel(const int32_t *ids, int n_pairs, int top_k, int n_experts,
                                                              int32_t *offsets, int32_t *tokens, int32_t *place)
{
    __shared__ int32_t next[MAX_EXPERTS];
    for (int e = threadIdx.x; e < n_experts; e += GROUP_THREADS)
        next[e] = 0;
    __syncthreads(); /* zeroed -> counted in */
    for (int i = threadIdx.x; i < n_pairs; i += GROUP_THREADS)
        atomicAdd(&next[ids[i]], 1);
    __syncthreads(); /* counted -> summed up */
    if (threadIdx.x == 0) {
        int sum = 0;
        for (int e = 0; e < n_experts; e++) {
            const int n = next[e];
            offsets[e] = next[e] = sum;
            sum += n;
        }
        offsets[n_experts] = sum;
    }
    __syncthreads(); /* starts written -> handed out */
    for (int i = threadIdx.x; i < n_pairs; i += GROUP_THREADS) {
        const int p = atomicAdd(&next[ids[i]], 1);
        tokens[p] = i / top_k;
        place[i] = p;
    }
}

/* y[row] = sum over k of weights[row, k] * expert[place[row, k]], then plus shared[row]. */
template <typename T>
__global__ void combine_kernel(T *y, size_t y_stride, const T *expert, const T *shared, const int32_t *place,
                               const float *weights, int top_k, size_t n, unsigned dim)
{
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= n)
        return;
    const size_t row = i / dim, col = i % dim;
    float sum = 0;
    for (int k = 0; k < top_k; k++)
        sum = fmaf(weights[row * top_k + k], to_float(expert[(size_t)place[row * top_k + k] * dim + col]), sum);
    sum = stored<T>(sum);
    if (shared)
        sum = __fadd_rn(sum, to_float(shared[i]));
    y[row * y_stride + col] = from_float<T>(sum);
}

/* ---- one row, bf16 ----------------------------------------------------------------------------------------------- */

constexpr int STEP_THREADS = 128;

__device__ __forceinline__ float dot8(uint4 a, uint4 b, float sum)
{
    const uint32_t x[4] = {a.x, a.y, a.z, a.w}, y[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        sum = fmaf(__uint_as_float(x[i] << 16), __uint_as_float(y[i] << 16), sum);
        sum = fmaf(__uint_as_float(x[i] & 0xffff0000u), __uint_as_float(y[i] & 0xffff0000u), sum);
    }
    return sum;
}

__device__ __forceinline__ float warp_sum(float x)
{
#pragma unroll
    for (int i = 16; i > 0; i /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, i);
    return x;
}

/* A warp's dot product of k columns, k a multiple of 8. */
__device__ __forceinline__ float warp_dot(const bf16 *x, const bf16 *w, int k)
{
    float sum = 0;
    for (int i = threadIdx.x % 32 * 8; i < k; i += 256)
        sum = dot8(*(const uint4 *)(x + i), __ldg((const uint4 *)(w + i)), sum);
    return warp_sum(sum);
}

/* One block: the router's logits and its choice. */
__global__ __launch_bounds__(1024) void router_step_kernel(const bf16 *x, const bf16 *router, size_t stride, int dim,
                                                           route_arguments a, int32_t *ids, float *weights, int *fault)
{
    __shared__ float logits[MAX_EXPERTS];
    const int warp = threadIdx.x / 32;
    for (int e = warp; e < a.n_experts; e += 32) {
        const float dot = warp_dot(x, router + e * stride, dim);
        if (threadIdx.x % 32 == 0)
            logits[e] = dot;
    }
    __syncthreads(); /* logits written -> read by the first warp */
    if (warp == 0)
        route_row(logits, a, ids, weights, fault);
}

struct expert_pointers {
    const bf16 *p[MAX_GROUPS];
};

/* hidden [top_k * expert_dim + shared_dim]: a warp makes one. */
__global__ __launch_bounds__(STEP_THREADS) void up_step_kernel(bf16 *hidden, const bf16 *x, int dim, int expert_dim,
                                                               int shared_dim, int top_k, const int32_t *ids,
                                                               const __grid_constant__ expert_pointers gate,
                                                               const __grid_constant__ expert_pointers up,
                                                               const bf16 *shared_gate, const bf16 *shared_up)
{
    const int i = (blockIdx.x * STEP_THREADS + threadIdx.x) / 32, routed = top_k * expert_dim;
    if (i >= routed + shared_dim)
        return;
    const bf16 *g, *u;
    if (i < routed) {
        const int e = ids[i / expert_dim];
        g = gate.p[e] + (size_t)(i % expert_dim) * dim;
        u = up.p[e] + (size_t)(i % expert_dim) * dim;
    } else {
        g = shared_gate + (size_t)(i - routed) * dim;
        u = shared_up + (size_t)(i - routed) * dim;
    }
    float sums[2] = {0, 0};
    for (int k = threadIdx.x % 32 * 8; k < dim; k += 256) {
        const uint4 xv = *(const uint4 *)(x + k);
        sums[0] = dot8(xv, __ldg((const uint4 *)(g + k)), sums[0]);
        sums[1] = dot8(xv, __ldg((const uint4 *)(u + k)), sums[1]);
    }
    sums[0] = warp_sum(sums[0]);
    sums[1] = warp_sum(sums[1]);
    if (threadIdx.x % 32 == 0)
        hidden[i] = from_float<bf16>(stored<bf16>(silu_f32(stored<bf16>(sums[0]))) * stored<bf16>(sums[1]));
}

/* y [dim]: a block makes one output, a warp at a time takes an expert. */
__global__ __launch_bounds__(STEP_THREADS) void down_step_kernel(bf16 *y, const bf16 *hidden, int dim, int expert_dim,
                                                                 int shared_dim, int top_k, const int32_t *ids,
                                                                 const float *weights,
                                                                 const __grid_constant__ expert_pointers down,
                                                                 const bf16 *shared_down)
{
    __shared__ float dots[MAX_TOP_K + 1];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, col = blockIdx.x;
    for (int k = warp; k <= top_k; k += STEP_THREADS / 32) {
        float dot = 0;
        if (k < top_k)
            dot = warp_dot(hidden + k * expert_dim, down.p[ids[k]] + (size_t)col * expert_dim, expert_dim);
        else if (shared_down)
            dot = warp_dot(hidden + top_k * expert_dim, shared_down + (size_t)col * shared_dim, shared_dim);
        if (lane == 0)
            dots[k] = stored<bf16>(dot);
    }
    __syncthreads(); /* dots written -> read */
    if (threadIdx.x)
        return;
    float sum = 0;
    for (int k = 0; k < top_k; k++)
        sum = fmaf(weights[k], dots[k], sum);
    sum = stored<bf16>(sum);
    y[col] = from_float<bf16>(shared_down ? sum + dots[top_k] : sum);
}

/* ---- host -------------------------------------------------------------------------------------------------------- */

bool is_packed(const struct tensor *t)
{
    return t->stride[0] == t->shape[1] && t->shape[1] % 8 == 0 && (uintptr_t)t->data % 16 == 0 &&
           t->dtype == DTYPE_BF16;
}

bool is_packed(const struct mlp_weights *w) { return is_packed(&w->gate) && is_packed(&w->up) && is_packed(&w->down); }

bool step_fits(const struct run *run, const struct tensor *x, const struct moe_weights *w)
{
    if (run->dtype != DTYPE_BF16 || gpu_of(run)->exact || x->shape[0] != 1 || x->shape[1] % 8 ||
        (uintptr_t)x->data % 16 || !is_packed(&w->router) || (w->shared.gate.data && !is_packed(&w->shared)))
        return false;
    for (size_t e = 0; e < w->n_experts; e++)
        if (!is_packed(&w->experts[e]))
            return false;
    return true;
}

void moe_step(struct run *run, struct tensor *y, const struct tensor *x, const struct moe_weights *w,
              const route_arguments &route)
{
    struct gpu *gpu = gpu_of(run);
    const int dim = (int)x->shape[1], expert_dim = (int)w->experts[0].gate.shape[0];
    const int shared_dim = w->shared.gate.data ? (int)w->shared.gate.shape[0] : 0;
    const int n_hidden = route.top_k * expert_dim + shared_dim;
    expert_pointers gate, up, down;
    for (size_t e = 0; e < w->n_experts; e++) {
        gate.p[e] = (const bf16 *)w->experts[e].gate.data;
        up.p[e] = (const bf16 *)w->experts[e].up.data;
        down.p[e] = (const bf16 *)w->experts[e].down.data;
    }
    int32_t *ids = (int32_t *)run_scratch(run, w->top_k, sizeof *ids);
    float *weights = (float *)run_scratch(run, w->top_k, sizeof *weights);
    bf16 *hidden = (bf16 *)run_scratch(run, n_hidden, sizeof *hidden);
    if (!run_ok(run))
        return;
    launch_on(router_step_kernel, 1, 1024, 0, gpu->stream)((const bf16 *)x->data, (const bf16 *)w->router.data,
                                                    w->router.stride[0], dim, route, ids, weights, gpu->fault);
    launch_on(up_step_kernel, blocks_of(n_hidden, STEP_THREADS / 32), STEP_THREADS, 0, gpu->stream)(
        hidden, (const bf16 *)x->data, dim, expert_dim, shared_dim, route.top_k, ids, gate, up,
        (const bf16 *)w->shared.gate.data, (const bf16 *)w->shared.up.data);
    launch_on(down_step_kernel, dim, STEP_THREADS, 0, gpu->stream)((bf16 *)y->data, hidden, dim, expert_dim, shared_dim,
                                                            route.top_k, ids, weights, down,
                                                            (const bf16 *)w->shared.down.data);
    gpu_check(run, cudaGetLastError(), "moe");
}

/* The experts' outputs [n * top_k, dim] in the order of the list; place says where each pair's is. */
struct tensor run_experts(struct run *run, const struct tensor *x, const struct moe_weights *w, const int32_t *ids,
                          int32_t *place)
{
    const size_t n_pairs = x->shape[0] * w->top_k, hidden_dim = w->experts[0].gate.shape[0], dim = x->shape[1];
    const enum dtype dtype = w->experts[0].gate.dtype;
    struct tensor out = run_alloc(run, n_pairs, dim), hidden = run_alloc(run, n_pairs, hidden_dim);
    int32_t *offsets = (int32_t *)run_scratch(run, w->n_experts + 1, sizeof *offsets);
    int32_t *tokens = (int32_t *)run_scratch(run, n_pairs, sizeof *tokens);
    if (!run_ok(run))
        return out;
    launch_on(group_kernel, 1, GROUP_THREADS, 0, gpu_of(run)->stream)(ids, (int)n_pairs, (int)w->top_k, (int)w->n_experts,
                                                               offsets, tokens, place);
    gpu_check(run, cudaGetLastError(), "moe");

    struct gemm_weights weights;
    gemm_arguments a = {};
    a.x = x->data;
    a.x_stride = x->stride[0];
    a.x_rows = tokens;
    a.y = hidden.data;
    a.y_stride = hidden_dim;
    a.w_stride = w->experts[0].gate.stride[0];
    a.n = (int)n_pairs;
    a.m = (int)hidden_dim;
    a.k = (int)dim;
    a.n_groups = (int)w->n_experts;
    a.offsets = offsets;
    a.swiglu = true;
    for (size_t e = 0; e < w->n_experts; e++) {
        weights.w[e] = w->experts[e].gate.data;
        weights.up[e] = w->experts[e].up.data;
    }
    gemm(run, &a, &weights, dtype, false);
    for (size_t e = 0; e < w->n_experts; e++)
        weights.w[e] = w->experts[e].down.data;
    a.x = hidden.data;
    a.x_stride = hidden_dim;
    a.x_rows = NULL;
    a.y = out.data;
    a.y_stride = dim;
    a.w_stride = w->experts[0].down.stride[0];
    a.m = (int)dim;
    a.k = (int)hidden_dim;
    a.swiglu = false;
    gemm(run, &a, &weights, dtype, false);
    return out;
}

bool alike(const struct tensor *a, const struct tensor *b)
{
    return a->dtype == b->dtype && a->stride[0] == b->stride[0];
}

/* All experts are stored alike and few enough to be told to a kernel. */
bool experts_fit(struct run *run, const struct moe_weights *w)
{
    bool fits = w->n_experts <= MAX_GROUPS && w->n_experts <= MAX_EXPERTS && w->top_k <= MAX_TOP_K &&
                w->swiglu_limit == 0.0f;
    for (size_t e = 0; e < w->n_experts && fits; e++)
        fits = alike(&w->experts[e].gate, &w->experts[0].gate) && alike(&w->experts[e].up, &w->experts[0].gate) &&
               alike(&w->experts[e].down, &w->experts[0].down) &&
               w->experts[e].gate.dtype == w->experts[e].down.dtype;
    if (!fits)
        run_fail(run, FATHOM_EUNSUPPORTED, "moe: the GPU takes up to %d experts of one dtype, %d at a time", MAX_GROUPS,
                 MAX_TOP_K);
    return fits;
}

} // namespace

extern "C" void softmax_topk_cuda(struct run *run, const struct tensor *logits, size_t top_k, int32_t *ids,
                                  float *weights)
{
    const route_arguments route = {(int)logits->shape[1], (int)top_k, false, false, 1.0f};
    const int n = (int)logits->shape[0];
    if (logits->shape[1] > MAX_EXPERTS || top_k > MAX_TOP_K) {
        run_fail(run, FATHOM_EUNSUPPORTED, "softmax_topk: the GPU takes %d of %d at most", MAX_TOP_K, MAX_EXPERTS);
        return;
    }
    if (!n)
        return;
    launch_on(route_kernel, blocks_of(n, THREADS / 32), THREADS, 0, gpu_of(run)->stream)(
        (const float *)logits->data, logits->stride[0], n, route, ids, weights, gpu_of(run)->fault);
    gpu_check(run, cudaGetLastError(), "softmax_topk");
}

extern "C" void moe_cuda(struct run *run, struct tensor *y, const struct tensor *x, const struct moe_weights *w)
{
    const size_t n = x->shape[0], dim = x->shape[1];
    const route_arguments route = {(int)w->n_experts, (int)w->top_k, w->norm_topk, true, w->routed_scale};
    if (!n || !experts_fit(run, w))
        return;
    struct arena_mark mark = arena_save(run->arena);
    if (step_fits(run, x, w)) {
        moe_step(run, y, x, w, route);
        arena_restore(run->arena, mark);
        return;
    }
    struct tensor logits = run_alloc_f32(run, n, w->n_experts), shared = {};
    int32_t *ids = (int32_t *)run_scratch(run, n * w->top_k, sizeof *ids);
    int32_t *place = (int32_t *)run_scratch(run, n * w->top_k, sizeof *place);
    float *weights = (float *)run_scratch(run, n * w->top_k, sizeof *weights);
    if (run_ok(run)) {
        linear_cuda(run, &logits, x, &w->router, NULL, EPILOGUE_NONE);
        launch_on(route_kernel, blocks_of(n, THREADS / 32), THREADS, 0, gpu_of(run)->stream)(
            (const float *)logits.data, logits.stride[0], (int)n, route, ids, weights, gpu_of(run)->fault);
        gpu_check(run, cudaGetLastError(), "moe");
    }
    if (w->shared.gate.data) {
        struct arena_mark inner;
        shared = run_alloc(run, n, dim);
        inner = arena_save(run->arena);
        struct tensor hidden = run_alloc(run, n, w->shared.gate.shape[0]);
        if (run_ok(run)) {
            swiglu_cuda(run, &hidden, x, &w->shared.gate, &w->shared.up);
            linear_cuda(run, &shared, &hidden, &w->shared.down, NULL, EPILOGUE_NONE);
        }
        arena_restore(run->arena, inner);
    }
    struct tensor out = run_experts(run, x, w, ids, place);
    if (run_ok(run)) {
        with_act(run, [&](auto t) {
            using T = decltype(t);
            launch_on(combine_kernel<T>, blocks_of(n * dim, THREADS), THREADS, 0, gpu_of(run)->stream)(
                (T *)y->data, y->stride[0], (const T *)out.data, (const T *)shared.data, place, weights, (int)w->top_k,
                n * dim, (unsigned)dim);
        });
        gpu_check(run, cudaGetLastError(), "moe");
    }
    arena_restore(run->arena, mark);
}
