#include "document/table.h"

#include "base/checked.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum tag_name { TAG_NONE, TAG_TABLE, TAG_THEAD, TAG_TBODY, TAG_TFOOT, TAG_TR, TAG_TD, TAG_TH };

struct html_tag {
    enum tag_name name;
    bool closes;
    const char *attributes, *end; /* end: behind the '>' */
};

/* The tag that begins at text, which is a '<'. An attribute cannot hold '<' or '>', so that a '<' is looked at once. */
static bool read_tag(const char *text, const char *end, struct html_tag *tag)
{
    static const char *const names[] = {"", "table", "thead", "tbody", "tfoot", "tr", "td", "th"};
    const char *p = text + 1, *name;
    tag->closes = p < end && *p == '/';
    name = p += tag->closes;
    while (p < end && isalpha((unsigned char)*p))
        p++;
    size_t n = (size_t)(p - name);
    tag->name = TAG_NONE;
    for (size_t i = 1; i < sizeof names / sizeof *names; i++)
        if (n == strlen(names[i]) && strncasecmp(name, names[i], n) == 0)
            tag->name = (enum tag_name)i;
    if (tag->name == TAG_NONE)
        return false;
    tag->attributes = p;
    while (p < end && *p != '>' && *p != '<')
        p++;
    tag->end = p + 1;
    return p < end && *p == '>';
}

/* The number of an attribute, 1 to 1000; 1 when it is absent or something else. */
static unsigned span(const struct html_tag *tag, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = tag->attributes; p + n < tag->end; p++) {
        if (strncasecmp(p, name, n) != 0 || isalnum((unsigned char)p[-1]) || p[-1] == '-')
            continue;
        p += n;
        while (isspace((unsigned char)*p))
            p++;
        if (*p++ != '=')
            return 1;
        while (isspace((unsigned char)*p) || *p == '"' || *p == '\'')
            p++;
        unsigned value = 0;
        for (; isdigit((unsigned char)*p); p++)
            value = value < 1000 ? value * 10 + (unsigned)(*p - '0') : value;
        return value < 1 ? 1 : value > 1000 ? 1000 : value;
    }
    return 1;
}

/* Where the next cell goes. */
struct cursor {
    size_t row, group;
    bool row_used;   /* the row has a cell */
    bool group_used; /* the group has one  */
    bool head;       /* within a thead     */
};

static void end_row(struct cursor *at)
{
    at->row += at->row_used;
    at->row_used = false;
}

static void begin_group(struct cursor *at, bool head)
{
    end_row(at);
    at->group += at->group_used;
    at->group_used = false;
    at->head = head && at->row == 0;
}

static bool add_cell(struct table *t, struct cursor *at, const struct html_tag *tag)
{
    if (t->n_cells == t->capacity) {
        size_t capacity = t->capacity ? 2 * t->capacity : 64, bytes;
        struct table_cell *cells = size_mul(capacity, sizeof *t->cells, &bytes) ? realloc(t->cells, bytes) : NULL;
        if (!cells)
            return false;
        t->cells = cells;
        t->capacity = capacity;
    }
    t->cells[t->n_cells++] = (struct table_cell){
        .row = at->row,
        .group = at->group,
        .rowspan = tag ? span(tag, "rowspan") : 1,
        .colspan = tag ? span(tag, "colspan") : 1,
        .header = tag && tag->name == TAG_TH,
        .head = at->head,
    };
    at->row_used = at->group_used = true;
    return true;
}

static void trim(const char **text, const char **end)
{
    while (*text < *end && isspace((unsigned char)**text))
        ++*text;
    while (*end > *text && isspace((unsigned char)(*end)[-1]))
        --*end;
}

/* A cell reaches down to the end of its group at most. */
static void limit_rowspans(struct table *t)
{
    for (size_t i = t->n_cells, last_row = 0; i-- > 0;) {
        struct table_cell *cell = &t->cells[i];
        if (i + 1 == t->n_cells || cell[1].group != cell->group)
            last_row = cell->row;
        if (cell->rowspan > last_row - cell->row + 1)
            cell->rowspan = (unsigned)(last_row - cell->row + 1);
    }
}

/* One step: the text up to a tag of the table, and that tag. *open: the last cell is not closed. */
static bool take(struct table *t, struct cursor *at, bool *open, const char *text, const char *stop,
                 const struct html_tag *tag)
{
    trim(&text, &stop);
    if (!*open && text < stop && !add_cell(t, at, NULL))
        return false;
    if (*open || text < stop) {
        t->cells[t->n_cells - 1].text = text;
        t->cells[t->n_cells - 1].n = (size_t)(stop - text);
    }
    *open = false;
    switch (tag->name) {
    case TAG_TD:
    case TAG_TH: *open = !tag->closes; return tag->closes || add_cell(t, at, tag);
    case TAG_TR: end_row(at); return true;
    case TAG_THEAD: begin_group(at, !tag->closes); return true;
    case TAG_TBODY:
    case TAG_TFOOT: begin_group(at, false); return true;
    case TAG_TABLE:
    case TAG_NONE: break;
    }
    return true;
}

enum fathom_status table_parse(struct table *t, const char *text, size_t n, struct fathom_err *err)
{
    *t = (struct table){0};
    const char *end = text + n, *start = text;
    struct cursor at = {0};
    struct html_tag tag;
    size_t depth = 0;
    bool open = false;
    for (const char *p = text; (p = memchr(p, '<', (size_t)(end - p)));) {
        if (!read_tag(p, end, &tag)) {
            p++;
            continue;
        }
        bool outermost = depth == 1;
        if (tag.name == TAG_TABLE) {
            depth += !tag.closes;
            depth -= tag.closes && depth > 0;
            outermost = depth == (tag.closes ? 0 : 1);
        }
        if (outermost) {
            if (!take(t, &at, &open, start, p, &tag)) {
                table_free(t);
                return fail_nomem(err, t->capacity * 2 * sizeof *t->cells, "a table");
            }
            start = tag.end;
        }
        p = tag.end;
    }
    tag.name = TAG_NONE;
    if (!take(t, &at, &open, start, end, &tag)) {
        table_free(t);
        return fail_nomem(err, sizeof *t->cells, "a table");
    }
    limit_rowspans(t);
    return FATHOM_OK;
}

void table_free(struct table *t)
{
    free(t->cells);
    *t = (struct table){0};
}

const char *table_find(const char *text, const char *end)
{
    static const char open[] = "<table";
    size_t n = strlen(open);
    while ((text = memchr(text, '<', (size_t)(end - text)))) {
        if ((size_t)(end - text) > n && strncasecmp(text, open, n) == 0 && !isalnum((unsigned char)text[n]))
            return text;
        text++;
    }
    return end;
}

const char *table_end(const char *text, const char *end)
{
    struct html_tag tag;
    size_t depth = 0;
    while ((text = memchr(text, '<', (size_t)(end - text)))) {
        if (!read_tag(text, end, &tag) || tag.name != TAG_TABLE) {
            text++;
            continue;
        }
        depth += !tag.closes;
        depth -= tag.closes && depth > 0;
        text = tag.end;
        if (depth == 0)
            return text;
    }
    return end;
}
