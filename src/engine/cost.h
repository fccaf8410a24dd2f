/* What the mathematics of a stage costs, for rates and rooflines: multiplications and additions counted apart, attention
 * counted for visible keys only, padding not counted (spec deepseek-ocr §7). The projectors are left out: a thousandth of the rest. */
#ifndef FATHOM_ENGINE_COST_H
#define FATHOM_ENGINE_COST_H

#include "models/deepseek_ocr2.h"

double sam_flop(const struct sam_config *c, size_t side);
double clip_flop(const struct clip_config *c, size_t n_image_tokens);
double encoder_flop(const struct encoder_config *c, size_t n_image_tokens);
double decoder_flop(const struct decoder_config *c, size_t pos, size_t n); /* without the head */

/* Bytes a decode step has to read with ctx tokens in the cache: the weights of one token's path, and the cache. */
double decoder_step_bytes(const struct decoder *d, const struct kv_cache *kv, size_t ctx);

#endif
