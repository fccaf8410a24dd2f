/* DeepSeek-OCR: SAM tower, CLIP body, projector and decoder (spec deepseek-ocr §3, §4). */
#ifndef FATHOM_MODELS_DEEPSEEK_OCR1_H
#define FATHOM_MODELS_DEEPSEEK_OCR1_H

#include "models/deepseek_decoder.h"
#include "models/picture.h"
#include "vision/clip.h"
#include "vision/sam.h"

struct ocr1 {
    struct sam sam;
    struct clip clip;
    struct tensor projector_w, projector_b; /* [dim, clip dim + sam dim], [dim] */
    struct tensor image_newline;            /* [dim]                            */
    struct tensor view_separator;           /* [dim]                            */
    struct decoder decoder;
};

enum fathom_status ocr1_bind(struct ocr1 *m, const struct model_config *cfg, const struct weights *w,
                             struct fathom_err *err);
void ocr1_release(struct ocr1 *m);

/* The stages of views of one size, each [n_views * n, ...] from the arena; n = 256 for 1024 px, 100 for 640 px. */
struct ocr1_view {
    struct tensor sam, clip, projector;
};
struct ocr1_view ocr1_view_forward(struct run *run, const struct ocr1 *m, const float *pixels, size_t side,
                                   size_t n_views);

/* Vision tokens of a page: the mosaic of its tiles with a newline after each row, the global view likewise, and the
 * separator. */
size_t ocr1_image_tokens(const struct ocr1 *m, const struct picture *p);

/* Those tokens as embeddings, block [ocr1_image_tokens, dim]. */
void ocr1_picture_forward(struct run *run, const struct ocr1 *m, const struct picture *p, struct tensor *block,
                          picture_fn *on_view, void *ctx);

#endif
