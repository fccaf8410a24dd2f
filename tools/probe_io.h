/* What fathom-probe reads and writes. */
#ifndef FATHOM_TOOLS_PROBE_IO_H
#define FATHOM_TOOLS_PROBE_IO_H

#include "weights/safetensors.h"

#define MAX_OUTPUTS 160

/* Tensors of OUT, written in the order in which they were added. */
struct outputs {
    struct safetensors_spec specs[MAX_OUTPUTS];
    void *data[MAX_OUTPUTS]; /* owned */
    size_t n;
};

/* Room for a tensor of zeros, f32 or i32; NULL, with err, when there is none. name is borrowed. */
void *add_output_of(struct outputs *o, const char *name, enum dtype dtype, int n_dims, const size_t *shape,
                    struct fathom_err *err);
float *add_output(struct outputs *o, const char *name, int n_dims, const size_t *shape, struct fathom_err *err);
enum fathom_status write_outputs(const struct outputs *o, const char *path, struct fathom_err *err);
void release_outputs(struct outputs *o);

/* A tensor of IN as int32 ids, the caller's to free; NULL when it is not there, or with err. */
int32_t *read_ids(const struct safetensors *in, const char *name, size_t *n, struct fathom_err *err);

#endif
