/* What the pre-tokeniser asks of a character: its Unicode 14 general category, by its first letter, or White_Space. */
#ifndef FATHOM_TEXT_UNICODE_H
#define FATHOM_TEXT_UNICODE_H

#include <stddef.h>
#include <stdint.h>

enum char_class {
    CLASS_OTHER, /* C, and bytes that are not UTF-8              */
    CLASS_LETTER,
    CLASS_MARK,
    CLASS_NUMBER,
    CLASS_PUNCTUATION,
    CLASS_SYMBOL,
    CLASS_SPACE, /* White_Space; no letter, mark, number, punctuation or symbol is one */
};

/* Code points at which the class changes, ascending, as code << 3 | class of that and the following ones. */
#define UNICODE_N_BOUNDARIES 2217
extern const uint32_t unicode_boundaries[UNICODE_N_BOUNDARIES];

enum char_class unicode_class(uint32_t code);

/* What is left of text without the white space at both ends that Python's str.strip removes: White_Space and U+001C to
 * U+001F. *n becomes its length. */
const char *text_strip(const char *text, size_t *n);

#endif
