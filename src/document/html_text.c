#include "document/html_text.h"

#include "document/inline.h"
#include "document/markup.h"
#include "document/table.h"

#include <string.h>

static const char *tag_name(enum span_mark mark)
{
    static const char *const names[N_SPAN_MARKS] = {"strong", "em", "b", "i", "sup", "sub"};
    return names[mark];
}

static enum fathom_status add_inline(struct strbuf *out, const char *text, size_t n, struct fathom_err *err)
{
    struct inline_tokens t;
    enum fathom_status status = inline_parse(&t, text, n, err);
    for (size_t i = 0; i < t.n; i++) {
        const struct inline_token *token = &t.tokens[i];
        switch (token->kind) {
        case INLINE_TEXT: add_xml(out, token->text, token->n); break;
        case INLINE_LINE: strbuf_adds(out, "<br>\n"); break;
        case INLINE_CODE:
            strbuf_adds(out, "<code>");
            add_xml(out, token->text, token->n);
            strbuf_adds(out, "</code>");
            break;
        case INLINE_FORMULA:
            strbuf_adds(out, "<code class=\"formula\">");
            add_xml(out, token->text, token->n);
            strbuf_adds(out, "</code>");
            break;
        case INLINE_OPEN: strbuf_addf(out, "<%s>", tag_name(token->mark)); break;
        case INLINE_CLOSE: strbuf_addf(out, "</%s>", tag_name(token->mark)); break;
        case INLINE_NOTHING: break;
        }
    }
    inline_free(&t);
    return status;
}

/* ---- tables -------------------------------------------------------------------------------------------------- */

static enum fathom_status add_cell(struct strbuf *out, const struct table_cell *cell, struct fathom_err *err)
{
    const char *name = cell->header ? "th" : "td";
    strbuf_addf(out, "<%s", name);
    if (cell->rowspan > 1)
        strbuf_addf(out, " rowspan=\"%u\"", cell->rowspan);
    if (cell->colspan > 1)
        strbuf_addf(out, " colspan=\"%u\"", cell->colspan);
    strbuf_adds(out, ">");
    enum fathom_status status = add_inline(out, cell->text, cell->n, err);
    strbuf_addf(out, "</%s>", name);
    return status;
}

static enum fathom_status add_table(struct strbuf *out, const struct piece *piece, struct fathom_err *err)
{
    struct table t;
    enum fathom_status status = table_parse(&t, piece->text, piece->n, err);
    if (t.n_cells)
        strbuf_adds(out, "<table>\n");
    for (size_t i = 0; i < t.n_cells && !status; i++) {
        const struct table_cell *cell = &t.cells[i], *before = cell - 1, *after = cell + 1;
        bool last = i + 1 == t.n_cells;
        const char *group = cell->head ? "thead" : "tbody";
        if (i == 0 || before->group != cell->group)
            strbuf_addf(out, "<%s>\n", group);
        if (i == 0 || before->row != cell->row)
            strbuf_adds(out, "<tr>");
        status = add_cell(out, cell, err);
        if (last || after->row != cell->row)
            strbuf_adds(out, "</tr>\n");
        if (last || after->group != cell->group)
            strbuf_addf(out, "</%s>\n", group);
    }
    if (t.n_cells)
        strbuf_adds(out, "</table>\n");
    table_free(&t);
    return status;
}

/* ---- lists --------------------------------------------------------------------------------------------------- */

/* The lists that are open, from the outermost; each has an open item. */
struct lists {
    bool numbered[8];
    size_t n;
};

static void close_lists(struct strbuf *out, struct lists *lists, size_t n)
{
    for (; lists->n > n; lists->n--)
        strbuf_adds(out, lists->numbered[lists->n - 1] ? "</li></ol>\n" : "</li></ul>\n");
}

static void begin_item(struct strbuf *out, struct lists *lists, const struct piece *item)
{
    size_t level = item->level < lists->n ? item->level : lists->n;
    bool numbered = item->n_number > 0;
    close_lists(out, lists, level + 1);
    if (lists->n > level && lists->numbered[level] != numbered)
        close_lists(out, lists, level);
    if (lists->n > level) {
        strbuf_adds(out, "</li>\n<li>");
        return;
    }
    if (!numbered) {
        strbuf_adds(out, "<ul>\n<li>");
    } else {
        strbuf_adds(out, "<ol start=\"");
        strbuf_add(out, item->number, item->n_number);
        strbuf_adds(out, "\">\n<li>");
    }
    lists->numbered[lists->n++] = numbered;
}

enum fathom_status html_add_text(struct strbuf *out, const char *text, struct fathom_err *err)
{
    const char *end = text + strlen(text);
    struct lists lists = {.n = 0};
    struct piece piece;
    enum fathom_status status = FATHOM_OK;
    while (!status && markup_next(&text, end, &piece)) {
        if (piece.kind != PIECE_ITEM)
            close_lists(out, &lists, 0);
        switch (piece.kind) {
        case PIECE_HEADING:
            strbuf_addf(out, "<h%zu>", piece.level);
            status = add_inline(out, piece.text, piece.n, err);
            strbuf_addf(out, "</h%zu>\n", piece.level);
            break;
        case PIECE_PARAGRAPH:
            strbuf_adds(out, "<p>");
            status = add_inline(out, piece.text, piece.n, err);
            strbuf_adds(out, "</p>\n");
            break;
        case PIECE_ITEM:
            begin_item(out, &lists, &piece);
            status = add_inline(out, piece.text, piece.n, err);
            break;
        case PIECE_TABLE: status = add_table(out, &piece, err); break;
        case PIECE_CODE:
            if (piece.n == 0)
                break;
            strbuf_adds(out, "<pre><code>");
            add_xml(out, piece.text, piece.n);
            strbuf_adds(out, "</code></pre>\n");
            break;
        }
    }
    close_lists(out, &lists, 0);
    return status;
}
