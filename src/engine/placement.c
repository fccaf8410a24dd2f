#include "engine/placement.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/half.h"
#include "kernel/ref/ref_ops.h"
#include "weights/set.h"

#define ALIGN ((size_t)256)
#define STAGING_BYTES ((size_t)32 << 20)

/* Bytes on their way: the device's memory is filled from its start to its end through one buffer. */
struct stream {
    struct device *device;
    char *to;              /* on the device: where the buffer's first byte goes */
    unsigned char *buffer; /* owned, STAGING_BYTES                              */
    size_t n;
};

static enum fathom_status flush(struct stream *s, struct fathom_err *err)
{
    enum fathom_status status = s->n ? s->device->put(s->device, s->to, s->buffer, s->n, err) : FATHOM_OK;
    s->to += s->n;
    s->n = 0;
    return status;
}

/* Appends n bytes; src NULL: zeros. */
static enum fathom_status append(struct stream *s, const unsigned char *src, size_t n, struct fathom_err *err)
{
    while (n > 0) {
        size_t part = STAGING_BYTES - s->n < n ? STAGING_BYTES - s->n : n;
        if (src)
            memcpy(s->buffer + s->n, src, part);
        else
            memset(s->buffer + s->n, 0, part);
        s->n += part;
        src = src ? src + part : NULL;
        n -= part;
        enum fathom_status status = s->n == STAGING_BYTES ? flush(s, err) : FATHOM_OK;
        if (status)
            return status;
    }
    return FATHOM_OK;
}

/* A dtype that the networks take; others are not placed. */
static bool is_placed(const struct tensor *t)
{
    return t->n_dims > 0 &&
           (t->dtype == DTYPE_F32 || t->dtype == DTYPE_F16 || t->dtype == DTYPE_BF16 || t->dtype == DTYPE_Q8_0);
}

static enum dtype placed_dtype(const struct weights *w, enum fathom_dtype act)
{
    for (size_t i = 0; i < weights_count(w) && act == FATHOM_F32; i++) {
        const struct tensor *t = &weights_at(w, i)->tensor;
        if (is_placed(t) && t->dtype != DTYPE_BF16)
            return DTYPE_F32;
    }
    return DTYPE_BF16;
}

/* All rows of t as dtype. */
static enum fathom_status append_tensor(struct stream *s, const struct tensor *t, enum dtype dtype,
                                        struct fathom_err *err)
{
    size_t cols = t->shape[t->n_dims - 1], rows = cols ? tensor_elements(t) / cols : 0;
    enum fathom_status status = FATHOM_OK;
    if (t->dtype == dtype)
        return append(s, t->data, dtype_bytes(dtype, rows * cols), err);
    float *row = calloc(cols + 1, sizeof *row);
    if (!row)
        return fail_nomem(err, cols * sizeof *row, "a row of weights");
    struct tensor flat = tensor_2d(t->dtype, t->data, rows, cols);
    for (size_t r = 0; r < rows && !status; r++) {
        weight_row_f32(row, &flat, r);
        uint16_t *narrow = (uint16_t *)row; /* element i is written after float i was read */
        for (size_t i = 0; i < cols && dtype == DTYPE_BF16; i++) {
            uint16_t h = bf16_from_f32(row[i]);
            memcpy(narrow + i, &h, sizeof h);
        }
        status = append(s, (const unsigned char *)row, dtype_bytes(dtype, cols), err);
    }
    free(row);
    return status;
}

static size_t aligned(size_t n) { return (n + ALIGN - 1) / ALIGN * ALIGN; }

/* The device's tensor i, at `at`. */
static enum fathom_status list(struct weights *on_device, const struct weight *from, enum dtype dtype, void *at,
                               struct fathom_err *err)
{
    struct weight item = *from;
    item.name = strdup(from->name);
    item.file_name = strdup(from->file_name);
    item.file_dtype = dtype_name(dtype);
    item.tensor.dtype = dtype;
    item.tensor.data = at;
    item.bytes = dtype_bytes(dtype, tensor_elements(&from->tensor));
    return set_append(on_device, &item, err);
}

static enum fathom_status measure(size_t *bytes, const struct weights *w, enum dtype dtype, struct fathom_err *err)
{
    *bytes = 0;
    for (size_t i = 0; i < weights_count(w); i++) {
        const struct weight *item = weights_at(w, i);
        if (!is_placed(&item->tensor))
            continue;
        if (!tensor_is_packed(&item->tensor))
            return fail(err, FATHOM_EUNSUPPORTED, "tensor '%s' has gaps between its rows", item->name);
        if (!size_add(*bytes, aligned(dtype_bytes(dtype, tensor_elements(&item->tensor))), bytes))
            return fail_nomem(err, SIZE_MAX, "the model's weights");
    }
    return FATHOM_OK;
}

static enum fathom_status copy_all(struct weights *on_device, const struct weights *w, enum dtype dtype,
                                   struct stream *s, struct fathom_err *err)
{
    char *at = s->to;
    enum fathom_status status = FATHOM_OK;
    for (size_t i = 0; i < weights_count(w) && !status; i++) {
        const struct weight *item = weights_at(w, i);
        if (!is_placed(&item->tensor))
            continue;
        size_t n = dtype_bytes(dtype, tensor_elements(&item->tensor));
        if (!(status = list(on_device, item, dtype, at, err)) &&
            !(status = append_tensor(s, &item->tensor, dtype, err)))
            status = append(s, NULL, aligned(n) - n, err);
        at += aligned(n);
    }
    return status ? status : flush(s, err);
}

static enum fathom_status fill(struct placement *p, const struct weights *w, enum dtype dtype,
                               struct weights *on_device, struct fathom_err *err)
{
    struct stream s = {.device = p->device};
    enum fathom_status status;
    if ((status = measure(&p->bytes, w, dtype, err)) ||
        (status = p->device->alloc(p->device, p->bytes, "the model's weights", &p->memory, err)))
        return status;
    s.to = p->memory;
    if (!(s.buffer = p->device->host_alloc(p->device, STAGING_BYTES)))
        return fail_nomem(err, STAGING_BYTES, "copying the weights");
    status = copy_all(on_device, w, dtype, &s, err);
    p->device->host_release(p->device, s.buffer);
    return status;
}

enum fathom_status placement_create(struct placement *p, const struct fathom_model *m, struct device *device,
                                    enum fathom_dtype act, struct fathom_err *err)
{
    struct weights *on_device = NULL;
    enum fathom_status status;

    *p = (struct placement){.device = device};
    if ((status = weights_create(&on_device, err)))
        return status;
    if ((status = fill(p, m->weights, placed_dtype(m->weights, act), on_device, err)))
        weights_close(on_device);
    else
        status = model_from_weights(&p->network, on_device, &m->config, err);
    if (status)
        placement_release(p);
    return status;
}

void placement_release(struct placement *p)
{
    fathom_model_close(p->network);
    if (p->memory)
        p->device->release(p->device, p->memory);
    *p = (struct placement){0};
}
