#include "engine/vision.h"

#include "engine/cost.h"

size_t vision_tokens(const struct fathom_model *m, const struct picture *p)
{
    return m->config.kind == MODEL_OCR1 ? ocr1_image_tokens(&m->ocr1, p) : ocr2_image_tokens(&m->ocr2, p);
}

void vision_forward(struct run *run, const struct fathom_model *m, const struct picture *p, struct tensor *block,
                    picture_fn *on_view, void *ctx)
{
    if (m->config.kind == MODEL_OCR1)
        ocr1_picture_forward(run, &m->ocr1, p, block, on_view, ctx);
    else
        ocr2_picture_forward(run, &m->ocr2, p, block, on_view, ctx);
}

static double view_flop(const struct fathom_model *m, size_t side)
{
    size_t map = sam_map_side(&m->config.sam, side), n = map * map;
    double second = m->config.kind == MODEL_OCR1 ? clip_flop(&m->config.clip, n) : encoder_flop(&m->config.encoder, n);
    return sam_flop(&m->config.sam, side) + second;
}

double vision_flop(const struct fathom_model *m, const struct picture *p)
{
    double flop = view_flop(m, p->base_side);
    return p->n_local ? flop + (double)p->n_local * view_flop(m, p->tile_side) : flop;
}
