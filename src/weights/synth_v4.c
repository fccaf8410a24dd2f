#include "weights/synth_v4.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weights/safetensors.h"
#include "weights/synth_blocks.h"

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

/* The matrix that t is, or whose scales it holds; name has room for its name. */
static struct synth_blocks blocks_of(const struct v4_tensor *t, char name[96])
{
    struct v4_tensor matrix = *t;
    if (t->dtype == DTYPE_F8_E8M0) {
        int n = (int)(strlen(t->name) - strlen("scale"));
        snprintf(matrix.name, sizeof matrix.name, "%.*sweight", n, t->name);
        matrix.dtype = t->of;
        matrix.shape[0] = t->of_shape[0];
        matrix.shape[1] = t->of_shape[1];
    }
    memcpy(name, matrix.name, sizeof matrix.name);
    return (struct synth_blocks){name, matrix.dtype, matrix.shape[0], matrix.shape[1], synth_v4_rule(&matrix)};
}

static enum fathom_status fill_blocks(void *dst, const struct v4_tensor *t, size_t first, size_t count,
                                      struct pool *pool, struct fathom_err *err)
{
    char name[96];
    struct synth_blocks b = blocks_of(t, name);
    size_t row = first / t->shape[1], n = count / t->shape[1];
    if (t->dtype != DTYPE_F8_E8M0)
        return synth_fill_codes(dst, &b, row, n, pool, err);
    if (b.dtype == DTYPE_F8_E4M3) {
        row *= F8_BLOCK;
        n = n * F8_BLOCK < b.rows - row ? n * F8_BLOCK : b.rows - row;
    }
    return synth_fill_scales(dst, &b, row, n, pool, err);
}

enum fathom_status synth_v4_fill(void *dst, const struct v4_tensor *t, size_t first, size_t count, size_t n_experts,
                                 struct pool *pool, struct fathom_err *err)
{
    struct synth_range range = synth_v4_rule(t);
    switch (t->dtype) {
    case DTYPE_F8_E4M3:
    case DTYPE_F4_E2M1:
    case DTYPE_F8_E8M0: return fill_blocks(dst, t, first, count, pool, err);
    case DTYPE_I64: fill_table(dst, t, first, count, n_experts); break;
    case DTYPE_F32: synth_fill_f32(dst, t->name, first, count, range.center, range.amp, pool); break;
    default: synth_fill_bf16(dst, t->name, first, count, range.center, range.amp, pool);
    }
    return FATHOM_OK;
}

/* What a file holds: FP4 is bytes there. */
static struct tensor stored(const struct v4_tensor *t, void *data)
{
    if (t->n_dims == 1)
        return tensor_1d(t->dtype, data, t->shape[0]);
    if (t->dtype == DTYPE_F4_E2M1)
        return tensor_2d(DTYPE_I8, data, t->shape[0], t->shape[1] / 2);
    return tensor_2d(t->dtype, data, t->shape[0], t->shape[1]);
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
        status = synth_v4_fill(data, t, 0, count, n_experts, pool, err);
        struct tensor tensor = stored(t, data);
        if (status)
            free(data);
        else
            status = weights_add(*out, t->name, &tensor, err);
    }
    if (status) {
        weights_close(*out);
        *out = NULL;
    }
    return status;
}

/* Of one element, in half bytes. */
static size_t element_width(enum dtype dtype) { return dtype_bytes(dtype, 2); }

static int by_width(const void *a, const void *b)
{
    const struct v4_tensor *const *x = a, *const *y = b;
    size_t wide = element_width((*x)->dtype), other = element_width((*y)->dtype);
    return wide != other ? (wide > other ? -1 : 1) : *x < *y ? -1 : *x > *y;
}

/* Elements that a piece holds, whole rows of blocks where there are such. */
static size_t piece_elements(const struct v4_tensor *t)
{
    size_t n = 2 * PIECE_BYTES / element_width(t->dtype),
           rows = t->dtype == DTYPE_F8_E8M0 && t->of == DTYPE_F8_E4M3 ? 1 : SYNTH_BLOCK_ROWS;
    bool has_blocks = t->dtype == DTYPE_F8_E4M3 || t->dtype == DTYPE_F4_E2M1 || t->dtype == DTYPE_F8_E8M0;
    return has_blocks ? n / (rows * t->shape[1]) * rows * t->shape[1] : n;
}

static enum fathom_status write_all(const char *path, const struct v4_tensor *const *order, size_t n, size_t n_experts,
                                    struct safetensors_spec *specs, void *piece, struct pool *pool,
                                    struct fathom_err *err)
{
    struct safetensors_writer *writer = NULL;
    for (size_t i = 0; i < n; i++) {
        struct tensor t = stored(order[i], NULL);
        specs[i] = (struct safetensors_spec){order[i]->name, t.dtype, t.n_dims, {t.shape[0], t.shape[1]}};
    }
    enum fathom_status status = safetensors_create(&writer, path, specs, n, err);
    for (size_t i = 0; !status && i < n; i++) {
        size_t count = v4_tensor_elements(order[i]), most = piece_elements(order[i]);
        for (size_t first = 0; !status && first < count; first += most) {
            size_t m = count - first < most ? count - first : most;
            status = synth_v4_fill(piece, order[i], first, m, n_experts, pool, err);
            if (!status)
                status = safetensors_append(writer, piece, dtype_bytes(order[i]->dtype, m), err);
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
