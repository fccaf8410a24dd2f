/* A block's text, which is Markdown with HTML tables, as pieces; and text for XML. */
#ifndef FATHOM_DOCUMENT_MARKUP_H
#define FATHOM_DOCUMENT_MARKUP_H

#include "base/strbuf.h"

enum piece_kind { PIECE_HEADING, PIECE_PARAGRAPH, PIECE_ITEM, PIECE_TABLE, PIECE_CODE };

struct piece {
    enum piece_kind kind;
    size_t level;       /* heading: 1 to 6; item: how deep, from 0 to 7                  */
    const char *number; /* item: its number, n_number digits; none for a bullet         */
    size_t n_number;
    const char *text; /* without the marks at its beginning; parse it with inline_parse, */
    size_t n;         /* a table with table_parse; code is as it is                    */
};

/* The next piece at or after *at, which moves behind it; false at the end. Going through a text takes linear time. */
bool markup_next(const char **at, const char *end, struct piece *piece);

/* Adds a block's text as plain text, without a line feed at its end: marks and tags taken away, a table's rows as lines
 * with tabs between the cells, empty lines between pieces but for items of a list. */
enum fathom_status markup_add_plain(struct strbuf *out, const char *text, struct fathom_err *err);

/* Adds text escaped for XML and HTML, in an element or in a quoted attribute. Characters that XML forbids, and bytes that
 * are not UTF-8, become U+FFFD. */
void add_xml(struct strbuf *out, const char *text, size_t n);

/* Adds "page N failed: why", escaped, without "--", so that it may stand in a comment. */
void add_failure(struct strbuf *out, const struct fathom_page *page);

#endif
