/* Pages and their costs as JSON (docs/formats.md is the schema). */
#ifndef FATHOM_CLI_PAGE_JSON_H
#define FATHOM_CLI_PAGE_JSON_H

#include "json.h"

#include <fathom.h>

/* One object: the page as a result. */
void page_json(struct json *j, const char *file, const struct fathom_page *page);

/* The same for a file of which no page could be read. */
void page_json_failure(struct json *j, const char *file, const struct fathom_err *err);

/* One object: what the page cost (--stats). */
void page_json_stats(struct json *j, const char *file, const struct fathom_page *page);

/* Tokens a second while decoding, 0 if none were. */
double decode_tok_s(const struct fathom_stats *stats);

#endif
