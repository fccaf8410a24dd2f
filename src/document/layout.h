/* The model's layout tags, `<|ref|>LABEL<|/ref|><|det|>[[x1, y1, x2, y2], ...]<|/det|>` (spec deepseek-ocr §6.2, §6.3),
 * parsed without evaluating anything. */
#ifndef FATHOM_DOCUMENT_LAYOUT_H
#define FATHOM_DOCUMENT_LAYOUT_H

#include "base/err.h"

/* The page's output as blocks in reading order. Labels and texts point into storage owned by the layout. */
struct layout {
    struct fathom_block *blocks;
    size_t n_blocks;
    char *strings;
    struct fathom_box *boxes;
};

/* raw: UTF-8 model output. Coordinates 0..999 become pixels of a width x height page, trunc(c / 999 * side) in double;
 * what falls outside the page is moved to its edge, and corners in the wrong order are swapped. Text before the first tag
 * is a block with the label "". Blocks' texts lack the line ends before and the white space behind them. A tag whose box
 * list does not parse keeps its label and has no boxes; a tag that the end of the text cuts off (tag_cut) is left out, any
 * other piece of a tag is text. Never fails but for memory; linear time. */
enum fathom_status layout_parse(struct layout *out, const char *raw, int width, int height, struct fathom_err *err);
void layout_free(struct layout *l);

/* The reference's Markdown (spec §6.3, the rule of the Hugging Face code): image items become ![](images/K.jpg) and a line
 * feed, K from 0, all other tags go, \coloneqq and \eqqcolon are spelled out, and runs of line ends become two, as in the
 * reference's PDF script; none is left at the beginning. A tag that the end cuts off is left out. *out is the caller's to
 * free. Linear time, for which one thing differs: the reference replaces the text of an item wherever it is, even at the
 * end of a longer item with an unclosed tag in front. */
enum fathom_status layout_markdown(const char *raw, char **out, struct fathom_err *err);

/* The same with another beginning of the links instead of "images/". */
enum fathom_status layout_markdown_linked(const char *raw, const char *figures, char **out, struct fathom_err *err);

#endif
