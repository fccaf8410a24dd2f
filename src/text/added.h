/* Added tokens: texts that are found in the input before it is split and merged. */
#ifndef FATHOM_TEXT_ADDED_H
#define FATHOM_TEXT_ADDED_H

#include "base/err.h"

struct added {
    const char *text; /* borrowed from the tokenizer's storage */
    size_t n;
    int32_t id;
};

struct added_set {
    struct added *items; /* owned; in byte order once sorted                                  */
    size_t n;
    size_t first[257]; /* items whose first byte is b: first[b] up to first[b + 1]          */
};

#define ADDED_MAX_BYTES 256 /* of one text: bounds the time a position can take */

/* Sorts the items and fills first; no text may be empty or there twice. */
void added_sort(struct added_set *set);

/* The longest item that text starts with, or NULL. */
const struct added *added_match(const struct added_set *set, const char *text, size_t n);

/* The item with exactly this text, or NULL. */
const struct added *added_find(const struct added_set *set, const char *text, size_t n);

#endif
