/* PDF documents, with poppler and cairo. */
#ifndef FATHOM_HELPER_PDF_H
#define FATHOM_HELPER_PDF_H

#include "document/document.h"

struct pdf;

/* To be called before the sandbox closes: loads what poppler would load later. */
void pdf_prepare(void);

/* Opens the PDF behind a descriptor, which it takes over, also when it fails. Options are borrowed for the call. */
enum fathom_status pdf_open(struct pdf **out, int fd, const struct document_options *options, struct fathom_err *err);
void pdf_close(struct pdf *pdf); /* NULL is fine */

size_t pdf_n_pages(const struct pdf *pdf);

/* Draws page `number` (1-based) as it is shown: cropped, turned, on white. A page that one picture covers is drawn at that
 * picture's resolution, others at options.dpi; a page that would pass the limits, at less. On failure *out is empty. */
enum fathom_status pdf_page(struct pdf *pdf, size_t number, struct document_page *out, struct fathom_err *err);

#endif
