#include "document/pdf_file.h"

#include "base/checked.h"
#include "base/flate.h"

#include <inttypes.h>
#include <stdlib.h>

void pdf_file_free(struct pdf_file *f)
{
    free(f->offsets);
    *f = (struct pdf_file){0};
}

size_t pdf_new_object(struct pdf_file *f)
{
    if (f->n == f->capacity) {
        size_t capacity = f->capacity ? 2 * f->capacity : 256, bytes;
        uint64_t *offsets = size_mul(capacity, sizeof *offsets, &bytes) ? realloc(f->offsets, bytes) : NULL;
        if (!offsets)
            return 0;
        f->offsets = offsets;
        f->capacity = capacity;
    }
    f->offsets[f->n++] = 0;
    return f->n;
}

void pdf_begin_object(struct fathom_writer *w, struct pdf_file *f, size_t number)
{
    f->offsets[number - 1] = w->n_sent + w->out.n;
    strbuf_addf(&w->out, "%zu 0 obj\n", number);
}

void pdf_end_object(struct fathom_writer *w) { strbuf_adds(&w->out, "endobj\n"); }

static bool to_strbuf(void *user, const char *bytes, size_t n)
{
    struct strbuf *out = user;
    strbuf_add(out, bytes, n);
    return !out->failed;
}

enum fathom_status pdf_add_stream(struct fathom_writer *w, struct pdf_file *f, size_t number, const char *dictionary,
                                  const char *bytes, size_t n, struct fathom_err *err)
{
    struct strbuf packed = {0};
    struct flate *flate;
    enum fathom_status status = flate_open(&flate, to_strbuf, &packed, err);
    if (!status && (status = flate_write(flate, bytes, n, err)))
        flate_discard(flate);
    else if (!status)
        status = flate_close(flate, err);
    if (packed.failed)
        status = fail_nomem(err, packed.n, "a stream");
    if (!status) {
        pdf_begin_object(w, f, number);
        strbuf_addf(&w->out, "<< %s /Filter /FlateDecode /Length %zu >>\nstream\n", dictionary, packed.n);
        strbuf_add(&w->out, packed.text, packed.n);
        strbuf_adds(&w->out, "\nendstream\n");
        pdf_end_object(w);
    }
    strbuf_free(&packed);
    return status;
}

void pdf_add_end(struct fathom_writer *w, struct pdf_file *f, size_t catalog, size_t info)
{
    uint64_t at = w->n_sent + w->out.n;
    strbuf_addf(&w->out, "xref\n0 %zu\n0000000000 65535 f \n", f->n + 1);
    for (size_t i = 0; i < f->n; i++)
        strbuf_addf(&w->out, "%010" PRIu64 " 00000 n \n", f->offsets[i]);
    strbuf_addf(&w->out, "trailer\n<< /Size %zu /Root %zu 0 R /Info %zu 0 R >>\nstartxref\n%" PRIu64 "\n%%%%EOF\n",
                f->n + 1, catalog, info, at);
}
