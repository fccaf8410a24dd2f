/* DeepSeek's pre-tokenisation (spec deepseek-ocr §5.1): three splits, each applied to the pieces of the one before.
 *
 *   1. numbers, in groups of one to three from the left
 *   2. runs of ideographs and kana: U+4E00 to U+9FA5, U+3040 to U+30FF
 *   3. the first of: an ASCII punctuation character and ASCII letters; letters and marks, behind at most one character
 *      that is no letter, punctuation, symbol, CR or LF; punctuation and symbols, behind at most one blank and before any
 *      CR and LF; white space up to its last CR or LF; white space but for its last character if something follows;
 *      white space
 *
 * What a split does not match is a piece as well. All splits only look forward from where the last piece ended, so one
 * scan does all three. */
#ifndef FATHOM_TEXT_PRETOKENIZE_H
#define FATHOM_TEXT_PRETOKENIZE_H

#include <stddef.h>

/* The length of the first piece, 1 to n bytes, of text that starts a piece; n > 0. A byte that is not part of valid
 * UTF-8 counts as a character that is in no class. */
size_t pretoken_next(const char *text, size_t n);

#endif
