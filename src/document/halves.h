/* A page read in two halves: where to cut it, and one text of both. */
#ifndef FATHOM_DOCUMENT_HALVES_H
#define FATHOM_DOCUMENT_HALVES_H

#include "base/strbuf.h"

/* Between the two texts. */
#define HALVES_SEPARATOR "\n\n"

/* The first row of the lower half: where least is written, within the middle fifth of the page, rows near the middle
 * being preferred. 0 when the page is too low to be halved. rgb: [height, width, 3] u8. */
int halves_row(const uint8_t *rgb, int width, int height);

/* The output of both halves as one page's: every box that can be read is put from 0..999 of its half into whole numbers
 * of 0..999 of the page; the rest of the text stays as it is, but for white space and an unfinished tag where the halves meet.
 * row, height: as halves_row gave them. out is added to. Fails only for memory. */
enum fathom_status halves_join(struct strbuf *out, const char *upper, const char *lower, int row, int height,
                               struct fathom_err *err);

#endif
