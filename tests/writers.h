/* Pages made from model output, and what the writers make of them in memory. */
#ifndef FATHOM_TESTS_WRITERS_H
#define FATHOM_TESTS_WRITERS_H

#include "base/strbuf.h"

#define ITEM(label, list) "<|ref|>" label "<|/ref|><|det|>" list "<|/det|>"

static inline bool to_strbuf(void *user, const char *text, size_t n)
{
    struct strbuf *out = user;
    strbuf_add(out, text, n);
    return !out->failed;
}

/* A page of raw output; number 0 or a message: one that failed. For fathom_page_free; NULL when memory ran out. */
static inline struct fathom_page *make_page(const char *raw, size_t number, size_t n_pages, const char *failure)
{
    struct fathom_page kept = {.number = number, .n_pages = n_pages, .width = 999, .height = 1998, .raw = raw};
    struct fathom_page *page = NULL;
    if (failure) {
        kept.status = FATHOM_PAGE_FAILED;
        fail(&kept.err, FATHOM_EFORMAT, "%s", failure);
    }
    fathom_page_restore(&kept, &page, NULL);
    return page;
}

/* The document of these pages, all of them freed. */
static inline enum fathom_status write_pages(struct strbuf *out, enum fathom_format format,
                                             const struct fathom_writer_options *options, struct fathom_page **pages,
                                             size_t n, struct fathom_err *err)
{
    struct fathom_writer *w;
    enum fathom_status status = fathom_writer_open(format, options, to_strbuf, out, &w, err), closed;
    for (size_t i = 0; i < n; i++) {
        if (!status && pages[i])
            fathom_writer_page(w, pages[i], NULL);
        fathom_page_free(pages[i]);
    }
    if (status)
        return status;
    closed = fathom_writer_close(w, err);
    return closed;
}

#endif
