/* DeepSeek-V4 checkpoints of synth-v1 weights, in the published names and dtypes. */
#ifndef FATHOM_WEIGHTS_SYNTH_V4_H
#define FATHOM_WEIGHTS_SYNTH_V4_H

#include "weights/synth.h"
#include "weights/v4_tensors.h"

/* The range of a tensor, by its published name. */
struct synth_range synth_v4_rule(const struct v4_tensor *t);

/* Fills dst with elements [first, first + count) of t, in its dtype. tid2eid sends token t to the experts
 * min(trunc(u_t n_experts), n_experts - 1) + 3 j modulo n_experts. FP8 and FP4 matrices and their scales are filled in
 * whole rows of blocks (synth_blocks.h). pool may be NULL. */
enum fathom_status synth_v4_fill(void *dst, const struct v4_tensor *t, size_t first, size_t count, size_t n_experts,
                                 struct pool *pool, struct fathom_err *err);

/* The tensors in memory. */
enum fathom_status synth_v4_weights(struct weights **out, const struct v4_tensor *tensors, size_t n, size_t n_experts,
                                    struct pool *pool, struct fathom_err *err);

/* The tensors in a safetensors file, written in pieces, so that no whole one is in memory: FP4 as I8, two in a byte. */
enum fathom_status synth_v4_write(const char *path, const struct v4_tensor *tensors, size_t n, size_t n_experts,
                                  struct pool *pool, struct fathom_err *err);

#endif
