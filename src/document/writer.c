#include "document/writer.h"

#include <stdlib.h>
#include <string.h>

static const struct writer_format *find_format(enum fathom_format format)
{
    switch (format) {
    case FATHOM_MARKDOWN: return &writer_markdown;
    case FATHOM_JSON: return &writer_json;
    case FATHOM_JSON_LINES: return &writer_json_lines;
    case FATHOM_STATS: return &writer_stats;
    case FATHOM_TEXT: return &writer_text;
    case FATHOM_HTML: return &writer_html;
    case FATHOM_HOCR: return &writer_hocr;
    case FATHOM_ALTO: return &writer_alto;
    case FATHOM_SEARCHABLE_PDF: return &writer_pdf;
    }
    return NULL;
}

enum fathom_status fathom_writer_open(enum fathom_format format, const struct fathom_writer_options *options,
                                      fathom_write_fn *write, void *user, struct fathom_writer **out,
                                      struct fathom_err *err)
{
    *out = NULL;
    const struct writer_format *f = find_format(format);
    if (!f)
        return fail(err, FATHOM_EINVAL, "there is no format %d", (int)format);
    struct fathom_writer *w = calloc(1, sizeof *w);
    void *state = calloc(1, f->state_bytes + 1);
    if (!w || !state) {
        free(w);
        free(state);
        return fail_nomem(err, sizeof *w + f->state_bytes, "a writer");
    }
    *w = (struct fathom_writer){.format = f, .write = write, .user = user, .state = state};
    if (options)
        w->options = *options;
    if (!w->options.file)
        w->options.file = "";
    *out = w;
    return FATHOM_OK;
}

enum fathom_status writer_flush(struct fathom_writer *w, struct fathom_err *err)
{
    if (w->out.failed)
        return fail_nomem(err, w->out.n, "what is to be written");
    if (w->out.n && !w->write(w->user, w->out.text, w->out.n))
        return fail(err, FATHOM_EIO, "the output cannot be written");
    w->n_sent += w->out.n;
    strbuf_cut(&w->out, 0);
    return FATHOM_OK;
}

/* Runs one function of the format and sends what it added, unless anything has failed before. */
static enum fathom_status step(struct fathom_writer *w, const struct fathom_page *page,
                               enum fathom_status (*call)(struct fathom_writer *, struct fathom_err *),
                               struct fathom_err *err)
{
    enum fathom_status status = w->error.status;
    if (!status && !(status = page ? w->format->page(w, page, &w->error) : call ? call(w, &w->error) : FATHOM_OK))
        status = writer_flush(w, &w->error);
    w->error.status = status;
    if (status && err)
        *err = w->error;
    return status;
}

static void begin(struct fathom_writer *w)
{
    if (!w->begun)
        step(w, NULL, w->format->begin, NULL);
    w->begun = true;
}

enum fathom_status fathom_writer_page(struct fathom_writer *w, const struct fathom_page *page, struct fathom_err *err)
{
    begin(w);
    enum fathom_status status = step(w, page, NULL, err);
    w->n_pages++;
    return status;
}

enum fathom_status fathom_writer_close(struct fathom_writer *w, struct fathom_err *err)
{
    begin(w);
    enum fathom_status status = step(w, NULL, w->format->end, err);
    fathom_writer_discard(w);
    return status;
}

void fathom_writer_discard(struct fathom_writer *w)
{
    if (!w)
        return;
    if (w->format->release)
        w->format->release(w);
    strbuf_free(&w->out);
    free(w->state);
    free(w);
}
