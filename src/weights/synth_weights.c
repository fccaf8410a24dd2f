#include "weights/synth_weights.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "weights/safetensors.h"
#include "weights/set.h"
#include "weights/synth.h"

#define PIECE_ELEMENTS ((size_t)4 << 20)
#define HUGE_PAGE ((size_t)2 << 20)

/* So that each tensor begins on a cache line. */
static size_t padded_elements(const struct tensor_spec *spec) { return (tensor_spec_elements(spec) + 31) / 32 * 32; }

static struct tensor spec_tensor(const struct tensor_spec *spec, void *data)
{
    struct tensor t = {.dtype = DTYPE_BF16, .n_dims = spec->n_dims, .data = data};
    size_t stride = 1;
    for (int d = spec->n_dims - 1; d >= 0; d--) {
        t.shape[d] = spec->shape[d];
        t.stride[d] = stride;
        stride *= spec->shape[d];
    }
    return t;
}

/* All tensors lie in one block: it asks for huge pages, without which page faults take longer than the values. */
static enum fathom_status allocate(uint16_t **block, const struct tensor_spec *specs, size_t n, struct fathom_err *err)
{
    size_t elements = 0;
    for (size_t i = 0; i < n; i++)
        elements += padded_elements(&specs[i]);
    size_t bytes = (elements * sizeof **block + HUGE_PAGE) / HUGE_PAGE * HUGE_PAGE;
    *block = aligned_alloc(HUGE_PAGE, bytes);
    if (!*block)
        return fail_nomem(err, bytes, "the weights");
    madvise(*block, bytes, MADV_HUGEPAGE);
    return FATHOM_OK;
}

static enum fathom_status fill_all(struct weights *w, uint16_t *at, const struct tensor_spec *specs, size_t n,
                                   struct pool *pool, struct fathom_err *err)
{
    enum fathom_status status = FATHOM_OK;
    for (size_t i = 0; !status && i < n; i++) {
        const struct tensor_spec *spec = &specs[i];
        size_t elements = tensor_spec_elements(spec);
        struct synth_range range = synth_rule(spec->name, spec->n_dims, spec->shape);
        synth_fill_bf16(at, spec->name, 0, elements, range.center, range.amp, pool);
        char *name = strdup(spec->name);
        struct weight item = {name, name, dtype_name(DTYPE_BF16), elements * sizeof *at, spec_tensor(spec, at)};
        status = set_append(w, &item, err);
        at += padded_elements(spec);
    }
    return status ? status : set_finish(w, err);
}

enum fathom_status synth_ocr_weights(struct weights **out, const struct model_config *c, struct pool *pool,
                                     struct fathom_err *err)
{
    struct tensor_spec *specs = NULL;
    size_t n = 0;
    uint16_t *block = NULL;
    enum fathom_status status = weights_create(out, err);
    if (!status)
        status = ocr_tensors(&specs, &n, c, err);
    if (!status)
        status = allocate(&block, specs, n, err);
    if (!status)
        status = set_own_block(*out, block, err);
    if (!status)
        status = fill_all(*out, block, specs, n, pool, err);
    free(specs);
    if (status) {
        weights_close(*out);
        *out = NULL;
    }
    return status;
}

static enum fathom_status write_tensor(struct safetensors_writer *writer, const struct tensor_spec *spec,
                                       uint16_t *piece, struct pool *pool, struct fathom_err *err)
{
    enum fathom_status status = FATHOM_OK;
    size_t n = tensor_spec_elements(spec);
    struct synth_range range = synth_rule(spec->name, spec->n_dims, spec->shape);
    for (size_t first = 0; !status && first < n; first += PIECE_ELEMENTS) {
        size_t count = n - first < PIECE_ELEMENTS ? n - first : PIECE_ELEMENTS;
        synth_fill_bf16(piece, spec->name, first, count, range.center, range.amp, pool);
        status = safetensors_append(writer, piece, count * sizeof *piece, err);
    }
    return status;
}

enum fathom_status synth_write(const char *path, const struct tensor_spec *specs, size_t n, struct pool *pool,
                               struct fathom_err *err)
{
    struct safetensors_writer *writer = NULL;
    enum fathom_status status = FATHOM_OK;
    struct safetensors_spec *file_specs = calloc(n + 1, sizeof *file_specs);
    uint16_t *piece = malloc(PIECE_ELEMENTS * sizeof *piece);
    if (!file_specs || !piece)
        status = fail_nomem(err, PIECE_ELEMENTS * sizeof *piece, "a piece of a tensor");
    for (size_t i = 0; !status && i < n; i++) {
        file_specs[i] = (struct safetensors_spec){specs[i].name, DTYPE_BF16, specs[i].n_dims, {0}};
        for (int d = 0; d < specs[i].n_dims; d++)
            file_specs[i].shape[d] = specs[i].shape[d];
    }
    if (!status)
        status = safetensors_create(&writer, path, file_specs, n, err);
    for (size_t i = 0; !status && i < n; i++)
        status = write_tensor(writer, &specs[i], piece, pool, err);
    if (!status)
        status = safetensors_commit(writer, err);
    else
        safetensors_discard(writer);
    free(file_specs);
    free(piece);
    return status;
}
