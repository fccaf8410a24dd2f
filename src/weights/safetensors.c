#include "weights/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/json.h"

/* Any rank is allowed until a tensor is used; the limit only bounds work. */
#define MAX_RANK 64

static const struct file_dtype {
    const char *name;
    uint8_t size; /* bytes an element                                     */
    int8_t dtype; /* enum dtype, -1: kept, but of no use to struct tensor */
} file_dtypes[] = {
    {"BOOL", 1, -1},       {"U8", 1, DTYPE_U8},
    {"I8", 1, DTYPE_I8},   {"F8_E4M3", 1, DTYPE_F8_E4M3},
    {"F8_E5M2", 1, -1},    {"F8_E8M0", 1, DTYPE_F8_E8M0},
    {"U16", 2, -1},        {"I16", 2, -1},
    {"F16", 2, DTYPE_F16}, {"BF16", 2, DTYPE_BF16},
    {"U32", 4, -1},        {"I32", 4, DTYPE_I32},
    {"F32", 4, DTYPE_F32}, {"U64", 8, -1},
    {"I64", 8, DTYPE_I64}, {"F64", 8, -1},
};

struct header {
    const struct json *json;
    const uint8_t *data; /* tensor data, behind the header */
    size_t n_data;
    struct fathom_err *err;
};

/* A tensor's place while the ranges are compared. */
struct range {
    size_t begin, end;
    const char *name;
};

static const struct file_dtype *find_dtype(const char *name)
{
    for (size_t i = 0; i < sizeof file_dtypes / sizeof *file_dtypes; i++)
        if (!strcmp(file_dtypes[i].name, name))
            return &file_dtypes[i];
    return NULL;
}

static enum fathom_status bad(const struct header *h, const struct safetensors_tensor *t, const char *what)
{
    return fail(h->err, FATHOM_EFORMAT, "tensor '%s' %s", t->name, what);
}

static bool read_size(const struct json_node *node, size_t *out)
{
    int64_t value;
    if (!json_i64(node, &value) || value < 0)
        return false;
    *out = (size_t)value;
    return true;
}

static enum fathom_status read_shape(const struct header *h, const struct json_node *list, struct safetensors_tensor *t,
                                     size_t *elements)
{
    if (!list || list->type != JSON_ARRAY)
        return bad(h, t, "has no shape");
    if (list->n > MAX_RANK)
        return bad(h, t, "has too many dimensions");
    struct tensor *tensor = &t->tensor;
    *elements = 1;
    int d = 0;
    for (const struct json_node *e = json_first(h->json, list); e; e = json_next(h->json, list, e), d++) {
        size_t extent;
        if (!read_size(e, &extent))
            return bad(h, t, "has a dimension that is not a whole number from 0 to 2^63 - 1");
        if (!size_mul(*elements, extent, elements))
            return bad(h, t, "has a shape whose product overflows");
        if (d < TENSOR_MAX_DIMS)
            tensor->shape[d] = extent;
    }
    tensor->n_dims = d > TENSOR_MAX_DIMS ? 0 : d;
    if (d == 0) {
        tensor->n_dims = 1;
        tensor->shape[0] = 1;
    }
    return FATHOM_OK;
}

static enum fathom_status read_offsets(const struct header *h, const struct json_node *list,
                                       const struct safetensors_tensor *t, struct range *range)
{
    const struct json_node *begin = json_first(h->json, list && list->type == JSON_ARRAY ? list : NULL);
    const struct json_node *end = begin ? json_next(h->json, list, begin) : NULL;
    if (!end || list->n != 2 || !read_size(begin, &range->begin) || !read_size(end, &range->end))
        return bad(h, t, "has no data_offsets of two whole numbers");
    if (range->begin > range->end || range->end > h->n_data)
        return fail(h->err, FATHOM_EFORMAT, "tensor '%s' has data_offsets [%zu, %zu] outside the %zu bytes of data",
                    t->name, range->begin, range->end, h->n_data);
    return FATHOM_OK;
}

static void make_contiguous(struct tensor *t)
{
    size_t stride = 1;
    for (int d = t->n_dims - 1; d >= 0; d--) {
        t->stride[d] = stride;
        stride *= t->shape[d];
    }
}

static enum fathom_status read_tensor(const struct header *h, const struct json_node *key,
                                      const struct json_node *value, struct safetensors_tensor *t, struct range *range)
{
    if (strlen(key->text) != key->n_text)
        return fail(h->err, FATHOM_EFORMAT, "tensor name '%s' holds a NUL", key->text);
    t->name = strdup(key->text);
    if (!t->name)
        return fail_nomem(h->err, key->n_text + 1, "a tensor name");
    const struct json_node *dtype = json_get(h->json, value, "dtype");
    if (!dtype || dtype->type != JSON_STRING)
        return bad(h, t, "has no dtype");
    snprintf(t->dtype, sizeof t->dtype, "%s", dtype->text);
    size_t elements = 0, bytes;
    enum fathom_status status = read_shape(h, json_get(h->json, value, "shape"), t, &elements);
    if (!status)
        status = read_offsets(h, json_get(h->json, value, "data_offsets"), t, range);
    if (status)
        return status;
    range->name = t->name;
    t->bytes = range->end - range->begin;
    const struct file_dtype *known = find_dtype(dtype->text);
    if (known && (!size_mul(elements, known->size, &bytes) || bytes != t->bytes)) {
        char shape[96];
        return fail(h->err, FATHOM_EFORMAT, "tensor '%s' of dtype %s and shape %s has %zu bytes of data", t->name,
                    t->dtype, t->tensor.n_dims ? tensor_shape_text(&t->tensor, shape) : "of high rank", t->bytes);
    }
    if (!known || known->dtype < 0 || t->tensor.n_dims == 0) {
        t->tensor = (struct tensor){0};
        return FATHOM_OK;
    }
    t->tensor.dtype = (enum dtype)known->dtype;
    t->tensor.data = (void *)(h->data + range->begin);
    make_contiguous(&t->tensor);
    return FATHOM_OK;
}

static int compare_ranges(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static int compare_names(const void *a, const void *b)
{
    const struct safetensors_tensor *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static enum fathom_status check_ranges(const struct header *h, struct range *ranges, size_t n)
{
    size_t at = 0;
    if (n > 0)
        qsort(ranges, n, sizeof *ranges, compare_ranges);
    for (size_t i = 0; i < n; i++) {
        if (ranges[i].begin < at)
            return fail(h->err, FATHOM_EFORMAT, "tensors '%s' and '%s' overlap", ranges[i - 1].name, ranges[i].name);
        if (ranges[i].begin > at)
            return fail(h->err, FATHOM_EFORMAT, "%zu bytes before tensor '%s' belong to no tensor",
                        ranges[i].begin - at, ranges[i].name);
        at = ranges[i].end;
    }
    if (at != h->n_data)
        return fail(h->err, FATHOM_EFORMAT, "%zu bytes at the end belong to no tensor", h->n_data - at);
    return FATHOM_OK;
}

/* True when text is "q8_0 [rows, cols]" exactly as it would be written. */
static bool parse_q8_0(const char *text, size_t *rows, size_t *cols)
{
    char canonical[64];
    if (sscanf(text, "q8_0 [%18zu, %18zu]", rows, cols) != 2)
        return false;
    snprintf(canonical, sizeof canonical, "q8_0 [%zu, %zu]", *rows, *cols);
    return !strcmp(text, canonical);
}

/* Gives the Q8_0 matrices their true shape. */
static enum fathom_status read_metadata(struct safetensors *s, const struct header *h, const struct json_node *metadata)
{
    const struct json_node *key = json_first(h->json, metadata);
    while (key) {
        const struct json_node *value = json_next(h->json, metadata, key);
        size_t rows, cols;
        if (value->type == JSON_STRING && !strncmp(value->text, "q8_0 ", 5)) {
            struct safetensors_tensor *t = (struct safetensors_tensor *)safetensors_find(s, key->text);
            if (!t)
                return fail(h->err, FATHOM_EFORMAT, "__metadata__ names tensor '%s', which is missing", key->text);
            if (!parse_q8_0(value->text, &rows, &cols))
                return fail(h->err, FATHOM_EFORMAT, "__metadata__ of tensor '%s' is '%s', expected 'q8_0 [rows, cols]'",
                            key->text, value->text);
            struct tensor *tensor = &t->tensor;
            if (strcmp(t->dtype, "U8") || tensor->n_dims != 2 || cols % Q8_0_BLOCK || tensor->shape[0] != rows ||
                tensor->shape[1] % Q8_0_BLOCK_BYTES || tensor->shape[1] / Q8_0_BLOCK_BYTES != cols / Q8_0_BLOCK)
                return fail(h->err, FATHOM_EFORMAT, "tensor '%s' does not hold the '%s' of its __metadata__", t->name,
                            value->text);
            tensor->dtype = DTYPE_Q8_0;
            tensor->shape[1] = cols;
            make_contiguous(tensor);
        }
        key = json_next(h->json, metadata, value);
    }
    return FATHOM_OK;
}

static enum fathom_status read_members(struct safetensors *s, const struct header *h, const struct json_node *root)
{
    const struct json_node *metadata = json_get(h->json, root, "__metadata__");
    if (metadata && metadata->type != JSON_OBJECT)
        return fail(h->err, FATHOM_EFORMAT, "__metadata__ is not an object");
    size_t n = root->n - (metadata != NULL);
    struct range *ranges = calloc(n + 1, sizeof *ranges);
    s->tensors = calloc(n + 1, sizeof *s->tensors);
    enum fathom_status status = FATHOM_OK;
    if (!s->tensors || !ranges)
        status = fail_nomem(h->err, n * sizeof *s->tensors, "the tensor table");
    const struct json_node *key = json_first(h->json, root);
    while (!status && key) {
        const struct json_node *value = json_next(h->json, root, key);
        if (value != metadata) {
            status = read_tensor(h, key, value, &s->tensors[s->n_tensors], &ranges[s->n_tensors]);
            s->n_tensors++;
        }
        key = json_next(h->json, root, value);
    }
    if (!status)
        status = check_ranges(h, ranges, n);
    free(ranges);
    if (status)
        return status;
    if (n > 0)
        qsort(s->tensors, n, sizeof *s->tensors, compare_names);
    return read_metadata(s, h, metadata);
}

enum fathom_status safetensors_parse(struct safetensors *s, const uint8_t *data, size_t n, struct fathom_err *err)
{
    *s = (struct safetensors){0};
    if (n < 8)
        return fail(err, FATHOM_EFORMAT, "%zu bytes are too few for a safetensors file", n);
    uint64_t n_header = 0;
    for (int i = 0; i < 8; i++)
        n_header |= (uint64_t)data[i] << 8 * i;
    if (n_header > SAFETENSORS_MAX_HEADER)
        return fail(err, FATHOM_ELIMIT, "header of %llu bytes, more than the limit of %zu",
                    (unsigned long long)n_header, SAFETENSORS_MAX_HEADER);
    if (n_header > n - 8)
        return fail(err, FATHOM_EFORMAT, "header of %zu bytes in a file of %zu", (size_t)n_header, n);
    struct json json = {0};
    enum fathom_status status = json_parse(&json, (const char *)data + 8, n_header, err);
    if (status) {
        json_free(&json);
        return fail_at(err, "header: ");
    }
    struct header h = {&json, data + 8 + n_header, n - 8 - n_header, err};
    const struct json_node *root = json_root(&json);
    if (root->type != JSON_OBJECT)
        status = fail(err, FATHOM_EFORMAT, "header is not an object");
    else
        status = read_members(s, &h, root);
    json_free(&json);
    if (status)
        safetensors_close(s);
    return status;
}

enum fathom_status safetensors_open(struct safetensors *s, const char *path, struct fathom_err *err)
{
    struct mapfile file;
    enum fathom_status status = mapfile_open(&file, path, err);
    if (status) {
        *s = (struct safetensors){0};
        return status;
    }
    status = safetensors_parse(s, file.data, file.size, err);
    if (status) {
        mapfile_close(&file);
        fail_at(err, "'%s': ", path);
        return status;
    }
    s->file = file;
    return FATHOM_OK;
}

void safetensors_close(struct safetensors *s)
{
    for (size_t i = 0; i < s->n_tensors; i++)
        free(s->tensors[i].name);
    free(s->tensors);
    mapfile_close(&s->file);
    *s = (struct safetensors){0};
}

const struct safetensors_tensor *safetensors_find(const struct safetensors *s, const char *name)
{
    struct safetensors_tensor key = {.name = (char *)name};
    return s->n_tensors ? bsearch(&key, s->tensors, s->n_tensors, sizeof key, compare_names) : NULL;
}
