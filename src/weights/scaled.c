/* FP8 and FP4 matrices and their scales, as DeepSeek-V4's checkpoints store them. */
#include <stdio.h>
#include <string.h>

#include "weights/weights.h"

#define NAN_SCALE 0xff

static enum fathom_status check_shape(const struct weight *w, size_t rows, size_t cols, struct fathom_err *err)
{
    const struct tensor *t = &w->tensor;
    char found[96];
    if (t->n_dims == 2 && t->shape[0] == rows && t->shape[1] == cols)
        return FATHOM_OK;
    return fail(err, FATHOM_EFORMAT, "tensor '%s' of dtype %s has shape %s, expected [%zu, %zu]", w->file_name,
                w->file_dtype, tensor_shape_text(t, found), rows, cols);
}

/* "x.scale" of "x.weight"; false: the name has another form. */
static bool scale_name(char out[512], const char *name)
{
    static const char end[] = ".weight";
    size_t n = strlen(name), n_end = sizeof end - 1;
    if (n < n_end || strcmp(name + n - n_end, end) != 0 || n >= 500)
        return false;
    snprintf(out, 512, "%.*s.scale", (int)(n - n_end), name);
    return true;
}

static enum fathom_status attach_scales(const struct weights *w, struct tensor *t, const char *name,
                                        struct fathom_err *err)
{
    char other[512];
    size_t shape[2];
    enum fathom_status status;
    if (!scale_name(other, name))
        return fail(err, FATHOM_EINVAL, "tensor '%s' cannot have scales: its name does not end in '.weight'", name);
    const struct weight *scales = weights_find(w, other);
    if (!scales)
        return fail(err, FATHOM_EFORMAT, "tensor '%s' has no scales: '%s' is missing", name, other);
    if (scales->tensor.n_dims == 0 || scales->tensor.dtype != DTYPE_F8_E8M0)
        return fail(err, FATHOM_EUNSUPPORTED, "tensor '%s' has dtype %s, expected F8_E8M0", scales->file_name,
                    scales->file_dtype);
    scale_shape(t->dtype, t->shape[0], t->shape[1], shape);
    status = check_shape(scales, shape[0], shape[1], err);
    if (status)
        return status;
    t->scales = scales->tensor.data;
    t->scale_stride = shape[1];
    size_t n = shape[0] * shape[1];
    const uint8_t *bad = n ? memchr(t->scales, NAN_SCALE, n) : NULL;
    if (bad)
        return fail(err, FATHOM_ENUMERIC, "tensor '%s' holds NaN at [%zu, %zu]", scales->file_name,
                    (size_t)(bad - t->scales) / shape[1], (size_t)(bad - t->scales) % shape[1]);
    return FATHOM_OK;
}

enum fathom_status weights_get_linear(const struct weights *w, struct tensor *out, size_t rows, size_t cols,
                                      struct fathom_err *err, const char *name)
{
    const struct weight *weight = weights_find(w, name);
    bool is_f8 = weight && weight->tensor.n_dims && weight->tensor.dtype == DTYPE_F8_E4M3;
    bool is_f4 = weight && weight->tensor.n_dims && weight->tensor.dtype == DTYPE_I8;
    enum fathom_status status;
    if (!is_f8 && !is_f4)
        return weights_get(w, out, 2, (size_t[]){rows, cols}, err, "%s", name);
    if (is_f4 && cols % F4_BLOCK)
        return fail(err, FATHOM_EUNSUPPORTED, "tensor '%s' has FP4 rows of %zu weights, expected blocks of %d", name,
                    cols, F4_BLOCK);
    status = check_shape(weight, rows, is_f4 ? cols / 2 : cols, err);
    if (status)
        return status;
    struct tensor t = tensor_2d(is_f4 ? DTYPE_F4_E2M1 : DTYPE_F8_E4M3, weight->tensor.data, rows, cols);
    status = attach_scales(w, &t, name, err);
    if (!status)
        *out = t;
    return status;
}
