/* What a block is, from its label and its text. */
#ifndef FATHOM_DOCUMENT_KIND_H
#define FATHOM_DOCUMENT_KIND_H

#include <fathom.h>

enum kind { KIND_TEXT, KIND_TITLE, KIND_FIGURE, KIND_TABLE, KIND_FORMULA, KIND_CAPTION, KIND_OTHER, N_KINDS };

/* "text", "title", "figure", ...; as the JSON names it. */
const char *kind_name(enum kind kind);

/* Models name more kinds of blocks than their papers tell, so parts of a label count ("sub_title" is a title). A block
 * that begins with <table is a table whatever its label. */
enum kind block_kind(const struct fathom_block *block);

/* Whether an item of this label (n bytes) is a picture for the reference, which links it and cuts it out: the label is
 * "image", or holds another such item's beginning. */
bool label_is_image(const char *label, size_t n);

#endif
