/* DeepSeek-OCR (arXiv:2510.18234, spec deepseek-ocr §3.2, §3.4):
 *
 *   view -> SAM tower -> CLIP over the same tokens -> projector of [CLIP, SAM] -> m x m vision tokens
 *   page -> [mosaic of the tiles, a newline after each row][global view, a newline after each row][separator]
 */
#include "models/deepseek_ocr1.h"

#include "weights/bind.h"

enum fathom_status ocr1_bind(struct ocr1 *m, const struct model_config *cfg, const struct weights *w,
                             struct fathom_err *err)
{
    struct binder b = binder_init(w, err);
    enum fathom_status status;

    if (cfg->sam.out_dim != cfg->clip.dim)
        return fail(err, FATHOM_EFORMAT, "the vision tower ends with %zu channels, CLIP begins with %zu",
                    cfg->sam.out_dim, cfg->clip.dim);
    if ((status = sam_bind(&m->sam, &cfg->sam, w, err)) || (status = clip_bind(&m->clip, &cfg->clip, w, err)) ||
        (status = decoder_bind(&m->decoder, &cfg->decoder, w, err)))
        return status;
    bind_prefix(&b, "model.");
    bind_matrix(&b, &m->projector_w, "projector.layers.weight", cfg->decoder.dim, cfg->clip.dim + cfg->sam.out_dim);
    bind_vector(&b, &m->projector_b, "projector.layers.bias", cfg->decoder.dim);
    bind_vector(&b, &m->image_newline, "image_newline", cfg->decoder.dim);
    bind_vector(&b, &m->view_separator, "view_seperator", cfg->decoder.dim); /* published with this spelling */
    return b.status;
}

void ocr1_release(struct ocr1 *m) { decoder_release(&m->decoder); }

struct ocr1_view ocr1_view_forward(struct run *run, const struct ocr1 *m, const float *pixels, size_t side,
                                   size_t n_views)
{
    struct ocr1_view v;
    v.sam = sam_forward(run, &m->sam, pixels, side, n_views);
    v.clip = clip_forward(run, &m->clip, &v.sam, n_views);
    size_t n = v.sam.shape[0], n_clip = v.clip.shape[1], n_sam = v.sam.shape[1];
    v.projector = run_alloc(run, n, m->decoder.cfg.dim);
    struct arena_mark mark = arena_save(run->arena);
    struct tensor both = run_alloc(run, n, n_clip + n_sam); /* CLIP first */
    struct tensor left = tensor_cols(&both, 0, n_clip), right = tensor_cols(&both, n_clip, n_sam);
    copy(run, &left, &v.clip);
    copy(run, &right, &v.sam);
    linear(run, &v.projector, &both, &m->projector_w, &m->projector_b);
    arena_restore(run->arena, mark);
    return v;
}

size_t ocr1_image_tokens(const struct ocr1 *m, const struct picture *p)
{
    size_t base = sam_map_side(&m->sam.cfg, p->base_side), n = base * (base + 1) + 1;
    if (p->n_local) {
        size_t tile = sam_map_side(&m->sam.cfg, p->tile_side);
        n += p->down * tile * (p->across * tile + 1);
    }
    return n;
}

/* Row `row` of block = the one row of a table. */
static void put_row(struct run *run, struct tensor *block, size_t row, const struct tensor *vector)
{
    struct tensor dst = tensor_rows(block, row, 1);
    struct tensor table = tensor_2d(vector->dtype, vector->data, 1, vector->shape[0]);
    copy(run, &dst, &table);
}

/* The m x m tokens of a view into the mosaic that begins at row `first` of block and is `width` tokens wide without its
 * newlines; the view's corner lies at (left, top) in tokens. */
static void put_view(struct run *run, struct tensor *block, size_t first, size_t width, size_t left, size_t top,
                     const struct tensor *tokens, size_t m)
{
    for (size_t y = 0; y < m; y++) {
        struct tensor to = tensor_rows(block, first + (top + y) * (width + 1) + left, m);
        struct tensor from = tensor_rows(tokens, y * m, m);
        copy(run, &to, &from);
    }
}

void ocr1_picture_forward(struct run *run, const struct ocr1 *m, const struct picture *p, struct tensor *block,
                          picture_fn *on_view, void *ctx)
{
    size_t base = sam_map_side(&m->sam.cfg, p->base_side);
    size_t tile = p->n_local ? sam_map_side(&m->sam.cfg, p->tile_side) : 0, width = p->across * tile;
    size_t first = p->n_local ? p->down * tile * (width + 1) : 0; /* row where the global view begins */

    for (size_t i = 0, n; i <= p->n_local && run_ok(run); i += n) {
        size_t side, left = i < p->n_local ? p->n_local - i : 1;
        const float *pixels = picture_view(p, i, &side);
        n = left < run->kernels->max_views ? left : run->kernels->max_views;
        struct arena_mark mark = arena_save(run->arena);
        struct ocr1_view v = ocr1_view_forward(run, m, pixels, side, n);
        for (size_t j = 0; j < n; j++) {
            size_t at = i + j, n_tok = v.projector.shape[0] / n;
            struct tensor tokens = tensor_rows(&v.projector, j * n_tok, n_tok);
            if (at < p->n_local)
                put_view(run, block, 0, width, at % p->across * tile, at / p->across * tile, &tokens, tile);
            else
                put_view(run, block, first, base, 0, 0, &tokens, base);
        }
        arena_restore(run->arena, mark);
        if (on_view && !on_view(ctx, i + n, p->n_local + 1))
            run_fail(run, FATHOM_ECANCELLED, "cancelled");
    }
    for (size_t y = 0; y < p->down * tile && p->n_local; y++)
        put_row(run, block, y * (width + 1) + width, &m->image_newline);
    for (size_t y = 0; y < base; y++)
        put_row(run, block, first + y * (base + 1) + base, &m->image_newline);
    put_row(run, block, first + base * (base + 1), &m->view_separator);
}
