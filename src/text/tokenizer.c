#include "base/checked.h"
#include "text/pretokenize.h"
#include "text/tokenizer_data.h"

#include <stdlib.h>
#include <string.h>

#define MAX_TOKENS ((size_t)INT32_MAX)

static enum fathom_status reserve(struct tokens *t, size_t more, struct fathom_err *err)
{
    if (t->capacity - t->n >= more)
        return FATHOM_OK;
    if (more > MAX_TOKENS - t->n)
        return fail(err, FATHOM_ELIMIT, "more than %zu tokens", MAX_TOKENS);
    size_t capacity = t->capacity ? t->capacity : 64;
    while (capacity - t->n < more)
        capacity *= 2;
    int32_t *ids = realloc(t->ids, capacity * sizeof *ids);
    if (!ids)
        return fail_nomem(err, capacity * sizeof *ids, "tokens");
    t->ids = ids;
    t->capacity = capacity;
    return FATHOM_OK;
}

enum fathom_status tokens_repeat(struct tokens *t, int32_t id, size_t times, struct fathom_err *err)
{
    enum fathom_status status = reserve(t, times, err);
    for (size_t i = 0; !status && i < times; i++)
        t->ids[t->n++] = id;
    return status;
}

enum fathom_status tokens_push(struct tokens *t, int32_t id, struct fathom_err *err)
{
    return tokens_repeat(t, id, 1, err);
}

void tokens_free(struct tokens *t)
{
    free(t->ids);
    *t = (struct tokens){0};
}

void tokenizer_close(struct tokenizer *tok)
{
    if (!tok)
        return;
    free(tok->bytes);
    free(tok->offsets);
    free(tok->is_special);
    bpe_release(&tok->bpe);
    free(tok->added[0].items);
    free(tok->added[1].items);
    free(tok);
}

size_t tokenizer_size(const struct tokenizer *tok) { return tok->n_ids; }

const char *tokenizer_piece(const struct tokenizer *tok, int32_t id, size_t *n)
{
    *n = 0;
    if (id < 0 || (size_t)id >= tok->n_ids)
        return "";
    *n = tok->offsets[id + 1] - tok->offsets[id];
    return tok->bytes + tok->offsets[id];
}

bool tokenizer_is_special(const struct tokenizer *tok, int32_t id)
{
    return id >= 0 && (size_t)id < tok->n_ids && tok->is_special[id];
}

int32_t tokenizer_find(const struct tokenizer *tok, const char *text)
{
    size_t n = strlen(text), n_piece;
    for (int set = 0; set < 2; set++) {
        const struct added *item = added_find(&tok->added[set], text, n);
        if (item)
            return item->id;
    }
    for (size_t id = 0; n && id < tok->n_ids; id++) {
        const char *piece = tokenizer_piece(tok, (int32_t)id, &n_piece);
        if (n_piece == n && memcmp(piece, text, n) == 0)
            return (int32_t)id;
    }
    return -1;
}

struct encoder {
    const struct tokenizer *tok;
    struct tokens *out;
    struct bpe_scratch scratch;
    struct fathom_err *err;
};

static enum fathom_status encode_plain(struct encoder *e, const char *text, size_t n)
{
    while (n) {
        size_t piece = pretoken_next(text, n), n_ids = 0;
        enum fathom_status status = reserve(e->out, piece, e->err);
        if (status ||
            (status = bpe_piece(&e->tok->bpe, text, piece, e->out->ids + e->out->n, &n_ids, &e->scratch, e->err)))
            return status;
        e->out->n += n_ids;
        text += piece;
        n -= piece;
    }
    return FATHOM_OK;
}

/* Finds the added tokens of one set and leaves what lies between them to the next set, and then to the merges. */
static enum fathom_status encode_added(struct encoder *e, int set, const char *text, size_t n)
{
    if (set == 2)
        return encode_plain(e, text, n);
    size_t start = 0;
    enum fathom_status status;
    for (size_t at = 0; at < n;) {
        const struct added *item = added_match(&e->tok->added[set], text + at, n - at);
        if (!item) {
            at++;
            continue;
        }
        if ((status = encode_added(e, set + 1, text + start, at - start)) ||
            (status = tokens_push(e->out, item->id, e->err)))
            return status;
        start = at += item->n;
    }
    return encode_added(e, set + 1, text + start, n - start);
}

enum fathom_status tokenizer_encode(const struct tokenizer *tok, const char *text, size_t n, bool parse_special,
                                    struct tokens *out, struct fathom_err *err)
{
    struct encoder e = {.tok = tok, .out = out, .err = err};
    size_t n_before = out->n;
    enum fathom_status status = encode_added(&e, parse_special ? 0 : 2, text, n);
    bpe_scratch_free(&e.scratch);
    if (status)
        out->n = n_before;
    return status;
}
