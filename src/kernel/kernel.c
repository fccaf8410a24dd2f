/* The public operations: arguments are checked here, once for all back ends; what does not fit is recorded in the run
 * with the operation's name and the shapes. */
#include "kernel/kernel.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "kernel/admit.h"
#if defined(FATHOM_X86)
#include "kernel/x86/cpuid.h"
#include "kernel/x86/simd_ops.h"
#endif

const struct kernels *kernels_select(const char *highest)
{
    const struct kernels *levels[] = {&kernels_ref, NULL, NULL};
    static const char *const names[] = {"ref", "avx2", "avx512"};
    size_t top = 2;
    if (highest) {
        for (top = 0; top < 3 && strcmp(highest, names[top]) != 0;)
            top++;
        if (top == 3)
            return NULL;
    }
#if defined(FATHOM_X86)
    enum x86_level level = x86_level();
    levels[1] = level >= X86_AVX2 ? &kernels_avx2 : NULL;
    levels[2] = level >= X86_AVX512 ? &kernels_avx512 : NULL;
#endif
    while (!levels[top])
        top--;
    return levels[top];
}

/* ---- operations ---------------------------------------------------------------------------------------------- */

static void linear_op(struct run *run, const char *op, struct tensor *y, const struct tensor *x, const struct tensor *w,
                      const struct tensor *bias, enum epilogue epilogue)
{
    bool fits = (is_act(run, y) || is_matrix(y)) && is_act(run, x) && y->shape[0] == x->shape[0] &&
                is_weight(w, y->shape[1], x->shape[1]) && (!bias || is_vector(bias, y->shape[1]));
    if (!ADMIT(run, op, fits, {"y", y}, {"x", x}, {"w", w}, {"bias", bias}))
        return;
    run->kernels->linear(run, y, x, w, bias, epilogue);
    trace(run, op, y);
}

void linear(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w,
            const struct tensor *bias)
{
    linear_op(run, "linear", y, x, w, bias, EPILOGUE_NONE);
}

void linear_gelu(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w,
                 const struct tensor *bias)
{
    linear_op(run, "linear_gelu", y, x, w, bias, EPILOGUE_GELU);
}

void linear_quick_gelu(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w,
                       const struct tensor *bias)
{
    linear_op(run, "linear_quick_gelu", y, x, w, bias, EPILOGUE_QUICK_GELU);
}

void swiglu(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *gate,
            const struct tensor *up)
{
    bool fits = is_act(run, y) && is_act(run, x) && y->shape[0] == x->shape[0] &&
                is_weight(gate, y->shape[1], x->shape[1]) && is_weight(up, y->shape[1], x->shape[1]);
    if (!ADMIT(run, "swiglu", fits, {"y", y}, {"x", x}, {"gate", gate}, {"up", up}))
        return;
    run->kernels->swiglu(run, y, x, gate, up);
    trace(run, "swiglu", y);
}

void mlp(struct run *run, struct tensor *y, const struct tensor *x, const struct mlp_weights *w)
{
    bool fits = is_act(run, y) && is_act(run, x) && y->shape[0] == x->shape[0] &&
                is_weight(&w->down, y->shape[1], w->gate.shape[0]);
    if (!ADMIT(run, "mlp", fits, {"y", y}, {"x", x}, {"down", &w->down}))
        return;
    size_t n = x->shape[0], n_rows = n < run->kernels->max_rows ? n : run->kernels->max_rows;
    struct arena_mark mark = arena_save(run->arena);
    struct tensor hidden = run_alloc(run, n_rows, w->gate.shape[0]);
    for (size_t first = 0; first < n && run_ok(run); first += n_rows) {
        size_t m = n - first < n_rows ? n - first : n_rows;
        struct tensor x_m = tensor_rows(x, first, m), y_m = tensor_rows(y, first, m), h = tensor_rows(&hidden, 0, m);
        swiglu(run, &h, &x_m, &w->gate, &w->up);
        linear(run, &y_m, &h, &w->down, NULL);
    }
    arena_restore(run->arena, mark);
}

/* Whether [views, h, w, in] gives [views, oh, ow, out] under weights [out, in, kernel, kernel], flattened or not. */
static bool conv2d_fits(const struct run *run, const struct tensor *y, const struct tensor *x, const struct tensor *w,
                        struct conv2d_shape s)
{
    size_t padding, taps, per_row;
    if (x->dtype != run->dtype || x->n_dims != 4 || y->dtype != run->dtype || y->n_dims != 4 || s.kernel == 0 ||
        s.stride == 0 || !size_mul(2, s.pad, &padding) || !size_mul(s.kernel, s.kernel, &taps) ||
        !size_mul(taps, x->shape[3], &per_row))
        return false;
    if (y->stride[3] != 1 || y->stride[2] != y->shape[3] || y->stride[1] != y->shape[2] * y->stride[2] ||
        y->stride[0] != y->shape[1] * y->stride[1])
        return false;
    for (int i = 1; i <= 2; i++) {
        size_t side;
        if (!size_add(x->shape[i], padding, &side) || side < s.kernel ||
            y->shape[i] != (side - s.kernel) / s.stride + 1)
            return false;
    }
    if (y->shape[0] != x->shape[0])
        return false;
    if (w->n_dims == 2)
        return is_weight(w, y->shape[3], per_row) && !w->scales;
    return w->n_dims == 4 && is_float_weight(w) && w->shape[0] == y->shape[3] && w->shape[1] == x->shape[3] &&
           w->shape[2] == s.kernel && w->shape[3] == s.kernel && w->stride[3] == 1 && w->stride[2] == s.kernel &&
           w->stride[1] == taps && w->stride[0] == per_row;
}

void conv2d(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w,
            const struct tensor *bias, struct conv2d_shape shape)
{
    bool fits = conv2d_fits(run, y, x, w, shape) && (!bias || is_vector(bias, y->shape[3]));
    if (!ADMIT(run, "conv2d", fits, {"y", y}, {"x", x}, {"w", w}, {"bias", bias}))
        return;
    struct tensor flat = tensor_2d(w->dtype, w->data, w->shape[0], x->shape[3] * shape.kernel * shape.kernel);
    flat.stride[0] = w->stride[0];
    run->kernels->conv2d(run, y, x, &flat, bias, shape);
    trace(run, "conv2d", y);
}

void layernorm(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w,
               const struct tensor *bias, float eps)
{
    bool fits = is_act(run, y) && is_act(run, x) && same_shape(y, x) && is_vector(w, x->shape[1]) &&
                is_vector(bias, x->shape[1]);
    if (!ADMIT(run, "layernorm", fits, {"y", y}, {"x", x}, {"w", w}, {"bias", bias}))
        return;
    run->kernels->layernorm(run, y, x, w, bias, eps);
    trace(run, "layernorm", y);
}

void rmsnorm(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w, float eps)
{
    bool fits = is_act(run, y) && is_act(run, x) && same_shape(y, x) && is_vector(w, x->shape[1]);
    if (!ADMIT(run, "rmsnorm", fits, {"y", y}, {"x", x}, {"w", w}))
        return;
    run->kernels->rmsnorm(run, y, x, w, eps);
    trace(run, "rmsnorm", y);
}

void rope(struct run *run, struct tensor *x, size_t n_heads, const int32_t *pos, float theta)
{
    bool fits = is_act(run, x) && n_heads > 0 && x->shape[1] % n_heads == 0 && x->shape[1] / n_heads % 2 == 0;
    if (!ADMIT(run, "rope", fits, {"x", x}))
        return;
    run->kernels->rope(run, x, n_heads, pos, theta);
    trace(run, "rope", x);
}

void add(struct run *run, struct tensor *x, const struct tensor *y)
{
    bool fits = is_act(run, x) && is_act(run, y) && same_shape(x, y);
    if (!ADMIT(run, "add", fits, {"x", x}, {"y", y}))
        return;
    run->kernels->add(run, x, y);
    trace(run, "add", x);
}

void embed(struct run *run, struct tensor *y, const struct tensor *table, const int32_t *ids)
{
    bool fits = is_act(run, y) && is_weight(table, table->shape[0], y->shape[1]) && !table->scales;
    if (!ADMIT(run, "embed", fits, {"y", y}, {"table", table}))
        return;
    for (size_t i = 0; i < y->shape[0] && !run->device; i++) /* a device's ids were checked before they went there */
        if (ids[i] < 0 || (size_t)ids[i] >= table->shape[0]) {
            run_fail(run, FATHOM_EINVAL, "embed: token id %d at %zu is not in [0, %zu)", ids[i], i, table->shape[0]);
            return;
        }
    run->kernels->embed(run, y, table, ids);
    trace(run, "embed", y);
}

void attention_relpos(struct run *run, struct tensor *y, const struct tensor *qkv, const struct tensor *pad,
                      const struct tensor *rel_h, const struct tensor *rel_w, struct relpos_shape s)
{
    size_t n, side_h = s.window ? s.window : s.gh, side_w = s.window ? s.window : s.gw;
    bool padded = s.window && (s.gh % s.window || s.gw % s.window);
    bool fits = is_act(run, y) && is_act(run, qkv) && size_mul(s.gh, s.gw, &n) && size_mul(n, s.n_views, &n) && n > 0 &&
                y->shape[0] == n && qkv->shape[0] == n && s.n_heads > 0 && y->shape[1] % s.n_heads == 0 &&
                qkv->shape[1] == 3 * y->shape[1] && (pad ? is_vector(pad, qkv->shape[1]) : !padded);
    for (int i = 0; i < 2 && fits; i++) {
        const struct tensor *rel = i ? rel_w : rel_h;
        fits = is_float_weight(rel) && rel->n_dims == 2 && rel->shape[0] == 2 * (i ? side_w : side_h) - 1 &&
               rel->shape[1] == y->shape[1] / s.n_heads && rel->stride[1] == 1 && rel->stride[0] == rel->shape[1];
    }
    if (!ADMIT(run, "attention_relpos", fits, {"y", y}, {"qkv", qkv}, {"pad", pad}, {"rel_h", rel_h}, {"rel_w", rel_w}))
        return;
    run->kernels->attention_relpos(run, y, qkv, pad, rel_h, rel_w, s);
    trace(run, "attention_relpos", y);
}

/* q, y [n, n_heads * d], k, v [n, n_kv_heads * d], n_kv_heads dividing n_heads. */
static bool heads_fit(const struct run *run, const struct tensor *y, const struct tensor *q, const struct tensor *k,
                      const struct tensor *v, size_t n_heads, size_t n_kv_heads)
{
    return is_act(run, y) && is_act(run, q) && is_act(run, k) && is_act(run, v) && n_kv_heads > 0 && n_heads > 0 &&
           n_heads % n_kv_heads == 0 && q->shape[1] % n_heads == 0 && same_shape(y, q) && same_shape(k, v) &&
           k->shape[0] == q->shape[0] && k->shape[1] == q->shape[1] / n_heads * n_kv_heads;
}

void attention_prefix(struct run *run, struct tensor *y, const struct tensor *q, const struct tensor *k,
                      const struct tensor *v, size_t n_heads, size_t n_kv_heads, size_t n_seqs, size_t prefix)
{
    bool fits = heads_fit(run, y, q, k, v, n_heads, n_kv_heads) && n_seqs > 0 && q->shape[0] % n_seqs == 0 &&
                prefix <= q->shape[0] / n_seqs;
    if (!ADMIT(run, "attention_prefix", fits, {"y", y}, {"q", q}, {"k", k}, {"v", v}))
        return;
    run->kernels->attention_prefix(run, y, q, k, v, n_heads, n_kv_heads, n_seqs, prefix);
    trace(run, "attention_prefix", y);
}

void attention_causal(struct run *run, struct tensor *y, const struct tensor *q, const struct tensor *k,
                      const struct tensor *v, struct kv_layer *kv, size_t n_heads, size_t pos)
{
    bool fits = heads_fit(run, y, q, k, v, n_heads, kv->n_kv_heads) && q->shape[1] / n_heads == kv->head_dim &&
                kv->capacity % ATTENTION_TILE == 0;
    if (!ADMIT(run, "attention_causal", fits, {"y", y}, {"q", q}, {"k", k}, {"v", v}))
        return;
    if (pos > kv->capacity || q->shape[0] > kv->capacity - pos) {
        run_fail(run, FATHOM_ELIMIT, "attention_causal: %zu tokens at position %zu, the cache holds %zu", q->shape[0],
                 pos, kv->capacity);
        return;
    }
    run->kernels->attention_causal(run, y, q, k, v, kv, n_heads, pos);
    trace(run, "attention_causal", y);
}

void softmax_topk(struct run *run, const struct tensor *logits, size_t top_k, int32_t *ids, float *weights)
{
    bool fits = is_matrix(logits) && top_k > 0 && top_k <= logits->shape[1] && logits->shape[1] <= INT32_MAX;
    if (!ADMIT(run, "softmax_topk", fits, {"logits", logits}))
        return;
    run->kernels->softmax_topk(run, logits, top_k, ids, weights);
    struct tensor out = tensor_2d(DTYPE_F32, weights, logits->shape[0], top_k);
    trace(run, "softmax_topk", &out);
}

void moe(struct run *run, struct tensor *y, const struct tensor *x, const struct moe_weights *w)
{
    bool fits = is_act(run, y) && is_act(run, x) && same_shape(y, x) &&
                is_weight(&w->router, w->n_experts, x->shape[1]) && moe_experts_fit(w, x->shape[1]);
    if (!ADMIT(run, "moe", fits, {"y", y}, {"x", x}, {"router", &w->router}))
        return;
    run->kernels->moe(run, y, x, w);
    trace(run, "moe", y);
}
