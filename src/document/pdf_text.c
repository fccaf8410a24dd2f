#include "document/pdf_text.h"

#include "base/utf8.h"
#include "document/bidi.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A line's height in sizes of its font. */
#define LEADING 1.2

/* In percent: with wider gaps between words readers take each for a column. */
#define MAX_STRETCH 130

/* The text as characters, '\n' between lines: none of them empty, none at the ends. */
struct characters {
    uint32_t *codes;
    size_t n;
    size_t n_lines;
    double longest; /* run that no line breaks in, in thousandths of the font's size */
};

static enum fathom_status decode(struct characters *c, const char *text, size_t n, struct fathom_err *err)
{
    *c = (struct characters){0};
    if (n > SIZE_MAX / sizeof *c->codes - 1 || !(c->codes = malloc((n + 1) * sizeof *c->codes)))
        return fail_nomem(err, n, "a text");
    double run = 0;
    for (size_t i = 0; i < n;) {
        uint32_t code = 0;
        size_t length = utf8_decode(text + i, n - i, &code);
        i += length ? length : 1;
        code = length ? code : 0xfffd;
        code = code == '\t' || code == '\r' ? ' ' : code;
        uint32_t before = c->n ? c->codes[c->n - 1] : '\n';
        if (code == ' ' && (before == ' ' || before == '\n'))
            continue;
        if (code == '\n') {
            c->n -= before == ' ';
            if (c->n == 0 || before == '\n')
                continue;
        }
        int width = pdf_character_width(code);
        run = code == '\n' || code == ' ' ? 0 : width == 1000 ? width : run + width;
        c->longest = run > c->longest ? run : c->longest;
        c->codes[c->n++] = code;
    }
    while (c->n && (c->codes[c->n - 1] == '\n' || c->codes[c->n - 1] == ' '))
        c->n--;
    for (size_t i = 0; i < c->n; i++)
        c->n_lines += c->codes[i] == '\n';
    c->n_lines += c->n > 0;
    return FATHOM_OK;
}

/* The end of the line that begins at `from` and may be `room` wide; *width is its own. It has one character at least. */
static size_t line_end(const struct characters *c, size_t from, double room, double *width)
{
    size_t last_break = 0;
    double at_break = 0;
    *width = 0;
    for (size_t i = from; i < c->n && c->codes[i] != '\n'; i++) {
        int own = pdf_character_width(c->codes[i]);
        if (c->codes[i] == ' ' || (own == 1000 && i > from)) {
            last_break = i;
            at_break = *width;
        }
        if (*width + own > room && i > from) {
            *width = last_break > from ? at_break : *width;
            return last_break > from ? last_break : i;
        }
        *width += own;
        if (i + 1 == c->n || c->codes[i + 1] == '\n')
            return i + 1;
    }
    return from + 1;
}

static size_t next_line(const struct characters *c, size_t end)
{
    return end < c->n && (c->codes[end] == ' ' || c->codes[end] == '\n') ? end + 1 : end;
}

static size_t count_lines(const struct characters *c, double room, double *widest)
{
    size_t n = 0;
    double width;
    *widest = 0;
    for (size_t at = 0; at < c->n; n++) {
        at = next_line(c, line_end(c, at, room, &width));
        *widest = width > *widest ? width : *widest;
    }
    return n;
}

/* How the text lies in its areas. */
struct fit {
    size_t n_lines;
    double room;           /* that a line may take, in thousandths of the font's size */
    double height, widest; /* of the areas together; of the lines                     */
};

/* The fewest lines that, as high as the areas allow, are not wider than they are. A word is not broken: it is squeezed. */
static struct fit find_fit(const struct characters *c, const struct pdf_area *areas, size_t n_areas)
{
    struct fit fit = {0};
    double surface = 0;
    for (size_t i = 0; i < n_areas; i++) {
        surface += (areas[i].x1 - areas[i].x0) * (areas[i].y1 - areas[i].y0);
        fit.height += areas[i].y1 - areas[i].y0;
    }
    double shape = 1000 * LEADING * surface / (fit.height * fit.height);
    size_t low = c->n_lines, high = c->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (count_lines(c, fmax(shape * (double)middle, c->longest), &fit.widest) <= middle)
            high = middle;
        else
            low = middle + 1;
    }
    fit.room = fmax(shape * (double)high, c->longest);
    fit.n_lines = count_lines(c, fit.room, &fit.widest);
    return fit;
}

static enum fathom_status add_line(struct strbuf *out, struct pdf_font *font, uint32_t *codes, size_t n,
                                   struct fathom_err *err)
{
    bidi_reorder(codes, n);
    strbuf_adds(out, "<");
    for (size_t i = 0; i < n; i++) {
        uint16_t cid = pdf_font_cid(font, codes[i]);
        if (!cid)
            return fail_nomem(err, sizeof *codes, "a font");
        strbuf_addf(out, "%04X", cid);
    }
    strbuf_adds(out, "> Tj\n");
    return FATHOM_OK;
}

static void add_numbers(struct strbuf *out, const double *numbers, size_t n, const char *operator)
{
    for (size_t i = 0; i < n; i++) {
        strbuf_add_decimal(out, numbers[i], 4);
        strbuf_adds(out, " ");
    }
    strbuf_adds(out, operator);
}

/* n lines from *at on, evenly over the area's height. */
static enum fathom_status fill(struct strbuf *out, struct pdf_font *font, const struct characters *c, size_t *at,
                               size_t n, const struct fit *fit, const struct pdf_area *area, struct fathom_err *err)
{
    enum fathom_status status = FATHOM_OK;
    double step = (area->y1 - area->y0) / (double)n, size = step / LEADING, width;
    double stretch = fmin(100 * (area->x1 - area->x0) / (fit->widest / 1000 * size), MAX_STRETCH);
    strbuf_adds(out, "/F ");
    add_numbers(out, &size, 1, "Tf ");
    add_numbers(out, &stretch, 1, "Tz\n");
    for (size_t i = 0; i < n && *at < c->n && !status; i++) {
        size_t end = line_end(c, *at, fit->room, &width);
        const double place[6] = {1, 0, 0, 1, area->x0, area->y1 - step * (double)i - size};
        add_numbers(out, place, 6, "Tm ");
        status = add_line(out, font, c->codes + *at, end - *at, err);
        *at = next_line(c, end);
    }
    return status;
}

enum fathom_status pdf_add_text(struct strbuf *out, struct pdf_font *font, const char *text, size_t n,
                                const struct pdf_area *areas, size_t n_areas, struct fathom_err *err)
{
    struct characters c;
    enum fathom_status status = decode(&c, text, n, err);
    if (!status && c.n) {
        struct fit fit = find_fit(&c, areas, n_areas);
        size_t done = 0, at = 0;
        double above = 0;
        for (size_t i = 0; i < n_areas && !status; i++) {
            above += areas[i].y1 - areas[i].y0;
            size_t upto = i + 1 == n_areas ? fit.n_lines : (size_t)round((double)fit.n_lines * above / fit.height);
            if (upto > done)
                status = fill(out, font, &c, &at, upto - done, &fit, &areas[i], err);
            done = upto > done ? upto : done;
        }
    }
    free(c.codes);
    return status;
}
