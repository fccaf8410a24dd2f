/* What the writers of all formats share; used within src/document only. */
#ifndef FATHOM_DOCUMENT_WRITER_H
#define FATHOM_DOCUMENT_WRITER_H

#include "base/strbuf.h"

struct writer_format {
    size_t state_bytes; /* of writer->state, zeroed */

    /* Add to writer->out, which is sent when they return. begin comes before the first page, end after the last; either
     * may be NULL, as may release, which frees what the state holds. */
    enum fathom_status (*begin)(struct fathom_writer *w, struct fathom_err *err);
    enum fathom_status (*page)(struct fathom_writer *w, const struct fathom_page *page, struct fathom_err *err);
    enum fathom_status (*end)(struct fathom_writer *w, struct fathom_err *err);
    void (*release)(struct fathom_writer *w);
};

struct fathom_writer {
    const struct writer_format *format;
    struct fathom_writer_options options; /* file is never NULL                       */
    fathom_write_fn *write;
    void *user;
    struct strbuf out;       /* not sent yet                                          */
    uint64_t n_sent;         /* bytes                                                 */
    size_t n_pages;          /* begun                                                 */
    bool begun;              /* format->begin was called                              */
    struct fathom_err error; /* the first failure; its status is FATHOM_OK until then */
    void *state;             /* the format's                                          */
};

/* Sends what was added. For what is too large to gather. */
enum fathom_status writer_flush(struct fathom_writer *w, struct fathom_err *err);

extern const struct writer_format writer_markdown, writer_json, writer_json_lines, writer_stats, writer_text,
    writer_html, writer_hocr, writer_alto, writer_pdf;

#endif
