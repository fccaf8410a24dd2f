/* A model whose weights lie in a device's memory. */
#ifndef FATHOM_ENGINE_PLACEMENT_H
#define FATHOM_ENGINE_PLACEMENT_H

#include "engine/model.h"
#include "kernel/device.h"

struct placement {
    struct fathom_model *network; /* owned; the same network over the device's copy, without a tokenizer */
    struct device *device;        /* borrowed                                                            */
    void *memory;                 /* owned; all weights, one after the other                             */
    size_t bytes;
};

/* Copies the weights of m. With act FATHOM_BF16 all become bf16; with FATHOM_F32 they stay bf16 when all of them are, and
 * are float32 otherwise, which is exact. On failure p is as placement_release leaves it. */
enum fathom_status placement_create(struct placement *p, const struct fathom_model *m, struct device *device,
                                    enum fathom_dtype act, struct fathom_err *err);
void placement_release(struct placement *p); /* a zeroed one is fine */

#endif
