#include "weights/quantize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "weights/q8_0.h"
#include "weights/safetensors.h"

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

/* Elements of one row when all dimensions but the first are flattened. */
static size_t row_elements(const struct tensor *t) { return t->shape[0] ? tensor_elements(t) / t->shape[0] : 0; }

/* The router stays: small differences between its few logits choose the experts. Tables are small, and the position
 * tables are resampled before use. */
bool quantize_wants(const struct weight *weight)
{
    const struct tensor *t = &weight->tensor;
    const char *name = weight->name;
    bool is_float = t->dtype == DTYPE_F32 || t->dtype == DTYPE_F16 || t->dtype == DTYPE_BF16;
    return is_float && t->n_dims >= 2 && row_elements(t) > 0 && row_elements(t) % Q8_0_BLOCK == 0 &&
           ends_with(name, ".weight") && !ends_with(name, "mlp.gate.weight") && !strstr(name, "query_") &&
           !strstr(name, "position_embedding");
}

static void row_to_f32(float *dst, const struct tensor *t, size_t first, size_t n)
{
    const uint8_t *src = (const uint8_t *)t->data + dtype_bytes(t->dtype, first);
    if (t->dtype == DTYPE_F32)
        memcpy(dst, src, n * sizeof *dst);
    else
        for (size_t i = 0; i < n; i++) {
            uint16_t h = ((const uint16_t *)src)[i];
            dst[i] = t->dtype == DTYPE_BF16 ? bf16_to_f32(h) : f16_to_f32(h);
        }
}

static enum fathom_status write_quantized(struct safetensors_writer *writer, const struct weight *weight,
                                          struct fathom_err *err)
{
    const struct tensor *t = &weight->tensor;
    size_t cols = row_elements(t);
    float *row = malloc(cols * sizeof *row);
    uint8_t *blocks = malloc(dtype_bytes(DTYPE_Q8_0, cols));
    enum fathom_status status = FATHOM_OK;
    if (!row || !blocks)
        status = fail_nomem(err, cols * sizeof *row, "a row of weights");
    for (size_t r = 0; !status && r < t->shape[0]; r++) {
        float sum = 0;
        row_to_f32(row, t, r * cols, cols);
        for (size_t i = 0; i < cols; i++)
            sum += row[i] * 0; /* stays 0 until a number that is not finite makes it NaN */
        if (isnan(sum)) {
            status = fail(err, FATHOM_ENUMERIC, "tensor '%s' holds NaN or infinity", weight->file_name);
            break;
        }
        q8_0_from_f32(blocks, row, cols);
        status = safetensors_append(writer, blocks, dtype_bytes(DTYPE_Q8_0, cols), err);
    }
    free(row);
    free(blocks);
    return status;
}

static struct safetensors_spec spec_of(const struct weight *weight)
{
    const struct tensor *t = &weight->tensor;
    if (quantize_wants(weight))
        return (struct safetensors_spec){weight->name, DTYPE_Q8_0, 2, {t->shape[0], row_elements(t)}};
    struct safetensors_spec spec = {weight->name, t->dtype, t->n_dims, {0}};
    memcpy(spec.shape, t->shape, sizeof spec.shape);
    return spec;
}

/* Wider elements first, Q8_0 last, so that everything is aligned. */
static int compare_widths(const void *a, const void *b)
{
    const struct weight *const *x = a, *const *y = b;
    struct safetensors_spec s = spec_of(*x), t = spec_of(*y);
    size_t wide = s.dtype == DTYPE_Q8_0 ? 0 : dtype_bytes(s.dtype, 1);
    size_t other = t.dtype == DTYPE_Q8_0 ? 0 : dtype_bytes(t.dtype, 1);
    if (wide != other)
        return wide > other ? -1 : 1;
    return strcmp((*x)->name, (*y)->name);
}

static enum fathom_status list_tensors(const struct weight **list, struct safetensors_spec *specs,
                                       const struct weights *w, struct fathom_err *err)
{
    size_t n = weights_count(w);
    for (size_t i = 0; i < n; i++) {
        list[i] = weights_at(w, i);
        if (list[i]->tensor.n_dims == 0)
            return fail(err, FATHOM_EUNSUPPORTED, "tensor '%s' has dtype %s, which cannot be copied",
                        list[i]->file_name, list[i]->file_dtype);
    }
    if (n > 0)
        qsort(list, n, sizeof *list, compare_widths);
    for (size_t i = 0; i < n; i++)
        specs[i] = spec_of(list[i]);
    return FATHOM_OK;
}

enum fathom_status quantize_write(const char *path, const struct weights *w, struct fathom_err *err)
{
    size_t n = weights_count(w);
    struct safetensors_writer *writer = NULL;
    const struct weight **list = calloc(n + 1, sizeof *list);
    struct safetensors_spec *specs = calloc(n + 1, sizeof *specs);
    enum fathom_status status =
        list && specs ? list_tensors(list, specs, w, err) : fail_nomem(err, n * sizeof *specs, "the tensor table");
    if (!status)
        status = safetensors_create(&writer, path, specs, n, err);
    for (size_t i = 0; !status && i < n; i++)
        status = specs[i].dtype == DTYPE_Q8_0 && list[i]->tensor.dtype != DTYPE_Q8_0
                     ? write_quantized(writer, list[i], err)
                     : safetensors_append(writer, list[i]->tensor.data, list[i]->bytes, err);
    if (!status)
        status = safetensors_commit(writer, err);
    else
        safetensors_discard(writer);
    free(list);
    free(specs);
    return status;
}
