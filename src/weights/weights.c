#include "weights/weights.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "weights/set.h"

enum fathom_status weights_create(struct weights **out, struct fathom_err *err)
{
    *out = calloc(1, sizeof **out);
    return *out ? FATHOM_OK : fail_nomem(err, sizeof **out, "the tensor table");
}

static void free_item(const struct weight *item)
{
    if (item->file_name != item->name)
        free((char *)item->file_name);
    free((char *)item->name);
    free((char *)item->file_dtype);
}

void weights_close(struct weights *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->n; i++)
        free_item(&w->items[i]);
    for (size_t i = 0; i < w->n_files; i++)
        mapfile_close(&w->files[i]);
    for (size_t i = 0; i < w->n_blocks; i++)
        free(w->blocks[i]);
    free(w->items);
    free(w->files);
    free(w->blocks);
    free(w);
}

/* Room for one more of size bytes; NULL when there is none, and list is as it was. */
static void *grow(void *list, size_t n, size_t *capacity, size_t size)
{
    if (n < *capacity)
        return list;
    size_t more = *capacity ? 2 * *capacity : 64;
    void *grown = reallocarray(list, more, size);
    if (grown)
        *capacity = more;
    return grown;
}

enum fathom_status set_append(struct weights *w, const struct weight *item, struct fathom_err *err)
{
    struct weight copy = *item;
    copy.file_dtype = item->file_dtype ? strdup(item->file_dtype) : NULL;
    struct weight *items = grow(w->items, w->n, &w->capacity, sizeof *items);
    if (items)
        w->items = items;
    if (!items || !copy.name || !copy.file_name || !copy.file_dtype) {
        free_item(&copy);
        return fail_nomem(err, sizeof copy, "the tensor table");
    }
    w->items[w->n++] = copy;
    return FATHOM_OK;
}

enum fathom_status set_own_block(struct weights *w, void *block, struct fathom_err *err)
{
    if (!block)
        return FATHOM_OK;
    void **blocks = grow(w->blocks, w->n_blocks, &w->block_capacity, sizeof *blocks);
    if (!blocks) {
        free(block);
        return fail_nomem(err, sizeof *blocks, "the tensor table");
    }
    w->blocks = blocks;
    w->blocks[w->n_blocks++] = block;
    return FATHOM_OK;
}

static int compare(const void *a, const void *b)
{
    const struct weight *x = a, *y = b;
    return strcmp(x->name, y->name);
}

enum fathom_status set_finish(struct weights *w, struct fathom_err *err)
{
    if (w->n > 0)
        qsort(w->items, w->n, sizeof *w->items, compare);
    for (size_t i = 1; i < w->n; i++) {
        const struct weight *a = &w->items[i - 1], *b = &w->items[i];
        if (strcmp(a->name, b->name))
            continue;
        if (!strcmp(a->file_name, b->file_name))
            return fail(err, FATHOM_EFORMAT, "tensor '%s' is in two files", a->file_name);
        return fail(err, FATHOM_EFORMAT, "tensors '%s' and '%s' are both '%s'", a->file_name, b->file_name, a->name);
    }
    return FATHOM_OK;
}

/* Index of the first item whose name is not below name. */
static size_t lower_bound(const struct weights *w, const char *name)
{
    size_t low = 0, high = w->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(w->items[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

enum fathom_status weights_add(struct weights *w, const char *name, const struct tensor *tensor, struct fathom_err *err)
{
    char shown[16];
    enum fathom_status status = set_own_block(w, tensor->data, err);
    if (status)
        return status;
    size_t at = lower_bound(w, name);
    if (at < w->n && !strcmp(w->items[at].name, name))
        return fail(err, FATHOM_EINVAL, "tensor '%s' is there already", name);
    snprintf(shown, sizeof shown, "%s", dtype_name(tensor->dtype));
    char *own = strdup(name);
    struct weight item = {own, own, shown, dtype_bytes(tensor->dtype, tensor_elements(tensor)), *tensor};
    status = set_append(w, &item, err);
    if (status)
        return status;
    item = w->items[w->n - 1];
    memmove(&w->items[at + 1], &w->items[at], (w->n - 1 - at) * sizeof item);
    w->items[at] = item;
    return FATHOM_OK;
}

size_t weights_count(const struct weights *w) { return w->n; }

const struct weight *weights_at(const struct weights *w, size_t i) { return i < w->n ? &w->items[i] : NULL; }

const struct weight *weights_find(const struct weights *w, const char *name)
{
    size_t at = lower_bound(w, name);
    return at < w->n && !strcmp(w->items[at].name, name) ? &w->items[at] : NULL;
}

size_t weights_mapped_bytes(const struct weights *w) { return w->mapped_bytes; }

size_t weights_copied_bytes(const struct weights *w) { return w->copied_bytes; }

static bool extents_match(const struct tensor *t, int n_dims, const size_t *shape)
{
    if (t->n_dims != n_dims)
        return false;
    for (int d = 0; d < n_dims; d++)
        if (shape[d] != WEIGHT_ANY && shape[d] != t->shape[d])
            return false;
    return true;
}

static bool flattened_matches(const struct tensor *t, int n_dims, const size_t *shape)
{
    size_t n = 1;
    if (n_dims != 4 || t->n_dims != 2 || (shape[0] != WEIGHT_ANY && shape[0] != t->shape[0]))
        return false;
    for (int d = 1; d < 4; d++)
        if (shape[d] == WEIGHT_ANY || !size_mul(n, shape[d], &n))
            return false;
    return n == t->shape[1];
}

static void expected_text(char text[128], int n_dims, const size_t *shape)
{
    size_t at = 0;
    for (int d = 0; d < n_dims; d++) {
        at += (size_t)snprintf(text + at, 128 - at, "%s", d ? ", " : "[");
        if (shape[d] == WEIGHT_ANY)
            at += (size_t)snprintf(text + at, 128 - at, "any");
        else
            at += (size_t)snprintf(text + at, 128 - at, "%zu", shape[d]);
    }
    snprintf(text + at, 128 - at, "]");
}

static bool dtype_allowed(enum dtype dtype, int n_dims)
{
    return dtype == DTYPE_F32 || dtype == DTYPE_BF16 || (n_dims > 1 && (dtype == DTYPE_F16 || dtype == DTYPE_Q8_0));
}

enum fathom_status weights_get(const struct weights *w, struct tensor *out, int n_dims, const size_t *shape,
                               struct fathom_err *err, const char *format, ...)
{
    char name[512], found[96], expected[128];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(name, sizeof name, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof name)
        return fail(err, FATHOM_EINVAL, "tensor name is too long");
    const struct weight *weight = weights_find(w, name);
    if (!weight)
        return fail(err, FATHOM_EFORMAT, "tensor '%s' is missing", name);
    const struct tensor *t = &weight->tensor;
    if (t->n_dims == 0 || !dtype_allowed(t->dtype, n_dims))
        return fail(err, FATHOM_EUNSUPPORTED, "tensor '%s' has dtype %s, expected %s", weight->file_name,
                    weight->file_dtype, n_dims > 1 ? "F32, F16, BF16 or q8_0" : "F32 or BF16");
    if (!extents_match(t, n_dims, shape) && !flattened_matches(t, n_dims, shape)) {
        expected_text(expected, n_dims, shape);
        return fail(err, FATHOM_EFORMAT, "tensor '%s' has shape %s, expected %s", weight->file_name,
                    tensor_shape_text(t, found), expected);
    }
    *out = *t;
    return FATHOM_OK;
}
