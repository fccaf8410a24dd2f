/* Whether a document is well formed, as far as a few lines can tell: for fuzzers and property tests. */
#ifndef FATHOM_TESTS_DOCUMENT_CHECK_H
#define FATHOM_TESTS_DOCUMENT_CHECK_H

#include "base/json.h"
#include "base/strbuf.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Valid UTF-8 of characters that XML allows; form feeds too when asked for. */
static inline bool is_clean(const char *text, size_t n, bool form_feeds)
{
    for (size_t i = 0; i < n;) {
        uint32_t code;
        size_t length = utf8_decode(text + i, n - i, &code);
        if (!length || (code < 0x20 && code != '\n' && code != '\t' && !(form_feeds && code == '\f')))
            return false;
        if (!form_feeds && (code == 0xfffe || code == 0xffff))
            return false;
        i += length;
    }
    return true;
}

static inline bool is_void(const char *name, size_t n)
{
    static const char *const names[] = {"br", "meta", "img"};
    for (size_t i = 0; i < 3; i++)
        if (strlen(names[i]) == n && memcmp(name, names[i], n) == 0)
            return true;
    return false;
}

/* The '>' of the tag at text, of which attributes may hold others in quotation marks; NULL: none. */
static inline const char *tag_close(const char *text, const char *end)
{
    bool quoted = false;
    for (; text < end; text++) {
        if (*text == '"')
            quoted = !quoted;
        else if (*text == '<' || (*text == '>' && !quoted))
            return *text == '>' ? text : NULL;
    }
    return NULL;
}

/* Tags that are closed in the order in which they were opened, and no other use of '<' and '&'. */
static inline bool is_markup(const char *text, size_t n, bool html)
{
    enum { MAX_DEPTH = 64 };
    const char *open[MAX_DEPTH], *end = text + n;
    size_t lengths[MAX_DEPTH], depth = 0;
    if (!is_clean(text, n, false))
        return false;
    for (const char *p = text; p < end; p++) {
        if (*p == '&' && !memchr(p, ';', end - p < 8 ? (size_t)(end - p) : 8))
            return false;
        if (*p != '<')
            continue;
        const char *close, *name = p + 1 + (p[1] == '/');
        if (strncmp(p, "<!--", 4) == 0) {
            close = strstr(p + 4, "--");
            if (!close || close[2] != '>')
                return false;
            p = close + 2;
            continue;
        }
        if (!(close = tag_close(p + 1, end)))
            return false;
        size_t length = strcspn(name, " \t\n/>");
        if (p[1] == '/') {
            if (depth == 0 || lengths[depth - 1] != length || memcmp(open[depth - 1], name, length) != 0)
                return false;
            depth--;
        } else if (p[1] != '?' && p[1] != '!' && close[-1] != '/' && !(html && is_void(name, length))) {
            if (depth == MAX_DEPTH)
                return false;
            open[depth] = name;
            lengths[depth++] = length;
        }
        p = close;
    }
    return depth == 0;
}

static inline bool is_json(const char *text, size_t n)
{
    struct json j;
    struct fathom_err err;
    enum fathom_status status = json_parse(&j, text, n, &err);
    if (!status)
        json_free(&j);
    return !status || status == FATHOM_ENOMEM; /* allocations fail in the replay, also in here */
}

/* The table of objects is where the end says, and each entry finds its object. */
static inline bool is_pdf(const char *text, size_t n)
{
    const char *at = n > 64 ? memmem(text + n - 64, 64, "startxref\n", 10) : NULL;
    if (!at || memcmp(text, "%PDF-1.", 7) != 0 || memcmp(text + n - 6, "%%EOF\n", 6) != 0)
        return false;
    size_t table = strtoull(at + 10, NULL, 10);
    if (table >= n || strncmp(text + table, "xref\n0 ", 7) != 0)
        return false;
    size_t count = strtoull(text + table + 7, NULL, 10);
    const char *entry = strchr(text + table + 7, '\n') + 1;
    for (size_t i = 1; i < count; i++) {
        char want[32];
        size_t offset = strtoull(entry + 20 * i, NULL, 10);
        snprintf(want, sizeof want, "%zu 0 obj\n", i);
        if (offset >= n || strncmp(text + offset, want, strlen(want)) != 0)
            return false;
    }
    return true;
}

static inline bool is_document(enum fathom_format format, const struct strbuf *out)
{
    const char *text = strbuf_text(out);
    switch (format) {
    case FATHOM_MARKDOWN: return true;
    case FATHOM_JSON:
    case FATHOM_JSON_LINES:
    case FATHOM_STATS: return is_json(text, out->n);
    case FATHOM_TEXT: return is_clean(text, out->n, true);
    case FATHOM_HTML: return is_markup(text, out->n, true);
    case FATHOM_HOCR:
    case FATHOM_ALTO: return is_markup(text, out->n, false);
    case FATHOM_SEARCHABLE_PDF: return is_pdf(text, out->n);
    }
    return false;
}

#endif
