/* Byte-level BPE straight from tokenizer.json (spec deepseek-ocr §5.1), both dialects. Read-only once open. */
#ifndef FATHOM_TEXT_TOKENIZER_H
#define FATHOM_TEXT_TOKENIZER_H

#include "base/err.h"

struct tokenizer;

struct tokens { /* a growing list; zero it to start, tokens_free at the end */
    int32_t *ids;
    size_t n, capacity;
};
enum fathom_status tokens_push(struct tokens *t, int32_t id, struct fathom_err *err);
enum fathom_status tokens_repeat(struct tokens *t, int32_t id, size_t times, struct fathom_err *err);
void tokens_free(struct tokens *t);

enum fathom_status tokenizer_open(struct tokenizer **out, const char *path, struct fathom_err *err);
enum fathom_status tokenizer_parse(struct tokenizer **out, const char *json, size_t n, struct fathom_err *err);
void tokenizer_close(struct tokenizer *tok);

size_t tokenizer_size(const struct tokenizer *tok); /* 1 + the highest id */

/* Appends the ids of UTF-8 text. With parse_special, added tokens are found in the text; otherwise their text is
 * ordinary text. Bytes of invalid UTF-8 are kept: each counts as a character of no class. Time is O(n log n). On failure
 * out is as it was. */
enum fathom_status tokenizer_encode(const struct tokenizer *tok, const char *text, size_t n, bool parse_special,
                                    struct tokens *out, struct fathom_err *err);

/* The bytes of one token (may be part of a character), borrowed; n 0 for an id without a token. */
const char *tokenizer_piece(const struct tokenizer *tok, int32_t id, size_t *n);
bool tokenizer_is_special(const struct tokenizer *tok, int32_t id);

/* The id of a whole token by its text ("<image>"), or -1. */
int32_t tokenizer_find(const struct tokenizer *tok, const char *text);

/* Joins pieces into UTF-8 that can be shown at once: bytes of an unfinished character wait; bytes that can no longer
 * become one are replaced by U+FFFD. Zero it to start. */
struct detokenizer {
    uint8_t pending[4];
    size_t n_pending;
};
/* Writes at most 3 * n + 3 bytes to out (every byte may be a broken one) and returns how many. piece NULL: the end,
 * flush what waits (n counts as 0). What comes out does not depend on how the bytes were cut into pieces. */
size_t detokenizer_push(struct detokenizer *d, const char *piece, size_t n, char *out);

#endif
