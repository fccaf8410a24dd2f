/* A block's text cut into lines that fill its boxes. */
#ifndef FATHOM_DOCUMENT_PDF_TEXT_H
#define FATHOM_DOCUMENT_PDF_TEXT_H

#include "base/strbuf.h"
#include "document/pdf_font.h"

/* A rectangle of the written page in points, y upwards. */
struct pdf_area {
    double x0, y0, x1, y1;
};

/* Adds text operators that place UTF-8 text, lines separated by line feeds, in areas (one at least): in the fewest lines
 * that fit, broken at spaces and between characters of East Asia, and stretched so that the longest fills the width.
 * Characters stand in the order in which they are seen, right-to-left ones too. Time: text times the logarithm of it. */
enum fathom_status pdf_add_text(struct strbuf *out, struct pdf_font *font, const char *text, size_t n,
                                const struct pdf_area *areas, size_t n_areas, struct fathom_err *err);

#endif
