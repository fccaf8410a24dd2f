/* Every tensor of a DeepSeek-V4 checkpoint by published name (spec deepseek-v4 §1.3), for weights that are made. The draft
 * layer is left out. When the config says so, matrices are FP8 and experts FP4, each followed by its scales. */
#ifndef FATHOM_WEIGHTS_V4_TENSORS_H
#define FATHOM_WEIGHTS_V4_TENSORS_H

#include "weights/config_v4.h"

struct v4_tensor {
    char name[96];
    enum dtype dtype; /* BF16, F32, I64, F8_E4M3, F4_E2M1 or F8_E8M0 */
    int n_dims;
    size_t shape[2];
    enum dtype of;      /* of scales: the dtype of their matrix, ...   */
    size_t of_shape[2]; /* ... and its shape                           */
};

/* All tensors of the model. *out is the caller's to free. */
enum fathom_status v4_tensors(struct v4_tensor **out, size_t *n, const struct v4_config *c, struct fathom_err *err);

/* Those of one layer's attention alone: "layers.l.attn. ...". */
enum fathom_status v4_attention_tensors(struct v4_tensor **out, size_t *n, const struct v4_config *c, size_t layer,
                                        struct fathom_err *err);

static inline size_t v4_tensor_elements(const struct v4_tensor *t)
{
    return t->n_dims == 1 ? t->shape[0] : t->shape[0] * t->shape[1];
}

#endif
