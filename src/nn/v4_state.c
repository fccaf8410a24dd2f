#include "nn/v4_state.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/checked.h"

/* The pieces of a layer's state in the order in which they lie in memory, and their floats. */
enum piece { WINDOW, ENTRIES, PARTIAL, PREVIOUS, KEYS, INDEX_PARTIAL, INDEX_PREVIOUS, N_PIECES };

/* Floats of each piece that n_tok tokens fill; full: what it takes to hold up to n_tok of them. */
static void piece_floats(size_t floats[N_PIECES], const struct v4_state *s, size_t layer, size_t n_tok, bool full)
{
    const struct v4_layer_state *l = &s->layers[layer];
    const struct v4_rows *rows[2] = {&l->main, &l->index};
    memset(floats, 0, N_PIECES * sizeof *floats);
    floats[WINDOW] = (full || n_tok > s->window ? s->window : n_tok) * s->head_dim;
    for (int i = 0; i < 2; i++) {
        const struct v4_rows *r = rows[i];
        if (r->ratio == 0)
            continue;
        size_t n = n_tok / r->ratio;
        if (i == 0)
            floats[ENTRIES] = n * r->dim;
        else
            floats[KEYS] = (n + KV_LANES - 1) / KV_LANES * KV_LANES * r->dim;
        floats[i == 0 ? PARTIAL : INDEX_PARTIAL] = (full ? r->ratio : n_tok % r->ratio) * 2 * r->width;
        if (r->width > r->dim)
            floats[i == 0 ? PREVIOUS : INDEX_PREVIOUS] = (full || n > 0 ? r->ratio : 0) * 2 * r->dim;
    }
}

static size_t layer_floats(const struct v4_state *s, size_t layer, size_t n_tok, bool full)
{
    size_t floats[N_PIECES], sum = 0;
    piece_floats(floats, s, layer, n_tok, full);
    for (size_t i = 0; i < N_PIECES; i++)
        sum += floats[i];
    return sum;
}

static void point(struct v4_layer_state *l, const size_t floats[N_PIECES], float *at)
{
    float **pieces[N_PIECES] = {&l->window,    &l->entries,       &l->main.partial,  &l->main.previous,
                                &l->keys.data, &l->index.partial, &l->index.previous};
    for (size_t i = 0; i < N_PIECES; i++) {
        *pieces[i] = floats[i] ? at : NULL;
        at += floats[i];
    }
}

enum fathom_status v4_state_create(struct v4_state *s, const struct v4_config *c, size_t n_ctx, struct fathom_err *err)
{
    size_t floats = 0;
    memset(s, 0, sizeof *s);
    if (n_ctx > (size_t)1 << 30)
        return fail(err, FATHOM_ELIMIT, "a context of %zu tokens is too long", n_ctx);
    s->n_layers = c->n_layers;
    s->window = c->window;
    s->head_dim = c->head_dim;
    s->capacity = n_ctx;
    for (size_t l = 0; l < c->n_layers; l++) {
        struct v4_layer_state *layer = &s->layers[l];
        size_t ratio = c->ratio[l], halves = ratio == V4_CSA_RATIO ? 2 : 1;
        layer->main = (struct v4_rows){.ratio = ratio, .dim = c->head_dim, .width = halves * c->head_dim};
        if (ratio == V4_CSA_RATIO) {
            layer->index = (struct v4_rows){.ratio = ratio, .dim = c->index_head_dim, .width = 2 * c->index_head_dim};
            layer->keys = (struct index_keys){.dim = c->index_head_dim, .ratio = ratio};
        }
        if (!size_add(floats, layer_floats(s, l, n_ctx, true), &floats))
            return fail(err, FATHOM_ELIMIT, "a context of %zu tokens is too long", n_ctx);
    }
    if (!size_mul(floats, sizeof(float), &s->memory_bytes))
        return fail(err, FATHOM_ELIMIT, "a context of %zu tokens is too long", n_ctx);
    void *memory =
        mmap(NULL, s->memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return fail_nomem(err, s->memory_bytes, "the state of a sequence");
    s->memory = memory;
    float *at = memory;
    for (size_t l = 0; l < c->n_layers; l++) {
        size_t pieces[N_PIECES];
        piece_floats(pieces, s, l, n_ctx, true);
        point(&s->layers[l], pieces, at);
        at += layer_floats(s, l, n_ctx, true);
    }
    return FATHOM_OK;
}

void v4_state_release(struct v4_state *s)
{
    if (s->memory)
        munmap(s->memory, s->memory_bytes);
    memset(s, 0, sizeof *s);
}

void v4_state_reset(struct v4_state *s)
{
    s->n_tok = 0;
    madvise(s->memory, s->memory_bytes, MADV_DONTNEED); /* gives the pages back */
}

size_t v4_state_bytes(const struct v4_state *s, size_t n_tok)
{
    size_t floats = 0;
    for (size_t l = 0; l < s->n_layers; l++)
        floats += layer_floats(s, l, n_tok, false);
    return floats * sizeof(float);
}

/* Copies between the state and data, which holds the filled parts of all pieces end to end. */
static void copy_pieces(const struct v4_state *s, size_t n_tok, float *data, bool out)
{
    for (size_t layer = 0; layer < s->n_layers; layer++) {
        const struct v4_layer_state *l = &s->layers[layer];
        float *const pieces[N_PIECES] = {l->window,    l->entries,       l->main.partial,  l->main.previous,
                                         l->keys.data, l->index.partial, l->index.previous};
        size_t floats[N_PIECES];
        piece_floats(floats, s, layer, n_tok, false);
        for (size_t i = 0; i < N_PIECES; i++) {
            if (floats[i] == 0)
                continue;
            memcpy(out ? data : pieces[i], out ? pieces[i] : data, floats[i] * sizeof *data);
            data += floats[i];
        }
    }
}

enum fathom_status v4_state_save(const struct v4_state *s, struct v4_snapshot *out, struct fathom_err *err)
{
    *out = (struct v4_snapshot){.n_tok = s->n_tok, .bytes = v4_state_bytes(s, s->n_tok)};
    out->data = malloc(out->bytes + 1);
    if (!out->data)
        return fail_nomem(err, out->bytes, "a copy of a sequence's state");
    copy_pieces(s, s->n_tok, out->data, true);
    return FATHOM_OK;
}

enum fathom_status v4_state_restore(struct v4_state *s, const struct v4_snapshot *snapshot, struct fathom_err *err)
{
    if (snapshot->n_tok > s->capacity)
        return fail(err, FATHOM_ELIMIT, "a sequence of %zu tokens does not fit the context of %zu", snapshot->n_tok,
                    s->capacity);
    if (snapshot->bytes != v4_state_bytes(s, snapshot->n_tok))
        return fail(err, FATHOM_EINVAL, "the copy of a sequence is of another model");
    copy_pieces(s, snapshot->n_tok, snapshot->data, false);
    s->n_tok = snapshot->n_tok;
    return FATHOM_OK;
}

void v4_snapshot_release(struct v4_snapshot *snapshot)
{
    free(snapshot->data);
    memset(snapshot, 0, sizeof *snapshot);
}
