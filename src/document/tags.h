/* The items of grounded output, found as the reference's expression
 *     <|ref|>(.*?)<|/ref|><|det|>(.*?)<|/det|>
 * finds them (the dot is any character, both parts as short as they can be). */
#ifndef FATHOM_DOCUMENT_TAGS_H
#define FATHOM_DOCUMENT_TAGS_H

#include <fathom.h>

struct tag {
    const char *start, *end; /* the whole item          */
    const char *label;       /* between the ref tags    */
    size_t n_label;
    const char *list; /* between the det tags    */
    size_t n_list;
};

/* The first item at or after text; false when there is none. Going on from tag->end finds all in linear time. */
bool tag_next(const char *text, const char *end, struct tag *tag);

/* Where an item begins that the end of the text cuts off, as the token limit does: its label, which has no line feed, and
 * perhaps a part of its box list are all that follow. end when there is none. text: what follows the last whole item. */
const char *tag_cut(const char *text, const char *end);

/* Reads a box list: "[[x1, y1, x2, y2], ...]", one flat box, or lists nested deeper. Numbers may have sign, fraction and
 * exponent. Calls add for each box of four numbers and returns how many there were, or 0 when the text is anything else
 * (add may have been called by then). add may be NULL. */
typedef void box_fn(void *user, const double c[4]);
size_t tag_boxes(const char *text, size_t n, box_fn *add, void *user);

#endif
