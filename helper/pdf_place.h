/* Where a page's pixels lie in the PDF's default user space. */
#ifndef FATHOM_HELPER_PDF_PLACE_H
#define FATHOM_HELPER_PDF_PLACE_H

#include <poppler.h>

/* From pixels (x right, y down) of a page that is drawn at these points a pixel to user space:
 * X = out[0] x + out[2] y + out[4], Y = out[1] x + out[3] y + out[5]. */
void pdf_place(PopplerDocument *document, PopplerPage *page, double points_x, double points_y, double out[6]);

#endif
