/* A block's text as HTML: headings, paragraphs, lists, tables, emphasis. Nothing of the text becomes a tag but what the
 * whitelists of inline.h and table.h name, so that no script, link or style of a page survives. */
#ifndef FATHOM_DOCUMENT_HTML_TEXT_H
#define FATHOM_DOCUMENT_HTML_TEXT_H

#include "base/strbuf.h"

/* Adds elements that may stand where HTML expects flow content, each closed. */
enum fathom_status html_add_text(struct strbuf *out, const char *text, struct fathom_err *err);

#endif
