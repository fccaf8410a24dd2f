#include "document/layout.h"

#include "base/checked.h"
#include "document/tags.h"

#include <stdlib.h>
#include <string.h>

/* trunc(c / 999 * side), as the reference counts, kept on the page: the model may write any number. */
static int to_pixel(double c, int side)
{
    double pixel = c / 999 * side;
    return pixel <= 0 ? 0 : pixel >= side ? side : (int)pixel;
}

struct box_sink {
    struct fathom_box *boxes;
    size_t n;
    int width, height;
};

static void add_box(void *user, const double c[4])
{
    struct box_sink *sink = user;
    int x0 = to_pixel(c[0], sink->width), y0 = to_pixel(c[1], sink->height);
    int x1 = to_pixel(c[2], sink->width), y1 = to_pixel(c[3], sink->height);
    sink->boxes[sink->n++] =
        (struct fathom_box){x0 < x1 ? x0 : x1, y0 < y1 ? y0 : y1, x0 < x1 ? x1 : x0, y0 < y1 ? y1 : y0};
}

/* Copies text into the layout's storage, with a NUL. */
static const char *store(char **to, const char *text, size_t n)
{
    char *start = *to;
    memcpy(start, text, n);
    start[n] = 0;
    *to += n + 1;
    return start;
}

/* Without the line ends before it and the white space behind it: the layout of the raw output, not of the page. */
static const char *store_content(char **to, const char *text, const char *end)
{
    while (text < end && (*text == '\n' || *text == '\r'))
        text++;
    while (end > text && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\n' || end[-1] == '\r'))
        end--;
    return store(to, text, (size_t)(end - text));
}

enum fathom_status layout_parse(struct layout *out, const char *raw, int width, int height, struct fathom_err *err)
{
    *out = (struct layout){0};
    size_t n = strlen(raw), n_tags = 0, n_boxes = 0, bytes;
    const char *end = raw + n, *p = raw;
    struct tag tag;
    for (; tag_next(p, end, &tag); p = tag.end) {
        n_tags++;
        n_boxes += tag_boxes(tag.list, tag.n_list, NULL, NULL);
    }
    end = tag_cut(p, end);
    if (!size_mul(n_tags + 1, 2, &bytes) || !size_add(bytes, n, &bytes)) /* a NUL for each label and content */
        return fail_nomem(err, SIZE_MAX, "the layout");
    out->blocks = calloc(n_tags + 1, sizeof *out->blocks);
    out->boxes = calloc(n_boxes + 1, sizeof *out->boxes);
    out->strings = malloc(bytes);
    if (!out->blocks || !out->boxes || !out->strings) {
        layout_free(out);
        return fail_nomem(err, bytes, "the layout");
    }

    char *to = out->strings;
    struct box_sink sink = {out->boxes, 0, width, height};
    bool tagged = tag_next(raw, end, &tag);
    struct fathom_block *block = &out->blocks[0];
    block->label = store(&to, "", 0);
    block->text = store_content(&to, raw, tagged ? tag.start : end);
    out->n_blocks = *block->text != 0;
    while (tagged) {
        block = &out->blocks[out->n_blocks++];
        block->label = store(&to, tag.label, tag.n_label);
        block->n_boxes = tag_boxes(tag.list, tag.n_list, NULL, NULL);
        block->boxes = block->n_boxes ? sink.boxes + sink.n : NULL;
        if (block->n_boxes)
            tag_boxes(tag.list, tag.n_list, add_box, &sink);
        const char *content = tag.end;
        tagged = tag_next(content, end, &tag);
        block->text = store_content(&to, content, tagged ? tag.start : end);
    }
    return FATHOM_OK;
}

void layout_free(struct layout *l)
{
    free(l->blocks);
    free(l->boxes);
    free(l->strings);
    *l = (struct layout){0};
}
