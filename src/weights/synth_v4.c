#include "weights/synth_v4.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "weights/safetensors.h"

#define PIECE_BYTES ((size_t)8 << 20)

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && !memcmp(name + n - m, end, m);
}

struct synth_range synth_v4_rule(const struct v4_tensor *t)
{
    const char *name = t->name;
    if (ends_with(name, "norm.weight"))
        return (struct synth_range){1.0f, 0.25f};
    if (strstr(name, "hc_") && ends_with(name, "_scale"))
        return (struct synth_range){0.75f, 0.25f};
    if ((strstr(name, "hc_") && ends_with(name, "_base")) || ends_with(name, "attn_sink") ||
        !strcmp(name, "embed.weight"))
        return (struct synth_range){0.0f, 1.0f};
    if (ends_with(name, ".ape"))
        return (struct synth_range){0.0f, 0.5f};
    if (ends_with(name, ".bias"))
        return (struct synth_range){0.0f, 0.25f};
    double gain = !strcmp(name, "head.weight") ? 4.0 : ends_with(name, "ffn.gate.weight") ? 2.0 : 1.0;
    double fan_in = t->n_dims == 2 ? (double)t->shape[1] : (double)t->shape[0];
    return (struct synth_range){0.0f, (float)(gain * sqrt(3.0 / fan_in))};
}

static void fill_table(int64_t *dst, const struct v4_tensor *t, size_t first, size_t count, size_t n_experts)
{
    size_t k = t->shape[1];
    for (size_t i = first; i < first + count; i++) {
        size_t start = (size_t)(synth_raw(t->name, i / k) * (float)n_experts);
        start = start < n_experts ? start : n_experts - 1;
        *dst++ = (int64_t)((start + 3 * (i % k)) % n_experts);
    }
}

void synth_v4_fill(void *dst, const struct v4_tensor *t, size_t first, size_t count, size_t n_experts,
                   struct pool *pool)
{
    struct synth_range range = synth_v4_rule(t);
    if (t->dtype == DTYPE_I64)
        fill_table(dst, t, first, count, n_experts);
    else if (t->dtype == DTYPE_F32)
        synth_fill_f32(dst, t->name, first, count, range.center, range.amp, pool);
    else
        synth_fill_bf16(dst, t->name, first, count, range.center, range.amp, pool);
}

enum fathom_status synth_v4_weights(struct weights **out, const struct v4_tensor *tensors, size_t n, size_t n_experts,
                                    struct pool *pool, struct fathom_err *err)
{
    enum fathom_status status = weights_create(out, err);
    for (size_t i = 0; !status && i < n; i++) {
        const struct v4_tensor *t = &tensors[i];
        size_t count = v4_tensor_elements(t), bytes = dtype_bytes(t->dtype, count);
        void *data = malloc(bytes);
        if (!data) {
            status = fail_nomem(err, bytes, t->name);
            break;
        }
        synth_v4_fill(data, t, 0, count, n_experts, pool);
        struct tensor tensor = t->n_dims == 1 ? tensor_1d(t->dtype, data, t->shape[0])
                                              : tensor_2d(t->dtype, data, t->shape[0], t->shape[1]);
        status = weights_add(*out, t->name, &tensor, err);
    }
    if (status) {
        weights_close(*out);
        *out = NULL;
    }
    return status;
}

static int by_width(const void *a, const void *b)
{
    const struct v4_tensor *const *x = a, *const *y = b;
    size_t wide = dtype_bytes((*x)->dtype, 1), other = dtype_bytes((*y)->dtype, 1);
    return wide != other ? (wide > other ? -1 : 1) : *x < *y ? -1 : *x > *y;
}

static enum fathom_status write_all(const char *path, const struct v4_tensor *const *order, size_t n, size_t n_experts,
                                    struct safetensors_spec *specs, void *piece, struct pool *pool,
                                    struct fathom_err *err)
{
    struct safetensors_writer *writer = NULL;
    for (size_t i = 0; i < n; i++)
        specs[i] = (struct safetensors_spec){
            order[i]->name, order[i]->dtype, order[i]->n_dims, {order[i]->shape[0], order[i]->shape[1]}};
    enum fathom_status status = safetensors_create(&writer, path, specs, n, err);
    for (size_t i = 0; !status && i < n; i++) {
        size_t count = v4_tensor_elements(order[i]), size = dtype_bytes(order[i]->dtype, 1);
        for (size_t first = 0; !status && first < count; first += PIECE_BYTES / size) {
            size_t m = count - first < PIECE_BYTES / size ? count - first : PIECE_BYTES / size;
            synth_v4_fill(piece, order[i], first, m, n_experts, pool);
            status = safetensors_append(writer, piece, m * size, err);
        }
    }
    if (!status)
        return safetensors_commit(writer, err);
    safetensors_discard(writer);
    return status;
}

enum fathom_status synth_v4_write(const char *path, const struct v4_tensor *tensors, size_t n, size_t n_experts,
                                  struct pool *pool, struct fathom_err *err)
{
    const struct v4_tensor **order = calloc(n + 1, sizeof *order); /* wide dtypes first, so that all are aligned */
    struct safetensors_spec *specs = calloc(n + 1, sizeof *specs);
    void *piece = malloc(PIECE_BYTES);
    enum fathom_status status;
    if (!order || !specs || !piece) {
        status = fail_nomem(err, PIECE_BYTES, "a piece of a tensor");
    } else {
        for (size_t i = 0; i < n; i++)
            order[i] = &tensors[i];
        qsort(order, n, sizeof *order, by_width);
        status = write_all(path, order, n, n_experts, specs, piece, pool, err);
    }
    free(order);
    free(specs);
    free(piece);
    return status;
}
