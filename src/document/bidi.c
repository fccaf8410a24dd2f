#include "document/bidi.h"

#include <stdbool.h>

enum direction { NEUTRAL, LEFT_TO_RIGHT, RIGHT_TO_LEFT, NUMBER };

static enum direction direction(uint32_t c)
{
    if ((c >= '0' && c <= '9') || (c >= 0x660 && c <= 0x669) || (c >= 0x6f0 && c <= 0x6f9))
        return NUMBER;
    if ((c >= 0x590 && c < 0x900) || (c >= 0xfb1d && c < 0xfe00) || (c >= 0xfe70 && c < 0xfeff) ||
        (c >= 0x10800 && c < 0x11000) || (c >= 0x1e800 && c < 0x1f000) || c == 0x200f)
        return RIGHT_TO_LEFT;
    if (c < 'A' || (c > 'Z' && c < 'a') || (c > 'z' && c < 0xaa) || (c >= 0x2000 && c < 0x2070) ||
        (c >= 0x20a0 && c < 0x2100) || (c >= 0x2190 && c < 0x2c00) || (c >= 0x3000 && c < 0x3005))
        return NEUTRAL;
    return LEFT_TO_RIGHT;
}

static void reverse(uint32_t *codes, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) {
        uint32_t c = codes[i];
        codes[i] = codes[n - 1 - i];
        codes[n - 1 - i] = c;
    }
}

/* Reverses each run that goes the given way: from a letter of it to the last one before a letter of the other. Within text
 * to the right a number begins a run to the left. */
static void reverse_runs(uint32_t *codes, size_t n, bool right)
{
    for (size_t i = 0; i < n;) {
        enum direction d = direction(codes[i]);
        if (right ? d != RIGHT_TO_LEFT : d != LEFT_TO_RIGHT && d != NUMBER) {
            i++;
            continue;
        }
        size_t last = i, k = i;
        for (; k < n; k++) {
            d = direction(codes[k]);
            if (right ? d == LEFT_TO_RIGHT : d == RIGHT_TO_LEFT)
                break;
            last = d != NEUTRAL ? k : last;
        }
        reverse(codes + i, last + 1 - i);
        if (right) /* numbers in it stay as they are */
            for (size_t from = i; from <= last; from++) {
                size_t to = from;
                while (to <= last && direction(codes[to]) == NUMBER)
                    to++;
                reverse(codes + from, to - from);
                from = to > from ? to - 1 : from;
            }
        i = k;
    }
}

void bidi_reorder(uint32_t *codes, size_t n)
{
    size_t i = 0;
    bool any = false;
    while (i < n && direction(codes[i]) != LEFT_TO_RIGHT && direction(codes[i]) != RIGHT_TO_LEFT)
        i++;
    for (size_t k = i; k < n && !any; k++)
        any = direction(codes[k]) == RIGHT_TO_LEFT;
    if (!any)
        return;
    if (direction(codes[i]) == RIGHT_TO_LEFT) {
        reverse(codes, n); /* all of it, and what goes to the left back again */
        reverse_runs(codes, n, false);
    } else {
        reverse_runs(codes, n, true);
    }
}
