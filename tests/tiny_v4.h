/* DeepSeek-V4 networks with synth-v1 weights made in memory, and what running them takes. */
#ifndef FATHOM_TESTS_TINY_V4_H
#define FATHOM_TESTS_TINY_V4_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "models/deepseek_v4.h"
#include "weights/synth_v4.h" /* before cmocka.h, which has a macro fail() */

#include <cmocka.h>

struct v4_net {
    struct v4 model;
    struct weights *weights;
    struct pool *pool;
    struct arena arena;
    enum v4_numerics numerics; /* of states that are made */
};

static inline struct v4_config v4_tiny_config(void)
{
    struct v4_config c;
    struct fathom_err err = {0};
    if (v4_config_read(&c, "tests/golden/v4_tiny_config.json", &err))
        fail_msg("%s", err.message);
    return c;
}

static inline struct v4_net *v4_net_create(const struct v4_config *c, int n_threads)
{
    struct v4_net *net = calloc(1, sizeof *net);
    struct v4_tensor *tensors = NULL;
    struct fathom_err err = {0};
    size_t n;
    assert_non_null(net);
    arena_init(&net->arena, SIZE_MAX);
    if (pool_create(n_threads, &net->pool, &err) || v4_tensors(&tensors, &n, c, &err) ||
        synth_v4_weights(&net->weights, tensors, n, c->n_experts, NULL, &err) ||
        v4_bind(&net->model, c, net->weights, &err))
        fail_msg("%s", err.message);
    free(tensors);
    return net;
}

static inline void v4_net_destroy(struct v4_net *net)
{
    assert_int_equal(net->arena.used_bytes, 0);
    v4_release(&net->model);
    weights_close(net->weights);
    pool_destroy(net->pool);
    arena_release(&net->arena);
    free(net);
}

static inline struct v4_state *v4_net_state(const struct v4_net *net, size_t n_ctx)
{
    struct v4_state *s = malloc(sizeof *s);
    struct fathom_err err = {0};
    assert_non_null(s);
    if (v4_state_create(s, &net->model.cfg, n_ctx, &err))
        fail_msg("%s", err.message);
    s->numerics = net->numerics;
    return s;
}

static inline void v4_net_forget(struct v4_state *s)
{
    v4_state_release(s);
    free(s);
}

static inline struct run v4_net_run(struct v4_net *net, const char *level)
{
    return (struct run){.kernels = kernels_select(level), .pool = net->pool, .arena = &net->arena};
}

/* Appends n tokens in one chunk; their logits [n, vocab_size] go to logits unless it is NULL. */
static inline void v4_net_append(struct run *run, const struct v4_net *net, struct v4_state *s, const int32_t *ids,
                                 size_t n, float *logits)
{
    const struct v4_config *c = &net->model.cfg;
    struct arena_mark mark = arena_save(run->arena);
    struct tensor x = run_alloc(run, n, c->n_streams * c->dim);
    v4_embed(run, &net->model, &x, ids);
    v4_forward(run, &net->model, s, &x, ids);
    if (logits) {
        struct tensor out = tensor_2d(DTYPE_F32, logits, n, c->vocab_size);
        v4_logits(run, &net->model, &out, &x);
    }
    arena_restore(run->arena, mark);
    assert_string_equal(run->err.message, "");
}

#endif
