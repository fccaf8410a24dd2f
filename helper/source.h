/* An open file as pages, inside the helper. */
#ifndef FATHOM_HELPER_SOURCE_H
#define FATHOM_HELPER_SOURCE_H

#include "document/document.h"

struct source;

struct source_page {
    struct document_page page; /* owned; jpeg stays NULL                       */
    bool plain_jpeg;           /* the file is a JPEG of just these pixels      */
};

/* Opens the file behind a descriptor, which it takes over, also when it fails. Options are borrowed for the call. */
enum fathom_status source_open(struct source **out, int fd, const struct document_options *options,
                               struct fathom_err *err);
void source_close(struct source *s); /* NULL is fine */

size_t source_n_pages(const struct source *s);

/* Its pages are drawn with fonts, which are files. */
bool source_needs_files(const struct source *s);

/* Page `number`, 1-based. On failure *out is empty. */
enum fathom_status source_page(struct source *s, size_t number, struct source_page *out, struct fathom_err *err);
void source_page_release(struct source_page *page);

#endif
