#include "engine/loop_detector.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/utf8.h"

#define MAX_PERIOD 1024
#define LOOK_BACK ((size_t)16384) /* words */
#define MAX_TAG 40                /* bytes that a tag may have */
#define MAX_RUN 16                /* equal characters that make one word */

enum word_kind { WORD_TEXT, WORD_NUMBER, WORD_BOX_NUMBER };

struct loop_word {
    size_t end;     /* bytes of the text up to here      */
    int64_t value;  /* of a number, in millionths        */
    uint32_t shape; /* equal for words that read alike; numbers have one for all */
    uint8_t kind;   /* enum word_kind                    */
    bool cell;      /* part of a table's grid            */
    bool ends_row;  /* a line or a table row ends here   */
    bool begins;    /* a tagged block begins here        */
    bool first_box; /* the first number of its boxes     */
};

/* ---- words --------------------------------------------------------------------------------------------------- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static uint32_t hash(const char *text, size_t n)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (uint8_t)text[i]) * 16777619u;
    return h;
}

/* The length of a tag at text, 0 when there is none, n + 1 when that is not certain yet. */
static size_t tag_length(const char *text, size_t n)
{
    for (size_t i = 1; i < MAX_TAG; i++) {
        if (i == n)
            return n + 1;
        if (text[i] == '>')
            return i + 1;
        if (text[i] == '<' || text[i] == '\n')
            return 0;
    }
    return 0;
}

/* The length of a number and its value; n + 1 when it may go on. */
static size_t read_number(const char *text, size_t n, int64_t *value)
{
    int64_t whole = 0, part = 0, unit = 1000000;
    size_t i = 0;
    for (; i < n && is_digit(text[i]); i++)
        whole = whole < INT64_C(1000000000) ? whole * 10 + (text[i] - '0') : whole;
    if (i + 1 < n && text[i] == '.' && is_digit(text[i + 1]))
        for (i++; i < n && is_digit(text[i]); i++)
            if (unit > 1)
                part += (text[i] - '0') * (unit /= 10);
    *value = whole * 1000000 + part;
    return i == n || (text[i] == '.' && i + 1 == n) ? n + 1 : i;
}

static size_t run_length(const char *text, size_t n)
{
    size_t i = 1;
    while (i < n && i < MAX_RUN && text[i] == text[0])
        i++;
    return i == n && i < MAX_RUN ? n + 1 : i;
}

static bool is_word(const char *text, size_t n, const char *word)
{
    return n == strlen(word) && !memcmp(text, word, n);
}

/* The word at text: its length; more than n: the text to come decides. */
static size_t read_word(struct loop_detector *d, const char *text, size_t n, struct loop_word *w)
{
    uint32_t code;
    size_t length;
    *w = (struct loop_word){0};
    if (*text == '<' && (length = tag_length(text, n)) > 0) {
        if (length > n)
            return length;
        if (is_word(text, length, "<|det|>"))
            d->in_boxes = d->no_box_yet = true;
        else if (is_word(text, length, "<|/det|>"))
            d->in_boxes = false;
        w->begins = is_word(text, length, "<|ref|>");
        w->ends_row = is_word(text, length, "</tr>");
        w->cell = length > 3 && (!memcmp(text, "<td", 3) || !memcmp(text, "<tr", 3) || !memcmp(text, "<th", 3));
    } else if (is_digit(*text)) {
        length = read_number(text, n, &w->value);
        w->kind = d->in_boxes ? WORD_BOX_NUMBER : WORD_NUMBER;
        w->shape = w->kind;
        w->first_box = d->in_boxes && d->no_box_yet;
        d->no_box_yet &= !w->first_box || length > n;
        return length;
    } else if (is_letter(*text)) {
        for (length = 1; length < n && is_letter(text[length]);)
            length++;
        length += length == n;
    } else if ((length = utf8_decode(text, n, &code)) <= 1) {
        length = run_length(text, n);
        w->ends_row = *text == '\n';
        w->cell = *text == '|';
        w->shape = hash(text, 1); /* however many */
        return length;
    }
    if (length <= n)
        w->shape = hash(text, length);
    return length;
}

static bool add_word(struct loop_detector *d, const struct loop_word *w)
{
    if (d->n == d->capacity) {
        size_t capacity = d->capacity ? 2 * d->capacity : 1024, bytes;
        struct loop_word *words = size_mul(capacity, sizeof *words, &bytes) ? realloc(d->words, bytes) : NULL;
        if (!words)
            return false;
        d->words = words;
        d->capacity = capacity;
    }
    d->words[d->n++] = *w;
    return true;
}

static void read_words(struct loop_detector *d, const char *text, size_t n)
{
    while (d->n_read < n && !d->failed) {
        const char *at = text + d->n_read;
        struct loop_word w;
        size_t length = read_word(d, at, n - d->n_read, &w);
        if (length > n - d->n_read)
            return;
        d->n_read += length;
        w.end = d->n_read;
        if (!(*at == ' ' && length == 1)) /* what stands between any two words */
            d->failed = !add_word(d, &w);
    }
}

/* ---- rounds -------------------------------------------------------------------------------------------------- */

/* The end of the text: words [first, n), of which rounds of `period` words are looked for. */
struct tail {
    const struct loop_word *words;
    size_t first, n, period;
};

/* How many words at the end equal those a period before. */
static size_t alike(const struct tail *t, bool values_too)
{
    size_t k = 0;
    for (; k + t->period < t->n - t->first; k++) {
        const struct loop_word *w = &t->words[t->n - 1 - k], *before = w - t->period;
        if (w->shape != before->shape || w->kind != before->kind || (values_too && w->value != before->value))
            break;
    }
    return k;
}

/* How many of `most` words at the end, alike but for their numbers, have numbers outside boxes that stand still or count. */
static size_t counting(const struct tail *t, size_t most)
{
    size_t n_numbers = 0, n_slips = 0;
    for (size_t k = 0; k + t->period < most; k++) {
        const struct loop_word *w = &t->words[t->n - 1 - k], *before = w - t->period;
        if (w->kind != WORD_NUMBER)
            continue;
        n_numbers++;
        n_slips += w->value - before->value != before->value - before[-(ptrdiff_t)t->period].value;
        if (n_slips > 1 + n_numbers / 16)
            return k;
    }
    return most;
}

static bool has_cell(const struct tail *t)
{
    for (size_t k = 0; k < t->period; k++)
        if (t->words[t->n - 1 - k].cell)
            return true;
    return false;
}

/* Rounds of that length for which no page has room. */
static size_t too_many(size_t period)
{
    const size_t words = 2048, least = 16, most = 128;
    size_t n =
        (words + period - 1) / period; /* rounded up, so that several short rounds are not taken for a long one */
    return n < least ? least : n > most ? most : n;
}

/* Bytes up to the end of the first round of those that begin at word `first`. A round that begins within a block or a row
 * is taken from the next one on. */
static size_t keep_first(const struct tail *t, size_t first)
{
    const struct loop_word *w = t->words;
    size_t block = SIZE_MAX, row = SIZE_MAX;
    for (size_t i = first + t->period; i-- > first;) {
        block = w[i].begins ? i : block;
        row = i == 0 || w[i - 1].ends_row ? i : row;
    }
    size_t begin = block < SIZE_MAX ? block : row < SIZE_MAX ? row : first;
    return w[begin + t->period - 1].end;
}

/* ---- boxes --------------------------------------------------------------------------------------------------- */

#define MAX_BOX_ROUNDS 64
#define BAD_ROUNDS 8

struct corner_box {
    int64_t c[4];
};

/* The first box that begins in the round that begins at words[first]; it may end in the next. */
static bool box_of(const struct tail *t, size_t first, struct corner_box *box)
{
    size_t i = first, n = 0;
    while (i < first + t->period && !t->words[i].first_box)
        i++;
    for (size_t start = i; i < t->n && n < 4 && (i == start || !t->words[i].first_box); i++)
        if (t->words[i].kind == WORD_BOX_NUMBER)
            box->c[n++] = t->words[i].value / 1000000;
    return n == 4;
}

static bool is_possible(const struct corner_box *b)
{
    return b->c[0] < b->c[2] && b->c[1] < b->c[3] && b->c[2] <= 999 && b->c[3] <= 999;
}

/* Whether more than half of the smaller one lies on the other. Both are possible. */
static bool overlap(const struct corner_box *a, const struct corner_box *b)
{
    int64_t w = (a->c[2] < b->c[2] ? a->c[2] : b->c[2]) - (a->c[0] > b->c[0] ? a->c[0] : b->c[0]);
    int64_t h = (a->c[3] < b->c[3] ? a->c[3] : b->c[3]) - (a->c[1] > b->c[1] ? a->c[1] : b->c[1]);
    int64_t area_a = (a->c[2] - a->c[0]) * (a->c[3] - a->c[1]), area_b = (b->c[2] - b->c[0]) * (b->c[3] - b->c[1]);
    return w > 0 && h > 0 && 2 * w * h > (area_a < area_b ? area_a : area_b);
}

/* Of the rounds in the last `n_words` words: the word at which the first one begins whose box cannot be, if there are
 * enough of them; SIZE_MAX otherwise. */
static size_t first_impossible(const struct tail *t, size_t n_words)
{
    struct corner_box boxes[MAX_BOX_ROUNDS];
    size_t n_rounds = n_words / t->period, n_bad = 0, first = SIZE_MAX;
    n_rounds = n_rounds < MAX_BOX_ROUNDS ? n_rounds : MAX_BOX_ROUNDS;
    for (size_t r = 0; r < n_rounds; r++) {
        size_t begin = t->n - (n_rounds - r) * t->period;
        if (!box_of(t, begin, &boxes[r])) /* none, or the last is not complete */
            break;
        bool bad = !is_possible(&boxes[r]);
        for (size_t i = 0; i < r && !bad; i++)
            bad = is_possible(&boxes[i]) && overlap(&boxes[i], &boxes[r]);
        if (bad && n_bad++ == 0)
            first = begin;
    }
    return n_bad >= BAD_ROUNDS ? first : SIZE_MAX;
}

/* ---- the detector -------------------------------------------------------------------------------------------- */

/* Bytes to keep when the tail loops with this period, else 0. */
static size_t check(const struct tail *t)
{
    const size_t min_rounds = 4, min_words = 256, min_counting = 512;
    size_t shape = alike(t, false);
    if (shape + t->period < min_words || shape < (min_rounds - 1) * t->period)
        return 0;
    size_t equal = alike(t, true);
    if (equal + t->period >= min_words && equal >= (min_rounds - 1) * t->period && !has_cell(t))
        return keep_first(t, t->n - equal - t->period);
    size_t run = counting(t, shape) + t->period; /* words */
    if (run >= min_counting && run >= too_many(t->period) * t->period)
        return keep_first(t, t->n - run);
    if (run < min_words)
        return 0;
    size_t first = first_impossible(t, run);
    if (first == SIZE_MAX)
        return 0;
    /* at least the first round, and all that can be */
    return first < t->n - run + t->period ? keep_first(t, t->n - run) : keep_first(t, first - t->period);
}

size_t loop_detect(struct loop_detector *d, const char *text, size_t n)
{
    read_words(d, text, n);
    struct tail t = {.words = d->words, .first = d->n > LOOK_BACK ? d->n - LOOK_BACK : 0, .n = d->n};
    for (t.period = 1; t.period <= MAX_PERIOD && t.period < t.n - t.first; t.period++) {
        size_t kept = check(&t);
        if (kept)
            return kept;
    }
    return 0;
}

void loop_detector_release(struct loop_detector *d)
{
    free(d->words);
    *d = (struct loop_detector){0};
}
