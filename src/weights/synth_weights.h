/* Whole checkpoints of synth-v1 weights. */
#ifndef FATHOM_WEIGHTS_SYNTH_WEIGHTS_H
#define FATHOM_WEIGHTS_SYNTH_WEIGHTS_H

#include "weights/config.h"
#include "weights/ocr_tensors.h"
#include "weights/weights.h"

struct pool;

/* All tensors of an OCR-1 or OCR-2 model of these sizes, in bf16 and in memory: 6.8 GB for the published ones. pool may be NULL. */
enum fathom_status synth_ocr_weights(struct weights **out, const struct model_config *c, struct pool *pool,
                                     struct fathom_err *err);

/* Writes the tensors to a safetensors file in pieces, so that no whole tensor is in memory. */
enum fathom_status synth_write(const char *path, const struct tensor_spec *specs, size_t n, struct pool *pool,
                               struct fathom_err *err);

#endif
