#include "document/layout.h"

#include "base/checked.h"
#include "base/hash.h"
#include "document/kind.h"
#include "document/tags.h"
#include "text/unicode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
                           struct numbering *numbering, const char *figures, char *out)
{
    char *to = out;
    bool others = false;
    for (size_t i = 0; i < n_tags; i++) {
        memcpy(to, raw, (size_t)(tags[i].start - raw));
        to += tags[i].start - raw;
        raw = tags[i].end;
        if (label_is_image(tags[i].label, tags[i].n_label))
            to += sprintf(to, "![](%s%zu.jpg)\n", figures, number_of(numbering, &tags[i]));
        else
            others = true;
    }
    memcpy(to, raw, (size_t)(end - raw));
    to += end - raw;
    size_t n = (size_t)(to - out);
    n = others ? spell_out(out, n) : n;
    out[drop_line_ends(out, n)] = 0;
}

enum fathom_status layout_markdown_linked(const char *raw, const char *figures, char **out, struct fathom_err *err)
{
    static const char eos[] = "<｜end▁of▁sentence｜>";
    *out = NULL;
    size_t n = strlen(raw), n_tags = 0, n_slots = 4, n_links = 0, bytes;
    if (n >= strlen(eos) && memcmp(raw + n - strlen(eos), eos, strlen(eos)) == 0)
        n -= strlen(eos);
    raw = text_strip(raw, &n);
    const char *end = raw + n, *p = raw;
    struct tag tag;
    for (; tag_next(p, end, &tag); p = tag.end) {
        n_tags++;
        n_links += label_is_image(tag.label, tag.n_label);
    }
    end = tag_cut(p, end);
    while (n_slots < 2 * n_tags)
        n_slots *= 2;
    /* Without the folder's name a link is shorter than its item, which has 35 bytes of tags and "image". */
    if (!size_mul(n_links, strlen(figures), &bytes) || !size_add(bytes, n + 1, &bytes))
        return fail_nomem(err, SIZE_MAX, "Markdown");

    struct tag *tags = calloc(n_tags + 1, sizeof *tags);
    struct numbering numbering = {.mask = n_slots - 1, .key = hash_key_random()};
    numbering.slots = calloc(n_slots, sizeof *numbering.slots);
    numbering.numbers = calloc(n_slots, sizeof *numbering.numbers);
    char *text = malloc(bytes);
    enum fathom_status status = FATHOM_OK;
    if (tags && numbering.slots && numbering.numbers && text) {
        p = raw;
        for (size_t i = 0; i < n_tags; p = tags[i++].end)
            tag_next(p, end, &tags[i]);
        write_markdown(raw, end, tags, n_tags, &numbering, figures, text);
        *out = text;
    } else {
        free(text);
        status = fail_nomem(err, bytes + n_slots * (sizeof *numbering.slots + sizeof *numbering.numbers), "Markdown");
    }
    free(tags);
    free(numbering.slots);
    free(numbering.numbers);
    return status;
}

enum fathom_status layout_markdown(const char *raw, char **out, struct fathom_err *err)
{
    return layout_markdown_linked(raw, "images/", out, err);
}
