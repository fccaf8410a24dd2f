/* Text in the order in which it is seen: the part of the Unicode Bidirectional Algorithm that lines without embeddings
 * need. */
#ifndef FATHOM_DOCUMENT_BIDI_H
#define FATHOM_DOCUMENT_BIDI_H

#include <stddef.h>
#include <stdint.h>

/* Turns a line from the order in which it is read to left-to-right order. Its direction is that of its first letter that
 * has one. Numbers keep theirs; spaces and signs follow what surrounds them. */
void bidi_reorder(uint32_t *codes, size_t n);

#endif
