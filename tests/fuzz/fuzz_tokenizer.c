/* Three kinds of input, by their first byte. 't': a text, which must come back from its ids. 'p': vocabulary, merges and
 * added tokens, with a NUL between them, to be put into a tokenizer.json that is otherwise good. Else: a tokenizer.json. */
#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "../tokenizer_json.h"
#include "fuzz.h"

static void check_text(const struct tokenizer *tok, const char *text, size_t n, bool parse_special)
{
    struct tokens ids = {0};
    struct detokenizer d = {0};
    size_t at = 0;
    enum fathom_status status = tokenizer_encode(tok, text, n, parse_special, &ids, NULL);
    if (status && (status != FATHOM_ENOMEM || ids.n))
        __builtin_trap();
    for (size_t i = 0; i < ids.n; i++) { /* none after a failure */
        size_t n_piece;
        const char *piece = tokenizer_piece(tok, ids.ids[i], &n_piece);
        if (n_piece == 0 || n_piece > n - at || memcmp(piece, text + at, n_piece) != 0)
            __builtin_trap();
        at += n_piece;
        char *shown = malloc(3 * n_piece + 3);
        if (shown && detokenizer_push(&d, piece, n_piece, shown) > 3 * n_piece + 3)
            __builtin_trap();
        free(shown);
    }
    if (!status && at != n)
        __builtin_trap();
    tokens_free(&ids);
}

static void check_file(const char *json, size_t n, const char *text, size_t n_text)
{
    struct tokenizer *tok;
    struct fathom_err err;
    if (tokenizer_parse(&tok, json, n, &err))
        return;
    check_text(tok, text, n_text, true);
    check_text(tok, text, n_text, false);
    tokenizer_find(tok, "<image>");
    tokenizer_close(tok);
}

/* One tokenizer for all texts, opened at the first; NULL when there is no memory for it. */
static const struct tokenizer *fixed(void)
{
    static struct tokenizer *tok;
    const struct tokenizer_json parts = {
        .vocab = ",\"ab\":256,\"bc\":257,\"abc\":258,\"aa\":259,\"aaaa\":260,\"\u0120\u0120\":261,\"..\":262",
        .merges = "\"b c\",\"a b\",\"a bc\",\"ab c\",\"a a\",\"aa aa\",\"\u0120 \u0120\",\". .\"",
        .added = "{\"id\":263,\"content\":\"<image>\",\"special\":true},{\"id\":264,\"content\":\"<im\","
                 "\"normalized\":true},{\"id\":265,\"content\":\"<｜>\"}",
    };
    struct strbuf s = {0};
    if (!tok) {
        tokenizer_json_write(&s, &parts);
        enum fathom_status status = s.failed ? FATHOM_ENOMEM : tokenizer_parse(&tok, s.text, s.n, NULL);
        if (status && status != FATHOM_ENOMEM)
            __builtin_trap();
        strbuf_free(&s);
    }
    return tok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    if (size > 0 && text[0] == 't' && fixed()) {
        check_text(fixed(), text + 1, size - 1, true);
        check_text(fixed(), text + 1, size - 1, false);
    } else if (size > 0 && text[0] == 'p') {
        char *copy = calloc(size + 3, 1); /* NULs behind the end, so that all three parts are there */
        if (!copy)
            return 0;
        memcpy(copy, text + 1, size - 1);
        struct strbuf s = {0};
        const char *merges = copy + strlen(copy) + 1, *added = merges + strlen(merges) + 1;
        struct tokenizer_json parts = {.vocab = copy, .merges = merges, .added = added};
        tokenizer_json_write(&s, &parts);
        if (!s.failed)
            check_file(s.text, s.n, text, size);
        strbuf_free(&s);
        free(copy);
    } else {
        check_file(text, size, text, size);
    }
    return 0;
}
