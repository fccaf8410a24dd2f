/* Tells when a page's output repeats itself without end, and how much of it is worth keeping. */
#ifndef FATHOM_ENGINE_LOOP_DETECTOR_H
#define FATHOM_ENGINE_LOOP_DETECTOR_H

#include <stdbool.h>
#include <stddef.h>

/* The output in words: runs of letters, numbers, tags, other characters. Zero it to start. */
struct loop_detector {
    struct loop_word *words; /* owned */
    size_t n, capacity;
    size_t n_read;             /* bytes of the text that are in words */
    bool in_boxes, no_box_yet; /* between <|det|> and <|/det|>; no number of them came yet */
    bool failed;               /* out of memory: nothing is found     */
};
void loop_detector_release(struct loop_detector *d); /* a zeroed one is fine */

/* text: the whole output so far, n bytes, which has only grown since the last call. Returns 0, or, when it loops, how many
 * bytes of it to keep: what came before, and the first round. A loop is an end of the output that consists of
 *
 *   four or more equal rounds of up to 1024 words, 256 words in all, without table cells; or
 *   rounds that are equal but for their numbers, which stand still or count in equal steps (a few slips allowed), also
 *   cells, as many as no page has room for: 128 short rows, 16 paragraphs; or
 *   the same text in other boxes, eight of which are impossible: empty, outside the page, or on top of earlier ones.
 *
 * So a form with fifty empty rows is none, nor is a long table of numbers, whose numbers do not count. */
size_t loop_detect(struct loop_detector *d, const char *text, size_t n);

#endif
