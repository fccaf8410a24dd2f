/* What the engine does with a page's output and a document's choice of pages, any bytes being either: loops are found
 * within the text and alike however it grows, halves join without losing text, pages are chosen in ascending order. */
#include "document/halves.h"
#include "document/page_range.h"
#include "engine/loop_detector.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static void try_pages(const char *text)
{
    struct page_range range;
    size_t n = 0, last = 0;
    if (page_range_parse(&range, text, 50, NULL) == FATHOM_OK) {
        for (size_t page = page_range_next(&range, 0); page; page = page_range_next(&range, page), n++) {
            if (page <= last || page > 50)
                __builtin_trap();
            last = page;
        }
        if (n == 0 || n != page_range_count(&range))
            __builtin_trap();
    }
    page_range_free(&range);
    page_range_parse(&range, text, 0, NULL);
    page_range_free(&range);
}

static void try_loops(const char *text, size_t n)
{
    struct loop_detector whole = {0}, parts = {0};
    size_t kept = loop_detect(&whole, text, n);
    for (size_t at = 0; at < n; at += 1 + n / 16)
        loop_detect(&parts, text, at);
    size_t again = loop_detect(&parts, text, n);
    if (kept > n || again > n || (kept == 0 && n == 0 && again))
        __builtin_trap();
    loop_detector_release(&whole);
    loop_detector_release(&parts);
}

static void try_halves(char *text, size_t n)
{
    struct strbuf joined = {0};
    char cut = text[n / 2];
    text[n / 2] = 0;
    char *lower = strdup(text + n / 2 + (n > 0));
    if (lower && halves_join(&joined, text, lower, 70, 200, NULL) == FATHOM_OK &&
        memchr(strbuf_text(&joined), 0, joined.n))
        __builtin_trap();
    strbuf_free(&joined);
    free(lower);
    text[n / 2] = cut;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    try_pages(text);
    try_loops(text, size);
    try_halves(text, size);
    free(text);
    return 0;
}
