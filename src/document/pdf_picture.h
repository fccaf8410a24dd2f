/* A page's picture as an object of a PDF. */
#ifndef FATHOM_DOCUMENT_PDF_PICTURE_H
#define FATHOM_DOCUMENT_PDF_PICTURE_H

#include "document/pdf_file.h"

/* The page's own JPEG byte for byte when it has one that PDF readers know, of the page's size; else its pixels without
 * loss, as one sample a pixel when they are grey. The page has pixels or such a JPEG. Sent as it arises. */
enum fathom_status pdf_add_picture(struct fathom_writer *w, struct pdf_file *f, size_t number,
                                   const struct fathom_page *page, struct fathom_err *err);

/* Whether the page has a JPEG that pdf_add_picture can take over. */
bool pdf_takes_jpeg(const struct fathom_page *page);

#endif
