/* A choice of a document's pages, written like "1-3,7,10-". */
#ifndef FATHOM_DOCUMENT_PAGE_RANGE_H
#define FATHOM_DOCUMENT_PAGE_RANGE_H

#include "base/err.h"

/* Pages [first, last], counted from 1. */
struct page_span {
    size_t first, last;
};

/* Ascending, without overlap or duplicates; owned. */
struct page_range {
    struct page_span *spans;
    size_t n;
};

/* text: items "N", "N-M", "N-" (to the end) and "-M" (from the beginning) between commas, spaces around numbers being
 * fine; NULL: all pages. In whatever order and however often pages are named, each is chosen once. A page past the end is
 * an error that says how many pages there are; so are a page 0, a span that runs backwards and anything else. n_pages 0:
 * the document is not known yet, and only the writing is checked. */
enum fathom_status page_range_parse(struct page_range *out, const char *text, size_t n_pages, struct fathom_err *err);
void page_range_free(struct page_range *r); /* a zeroed one is fine */

/* The smallest chosen page above `after`, 0 when there is none: from 0 on, every page in turn. */
size_t page_range_next(const struct page_range *r, size_t after);

/* How many pages are chosen. */
size_t page_range_count(const struct page_range *r);

#endif
