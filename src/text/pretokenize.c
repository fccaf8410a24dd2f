#include "text/pretokenize.h"

#include "base/utf8.h"
#include "text/unicode.h"

#include <stdbool.h>

/* The parts that the first two splits leave: step 3 never looks across their borders. */
enum part { PART_TEXT, PART_NUMBER, PART_CJK };

struct character {
    size_t length; /* bytes; 0 at the end of the text */
    uint32_t code;
    enum char_class class;
    enum part part;
};

#define O CLASS_OTHER
#define L CLASS_LETTER
#define N CLASS_NUMBER
#define P CLASS_PUNCTUATION
#define S CLASS_SYMBOL
#define W CLASS_SPACE
static const uint8_t ascii_class[128] = {
    O, O, O, O, O, O, O, O, O, W, W, W, W, W, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, /* controls */
    W, P, P, P, S, P, P, P, P, P, P, S, P, P, P, P, N, N, N, N, N, N, N, N, N, N, P, P, S, S, S, P, /* !"# ... <=>? */
    P, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, P, P, P, S, P, /* @A ... \]^_ */
    S, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, P, S, P, S, O, /* `a ... |}~ */
};
#undef O
#undef L
#undef N
#undef P
#undef S
#undef W

static struct character character_at(const char *p, const char *end)
{
    struct character c = {0};
    if (p == end)
        return c;
    unsigned char first = (unsigned char)*p;
    if (first < 0x80) {
        c.length = 1;
        c.code = first;
        c.class = (enum char_class)ascii_class[first];
        c.part = c.class == CLASS_NUMBER ? PART_NUMBER : PART_TEXT;
        return c;
    }
    c.length = utf8_decode(p, (size_t)(end - p), &c.code);
    if (c.length == 0) {
        c.length = 1;
        c.code = 0;
        return c;
    }
    c.class = unicode_class(c.code);
    if (c.class == CLASS_NUMBER)
        c.part = PART_NUMBER;
    else if ((c.code >= 0x4e00 && c.code <= 0x9fa5) || (c.code >= 0x3040 && c.code <= 0x30ff))
        c.part = PART_CJK;
    return c;
}

/* The character at p if it belongs to the same part, else one of length 0. */
static struct character next_in(enum part part, const char *p, const char *end)
{
    struct character c = character_at(p, end);
    if (c.part != part)
        c.length = 0;
    return c;
}

static bool is_letter(struct character c) { return c.length && (c.class == CLASS_LETTER || c.class == CLASS_MARK); }

static bool is_punctuation(struct character c)
{
    return c.length && (c.class == CLASS_PUNCTUATION || c.class == CLASS_SYMBOL);
}

static bool is_line_end(struct character c) { return c.length && (c.code == '\r' || c.code == '\n'); }
static bool is_ascii_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

static const char *skip_letters(enum part part, const char *p, const char *end)
{
    struct character c;
    while (is_letter(c = next_in(part, p, end)))
        p += c.length;
    return p;
}

static const char *skip_punctuation(enum part part, const char *p, const char *end)
{
    struct character c;
    while (is_punctuation(c = next_in(part, p, end)))
        p += c.length;
    while (is_line_end(c = next_in(part, p, end)))
        p += c.length;
    return p;
}

static const char *skip_space(enum part part, const char *p, const char *end)
{
    const char *last = p, *after_line_end = NULL, *start = p;
    struct character c;
    while ((c = next_in(part, p, end)).length && c.class == CLASS_SPACE) {
        last = p;
        p += c.length;
        if (is_line_end(c))
            after_line_end = p;
    }
    if (after_line_end)
        return after_line_end;
    return c.length == 0 || last == start ? p : last;
}

size_t pretoken_next(const char *text, size_t n)
{
    const char *end = text + n, *p;
    struct character first = character_at(text, end), second;
    enum part part = first.part;
    p = text + first.length;
    if (part == PART_NUMBER) {
        for (int i = 1; i < 3 && (second = next_in(part, p, end)).length; i++)
            p += second.length;
        return (size_t)(p - text);
    }
    if (is_letter(first))
        return (size_t)(skip_letters(part, p, end) - text);

    second = next_in(part, p, end);
    if (is_punctuation(first)) {
        if (first.code < 0x80 && second.length && is_ascii_letter(*p)) {
            while (p < end && is_ascii_letter(*p))
                p++;
            return (size_t)(p - text);
        }
        return (size_t)(skip_punctuation(part, p, end) - text);
    }
    if (!is_line_end(first) && is_letter(second))
        return (size_t)(skip_letters(part, p, end) - text);
    if (first.code == ' ' && is_punctuation(second))
        return (size_t)(skip_punctuation(part, p, end) - text);
    if (first.class == CLASS_SPACE)
        return (size_t)(skip_space(part, text, end) - text);

    /* A character that nothing matches, and those after it up to one that starts a match: any but another such. */
    while (second.length && second.class == CLASS_OTHER) {
        const char *after = p + second.length;
        struct character third = next_in(part, after, end);
        if (is_letter(third))
            break;
        p = after;
        second = third;
    }
    return (size_t)(p - text);
}
