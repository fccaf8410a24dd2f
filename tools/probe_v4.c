#include "probe_v4.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mapfile.h"
#include "models/deepseek_v4.h"
#include "probe_io.h"

/* Tokens in one go, when IN does not say. */
#define CHUNK 512

bool v4_is_folder(const char *dir)
{
    char *path = NULL;
    bool is = !path_join(&path, dir, "config.json", NULL) && v4_config_is(path);
    free(path);
    return is;
}

struct probe {
    struct v4_config cfg;
    struct weights *weights;
    struct v4 model;
    struct v4_state state;
    struct pool *pool;
    struct arena arena;
    struct safetensors in;
    int32_t *ids, *chunks;
    size_t n, n_chunks;
    struct outputs out;
    char names[MAX_LAYERS][32];
    float *hidden;              /* [n_layers + 1, n_streams * dim]                        */
    int32_t *index[MAX_LAYERS]; /* [n, top_k] in layers with an indexer                  */
    size_t n_merged;            /* hyper-connections closed in this chunk: two a layer    */
    size_t next;                /* position of the next choice of this layer              */
    size_t first_scored;        /* position of the first choice of a layer in this chunk */
};

static void look(void *ctx, const char *op, const struct tensor *out)
{
    struct probe *p = ctx;
    size_t width = p->cfg.n_streams * p->cfg.dim;
    if (!strcmp(op, "index_topk")) {
        size_t k = p->cfg.index_top_k;
        memcpy(p->index[p->n_merged / 2] + p->next * k, out->data, tensor_elements(out) * sizeof(int32_t));
        p->next += out->shape[0];
    } else if (!strcmp(op, "hyper_merge") && ++p->n_merged % 2 == 0) {
        p->next = p->first_scored;
        memcpy(p->hidden + p->n_merged / 2 * width, tensor_row(out, out->shape[0] - 1), width * sizeof(float));
    }
}

/* The tensors of OUT; a position that needs no choice sees all entries that are there. */
static enum fathom_status add_outputs(struct probe *p, float **logits, struct fathom_err *err)
{
    const struct v4_config *c = &p->cfg;
    *logits = add_output(&p->out, "logits", 2, (size_t[]){p->n, c->vocab_size}, err);
    p->hidden = add_output(&p->out, "hidden.last", 2, (size_t[]){c->n_layers + 1, c->n_streams * c->dim}, err);
    for (size_t l = 0; l < c->n_layers && !err->status; l++) {
        if (c->ratio[l] != V4_CSA_RATIO)
            continue;
        size_t k = c->index_top_k;
        snprintf(p->names[l], sizeof p->names[l], "index.layer%zu", l);
        p->index[l] = add_output_of(&p->out, p->names[l], DTYPE_I32, 2, (size_t[]){p->n, k}, err);
        for (size_t i = 0; p->index[l] && i < p->n * k; i++)
            p->index[l][i] = i % k < (i / k + 1) / V4_CSA_RATIO ? (int32_t)(i % k) : -1;
    }
    return err->status;
}

static enum fathom_status forward(struct probe *p, struct run *run, float *logits, size_t n, struct fathom_err *err)
{
    const struct v4_config *c = &p->cfg;
    size_t first = p->state.n_tok, scored = V4_CSA_RATIO * (c->index_top_k + 1) - 1;
    struct arena_mark mark = arena_save(run->arena);
    struct tensor x = run_alloc(run, n, c->n_streams * c->dim);
    struct tensor out = tensor_2d(DTYPE_F32, logits + first * c->vocab_size, n, c->vocab_size);
    p->n_merged = 0;
    p->next = p->first_scored = first > scored ? first : scored;
    v4_embed(run, &p->model, &x, p->ids + first);
    if (run_ok(run))
        memcpy(p->hidden, tensor_row(&x, n - 1), c->n_streams * c->dim * sizeof(float));
    v4_forward(run, &p->model, &p->state, &x, p->ids + first);
    v4_logits(run, &p->model, &out, &x);
    arena_restore(run->arena, mark);
    if (!run_ok(run))
        *err = run->err;
    return err->status;
}

static enum fathom_status check_inputs(const struct probe *p, struct fathom_err *err)
{
    size_t sum = 0;
    for (size_t i = 0; i < p->n; i++)
        if (p->ids[i] < 0 || (size_t)p->ids[i] >= p->cfg.vocab_size)
            return fail(err, FATHOM_EINVAL, "token id %d is outside the vocabulary of %zu", (int)p->ids[i],
                        p->cfg.vocab_size);
    for (size_t i = 0; i < p->n_chunks; i++) {
        if (p->chunks[i] <= 0)
            return fail(err, FATHOM_EINVAL, "a chunk of %d tokens", (int)p->chunks[i]);
        sum += (size_t)p->chunks[i];
    }
    if (p->chunks && sum != p->n)
        return fail(err, FATHOM_EINVAL, "chunks hold %zu tokens, input_ids %zu", sum, p->n);
    return FATHOM_OK;
}

static enum fathom_status open_model(struct probe *p, const char *dir, int n_threads, struct fathom_err *err)
{
    char *path = NULL;
    if (path_join(&path, dir, "config.json", err))
        return err->status;
    v4_config_read(&p->cfg, path, err);
    free(path);
    if (err->status || weights_open(&p->weights, dir, err) || v4_bind(&p->model, &p->cfg, p->weights, err) ||
        v4_state_create(&p->state, &p->cfg, p->n, err))
        return err->status;
    return pool_create(n_threads > 0 ? n_threads : pool_default_threads(), &p->pool, err);
}

static enum fathom_status probe(struct probe *p, const char *const paths[3],
                                const struct fathom_context_options *options, struct fathom_err *err)
{
    float *logits;
    struct run run = {.kernels = kernels_select(options->isa), .arena = &p->arena, .act = options->dtype};
    if (!run.kernels)
        return fail(err, FATHOM_EINVAL, "'%s' is not an instruction set: ref, avx2 or avx512", options->isa);
    if (safetensors_open(&p->in, paths[1], err))
        return err->status;
    p->ids = read_ids(&p->in, "input_ids", &p->n, err);
    p->chunks = read_ids(&p->in, "chunks", &p->n_chunks, err);
    if (!p->ids || p->n == 0)
        return err->status ? err->status : fail(err, FATHOM_EINVAL, "'%s' has no input_ids", paths[1]);
    if (err->status || open_model(p, paths[0], options->n_threads, err) || check_inputs(p, err) ||
        add_outputs(p, &logits, err))
        return err->status;
    run.pool = p->pool;
    run.trace = look;
    run.trace_ctx = p;
    for (size_t i = 0; p->state.n_tok < p->n; i++) {
        size_t left = p->n - p->state.n_tok, n = p->chunks ? (size_t)p->chunks[i] : left < CHUNK ? left : CHUNK;
        if (forward(p, &run, logits, n, err))
            return err->status;
    }
    return write_outputs(&p->out, paths[2], err);
}

enum fathom_status run_probe_v4(const char *const paths[3], const struct fathom_context_options *options,
                                struct fathom_err *err)
{
    struct probe *p = calloc(1, sizeof *p);
    if (!p)
        return fail_nomem(err, sizeof *p, "the probe");
    arena_init(&p->arena, SIZE_MAX);
    probe(p, paths, options, err);
    release_outputs(&p->out);
    free(p->ids);
    free(p->chunks);
    safetensors_close(&p->in);
    pool_destroy(p->pool);
    v4_state_release(&p->state);
    v4_release(&p->model);
    weights_close(p->weights);
    arena_release(&p->arena);
    free(p);
    return err->status;
}
