/* The vision half of whichever OCR model is open. */
#ifndef FATHOM_ENGINE_VISION_H
#define FATHOM_ENGINE_VISION_H

#include "engine/model.h"

/* Vision tokens of a page. */
size_t vision_tokens(const struct fathom_model *m, const struct picture *p);

/* Those tokens as embeddings, block [vision_tokens, dim]. on_view may be NULL. */
void vision_forward(struct run *run, const struct fathom_model *m, const struct picture *p, struct tensor *block,
                    picture_fn *on_view, void *ctx);

/* Multiplications and additions of that. */
double vision_flop(const struct fathom_model *m, const struct picture *p);

#endif
