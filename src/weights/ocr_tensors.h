/* Every tensor of a DeepSeek-OCR or OCR-2 checkpoint, by published name (spec deepseek-ocr §1.3), for weights that are made. */
#ifndef FATHOM_WEIGHTS_OCR_TENSORS_H
#define FATHOM_WEIGHTS_OCR_TENSORS_H

#include "weights/config.h"

struct tensor_spec {
    char name[96];
    int n_dims;
    size_t shape[TENSOR_MAX_DIMS];
};

/* *out is the caller's to free. */
enum fathom_status ocr_tensors(struct tensor_spec **out, size_t *n, const struct model_config *c,
                               struct fathom_err *err);

size_t tensor_spec_elements(const struct tensor_spec *spec);

#endif
