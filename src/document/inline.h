/* Text within a line or a cell: emphasis, formulas, code, references to characters and the few tags that models use. */
#ifndef FATHOM_DOCUMENT_INLINE_H
#define FATHOM_DOCUMENT_INLINE_H

#include "base/strbuf.h"

enum span_mark { SPAN_STRONG, SPAN_EM, SPAN_B, SPAN_I, SPAN_SUP, SPAN_SUB, N_SPAN_MARKS };

enum inline_kind {
    INLINE_TEXT,    /* text, n: to be written as it is                      */
    INLINE_LINE,    /* the end of a line                                    */
    INLINE_CODE,    /* text, n: within backticks                            */
    INLINE_FORMULA, /* text, n: with its delimiters                         */
    INLINE_OPEN,    /* of mark; every one has its INLINE_CLOSE, well nested */
    INLINE_CLOSE,
    INLINE_NOTHING, /* a tag without partner                                */
};

struct inline_token {
    enum inline_kind kind;
    enum span_mark mark;
    const char *text;
    size_t n;
    size_t outer;      /* used while parsing */
    char character[4]; /* text of a reference to a character: text points here */
};

struct inline_tokens {
    struct inline_token *tokens;
    size_t n, capacity;
    bool failed;
};

/* Marks nest 16 deep at most; others stay as they are. Never fails but for memory; linear time. The tokens point into text
 * and into themselves. */
enum fathom_status inline_parse(struct inline_tokens *out, const char *text, size_t n, struct fathom_err *err);
void inline_free(struct inline_tokens *t);

/* Adds text, n bytes, as plain text: without marks and tags; a line end is written as `line`. */
enum fathom_status inline_add_plain(struct strbuf *out, const char *text, size_t n, const char *line,
                                    struct fathom_err *err);

#endif
