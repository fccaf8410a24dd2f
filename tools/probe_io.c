#include "probe_io.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

static size_t spec_bytes(const struct safetensors_spec *spec)
{
    size_t n = 1;
    for (int d = 0; d < spec->n_dims; d++)
        n *= spec->shape[d];
    return dtype_bytes(spec->dtype, n);
}

void *add_output_of(struct outputs *o, const char *name, enum dtype dtype, int n_dims, const size_t *shape,
                    struct fathom_err *err)
{
    struct safetensors_spec *spec = &o->specs[o->n];
    size_t n = dtype_bytes(dtype, 1);
    bool fits = true;
    if (o->n == MAX_OUTPUTS) {
        fail(err, FATHOM_ELIMIT, "more than %d outputs", MAX_OUTPUTS);
        return NULL;
    }
    *spec = (struct safetensors_spec){.name = name, .dtype = dtype, .n_dims = n_dims};
    for (int i = 0; i < n_dims; i++) {
        spec->shape[i] = shape[i];
        fits &= size_mul(n, shape[i], &n);
    }
    void *data = fits ? calloc(n + 1, 1) : NULL;
    if (!data) {
        fail_nomem(err, fits ? n : SIZE_MAX, name);
        return NULL;
    }
    return o->data[o->n++] = data;
}

float *add_output(struct outputs *o, const char *name, int n_dims, const size_t *shape, struct fathom_err *err)
{
    return add_output_of(o, name, DTYPE_F32, n_dims, shape, err);
}

enum fathom_status write_outputs(const struct outputs *o, const char *path, struct fathom_err *err)
{
    struct safetensors_writer *w = NULL;
    if (safetensors_create(&w, path, o->specs, o->n, err))
        return err->status;
    for (size_t i = 0; i < o->n; i++)
        if (safetensors_append(w, o->data[i], spec_bytes(&o->specs[i]), err)) {
            safetensors_discard(w);
            return err->status;
        }
    return safetensors_commit(w, err);
}

void release_outputs(struct outputs *o)
{
    for (size_t i = 0; i < o->n; i++)
        free(o->data[i]);
    o->n = 0;
}

int32_t *read_ids(const struct safetensors *in, const char *name, size_t *n, struct fathom_err *err)
{
    const struct safetensors_tensor *t = safetensors_find(in, name);
    if (!t)
        return NULL;
    if (!t->tensor.n_dims || (t->tensor.dtype != DTYPE_I32 && t->tensor.dtype != DTYPE_I64)) {
        fail(err, FATHOM_EFORMAT, "'%s' has dtype %s, expected I32", name, t->dtype);
        return NULL;
    }
    *n = tensor_elements(&t->tensor);
    int32_t *ids = calloc(*n + 1, sizeof *ids);
    if (!ids) {
        fail_nomem(err, *n * sizeof *ids, name);
        return NULL;
    }
    for (size_t i = 0; i < *n; i++) {
        int64_t wide = 0;
        if (t->tensor.dtype == DTYPE_I32)
            memcpy(&ids[i], (const char *)t->tensor.data + 4 * i, 4);
        else if (memcpy(&wide, (const char *)t->tensor.data + 8 * i, 8), wide == (int32_t)wide)
            ids[i] = (int32_t)wide;
        else
            ids[i] = -1;
    }
    return ids;
}
