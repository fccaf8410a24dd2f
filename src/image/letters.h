/* Small letters for pictures: ASCII, 5 x 7 pixels in cells of 6 x 8. */
#ifndef FATHOM_IMAGE_LETTERS_H
#define FATHOM_IMAGE_LETTERS_H

#include <stdbool.h>
#include <stdint.h>

enum { LETTER_WIDTH = 6, LETTER_HEIGHT = 8 };

/* Whether the pixel (x, y) of a character's cell is set; characters that are not ASCII look like '?'. */
bool letter_pixel(char c, int x, int y);

#endif
