/* What is a loop, and what only looks like one: output of the kind that pages give. */
#include "engine/loop_detector.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct text {
    char *bytes;
    size_t n;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *t, const char *format, ...)
{
    va_list args;
    char piece[1024];
    va_start(args, format);
    int n = vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    assert_in_range(n, 0, sizeof piece - 1);
    t->bytes = realloc(t->bytes, t->n + (size_t)n + 1);
    assert_non_null(t->bytes);
    memcpy(t->bytes + t->n, piece, (size_t)n + 1);
    t->n += (size_t)n;
}

static uint32_t random_below(uint32_t n)
{
    static uint32_t state = 1;
    state = state * 1664525 + 1013904223;
    return (state >> 8) % n;
}

/* As a page grows: looked at after every 40 bytes or so. Returns what is kept, 0 when nothing was found to the end. */
static size_t detect(const struct text *t)
{
    struct loop_detector d = {0};
    size_t kept = 0;
    for (size_t n = 0; n < t->n && !kept; n += 1 + random_below(80)) {
        while (((unsigned char)t->bytes[n] & 0xc0) == 0x80) /* whole characters */
            n++;
        kept = loop_detect(&d, t->bytes, n);
    }
    if (!kept)
        kept = loop_detect(&d, t->bytes, t->n);
    assert_false(d.failed);
    loop_detector_release(&d);
    return kept;
}

static void expect_none(struct text *t)
{
    size_t kept = detect(t);
    if (kept)
        fail_msg("cut at %zu of %zu bytes: ...%.*s", kept, t->n, 100, t->bytes + (kept > 100 ? kept - 100 : 0));
    free(t->bytes);
    *t = (struct text){0};
}

/* A loop, of which what is kept has at least the n_before bytes and ends with `ending`. */
static void expect_loop(struct text *t, size_t n_before, size_t most, const char *ending)
{
    size_t kept = detect(t), n = strlen(ending);
    if (kept < n_before || kept > most || kept < n || memcmp(t->bytes + kept - n, ending, n) != 0)
        fail_msg("kept %zu of %zu bytes, expected from %zu to %zu: ...%.*s", kept, t->n, n_before, most,
                 (int)(kept < 200 ? kept : 200), t->bytes + (kept < 200 ? 0 : kept - 200));
    free(t->bytes);
    *t = (struct text){0};
}

static const char *const prose[] = {"the",  "old",  "captain", "measured", "depth",  "and", "wrote", "it",
                                    "down", "into", "a",       "book",     "before", "he",  "slept", "again"};

static void add_prose(struct text *t, int n_words)
{
    for (int i = 0; i < n_words; i++)
        add(t, "%s%s", prose[random_below(16)], i % 12 == 11 ? ".\n" : " ");
}

/* ---- loops ----------------------------------------------------------------------------------------------------- */

static void test_equal_rounds(void **state)
{
    struct text t = {0};
    (void)state;
    add_prose(&t, 300);
    add(&t, "\n");
    size_t before = t.n;
    for (int i = 0; i < 100; i++)
        add(&t, "The sea was calm that day.\n");
    expect_loop(&t, before + 27, before + 27, "calm that day.\n");

    add_prose(&t, 50); /* in the midst of a line, one word */
    before = t.n;
    for (int i = 0; i < 400; i++)
        add(&t, "very ");
    expect_loop(&t, before, before + 5, "very");

    before = 0; /* characters of other scripts, no spaces */
    for (int i = 0; i < 100; i++)
        add(&t, "深さを測る");
    expect_loop(&t, 15, 15, "深さを測る");

    for (int i = 0; i < 5000; i++) /* leaders that never end */
        add(&t, ".");
    expect_loop(&t, 1, 16, ".");
    for (int i = 0; i < 5000; i++)
        add(&t, "\n");
    expect_loop(&t, 1, 16, "\n");

    add(&t, "x\n"); /* a paragraph of 700 words */
    struct text paragraph = {0};
    add_prose(&paragraph, 700);
    for (int i = 0; i < 6; i++)
        for (size_t at = 0; at < paragraph.n; at += 500)
            add(&t, "%.500s", paragraph.bytes + at);
    expect_loop(&t, paragraph.n, paragraph.n + 2, "");
    free(paragraph.bytes);
}

static void test_counting_rows(void **state)
{
    struct text t = {0};
    (void)state;
    add(&t, "<table><tr><td>No.</td><td>Name</td><td>Date</td></tr>");
    size_t before = t.n;
    for (int i = 1; i < 400; i++)
        add(&t, "<tr><td>%d</td><td></td><td></td></tr>", i);
    expect_loop(&t, before, before + 80, "</tr>");

    for (int i = 0; i < 600; i++) /* empty rows alone */
        add(&t, "<tr><td></td><td></td><td></td><td></td></tr>");
    expect_loop(&t, 1, 200, "</tr>");

    add_prose(&t, 60); /* counted sentences */
    add(&t, "\n");
    before = t.n;
    for (int i = 0; i < 300; i++)
        add(&t, "%d. The captain measured the depth and wrote %d fathoms into the book.\n", i + 1, 3 * i);
    expect_loop(&t, before, before + 160, "book.\n");

    for (int i = 0; i < 400; i++) /* decimals and wrapping parts count as well */
        add(&t, "Section %d.%d costs %d.%02d\n", 1 + i / 10, i % 10, i / 4, i % 4 * 25);
    expect_loop(&t, 1, 100, "\n");

    for (int i = 0; i < 200; i++) /* rounds of several lines */
        add(&t, "Question %d\nA) yes\nB) no\nC) perhaps\n\n", i);
    expect_loop(&t, 1, 100, "\n");
}

#define ITEM(label) "<|ref|>" label "<|/ref|><|det|>[[%d, %d, %d, %d]]<|/det|>\n"

static void test_other_boxes(void **state)
{
    struct text t = {0};
    (void)state;
    add(&t, ITEM("title") "# Depths\n\n", 100, 40, 800, 70);
    size_t before = t.n;
    for (int i = 0; i < 200; i++) /* creeping down by less than a line */
        add(&t, ITEM("text") "The sea was calm.\n\n", 100, 100 + 4 * i, 880, 120 + 4 * i);
    expect_loop(&t, before, before + 300, "\n\n");

    add(&t, ITEM("title") "# Depths\n\n", 100, 40, 800, 70);
    before = t.n;
    for (int i = 0; i < 100; i++) { /* line by line down to the edge, and on there */
        int y = 100 + 20 * i;
        add(&t, ITEM("text") "The sea was calm.\n\n", 100, y < 999 ? y : 999, 880, y + 20 < 999 ? y + 20 : 999);
    }
    expect_loop(&t, before + 40 * 60, before + 50 * 90, "\n\n"); /* the possible ones are kept */

    for (int i = 0; i < 100; i++) /* pictures about the same place */
        add(&t, ITEM("image"), 300 + i, 300 + (int)random_below(20), 600 + i, 620);
    expect_loop(&t, 1, 200, "\n");

    for (int i = 0; i < 100; i++) /* beyond any page */
        add(&t, ITEM("text") "Total\n", 1000 + 10 * i, 5, 1009 + 10 * i, 20);
    expect_loop(&t, 1, 200, "\n");
}

/* ---- no loops -------------------------------------------------------------------------------------------------- */

static void test_prose(void **state)
{
    struct text t = {0};
    (void)state;
    expect_none(&t);
    add_prose(&t, 6000);
    expect_none(&t);
    for (int i = 0; i < 60; i++) /* a refrain */
        add(&t, "Verse %d of the song about the %s %s\nHeave ho, and up she rises\nEarly in the morning\n\n", i,
            prose[random_below(16)], prose[random_below(16)]);
    expect_none(&t);
    for (int i = 0; i < 3; i++)
        add(&t, "The same notice stands on this page three times, in three languages that happen to be one.\n\n");
    expect_none(&t);
    for (int i = 0; i < 80; i++) /* contents with leaders */
        add(&t, "%d.%d %s %s ................................................ %d\n", i / 9 + 1, i % 9 + 1,
            prose[random_below(16)], prose[random_below(16)], i * 3 + (int)random_below(3));
    expect_none(&t);
}

static void test_tables(void **state)
{
    struct text t = {0};
    (void)state;
    add(&t, "<table>"); /* 400 rows of figures with a running number */
    for (int i = 0; i < 400; i++) {
        add(&t, "<tr><td>%d</td>", i + 1);
        for (int k = 0; k < 6; k++)
            add(&t, "<td>%u.%02u</td>", random_below(1000), random_below(100));
        add(&t, "</tr>");
    }
    add(&t, "</table>");
    expect_none(&t);

    add(&t, "<table>"); /* a form: 60 numbered rows, nothing filled in */
    for (int i = 0; i < 60; i++)
        add(&t, "<tr><td>%d</td><td></td><td></td><td></td><td></td></tr>", i + 1);
    add(&t, "</table>\n\n");
    expect_none(&t);

    add(&t, "<table>"); /* a time sheet: 31 days, 12 columns of nothing, or of zeros */
    for (int i = 0; i < 31; i++) {
        add(&t, "<tr>");
        for (int k = 0; k < 12; k++)
            add(&t, i % 2 ? "<td></td>" : "<td>0.00</td>");
        add(&t, "</tr>");
    }
    expect_none(&t);
    for (int i = 0; i < 31; i++) {
        add(&t, "<tr>");
        for (int k = 0; k < 12; k++)
            add(&t, "<td>n/a</td>");
        add(&t, "</tr>");
    }
    expect_none(&t);

    for (int i = 0; i < 90; i++) /* Markdown's form of an empty table */
        add(&t, "|  |  |  |  |  |  |\n");
    expect_none(&t);

    for (int i = 0; i < 300; i++) /* a register: one word in it differs */
        add(&t, "<tr><td>%d</td><td>%s</td><td>0</td></tr>", i, prose[random_below(16)]);
    expect_none(&t);

    for (int i = 0; i < 300; i++) /* years and amounts */
        add(&t, "%d\t%u\t%u\n", 1700 + i, random_below(100000), random_below(100000));
    expect_none(&t);

    for (int i = 0; i < 100; i++) /* an answer sheet */
        add(&t, "%d. A B C D E\n", i + 1);
    expect_none(&t);
}

static void test_lines(void **state)
{
    struct text t = {0};
    (void)state;
    for (int i = 0; i < 40; i++) /* to be written on */
        add(&t, "________________________________________________________________\n");
    expect_none(&t);
    for (int i = 0; i < 30; i++)
        add(&t, "- [ ] \n");
    expect_none(&t);
    for (int i = 0; i < 120; i++)
        add(&t, "%d, ", i);
    expect_none(&t);
}

static void test_boxes(void **state)
{
    struct text t = {0};
    (void)state;
    for (int i = 0; i < 48; i++) /* a catalogue: a grid of pictures */
        add(&t, ITEM("image") "\n", 20 + i % 6 * 160, 20 + i / 6 * 120, 170 + i % 6 * 160, 130 + i / 6 * 120);
    expect_none(&t);
    for (int i = 0; i < 50; i++) /* a form: the same word line by line */
        add(&t, ITEM("text") "Name:\n\n", 80, 20 + i * 19, 300, 36 + i * 19);
    expect_none(&t);
    for (int i = 0; i < 80; i++) /* paragraphs */
        add(&t, ITEM("text") "%s %s.\n\n", 80, 20 + i * 12, 900, 30 + i * 12, prose[random_below(16)],
            prose[random_below(16)]);
    expect_none(&t);
}

/* What is found does not depend on when it is looked for: words that are not complete are not counted yet. */
static void test_increments(void **state)
{
    struct text t = {0};
    size_t whole = 0;
    (void)state;
    add_prose(&t, 40);
    for (int i = 0; i < 90; i++)
        add(&t, "<|ref|>text<|/ref|><|det|>[[1, 2, 3, 4]]<|/det|> 12.75 深 %% -- a<b>c < d\n");
    struct loop_detector one = {0}, many = {0};
    whole = loop_detect(&one, t.bytes, t.n);
    for (size_t n = 0; n < t.n; n++)
        if (((unsigned char)t.bytes[n] & 0xc0) != 0x80)
            loop_detect(&many, t.bytes, n);
    assert_int_equal(loop_detect(&many, t.bytes, t.n), whole);
    assert_true(whole > 0);
    assert_int_equal(one.n, many.n);
    loop_detector_release(&one);
    loop_detector_release(&many);
    free(t.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_rounds), cmocka_unit_test(test_counting_rows), cmocka_unit_test(test_other_boxes),
        cmocka_unit_test(test_prose),        cmocka_unit_test(test_tables),        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_boxes),        cmocka_unit_test(test_increments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
