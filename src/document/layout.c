#include "document/layout.h"

#include "base/checked.h"
#include "base/hash.h"
#include "document/tags.h"
#include "text/unicode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- blocks -------------------------------------------------------------------------------------------------- */

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

/* ---- Markdown ------------------------------------------------------------------------------------------------ */

/* Image items by their text. Replacing the first of several equal items replaces them all, so that they share its
 * number; the others still count. */
struct numbering {
    const struct tag **slots; /* open addressing */
    size_t *numbers;
    size_t mask, n;
    struct hash_key key;
};

static size_t number_of(struct numbering *numbering, const struct tag *tag)
{
    size_t n = (size_t)(tag->end - tag->start), at = hash_bytes(numbering->key, tag->start, n) & numbering->mask;
    size_t number = numbering->n++;
    for (; numbering->slots[at]; at = (at + 1) & numbering->mask) {
        const struct tag *other = numbering->slots[at];
        if ((size_t)(other->end - other->start) == n && memcmp(other->start, tag->start, n) == 0)
            return numbering->numbers[at];
    }
    numbering->slots[at] = tag;
    numbering->numbers[at] = number;
    return number;
}

static bool is_image(const struct tag *tag)
{
    static const char image[] = "<|ref|>image<|/ref|>";
    return memmem(tag->start, (size_t)(tag->end - tag->start), image, strlen(image)) != NULL;
}

/* Spells \coloneqq and \eqqcolon out, in place; returns the new length. */
static size_t spell_out(char *text, size_t n)
{
    size_t to = 0;
    for (size_t at = 0; at < n;) {
        bool define = n - at >= 9 && memcmp(text + at, "\\coloneqq", 9) == 0;
        if (define || (n - at >= 9 && memcmp(text + at, "\\eqqcolon", 9) == 0)) {
            memcpy(text + to, define ? ":=" : "=:", 2);
            to += 2;
            at += 9;
        } else {
            text[to++] = text[at++];
        }
    }
    return to;
}

/* Drops line ends that tags left behind, in place: at the beginning, and after two others. Returns the new length. */
static size_t drop_line_ends(char *text, size_t n)
{
    size_t to = 0;
    for (size_t at = 0; at < n; at++) {
        bool spare = to == 0 || (to >= 2 && text[to - 1] == '\n' && text[to - 2] == '\n');
        if (text[at] != '\n' || !spare)
            text[to++] = text[at];
    }
    return to;
}

static void write_markdown(const char *raw, const char *end, const struct tag *tags, size_t n_tags,
                           struct numbering *numbering, char *out)
{
    char *to = out;
    bool others = false;
    for (size_t i = 0; i < n_tags; i++) {
        memcpy(to, raw, (size_t)(tags[i].start - raw));
        to += tags[i].start - raw;
        raw = tags[i].end;
        if (is_image(&tags[i])) /* shorter than the item, which has 35 bytes of tags and "image" */
            to += sprintf(to, "![](images/%zu.jpg)\n", number_of(numbering, &tags[i]));
        else
            others = true;
    }
    memcpy(to, raw, (size_t)(end - raw));
    to += end - raw;
    size_t n = (size_t)(to - out);
    n = others ? spell_out(out, n) : n;
    out[drop_line_ends(out, n)] = 0;
}

enum fathom_status layout_markdown(const char *raw, char **out, struct fathom_err *err)
{
    static const char eos[] = "<｜end▁of▁sentence｜>";
    *out = NULL;
    size_t n = strlen(raw), n_tags = 0, n_slots = 4;
    if (n >= strlen(eos) && memcmp(raw + n - strlen(eos), eos, strlen(eos)) == 0)
        n -= strlen(eos);
    raw = text_strip(raw, &n);
    const char *end = raw + n, *p = raw;
    struct tag tag;
    for (; tag_next(p, end, &tag); p = tag.end)
        n_tags++;
    while (n_slots < 2 * n_tags)
        n_slots *= 2;

    struct tag *tags = calloc(n_tags + 1, sizeof *tags);
    struct numbering numbering = {.mask = n_slots - 1, .key = hash_key_random()};
    numbering.slots = calloc(n_slots, sizeof *numbering.slots);
    numbering.numbers = calloc(n_slots, sizeof *numbering.numbers);
    char *text = malloc(n + 1);
    enum fathom_status status = FATHOM_OK;
    if (tags && numbering.slots && numbering.numbers && text) {
        p = raw;
        for (size_t i = 0; i < n_tags; p = tags[i++].end)
            tag_next(p, end, &tags[i]);
        write_markdown(raw, end, tags, n_tags, &numbering, text);
        *out = text;
    } else {
        free(text);
        status = fail_nomem(err, n + n_slots * (sizeof *numbering.slots + sizeof *numbering.numbers), "Markdown");
    }
    free(tags);
    free(numbering.slots);
    free(numbering.numbers);
    return status;
}
