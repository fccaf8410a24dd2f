/* DeepSeek-OCR-2: SAM tower, encoder, projector and decoder (spec deepseek-ocr §3, §4). */
#ifndef FATHOM_MODELS_DEEPSEEK_OCR2_H
#define FATHOM_MODELS_DEEPSEEK_OCR2_H

#include "models/deepseek_decoder.h"
#include "models/picture.h"
#include "vision/qwen2_encoder.h"
#include "vision/sam.h"

struct ocr2 {
    struct sam sam;
    struct encoder encoder;
    struct tensor projector_w, projector_b; /* [dim, encoder dim], [dim] */
    struct tensor view_separator;           /* [dim]                     */
    struct decoder decoder;
};

enum fathom_status ocr2_bind(struct ocr2 *m, const struct model_config *cfg, const struct weights *w,
                             struct fathom_err *err);
void ocr2_release(struct ocr2 *m);

/* The stages of views of one size, each [n_views * n, ...] from the arena; n = 256 for 1024 px, 144 for 768 px. */
struct ocr2_view {
    struct tensor sam, encoder, projector;
};
struct ocr2_view ocr2_view_forward(struct run *run, const struct ocr2 *m, const float *pixels, size_t side,
                                   size_t n_views);

/* Vision tokens of a page: the tiles, then the global view, then the separator. */
size_t ocr2_image_tokens(const struct ocr2 *m, const struct picture *p);

/* Row `row` of block becomes the separator. */
void ocr2_separator(struct run *run, const struct ocr2 *m, struct tensor *block, size_t row);

/* Those tokens as embeddings, block [ocr2_image_tokens, dim]. on_view may be NULL. */
void ocr2_picture_forward(struct run *run, const struct ocr2 *m, const struct picture *p, struct tensor *block,
                          picture_fn *on_view, void *ctx);

#endif
