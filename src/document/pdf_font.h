/* The font of a PDF's invisible text: it has no shapes, a number for each character that the document uses, and a table
 * that gives the characters back. */
#ifndef FATHOM_DOCUMENT_PDF_FONT_H
#define FATHOM_DOCUMENT_PDF_FONT_H

#include "base/strbuf.h"

enum { PDF_FONT_MAX = 65535 };

struct pdf_font {
    uint16_t *cids[0x110000 / 256]; /* of the character c at [c / 256][c % 256]; 0: none yet */
    uint32_t *characters;           /* of each number, from 1 to n                           */
    size_t n, capacity;
};

void pdf_font_free(struct pdf_font *f);

/* The number of a character. Control characters count as spaces, surrogates, numbers beyond Unicode, and the 65,535th and
 * later different ones as U+FFFD. 0: out of memory. */
uint16_t pdf_font_cid(struct pdf_font *f, uint32_t character);

/* Its width in thousandths of the font's size: 1000 for those of East Asia, 500 for others. */
int pdf_character_width(uint32_t character);

/* Add: the body of the ToUnicode map; the W array's content; two bytes a number that tell the glyph; a TrueType font with
 * three empty glyphs, of which 1 is 500 and 2 is 1000 wide. */
void pdf_font_add_to_unicode(const struct pdf_font *f, struct strbuf *out);
void pdf_font_add_widths(const struct pdf_font *f, struct strbuf *out);
void pdf_font_add_glyphs(const struct pdf_font *f, struct strbuf *out);
void pdf_font_add_program(struct strbuf *out);

#endif
