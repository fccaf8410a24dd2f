/* Prompt assembly (spec deepseek-ocr §5.2): BOS, text pieces, and n image tokens for each <image>. */
#ifndef FATHOM_TEXT_PROMPT_H
#define FATHOM_TEXT_PROMPT_H

#include "text/tokenizer.h"

/* Appends the prompt's ids. The prompt is stripped of white space at both ends and split at the literal "<image>";
 * each piece is tokenised with special tokens recognised. Fails with FATHOM_EINVAL unless n_images pictures are named. */
enum fathom_status prompt_build(const struct tokenizer *tok, const char *prompt, int32_t bos_id, size_t n_images,
                                const size_t *n_image_tokens, struct tokens *out, struct fathom_err *err);

#endif
