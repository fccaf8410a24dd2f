#include "document/inline.h"

#include "base/checked.h"
#include "base/utf8.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NO_TOKEN = 0, MAX_DEPTH = 16 };

/* Where parsing stands. For each kind of literal: whether no further end of it can come, so that none is sought twice. */
struct parser {
    struct inline_tokens *out;
    const char *text, *end, *p;
    size_t top, depth; /* of the open marks: index + 1 of the innermost's token */
    bool no_end[5];
};

static struct inline_token *add(struct parser *s, enum inline_kind kind, const char *text, size_t n)
{
    struct inline_tokens *t = s->out;
    if (t->n == t->capacity) {
        size_t capacity = t->capacity ? 2 * t->capacity : 32, bytes;
        struct inline_token *tokens = size_mul(capacity, sizeof *t->tokens, &bytes) ? realloc(t->tokens, bytes) : NULL;
        if (!tokens) {
            t->failed = true;
            return NULL;
        }
        t->tokens = tokens;
        t->capacity = capacity;
    }
    t->tokens[t->n] = (struct inline_token){.kind = kind, .text = text, .n = n};
    return &t->tokens[t->n++];
}

/* A mark that may open, close or both. Without a partner it stays text (tags: nothing). */
static void add_mark(struct parser *s, enum span_mark mark, const char *text, size_t n, bool may_open, bool may_close)
{
    bool is_tag = *text == '<';
    struct inline_token *token = add(s, is_tag ? INLINE_NOTHING : INLINE_TEXT, text, n);
    if (!token)
        return;
    token->mark = mark;
    size_t at = s->out->n - 1, depth = s->depth;
    struct inline_token *tokens = s->out->tokens;
    for (size_t open = s->top; may_close && open != NO_TOKEN; open = tokens[open - 1].outer, depth--) {
        if (tokens[open - 1].mark != mark || (tokens[open - 1].text[0] == '<') != is_tag)
            continue;
        if (open == at && !is_tag) /* nothing between the two */
            return;
        tokens[open - 1].kind = INLINE_OPEN;
        token->kind = INLINE_CLOSE;
        s->top = tokens[open - 1].outer;
        s->depth = depth - 1;
        return;
    }
    if (may_open && s->depth < MAX_DEPTH) {
        token->outer = s->top;
        s->top = at + 1;
        s->depth++;
    }
}

/* A literal from s->p, of which n bytes are its beginning, to the first `end_mark`; false when that does not come. */
static bool take_literal(struct parser *s, int which, size_t n, const char *end_mark, enum inline_kind kind)
{
    size_t n_end = strlen(end_mark);
    const char *from = s->p + n, *to = s->no_end[which] ? NULL : memmem(from, (size_t)(s->end - from), end_mark, n_end);
    if (!to) {
        s->no_end[which] = true;
        return false;
    }
    if (to == from)
        return false;
    if (kind == INLINE_CODE)
        add(s, kind, from, (size_t)(to - from));
    else
        add(s, kind, s->p, (size_t)(to - s->p) + n_end);
    s->p = to + n_end;
    return true;
}

/* $...$ on one line, close to what it holds; prices are no formulas. */
static bool take_dollars(struct parser *s)
{
    const char *from = s->p + 1, *to = from;
    if (from < s->end && *from == '$')
        return take_literal(s, 0, 2, "$$", INLINE_FORMULA);
    if (s->no_end[1])
        return false;
    while (to < s->end && *to != '$' && *to != '\n')
        to++;
    bool closed = to < s->end && *to == '$';
    if (to == s->end)
        s->no_end[1] = true;
    if (!closed || to == from || isspace((unsigned char)*from) || isspace((unsigned char)to[-1]) ||
        (to + 1 < s->end && isdigit((unsigned char)to[1])))
        return false;
    add(s, INLINE_FORMULA, s->p, (size_t)(to + 1 - s->p));
    s->p = to + 1;
    return true;
}

static bool take_backslash(struct parser *s)
{
    char next = s->p + 1 < s->end ? s->p[1] : 0;
    if (next == '(')
        return take_literal(s, 2, 2, "\\)", INLINE_FORMULA);
    if (next == '[')
        return take_literal(s, 3, 2, "\\]", INLINE_FORMULA);
    if (!next || !strchr("*#_`", next))
        return false;
    add(s, INLINE_TEXT, s->p + 1, 1);
    s->p += 2;
    return true;
}

/* *, ** and ***; more are a line or a gap, not a mark. */
static bool take_stars(struct parser *s)
{
    const char *from = s->p, *to = from;
    while (to < s->end && *to == '*')
        to++;
    size_t n = (size_t)(to - from);
    bool may_open = to < s->end && !isspace((unsigned char)*to);
    bool may_close = from > s->text && !isspace((unsigned char)from[-1]);
    if (n > 3) {
        add(s, INLINE_TEXT, from, n);
    } else if (n < 3) {
        add_mark(s, n == 2 ? SPAN_STRONG : SPAN_EM, from, n, may_open, may_close);
    } else { /* those inside close first */
        bool closes = may_close && s->top != NO_TOKEN;
        add_mark(s, closes ? SPAN_EM : SPAN_STRONG, from, closes ? 1 : 2, may_open && !closes, closes);
        add_mark(s, closes ? SPAN_STRONG : SPAN_EM, from + (closes ? 1 : 2), closes ? 2 : 1, may_open && !closes,
                 closes);
    }
    s->p = to;
    return true;
}

/* The tags of the whitelist without attributes; <center> is left out, as the reference's evaluation does. */
static bool take_tag(struct parser *s)
{
    static const struct {
        const char *name;
        enum span_mark mark;
    } names[] = {{"b", SPAN_B}, {"i", SPAN_I}, {"sup", SPAN_SUP}, {"sub", SPAN_SUB}};
    const char *p = s->p + 1, *name;
    bool closes = p < s->end && *p == '/';
    name = p += closes;
    while (p < s->end && isalpha((unsigned char)*p))
        p++;
    size_t n = (size_t)(p - name);
    while (p < s->end && (*p == ' ' || *p == '/'))
        p++;
    if (p == s->end || *p != '>' || n == 0)
        return false;
    size_t length = (size_t)(p + 1 - s->p);
    if (n == 2 && strncasecmp(name, "br", n) == 0) {
        add(s, INLINE_LINE, s->p, length);
    } else if (n == 6 && strncasecmp(name, "center", n) == 0) {
        add(s, INLINE_NOTHING, s->p, length);
    } else {
        size_t i = 0, n_names = sizeof names / sizeof *names;
        while (i < n_names && !(n == strlen(names[i].name) && strncasecmp(name, names[i].name, n) == 0))
            i++;
        if (i == n_names)
            return false;
        add_mark(s, names[i].mark, s->p, length, !closes, closes);
    }
    s->p += length;
    return true;
}

/* &amp; &#65; &#x41; as the character they stand for. */
static bool take_reference(struct parser *s)
{
    static const struct {
        const char *name;
        uint32_t code;
    } names[] = {{"amp;", '&'}, {"lt;", '<'}, {"gt;", '>'}, {"quot;", '"'}, {"apos;", '\''}, {"nbsp;", 0xa0}};
    const char *p = s->p + 1;
    uint32_t code = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names && !code; i++) {
        size_t n = strlen(names[i].name);
        if ((size_t)(s->end - p) >= n && memcmp(p, names[i].name, n) == 0) {
            code = names[i].code;
            p += n;
        }
    }
    if (!code) {
        if (p == s->end || *p++ != '#')
            return false;
        bool hex = p < s->end && (*p == 'x' || *p == 'X');
        p += hex;
        for (; p < s->end && code < 0x110000 && (hex ? isxdigit((unsigned char)*p) : isdigit((unsigned char)*p)); p++)
            code = code * (hex ? 16 : 10) + (uint32_t)(isdigit((unsigned char)*p) ? *p - '0' : (*p | 32) - 'a' + 10);
        if (p == s->end || *p++ != ';' || code == 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
            return false;
    }
    struct inline_token *token = add(s, INLINE_TEXT, NULL, 0);
    if (token)
        token->n = utf8_encode(code, token->character);
    s->p = p;
    return true;
}

static bool take(struct parser *s)
{
    switch (*s->p) {
    case '\n':
        add(s, INLINE_LINE, s->p, 1);
        s->p++;
        return true;
    case '\\': return take_backslash(s);
    case '$': return take_dollars(s);
    case '`': return take_literal(s, 4, 1, "`", INLINE_CODE);
    case '*': return take_stars(s);
    case '<': return take_tag(s);
    case '&': return take_reference(s);
    default: return false;
    }
}

enum fathom_status inline_parse(struct inline_tokens *out, const char *text, size_t n, struct fathom_err *err)
{
    *out = (struct inline_tokens){0};
    struct parser s = {.out = out, .text = text, .end = text + n, .p = text};
    while (s.p < s.end && !out->failed) {
        const char *from = s.p;
        if (take(&s))
            continue;
        do
            s.p++;
        while (s.p < s.end && !strchr("\n\\$`*<&", *s.p));
        add(&s, INLINE_TEXT, from, (size_t)(s.p - from));
    }
    if (out->failed) {
        size_t bytes = out->capacity * 2 * sizeof *out->tokens;
        inline_free(out);
        return fail_nomem(err, bytes, "a text");
    }
    for (size_t i = 0; i < out->n; i++)
        if (!out->tokens[i].text)
            out->tokens[i].text = out->tokens[i].character;
    return FATHOM_OK;
}

void inline_free(struct inline_tokens *t)
{
    free(t->tokens);
    *t = (struct inline_tokens){0};
}

enum fathom_status inline_add_plain(struct strbuf *out, const char *text, size_t n, const char *line,
                                    struct fathom_err *err)
{
    struct inline_tokens t;
    enum fathom_status status = inline_parse(&t, text, n, err);
    for (size_t i = 0; i < t.n; i++) {
        const struct inline_token *token = &t.tokens[i];
        if (token->kind == INLINE_LINE)
            strbuf_adds(out, line);
        else if (token->kind <= INLINE_FORMULA)
            strbuf_add(out, token->text, token->n);
    }
    inline_free(&t);
    return status;
}
