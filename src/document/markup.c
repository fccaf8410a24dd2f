#include "document/markup.h"

#include "base/utf8.h"
#include "document/inline.h"
#include "document/table.h"

#include <ctype.h>
#include <string.h>

enum { MAX_LEVEL = 7 };

static const char *line_end(const char *p, const char *end)
{
    const char *found = memchr(p, '\n', (size_t)(end - p));
    return found ? found : end;
}

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    return p;
}

static bool is_empty(const char *p, const char *end)
{
    p = skip_blanks(p, end);
    p += p + 1 < end && p[0] == '\r' && p[1] == '\n';
    return p == end || *p == '\n';
}

static bool is_fence(const char *p, const char *end) { return end - p >= 3 && memcmp(p, "```", 3) == 0; }

/* # to ###### and a space; returns the text behind it, or NULL. */
static const char *read_heading(const char *p, const char *end, struct piece *piece)
{
    size_t n = 0;
    while (p + n < end && p[n] == '#')
        n++;
    if (n < 1 || n > 6 || p + n == end || (p[n] != ' ' && p[n] != '\t') || is_empty(p + n, end))
        return NULL;
    piece->kind = PIECE_HEADING;
    piece->level = n;
    return skip_blanks(p + n, end);
}

/* -, *, + or a number, and a space; returns the text behind it, or NULL. */
static const char *read_item(const char *line, const char *end, struct piece *piece)
{
    const char *p = skip_blanks(line, end), *mark = p;
    piece->n_number = 0;
    if (p < end && strchr("-*+", *p)) {
        p++;
    } else {
        while (p < end && p - mark < 9 && isdigit((unsigned char)*p))
            p++;
        piece->n_number = (size_t)(p - mark);
        if (p == mark || p == end || (*p != '.' && *p != ')'))
            return NULL;
        p++;
    }
    if (p == end || *p != ' ' || is_empty(p, end))
        return NULL;
    piece->kind = PIECE_ITEM;
    piece->number = mark;
    piece->level = (size_t)(mark - line) / 2 < MAX_LEVEL ? (size_t)(mark - line) / 2 : MAX_LEVEL;
    return skip_blanks(p, end);
}

static bool begins_piece(const char *line, const char *end)
{
    struct piece ignored;
    return is_empty(line, end) || is_fence(line, end) || read_heading(line, end, &ignored) ||
           read_item(line, end, &ignored);
}

/* Sets the text from p up to `to`, without white space at its end. */
static void set_text(struct piece *piece, const char *p, const char *to)
{
    while (to > p && isspace((unsigned char)to[-1]))
        to--;
    piece->text = p;
    piece->n = (size_t)(to - p);
}

/* Lines from p on that belong together: up to one that begins another piece, and not into a table. An item goes on in
 * indented lines only. */
static const char *take_lines(const char *p, const char *end, bool item)
{
    const char *to = line_end(p, end);
    while (to < end && !begins_piece(to + 1, end) && (!item || to[1] == ' ' || to[1] == '\t'))
        to = line_end(to + 1, end);
    return table_find(p, to);
}

bool markup_next(const char **at, const char *end, struct piece *piece)
{
    const char *p = *at;
    while (p < end && is_empty(p, end))
        p = line_end(p, end) + (line_end(p, end) < end);
    if (p == end)
        return false;
    *piece = (struct piece){.kind = PIECE_PARAGRAPH};
    const char *text = skip_blanks(p, end), *to;
    if (table_find(text, text + 7 < end ? text + 7 : end) == text && text + 6 < end) {
        piece->kind = PIECE_TABLE;
        to = table_end(text, end);
    } else if (is_fence(p, end)) {
        const char *close;
        piece->kind = PIECE_CODE;
        text = line_end(p, end);
        text += text < end;
        close = memmem(text, (size_t)(end - text), "```", 3);
        set_text(piece, text, close ? close : end);
        to = close ? line_end(close, end) : end;
        *at = to + (to < end);
        return true;
    } else if ((text = read_heading(p, end, piece))) {
        to = table_find(text, line_end(text, end));
    } else if ((text = read_item(p, end, piece))) {
        to = take_lines(text, end, true);
    } else {
        text = skip_blanks(p, end);
        to = take_lines(text, end, false);
    }
    set_text(piece, text, to);
    *at = to;
    return true;
}

static enum fathom_status add_plain_table(struct strbuf *out, const struct piece *piece, struct fathom_err *err)
{
    struct table t;
    enum fathom_status status = table_parse(&t, piece->text, piece->n, err);
    for (size_t i = 0; i < t.n_cells && !status; i++) {
        struct strbuf cell = {0};
        if (i)
            strbuf_adds(out, t.cells[i].row == t.cells[i - 1].row ? "\t" : "\n");
        status = inline_add_plain(&cell, t.cells[i].text, t.cells[i].n, " ", err);
        for (size_t k = 0; k < cell.n; k++)
            if (cell.text[k] == '\t')
                cell.text[k] = ' ';
        strbuf_add(out, strbuf_text(&cell), cell.n);
        out->failed = out->failed || cell.failed;
        strbuf_free(&cell);
    }
    table_free(&t);
    return status;
}

enum fathom_status markup_add_plain(struct strbuf *out, const char *text, struct fathom_err *err)
{
    const char *end = text + strlen(text);
    struct piece piece;
    enum fathom_status status = FATHOM_OK;
    enum piece_kind before = PIECE_PARAGRAPH;
    for (bool first = true; !status && markup_next(&text, end, &piece); first = false, before = piece.kind) {
        if (!first)
            strbuf_adds(out, piece.kind == PIECE_ITEM && before == PIECE_ITEM ? "\n" : "\n\n");
        if (piece.kind == PIECE_TABLE) {
            status = add_plain_table(out, &piece, err);
        } else if (piece.kind == PIECE_CODE) {
            strbuf_add(out, piece.text, piece.n);
        } else {
            if (piece.kind == PIECE_ITEM) {
                strbuf_addf(out, "%*s", (int)(2 * piece.level), "");
                strbuf_add(out, piece.number, piece.n_number + 1);
                strbuf_adds(out, " ");
            }
            status = inline_add_plain(out, piece.text, piece.n, "\n", err);
        }
    }
    return status;
}

/* XML 1.0 knows tab, line feed, carriage return and everything from space on but U+FFFE and U+FFFF. A carriage return
 * would come back as a line feed, and HTML dislikes the controls from U+7F to U+9F. */
static bool is_xml(uint32_t code)
{
    return code == '\t' || code == '\n' || (code >= 0x20 && code < 0x7f) ||
           (code >= 0xa0 && (code & 0xfffe) != 0xfffe && !(code >= 0xfdd0 && code <= 0xfdef));
}

void add_xml(struct strbuf *out, const char *text, size_t n)
{
    size_t plain = 0; /* bytes before i that were not added yet */
    for (size_t i = 0; i < n;) {
        uint32_t code = 0;
        size_t length = utf8_decode(text + i, n - i, &code);
        const char *instead = !length || !is_xml(code) ? "\uFFFD"
                              : code == '&'            ? "&amp;"
                              : code == '<'            ? "&lt;"
                              : code == '>'            ? "&gt;"
                              : code == '"'            ? "&quot;"
                                                       : NULL;
        if (length && code == '\r')
            instead = " ";
        if (instead) {
            strbuf_add(out, text + i - plain, plain);
            strbuf_adds(out, instead);
            plain = 0;
        } else {
            plain += length;
        }
        i += length ? length : 1;
    }
    strbuf_add(out, text + n - plain, plain);
}

void add_failure(struct strbuf *out, const struct fathom_page *page)
{
    if (page->number)
        strbuf_addf(out, "page %zu failed: ", page->number);
    else
        strbuf_adds(out, "failed: ");
    for (const char *c = page->err.message; *c;) {
        size_t n = strcspn(c, "-");
        add_xml(out, c, n);
        c += n;
        if (*c) {
            strbuf_adds(out, c[1] == '-' || !c[1] ? "- " : "-");
            c++;
        }
    }
}
