/* DeepSeek-OCR-2 (spec deepseek-ocr §3.3, §3.4):
 *
 *   view -> SAM tower -> encoder -> projector -> 256 (1024 px) or 144 (768 px) vision tokens
 *   page -> [tile 0, tile 1, ..., global view, separator], tiles row by row
 */
#include "models/deepseek_ocr2.h"

#include "weights/bind.h"

enum fathom_status ocr2_bind(struct ocr2 *m, const struct model_config *cfg, const struct weights *w,
                             struct fathom_err *err)
{
    struct binder b = binder_init(w, err);
    enum fathom_status status;

    if (cfg->sam.out_dim != cfg->encoder.dim)
        return fail(err, FATHOM_EFORMAT, "the vision tower ends with %zu channels, the encoder begins with %zu",
                    cfg->sam.out_dim, cfg->encoder.dim);
    if ((status = sam_bind(&m->sam, &cfg->sam, w, err)) ||
        (status = encoder_bind(&m->encoder, &cfg->encoder, w, err)) ||
        (status = decoder_bind(&m->decoder, &cfg->decoder, w, err)))
        return status;
    bind_prefix(&b, "model.");
    bind_matrix(&b, &m->projector_w, "projector.layers.weight", cfg->decoder.dim, cfg->encoder.dim);
    bind_vector(&b, &m->projector_b, "projector.layers.bias", cfg->decoder.dim);
    bind_vector(&b, &m->view_separator, "view_seperator", cfg->decoder.dim); /* published with this spelling */
    return b.status;
}

void ocr2_release(struct ocr2 *m) { decoder_release(&m->decoder); }

struct ocr2_view ocr2_view_forward(struct run *run, const struct ocr2 *m, const float *pixels, size_t side,
                                   size_t n_views)
{
    struct ocr2_view v;
    v.sam = sam_forward(run, &m->sam, pixels, side, n_views);
    v.encoder = encoder_forward(run, &m->encoder, &v.sam, n_views);
    v.projector = run_alloc(run, v.encoder.shape[0], m->decoder.cfg.dim);
    linear(run, &v.projector, &v.encoder, &m->projector_w, &m->projector_b);
    return v;
}

static size_t view_tokens(const struct ocr2 *m, size_t side)
{
    size_t map = sam_map_side(&m->sam.cfg, side);
    return map * map;
}

size_t ocr2_image_tokens(const struct ocr2 *m, const struct picture *p)
{
    return (p->n_local ? p->n_local * view_tokens(m, p->tile_side) : 0) + view_tokens(m, p->base_side) + 1;
}

void ocr2_separator(struct run *run, const struct ocr2 *m, struct tensor *block, size_t row)
{
    size_t dim = m->decoder.cfg.dim;
    struct tensor last = tensor_rows(block, row, 1);
    struct tensor table = tensor_2d(m->view_separator.dtype, m->view_separator.data, 1, dim);
    copy(run, &last, &table);
}

void ocr2_picture_forward(struct run *run, const struct ocr2 *m, const struct picture *p, struct tensor *block,
                          picture_fn *on_view, void *ctx)
{
    size_t row = 0;

    for (size_t i = 0, n; i <= p->n_local && run_ok(run); i += n) {
        size_t side, left = i < p->n_local ? p->n_local - i : 1;
        const float *pixels = picture_view(p, i, &side);
        n = left < run->kernels->max_views ? left : run->kernels->max_views;
        struct arena_mark mark = arena_save(run->arena);
        struct ocr2_view v = ocr2_view_forward(run, m, pixels, side, n);
        struct tensor rows = tensor_rows(block, row, v.projector.shape[0]);
        copy(run, &rows, &v.projector);
        row += v.projector.shape[0];
        arena_restore(run->arena, mark);
        if (on_view && !on_view(ctx, i + n, p->n_local + 1))
            run_fail(run, FATHOM_ECANCELLED, "cancelled");
    }
    ocr2_separator(run, m, block, row);
}
