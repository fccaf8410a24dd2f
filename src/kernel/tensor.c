#include "kernel/tensor.h"

#include <stdio.h>

const char *dtype_name(enum dtype dtype)
{
    switch (dtype) {
    case DTYPE_F32: return "f32";
    case DTYPE_F16: return "f16";
    case DTYPE_BF16: return "bf16";
    case DTYPE_Q8_0: return "q8_0";
    case DTYPE_F8_E4M3: return "f8_e4m3";
    case DTYPE_F4_E2M1: return "f4_e2m1";
    case DTYPE_F8_E8M0: return "f8_e8m0";
    case DTYPE_I32: return "i32";
    case DTYPE_I64: return "i64";
    case DTYPE_U8: return "u8";
    case DTYPE_I8: return "i8";
    }
    return "unknown";
}

size_t dtype_bytes(enum dtype dtype, size_t n)
{
    switch (dtype) {
    case DTYPE_F32:
    case DTYPE_I32: return 4 * n;
    case DTYPE_F16:
    case DTYPE_BF16: return 2 * n;
    case DTYPE_Q8_0: return n / Q8_0_BLOCK * Q8_0_BLOCK_BYTES;
    case DTYPE_F4_E2M1: return n / 2;
    case DTYPE_I64: return 8 * n;
    case DTYPE_F8_E4M3:
    case DTYPE_F8_E8M0:
    case DTYPE_U8:
    case DTYPE_I8: return n;
    }
    return 0;
}

void scale_shape(enum dtype dtype, size_t rows, size_t cols, size_t shape[2])
{
    bool is_f4 = dtype == DTYPE_F4_E2M1;
    size_t block = is_f4 ? F4_BLOCK : F8_BLOCK;
    shape[0] = is_f4 ? rows : rows / F8_BLOCK + (rows % F8_BLOCK != 0);
    shape[1] = cols / block + (cols % block != 0);
}

static struct tensor contiguous(enum dtype dtype, void *data, int n_dims, const size_t *shape)
{
    struct tensor t = {.dtype = dtype, .n_dims = n_dims, .data = data};
    size_t stride = 1;
    for (int i = n_dims - 1; i >= 0; i--) {
        t.shape[i] = shape[i];
        t.stride[i] = stride;
        stride *= shape[i];
    }
    return t;
}

struct tensor tensor_1d(enum dtype dtype, void *data, size_t n) { return contiguous(dtype, data, 1, (size_t[]){n}); }

struct tensor tensor_2d(enum dtype dtype, void *data, size_t rows, size_t cols)
{
    return contiguous(dtype, data, 2, (size_t[]){rows, cols});
}

struct tensor tensor_4d(enum dtype dtype, void *data, size_t n, size_t h, size_t w, size_t c)
{
    return contiguous(dtype, data, 4, (size_t[]){n, h, w, c});
}

void *tensor_row(const struct tensor *t, size_t row)
{
    return (char *)t->data + dtype_bytes(t->dtype, row * t->stride[0]);
}

struct tensor tensor_rows(const struct tensor *t, size_t first, size_t n)
{
    struct tensor view = *t;
    if (view.data)
        view.data = tensor_row(t, first);
    view.scale_row += first;
    view.shape[0] = n;
    return view;
}

struct tensor tensor_cols(const struct tensor *t, size_t first, size_t n)
{
    struct tensor view = *t;
    if (view.data)
        view.data = (char *)t->data + dtype_bytes(t->dtype, first * t->stride[1]);
    view.shape[1] = n;
    return view;
}

size_t tensor_elements(const struct tensor *t)
{
    size_t n = 1;
    for (int i = 0; i < t->n_dims; i++)
        n *= t->shape[i];
    return n;
}

bool tensor_is_packed(const struct tensor *t)
{
    size_t stride = 1;
    for (int i = t->n_dims - 1; i >= 0; stride *= t->shape[i--])
        if (t->shape[i] != 1 && t->stride[i] != stride)
            return false;
    return true;
}

const char *tensor_shape_text(const struct tensor *t, char text[96])
{
    size_t n = 0;
    for (int i = 0; i < t->n_dims; i++)
        n += (size_t)snprintf(text + n, 96 - n, "%s%zu", i ? ", " : "[", t->shape[i]);
    snprintf(text + n, 96 - n, n ? "]" : "[]");
    return text;
}
