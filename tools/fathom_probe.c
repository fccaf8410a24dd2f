/* fathom-probe [--dtype f32|bf16] [--threads N] [--isa LEVEL] MODEL IN.safetensors OUT.safetensors
 *
 * Runs a model on given ids and pictures and writes what the stages make, for comparison with a reference. Needs no
 * tokenizer. IN holds input_ids ([n] or [1, n], I32) and, all optional, global [1, 3, S, S], local [n, 3, S, S],
 * grid [2] = (across, down) and forced_ids. OUT gets sam.*, encoder.* or clip.*, projector.* [views, tokens, channels] for
 * global and local, embeddings [n, dim], hidden.last [layers + 1, dim] (the last token after the embedding and after each
 * layer, the last row after model.norm), logits.last [vocab] and, with forced_ids, logits.forced [m, vocab]: row j holds
 * the logits after forced id j was fed.
 *
 * For DeepSeek-V4, IN holds input_ids and, optional, chunks: how many of them go into the model at a time. OUT gets logits
 * [n, vocab], hidden.last [layers + 1, streams * dim] (the last token after the embedding and after each layer) and, for
 * each layer L with an indexer, index.layerL [n, top k]: the entries that each position sees, ascending, then -1. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "engine/context.h"
#include "engine/vision.h"
#include "probe_io.h"
#include "probe_v4.h"

/* Pictures of IN as floats [n, 3, S, S]; NULL when they are not there. */
static float *read_pictures(const struct safetensors *in, const char *name, size_t *n, size_t *side,
                            struct fathom_err *err)
{
    const struct safetensors_tensor *t = safetensors_find(in, name);
    if (!t)
        return NULL;
    const struct tensor *p = &t->tensor;
    if (p->n_dims != 4 || p->shape[1] != 3 || p->shape[2] != p->shape[3] || p->shape[2] % 64 || p->shape[2] == 0 ||
        (p->dtype != DTYPE_F32 && p->dtype != DTYPE_BF16)) {
        fail(err, FATHOM_EFORMAT, "'%s' is not [n, 3, S, S] in F32 or BF16 with S a multiple of 64", name);
        return NULL;
    }
    size_t count = tensor_elements(p);
    float *out = malloc((count + 1) * sizeof *out);
    if (!out) {
        fail_nomem(err, count * sizeof *out, name);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        uint16_t half;
        if (p->dtype == DTYPE_F32)
            memcpy(&out[i], (const char *)p->data + 4 * i, 4);
        else
            memcpy(&half, (const char *)p->data + 2 * i, 2), out[i] = bf16_to_f32(half);
    }
    *n = p->shape[0];
    *side = p->shape[2];
    return out;
}

/* The tower, what comes after it (CLIP or encoder), and the projector. */
struct stages {
    struct tensor t[3];
};

static struct stages run_view(struct run *run, const struct fathom_model *m, const float *pixels, size_t side)
{
    if (m->config.kind == MODEL_OCR1) {
        struct ocr1_view v = ocr1_view_forward(run, &m->ocr1, pixels, side, 1);
        return (struct stages){{v.sam, v.clip, v.projector}};
    }
    struct ocr2_view v = ocr2_view_forward(run, &m->ocr2, pixels, side, 1);
    return (struct stages){{v.sam, v.encoder, v.projector}};
}

/* Runs the views of one kind and keeps their stages. */
static enum fathom_status run_views(struct fathom_context *ctx, const float *pixels, size_t n_views, size_t side,
                                    const char *const names[3], struct outputs *out, struct fathom_err *err)
{
    const struct fathom_model *m = ctx->model;
    size_t map = sam_map_side(&m->config.sam, side), n = map * map;
    size_t second = m->config.kind == MODEL_OCR1 ? m->config.clip.dim : m->config.encoder.dim;
    size_t width[3] = {m->config.sam.out_dim, second, m->config.decoder.dim};
    float *dst[3];

    for (int i = 0; i < 3; i++)
        if (!(dst[i] = add_output(out, names[i], 3, (size_t[]){n_views, n, width[i]}, err)))
            return err->status;
    for (size_t v = 0; v < n_views; v++) {
        struct run run = context_run(ctx);
        struct arena_mark mark = arena_save(run.arena);
        struct stages stages = run_view(&run, m, pixels + v * 3 * side * side, side);
        if (!run_ok(&run)) {
            *err = run.err;
            return err->status;
        }
        for (int i = 0; i < 3; i++)
            memcpy(dst[i] + v * n * width[i], stages.t[i].data, n * width[i] * sizeof(float));
        arena_restore(run.arena, mark);
    }
    return FATHOM_OK;
}

/* Keeps the last row of the residual stream: after the embedding, and after every second addition (a layer is two). */
struct hidden_trace {
    float *rows; /* [n_layers + 1, dim] */
    size_t n_layers, dim, n_adds;
    bool on;
};

static void trace_hidden(void *ctx, const char *op, const struct tensor *out)
{
    struct hidden_trace *t = ctx;
    if (!t->on || out->n_dims != 2 || out->shape[1] != t->dim)
        return;
    const float *last = tensor_row(out, out->shape[0] - 1);
    if (strcmp(op, "embed") == 0)
        t->n_adds = 0;
    else if (strcmp(op, "add") == 0 && ++t->n_adds % 2 == 0)
        memcpy(t->rows + t->n_adds / 2 * t->dim, last, t->dim * sizeof(float));
    else if (strcmp(op, "rmsnorm") == 0 && t->n_adds == 2 * t->n_layers)
        memcpy(t->rows + t->n_layers * t->dim, last, t->dim * sizeof(float));
}

struct inputs {
    struct safetensors file;
    int32_t *ids, *forced;
    float *global, *local;
    size_t n_ids, n_forced, n_global, n_local, base_side, tile_side;
    int32_t grid[2]; /* across, down; one row when the file does not say */
};

static enum fathom_status read_inputs(struct inputs *in, const char *path, struct fathom_err *err)
{
    if (safetensors_open(&in->file, path, err))
        return err->status;
    in->ids = read_ids(&in->file, "input_ids", &in->n_ids, err);
    if (!in->ids || in->n_ids == 0)
        return err->status ? err->status : fail(err, FATHOM_EINVAL, "'%s' has no input_ids", path);
    in->forced = read_ids(&in->file, "forced_ids", &in->n_forced, err);
    in->global = read_pictures(&in->file, "global", &in->n_global, &in->base_side, err);
    in->local = read_pictures(&in->file, "local", &in->n_local, &in->tile_side, err);
    size_t n_grid = 0;
    int32_t *grid = read_ids(&in->file, "grid", &n_grid, err);
    if (grid && (n_grid != 2 || grid[0] < 0 || grid[1] < 0))
        fail(err, FATHOM_EFORMAT, "'grid' is not two numbers, across and down");
    in->grid[0] = grid ? grid[0] : (int32_t)in->n_local;
    in->grid[1] = grid ? grid[1] : 1;
    free(grid);
    return err->status;
}

static void release_inputs(struct inputs *in)
{
    free(in->ids);
    free(in->forced);
    free(in->global);
    free(in->local);
    safetensors_close(&in->file);
}

/* Keeps the stages of all views, and the page's vision tokens in block. */
static enum fathom_status see(struct fathom_context *ctx, const struct inputs *in, struct tensor *block,
                              struct outputs *out, struct fathom_err *err)
{
    static const char *const names[2][2][3] = {
        {{"sam.global", "clip.global", "projector.global"}, {"sam.local", "clip.local", "projector.local"}},
        {{"sam.global", "encoder.global", "projector.global"}, {"sam.local", "encoder.local", "projector.local"}}};
    const struct fathom_model *m = ctx->model;
    const char *const(*name)[3] = names[m->config.kind == MODEL_OCR2];
    struct picture picture = {.global = in->global,
                              .local = in->local,
                              .n_local = in->n_local,
                              .across = (size_t)in->grid[0],
                              .down = (size_t)in->grid[1],
                              .tile_side = in->tile_side,
                              .base_side = in->base_side};
    struct run run = context_run(ctx);

    if (in->n_global != 1)
        return fail(err, FATHOM_EINVAL, "'global' holds %zu views, expected 1", in->n_global);
    if (picture.across * picture.down != in->n_local)
        return fail(err, FATHOM_EINVAL, "a grid of %zu x %zu for %zu tiles", picture.across, picture.down, in->n_local);
    if (in->local && run_views(ctx, in->local, in->n_local, in->tile_side, name[1], out, err))
        return err->status;
    if (run_views(ctx, in->global, 1, in->base_side, name[0], out, err))
        return err->status;
    *block = run_alloc(&run, vision_tokens(m, &picture), m->config.decoder.dim);
    vision_forward(&run, m, &picture, block, NULL, NULL);
    if (!run_ok(&run)) {
        *err = run.err;
        return err->status;
    }
    return FATHOM_OK;
}

static enum fathom_status probe(struct fathom_context *ctx, const struct inputs *in, struct outputs *out,
                                struct fathom_err *err)
{
    const struct decoder_config *c = &ctx->model->config.decoder;
    int32_t image_id = ctx->model->config.image_id;
    struct hidden_trace trace = {.n_layers = c->n_layers, .dim = c->dim};
    struct tensor block = {0};
    size_t n_image = 0, row = 0;

    for (size_t i = 0; i < in->n_ids; i++)
        n_image += in->ids[i] == image_id;
    if (in->global && see(ctx, in, &block, out, err))
        return err->status;
    if (n_image != (in->global ? block.shape[0] : 0))
        return fail(err, FATHOM_EINVAL, "input_ids hold %zu image tokens (%d), the pictures give %zu", n_image,
                    (int)image_id, in->global ? block.shape[0] : 0);

    float *embeddings = add_output(out, "embeddings", 2, (size_t[]){in->n_ids, c->dim}, err);
    float *logits = add_output(out, "logits.last", 1, &c->vocab_size, err);
    trace.rows = add_output(out, "hidden.last", 2, (size_t[]){c->n_layers + 1, c->dim}, err);
    if (!embeddings || !logits || !trace.rows)
        return err->status;
    struct context_image image = {&block, image_id};
    struct run run = context_run(ctx);
    struct tensor x = tensor_2d(DTYPE_F32, embeddings, in->n_ids, c->dim);
    if (context_check_ids(ctx, in->ids, in->n_ids, err))
        return err->status;
    context_embed(&run, ctx->model->decoder, &x, in->ids, in->global ? &image : NULL, &row);
    memcpy(trace.rows, embeddings + (in->n_ids - 1) * c->dim, c->dim * sizeof(float));

    ctx->trace = trace_hidden;
    ctx->trace_ctx = &trace;
    trace.on = true;
    if (context_append(ctx, in->ids, in->n_ids, in->global ? &image : NULL, 0, NULL, NULL, err))
        return err->status;
    memcpy(logits, ctx->logits, c->vocab_size * sizeof(float));
    trace.on = false;

    if (!in->forced)
        return FATHOM_OK;
    float *forced = add_output(out, "logits.forced", 2, (size_t[]){in->n_forced, c->vocab_size}, err);
    for (size_t i = 0; forced && i < in->n_forced; i++) {
        if (context_append(ctx, &in->forced[i], 1, NULL, 0, NULL, NULL, err))
            return err->status;
        memcpy(forced + i * c->vocab_size, ctx->logits, c->vocab_size * sizeof(float));
    }
    return err->status;
}

static enum fathom_status run_probe(const char *const paths[3], const struct fathom_context_options *options,
                                    struct fathom_err *err)
{
    struct fathom_model *model = NULL;
    struct fathom_context *ctx = NULL;
    struct fathom_context_options sized = *options;
    struct inputs in = {0};
    struct outputs out = {0};

    if (!read_inputs(&in, paths[1], err) && !model_open_network(&model, paths[0], err)) {
        sized.n_ctx = in.n_ids + in.n_forced;
        if (!fathom_context_create(model, &sized, &ctx, err) && !probe(ctx, &in, &out, err))
            write_outputs(&out, paths[2], err);
    }
    release_outputs(&out);
    fathom_context_destroy(ctx);
    fathom_model_close(model);
    release_inputs(&in);
    return err->status;
}

int main(int argc, char **argv)
{
    static const struct option long_options[] = {
        {"dtype", required_argument, NULL, 'd'},
        {"threads", required_argument, NULL, 't'},
        {"isa", required_argument, NULL, 'i'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    static const char usage[] =
        "usage: fathom-probe [--dtype f32|bf16] [--threads N] [--isa ref|avx2|avx512] MODEL IN.safetensors "
        "OUT.safetensors\n";
    struct fathom_context_options options = {0};
    struct fathom_err err = {0};
    bool good = true;
    int c;

    while ((c = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
        char *end = NULL;
        if (c == 'h')
            return fputs(usage, stdout) < 0;
        if (c == 'd' && strcmp(optarg, "bf16") == 0)
            options.dtype = FATHOM_BF16;
        else if (c == 'd' && strcmp(optarg, "f32") == 0)
            options.dtype = FATHOM_F32;
        else if (c == 't')
            options.n_threads = (int)strtol(optarg, &end, 10), good &= *end == 0 && options.n_threads > 0;
        else if (c == 'i')
            options.isa = optarg;
        else
            good = false;
    }
    if (!good || argc - optind != 3) {
        fputs(usage, stderr);
        return 2;
    }
    const char *const paths[3] = {argv[optind], argv[optind + 1], argv[optind + 2]};
    if (v4_is_folder(paths[0]) ? run_probe_v4(paths, &options, &err) : run_probe(paths, &options, &err)) {
        fprintf(stderr, "fathom-probe: %s\n", err.message);
        return 1;
    }
    return 0;
}
