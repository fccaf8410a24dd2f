#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/outfile.h"
#include "weights/safetensors.h"

struct safetensors_writer {
    struct outfile file;
    size_t left_bytes; /* tensor data still to come */
};

static const char *file_dtype(enum dtype dtype)
{
    switch (dtype) {
    case DTYPE_F32: return "F32";
    case DTYPE_F16: return "F16";
    case DTYPE_BF16: return "BF16";
    case DTYPE_F8_E4M3: return "F8_E4M3";
    case DTYPE_F8_E8M0: return "F8_E8M0";
    case DTYPE_I32: return "I32";
    case DTYPE_I64: return "I64";
    case DTYPE_U8:
    case DTYPE_Q8_0: return "U8";
    case DTYPE_F4_E2M1: /* never written: a file has its bytes */
    case DTYPE_I8: return "I8";
    }
    return "";
}

static void put_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (const char *c = text; *c; c++) {
        if ((unsigned char)*c < 0x20)
            fprintf(out, "\\u%04x", (unsigned)*c);
        else if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else
            fputc(*c, out);
    }
    fputc('"', out);
}

static void put_metadata(FILE *out, const struct safetensors_spec *specs, size_t n)
{
    fputs("{\"__metadata__\":{\"format\":\"pt\"", out);
    for (size_t i = 0; i < n; i++) {
        if (specs[i].dtype != DTYPE_Q8_0)
            continue;
        fputc(',', out);
        put_string(out, specs[i].name);
        fprintf(out, ":\"q8_0 [%zu, %zu]\"", specs[i].shape[0], specs[i].shape[1]);
    }
    fputc('}', out);
}

static enum fathom_status spec_bytes(const struct safetensors_spec *spec, size_t *bytes, struct fathom_err *err)
{
    size_t n = 1;
    bool is_q8_0 = spec->dtype == DTYPE_Q8_0, fits = spec->n_dims >= 1 && spec->n_dims <= TENSOR_MAX_DIMS;
    for (int d = 0; fits && d < spec->n_dims; d++)
        fits = size_mul(n, spec->shape[d], &n);
    if (!fits || (is_q8_0 && (spec->n_dims != 2 || spec->shape[1] % Q8_0_BLOCK)) || n > SIZE_MAX / 8)
        return fail(err, FATHOM_EINVAL, "tensor '%s' cannot be written with this shape", spec->name);
    *bytes = dtype_bytes(spec->dtype, n);
    return FATHOM_OK;
}

static enum fathom_status put_header(FILE *out, const struct safetensors_spec *specs, size_t n, size_t *total,
                                     struct fathom_err *err)
{
    *total = 0;
    put_metadata(out, specs, n);
    for (size_t i = 0; i < n; i++) {
        const struct safetensors_spec *spec = &specs[i];
        size_t bytes = 0, begin = *total;
        enum fathom_status status = spec_bytes(spec, &bytes, err);
        if (status)
            return status;
        if (!size_add(begin, bytes, total))
            return fail(err, FATHOM_EINVAL, "tensor '%s' makes the file too large", spec->name);
        fputc(',', out);
        put_string(out, spec->name);
        fprintf(out, ":{\"dtype\":\"%s\",\"shape\":[", file_dtype(spec->dtype));
        for (int d = 0; d < spec->n_dims; d++) {
            bool is_packed = spec->dtype == DTYPE_Q8_0 && d == 1;
            fprintf(out, "%s%zu", d ? "," : "", is_packed ? dtype_bytes(DTYPE_Q8_0, spec->shape[d]) : spec->shape[d]);
        }
        fprintf(out, "],\"data_offsets\":[%zu,%zu]}", begin, *total);
    }
    fputc('}', out);
    for (long at = ftell(out); at > 0 && at % 8; at++) /* so that the data begins aligned */
        fputc(' ', out);
    return FATHOM_OK;
}

static enum fathom_status make_header(char **text, size_t *n_text, const struct safetensors_spec *specs, size_t n,
                                      size_t *total, struct fathom_err *err)
{
    FILE *out = open_memstream(text, n_text);
    if (!out)
        return fail_nomem(err, 0, "a safetensors header");
    enum fathom_status status = put_header(out, specs, n, total, err);
    bool failed = ferror(out);
    failed |= fclose(out) != 0;
    if (!status && failed)
        status = fail_nomem(err, *n_text, "a safetensors header");
    return status;
}

enum fathom_status safetensors_create(struct safetensors_writer **out, const char *path,
                                      const struct safetensors_spec *specs, size_t n, struct fathom_err *err)
{
    char *text = NULL;
    size_t n_text = 0;
    struct safetensors_writer *w = calloc(1, sizeof *w);
    *out = NULL;
    if (!w)
        return fail_nomem(err, sizeof *w, "a safetensors writer");
    enum fathom_status status = make_header(&text, &n_text, specs, n, &w->left_bytes, err);
    if (!status)
        status = outfile_create(&w->file, path, err);
    if (!status) {
        uint8_t length[8];
        for (int i = 0; i < 8; i++)
            length[i] = (uint8_t)((uint64_t)n_text >> 8 * i);
        status = outfile_write(&w->file, length, sizeof length, err);
    }
    if (!status)
        status = outfile_write(&w->file, text, n_text, err);
    free(text);
    if (status) {
        safetensors_discard(w);
        return status;
    }
    *out = w;
    return FATHOM_OK;
}

enum fathom_status safetensors_append(struct safetensors_writer *w, const void *data, size_t bytes,
                                      struct fathom_err *err)
{
    if (bytes > w->left_bytes)
        return fail(err, FATHOM_EINVAL, "more tensor data than the header names for '%s'", w->file.path);
    w->left_bytes -= bytes;
    return outfile_write(&w->file, data, bytes, err);
}

enum fathom_status safetensors_commit(struct safetensors_writer *w, struct fathom_err *err)
{
    if (w->left_bytes) {
        enum fathom_status status =
            fail(err, FATHOM_EINVAL, "%zu bytes of tensor data are missing for '%s'", w->left_bytes, w->file.path);
        safetensors_discard(w);
        return status;
    }
    enum fathom_status status = outfile_commit(&w->file, err);
    free(w);
    return status;
}

void safetensors_discard(struct safetensors_writer *w)
{
    if (!w)
        return;
    outfile_discard(&w->file);
    free(w);
}
