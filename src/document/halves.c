#include "document/halves.h"

#include <math.h>
#include <string.h>

#include "document/tags.h"

#define MIN_HEIGHT 64

/* ---- the cut ------------------------------------------------------------------------------------------------- */

/* How much a row changes along its way: nothing where nothing is written, whatever the colour of the paper. */
static uint64_t row_ink(const uint8_t *row, int width)
{
    uint64_t ink = 0;
    for (int i = 3; i < 3 * width; i++)
        ink += (uint64_t)(row[i] > row[i - 3] ? row[i] - row[i - 3] : row[i - 3] - row[i]);
    return ink;
}

int halves_row(const uint8_t *rgb, int width, int height)
{
    if (height < MIN_HEIGHT)
        return 0;
    size_t stride = (size_t)width * 3;
    int middle = height / 2, reach = height / 10;
    int around = height / 400 + 1; /* rows on both sides that count too: the middle of a gap, not its edge */
    int best = middle;
    uint64_t sum = 0, least = UINT64_MAX;
    for (int y = middle - reach - around; y < middle + reach + around; y++) {
        sum += row_ink(rgb + (size_t)y * stride, width);
        int first = y - 2 * around; /* sum: of rows [first, y], whose centre is first + around */
        if (first < middle - reach - around)
            continue;
        int row = first + around, distance = row > middle ? row - middle : middle - row;
        int best_distance = best > middle ? best - middle : middle - best;
        uint64_t cost = sum * (uint64_t)(2 * reach + distance); /* of gaps alike the nearer one */
        if (cost < least || (cost == least && distance < best_distance)) {
            least = cost;
            best = row;
        }
        sum -= row_ink(rgb + (size_t)first * stride, width);
    }
    return best;
}

/* ---- the text ------------------------------------------------------------------------------------------------ */

/* Boxes into a list, y being moved: y * scale + offset. */
struct mover {
    struct strbuf *out;
    double scale, offset;
    size_t n;
};

/* A whole number from 0 to 999. */
static int on_page(double c) { return c <= 0 ? 0 : c >= 999 ? 999 : (int)rint(c); }

static void move_box(void *user, const double c[4])
{
    struct mover *m = user;
    double y[2];
    for (int i = 0; i < 2; i++) /* a box ends with its half */
        y[i] = (c[2 * i + 1] <= 0 ? 0 : c[2 * i + 1] >= 999 ? 999 : c[2 * i + 1]) * m->scale + m->offset;
    strbuf_addf(m->out, "%s[%d, %d, %d, %d]", m->n++ ? ", " : "", on_page(c[0]), on_page(y[0]), on_page(c[2]),
                on_page(y[1]));
}

static void add_moved(struct strbuf *out, const char *text, const char *end, double scale, double offset)
{
    struct mover mover = {out, scale, offset, 0};
    struct tag tag;
    for (; tag_next(text, end, &tag); text = tag.end) {
        strbuf_add(out, text, (size_t)(tag.list - text));
        if (tag_boxes(tag.list, tag.n_list, NULL, NULL)) {
            mover.n = 0;
            strbuf_add(out, "[", 1);
            tag_boxes(tag.list, tag.n_list, move_box, &mover);
            strbuf_add(out, "]", 1);
        } else {
            strbuf_add(out, tag.list, tag.n_list);
        }
        strbuf_add(out, tag.list + tag.n_list, (size_t)(tag.end - tag.list) - tag.n_list);
    }
    strbuf_add(out, text, (size_t)(end - text));
}

/* Where an item begins that is never completed, else end: what follows must not become part of it. */
static const char *complete_end(const char *text, const char *end)
{
    static const char ref[] = "<|ref|>";
    struct tag tag;
    while (tag_next(text, end, &tag))
        text = tag.end;
    const char *start = memmem(text, (size_t)(end - text), ref, strlen(ref));
    return start ? start : end;
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

enum fathom_status halves_join(struct strbuf *out, const char *upper, const char *lower, int row, int height,
                               struct fathom_err *err)
{
    const char *end = complete_end(upper, upper + strlen(upper));
    double cut = (double)row / height;
    while (end > upper && is_space(end[-1]))
        end--;
    while (is_space(*lower))
        lower++;
    add_moved(out, upper, end, cut, 0);
    if (end > upper && *lower)
        strbuf_add(out, HALVES_SEPARATOR, strlen(HALVES_SEPARATOR));
    add_moved(out, lower, lower + strlen(lower), 1 - cut, 999 * cut);
    return out->failed ? fail_nomem(err, out->n, "the page's text") : FATHOM_OK;
}
