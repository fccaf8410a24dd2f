/* Names of and places of a page's figures; used within src/document only. */
#ifndef FATHOM_DOCUMENT_FIGURES_H
#define FATHOM_DOCUMENT_FIGURES_H

#include "base/strbuf.h"

/* The box round all boxes of a block; false when it has none. */
bool block_bounds(const struct fathom_block *block, struct fathom_box *out);

/* The k-th figure's block, NULL when there are not as many. */
const struct fathom_block *page_figure(const struct fathom_page *page, size_t k);

/* fathom_page_figure_jpeg of a block. */
enum fathom_status block_jpeg(const struct fathom_page *page, const struct fathom_block *block, fathom_write_fn *write,
                              void *user, struct fathom_err *err);

/* Adds the folder and the name of the k-th figure as a relative URL: bytes that have a meaning there, or in Markdown or
 * HTML, are percent-encoded. */
void add_figure_url(struct strbuf *out, const char *folder, const struct fathom_page *page, size_t k);

/* The same without "K.jpg" at its end. */
void add_folder_url(struct strbuf *out, const char *folder, const struct fathom_page *page);

#endif
