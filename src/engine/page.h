/* One page: read it, and hand it on whatever came of it. */
#ifndef FATHOM_ENGINE_PAGE_H
#define FATHOM_ENGINE_PAGE_H

#include "engine/reader.h"

/* Reads the page and hands it to on_page. The caller has filled what it knows of the page: number, n_pages, rgb, width
 * and height, stats.decode_image_ms, and what only a document tells (size in points, to_document, text_layer, jpeg).
 * A page that fails is handed over as such and is no error here; FATHOM_ECANCELLED when a callback asked to stop, after
 * the page with its text so far was handed over. */
enum fathom_status page_read(const struct reader *reader, struct fathom_page *page, struct fathom_err *err);

/* Hands over a page that has no pixels, because of *why. */
enum fathom_status page_deliver_failed(const struct reader *reader, struct fathom_page *page,
                                       const struct fathom_err *why, struct fathom_err *err);

#endif
