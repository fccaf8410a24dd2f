/* Mixture of experts; see ref/moe.c for the definition.
 *
 * Few tokens, one after the other: each chosen expert's rows are streamed, in three forks: router; gate and up of all
 * chosen experts and of the shared one; down, where a task owns some outputs and takes the experts in ascending order.
 * Many: tokens are grouped by expert and the experts' products are the jobs of two forks (gemm.h); the second keeps
 * the experts' order for every output, so the sum is the same chain. Limit: memory for few tokens, then multiply-adds. */
#include <string.h>

#include "kernel/x86/finish.h"
#include "kernel/x86/gemm.h"
#include "kernel/x86/matvec.h"
#include "kernel/x86/simd_ops.h"

#define FEW_TOKENS 4    /* they seldom share an expert: streaming costs less than blocked products of a row or two */
#define MAX_TOKENS 1024 /* in one pass: scratch is [tokens * top_k, hidden] */

/* The experts of each token in ascending order of id, with their final weights. */
struct choice {
    const int32_t *ids; /* [n, top_k] */
    const float *weights;
};

static void sort_by_id(int32_t *ids, float *weights, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        int32_t id = ids[i];
        float weight = weights[i];
        size_t j = i;
        for (; j > 0 && ids[j - 1] > id; j--)
            ids[j] = ids[j - 1], weights[j] = weights[j - 1];
        ids[j] = id, weights[j] = weight;
    }
}

static bool choose(struct run *run, const struct tensor *x, const struct moe_weights *w, struct choice *c)
{
    size_t n = x->shape[0], k = w->top_k;
    enum fathom_dtype act = run->act;
    struct tensor logits = run_alloc(run, n, w->n_experts);
    int32_t *ids = run_scratch(run, n * k, sizeof *ids);
    float *all_weights = run_scratch(run, n * k, sizeof *all_weights);
    if (!run_ok(run))
        return false;
    run->act = FATHOM_F32;
    SIMD_NAME(linear)(run, &logits, x, &w->router, NULL, EPILOGUE_NONE);
    run->act = act;
    SIMD_NAME(softmax_topk)(run, &logits, k, ids, all_weights);
    if (!run_ok(run))
        return false;
    for (size_t row = 0; row < n; row++) {
        float *weights = all_weights + row * k, sum = 0.0f;
        for (size_t i = 0; i < k; i++)
            sum += weights[i];
        for (size_t i = 0; i < k; i++)
            weights[i] = (w->norm_topk ? weights[i] / sum : weights[i]) * w->routed_scale;
        sort_by_id(ids + row * k, weights, k);
    }
    *c = (struct choice){ids, all_weights};
    return true;
}

/* ---- one token --------------------------------------------------------------------------------------------------- */

struct streamed { /* a chosen expert, or the shared one */
    const struct mlp_weights *w;
    float *hidden;
    struct matvec_input input; /* hidden, when it is complete */
    float weight;
    size_t first_block; /* of its hidden rows among those of all experts */
};

struct decode {
    struct matvec_input x;
    float *y;
    size_t dim;
    bool round;
    float limit;              /* of swiglu                                               */
    struct streamed *experts; /* n_routed chosen ones, then perhaps the shared one */
    size_t n_experts, n_routed;
    size_t n_blocks;
    const size_t *starts; /* of each task's run of blocks */
};

/* Block `block` of the hidden rows of all experts laid end to end. */
struct hidden_block {
    const struct streamed *expert;
    size_t block; /* in the expert */
};

static struct hidden_block hidden_block(const struct decode *d, size_t block)
{
    size_t e = 0;
    while (e + 1 < d->n_experts && d->experts[e + 1].first_block <= block)
        e++;
    return (struct hidden_block){&d->experts[e], block - d->experts[e].first_block};
}

static void hidden_task(void *ctx, size_t task, int thread)
{
    (void)thread;
    const struct decode *d = ctx;
    size_t block = d->starts[task], end = d->starts[task + 1];
    float gate[MATVEC_MAX_M * MATVEC_ROWS], up[MATVEC_MAX_M * MATVEC_ROWS];
    struct hidden_block at = hidden_block(d, block);
    struct weight_rows gate_rows = matvec_block(&at.expert->w->gate, at.block);
    struct weight_rows up_rows = matvec_block(&at.expert->w->up, at.block);
    SIMD_NAME(matvec_begin)(gate_rows);
    SIMD_NAME(matvec_begin)(up_rows);
    for (; block < end; block++) {
        struct hidden_block next = hidden_block(d, block + 1 < end ? block + 1 : block);
        struct weight_rows next_gate = matvec_block(&next.expert->w->gate, next.block);
        struct weight_rows next_up = matvec_block(&next.expert->w->up, next.block);
        SIMD_NAME(matvec)(gate_rows, &d->x, gate, &next_gate);
        SIMD_NAME(matvec)(up_rows, &d->x, up, &next_up);
        finish_swiglu(d->round, d->limit, gate_rows.n, at.expert->hidden + gate_rows.first, gate, up);
        at = next, gate_rows = next_gate, up_rows = next_up;
    }
}

/* total = what `sum` of expert e makes of it */
static void add_expert(const struct decode *d, size_t e, vf *total, const float *sum)
{
    for (size_t g = 0; g < MATVEC_ROWS / SIMD_LANES; g++) {
        vf v = v_stored(d->round, v_load(sum + g * SIMD_LANES));
        if (e < d->n_routed)
            total[g] = v_fma(v_set(d->experts[e].weight), v, total[g]);
        if (e + 1 == d->n_routed)
            total[g] = v_stored(d->round, total[g]);
        if (e >= d->n_routed)
            total[g] = v_stored(d->round, total[g] + v);
    }
}

/* Some blocks of outputs, each through all experts. */
static void down_task(void *ctx, size_t task, int thread)
{
    (void)thread;
    const struct decode *d = ctx;
    size_t block = d->starts[task], end = d->starts[task + 1];
    float sum[MATVEC_MAX_M * MATVEC_ROWS];
    struct weight_rows rows = matvec_block(&d->experts[0].w->down, block);
    SIMD_NAME(matvec_begin)(rows);
    for (; block < end; block++) {
        vf total[MATVEC_ROWS / SIMD_LANES];
        for (size_t g = 0; g < MATVEC_ROWS / SIMD_LANES; g++)
            total[g] = v_zero();
        for (size_t e = 0; e < d->n_experts; e++) {
            bool last = e + 1 == d->n_experts;
            struct weight_rows next = rows;
            if (!last || block + 1 < end)
                next = matvec_block(&d->experts[last ? 0 : e + 1].w->down, block + last);
            SIMD_NAME(matvec)(rows, &d->experts[e].input, sum, &next);
            add_expert(d, e, total, sum);
            rows = next;
        }
        for (size_t g = 0; g < MATVEC_ROWS / SIMD_LANES; g++)
            v_store(sum + g * SIMD_LANES, total[g]);
        memcpy(d->y + block * MATVEC_ROWS, sum, matvec_block(&d->experts[0].w->down, block).n * sizeof *sum);
    }
}

static void moe_one(struct run *run, struct tensor *y, const struct tensor *x, size_t row, const struct moe_weights *w,
                    const struct choice *c)
{
    const int32_t *ids = c->ids + row * w->top_k;
    const float *weights = c->weights + row * w->top_k;
    struct arena_mark mark = arena_save(run->arena);
    struct decode d = {.x = SIMD_NAME(matvec_input)(tensor_row(x, row), 0, 1, x->shape[1]),
                       .y = tensor_row(y, row),
                       .dim = x->shape[1],
                       .round = run->act == FATHOM_BF16,
                       .limit = w->swiglu_limit,
                       .n_experts = w->top_k + (w->shared.gate.data ? 1 : 0),
                       .n_routed = w->top_k};
    d.experts = run_scratch(run, d.n_experts, sizeof *d.experts);
    for (size_t e = 0; e < d.n_experts && run_ok(run); e++) {
        struct streamed *s = &d.experts[e];
        bool routed = e < d.n_routed;
        *s = (struct streamed){.w = routed ? &w->experts[ids[e]] : &w->shared,
                               .weight = routed ? weights[e] : 1.0f,
                               .first_block = d.n_blocks};
        s->hidden = run_scratch(run, s->w->gate.shape[0], sizeof(float));
        d.n_blocks += matvec_blocks(s->w->gate.shape[0]);
    }
    size_t n_out = matvec_blocks(d.dim);
    int n_threads = pool_threads(run->pool);
    size_t *starts = run_scratch(run, 1 + (d.n_blocks > n_out ? d.n_blocks : n_out), sizeof *starts);
    d.starts = starts;
    if (starts) {
        pool_run(run->pool, matvec_runs(d.n_blocks, n_threads, starts), hidden_task, &d);
        for (size_t e = 0; e < d.n_experts; e++)
            d.experts[e].input = SIMD_NAME(matvec_input)(d.experts[e].hidden, 0, 1, d.experts[e].w->gate.shape[0]);
        pool_run(run->pool, matvec_runs(n_out, n_threads, starts), down_task, &d);
    }
    arena_restore(run->arena, mark);
}

/* ---- several ------------------------------------------------------------------------------------------------------ */

/* A slot is one token at one of its experts; slots of an expert are neighbours, tokens ascending. */
struct slot {
    float weight;
    bool first, last; /* of the token's experts */
};

struct group { /* the slots of an expert, or all tokens at the shared one */
    const struct mlp_weights *mlp;
    struct tensor *y;
    bool round;
    float limit;              /* of swiglu       */
    struct tensor hidden;     /* [slots, hidden] */
    const int32_t *tokens;    /* of each slot; NULL: the slot's number */
    const struct slot *slots; /* NULL: shared    */
};

static void finish_hidden(const struct gemm_job *job, size_t row, size_t col, size_t n_cols, float *c, const float *c2)
{
    const struct group *g = job->ctx;
    finish_swiglu(g->round, g->limit, n_cols, (float *)tensor_row(&g->hidden, row) + col, c, c2);
}

static void finish_down(const struct gemm_job *job, size_t row, size_t col, size_t n_cols, float *c, const float *c2)
{
    (void)c2;
    const struct group *g = job->ctx;
    const struct slot *slot = g->slots ? &g->slots[row] : NULL;
    float *y = (float *)tensor_row(g->y, g->tokens ? (size_t)g->tokens[row] : row) + col;
    for (size_t i = 0; i < n_cols; i += SIMD_LANES) {
        size_t lanes = n_cols - i < SIMD_LANES ? n_cols - i : SIMD_LANES;
        vf v = v_stored(g->round, v_load_n(c + i, lanes));
        vf sum = slot && slot->first ? v_zero() : v_load_n(y + i, lanes);
        if (slot) {
            sum = v_fma(v_set(slot->weight), v, sum);
            sum = v_stored(g->round && slot->last, sum);
        } else {
            sum = v_stored(g->round, sum + v);
        }
        v_store_n(y + i, sum, lanes);
    }
}

/* Slots in order of expert: first[e] is the first of expert e, first[n_experts] their number. */
static void sort_slots(const struct choice *c, size_t n, const struct moe_weights *w, size_t *first, int32_t *tokens,
                       struct slot *slots)
{
    size_t k = w->top_k;
    memset(first, 0, (w->n_experts + 2) * sizeof *first);
    for (size_t i = 0; i < n * k; i++)
        first[c->ids[i] + 2]++;
    for (size_t e = 2; e < w->n_experts + 2; e++)
        first[e] += first[e - 1];
    for (size_t i = 0; i < n * k; i++) { /* first[e + 1] runs from the start of e to its end */
        size_t at = first[c->ids[i] + 1]++;
        tokens[at] = (int32_t)(i / k);
        slots[at] = (struct slot){.weight = c->weights[i], .first = i % k == 0, .last = i % k == k - 1};
    }
}

static void moe_many(struct run *run, struct tensor *y, const struct tensor *x, const struct moe_weights *w,
                     const struct choice *c)
{
    size_t n = x->shape[0], dim = x->shape[1], hidden_dim = w->experts[0].gate.shape[0], n_slots = n * w->top_k;
    bool shared = w->shared.gate.data, round = run->act == FATHOM_BF16;
    size_t *first = run_scratch(run, w->n_experts + 2, sizeof *first);
    int32_t *tokens = run_scratch(run, n_slots, sizeof *tokens);
    struct slot *slots = run_scratch(run, n_slots, sizeof *slots);
    struct group *groups = run_scratch(run, w->n_experts + 1, sizeof *groups);
    struct gemm_job *jobs = run_scratch(run, w->n_experts + 1, sizeof *jobs);
    struct tensor hidden = run_alloc(run, n_slots, hidden_dim), shared_hidden = {0};
    if (shared)
        shared_hidden = run_alloc(run, n, w->shared.gate.shape[0]);
    if (!run_ok(run))
        return;
    sort_slots(c, n, w, first, tokens, slots);

    size_t n_jobs = 0;
    for (size_t e = 0; e <= w->n_experts; e++) {
        bool routed = e < w->n_experts;
        size_t m = routed ? first[e + 1] - first[e] : shared ? n : 0;
        const struct mlp_weights *mlp = routed ? &w->experts[e] : &w->shared;
        if (m == 0)
            continue;
        struct group *g = &groups[n_jobs];
        *g = (struct group){.mlp = mlp, .y = y, .round = round, .limit = w->swiglu_limit};
        g->hidden = shared_hidden;
        if (routed) {
            g->hidden = tensor_rows(&hidden, first[e], m);
            g->tokens = tokens + first[e];
            g->slots = slots + first[e];
        }
        jobs[n_jobs++] = (struct gemm_job){.m = m,
                                           .n = mlp->gate.shape[0],
                                           .k = dim,
                                           .w = &mlp->gate,
                                           .w2 = &mlp->up,
                                           .x = x->data,
                                           .x_stride = x->stride[0],
                                           .rows = g->tokens,
                                           .finish = finish_hidden,
                                           .ctx = g};
    }
    SIMD_NAME(gemm)(run, jobs, n_jobs);

    for (size_t i = 0; i < n_jobs; i++) {
        const struct group *g = &groups[i];
        jobs[i] = (struct gemm_job){.m = jobs[i].m,
                                    .n = dim,
                                    .k = g->hidden.shape[1],
                                    .w = &g->mlp->down,
                                    .x = g->hidden.data,
                                    .x_stride = g->hidden.stride[0],
                                    .finish = finish_down,
                                    .ctx = g};
    }
    SIMD_NAME(gemm_in_order)(run, jobs, n_jobs);
}

/* At most MAX_TOKENS of them. */
static void moe_pass(struct run *run, struct tensor *y, const struct tensor *x, const struct moe_weights *w,
                     const struct choice *c)
{
    if (x->shape[0] > FEW_TOKENS)
        moe_many(run, y, x, w, c);
    else
        for (size_t row = 0; row < x->shape[0]; row++)
            moe_one(run, y, x, row, w, c);
}

void SIMD_NAME(moe)(struct run *run, struct tensor *y, const struct tensor *x, const struct moe_weights *w)
{
    for (size_t first = 0; first < x->shape[0] && run_ok(run); first += MAX_TOKENS) {
        size_t n = x->shape[0] - first < MAX_TOKENS ? x->shape[0] - first : MAX_TOKENS;
        struct arena_mark mark = arena_save(run->arena);
        struct tensor x_n = tensor_rows(x, first, n), y_n = tensor_rows(y, first, n);
        struct choice c;
        if (choose(run, &x_n, w, &c))
            moe_pass(run, &y_n, &x_n, w, &c);
        arena_restore(run->arena, mark);
    }
}

void SIMD_NAME(moe_chosen)(struct run *run, struct tensor *y, const struct tensor *x, const struct moe_weights *w,
                           const int32_t *ids, const float *weights)
{
    for (size_t first = 0; first < x->shape[0] && run_ok(run); first += MAX_TOKENS) {
        size_t n = x->shape[0] - first < MAX_TOKENS ? x->shape[0] - first : MAX_TOKENS;
        struct arena_mark mark = arena_save(run->arena);
        struct tensor x_n = tensor_rows(x, first, n), y_n = tensor_rows(y, first, n);
        moe_pass(run, &y_n, &x_n, w, &(struct choice){ids + first * w->top_k, weights + first * w->top_k});
        arena_restore(run->arena, mark);
    }
}
