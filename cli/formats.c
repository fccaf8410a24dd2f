#include "formats.h"

#include <string.h>

const struct format formats[N_FORMATS] = {
    {FATHOM_MARKDOWN, "md", ".md", .follows = true, .is_text = true},
    {FATHOM_JSON, "json", ".json", .follows = true, .is_text = true},
    {FATHOM_JSON_LINES, "jsonl", ".jsonl", .follows = true, .is_text = true},
    {FATHOM_HTML, "html", ".html", .needs_pixels = true, .is_text = true},
    {FATHOM_TEXT, "txt", ".txt", .follows = true, .is_text = true},
    {FATHOM_HOCR, "hocr", ".hocr", .is_text = true},
    {FATHOM_ALTO, "alto", ".alto.xml", .is_text = true},
    {FATHOM_SEARCHABLE_PDF, "pdf", ".pdf", .needs_pixels = true},
};

const char *formats_names(void) { return "md, json, jsonl, html, txt, hocr, alto and pdf"; }

static unsigned parse_one(const char *name, size_t n)
{
    for (unsigned i = 0; i < N_FORMATS; i++)
        if (strlen(formats[i].name) == n && memcmp(formats[i].name, name, n) == 0)
            return 1u << i;
    return 0;
}

unsigned formats_parse(const char *list)
{
    unsigned set = 0;
    for (const char *s = list;; s++) {
        size_t n = strcspn(s, ",");
        unsigned one = parse_one(s, n);
        if (!one)
            return 0;
        set |= one;
        s += n;
        if (!*s)
            return set;
    }
}

bool formats_follow(unsigned set)
{
    bool follow = true;
    for (unsigned i = 0; i < N_FORMATS; i++)
        follow = follow && (formats[i].follows || !(set & 1u << i));
    return follow;
}

bool formats_need_pixels(unsigned set)
{
    bool need = false;
    for (unsigned i = 0; i < N_FORMATS; i++)
        need = need || (formats[i].needs_pixels && set & 1u << i);
    return need;
}

bool formats_are_text(unsigned set)
{
    bool text = true;
    for (unsigned i = 0; i < N_FORMATS; i++)
        text = text && (formats[i].is_text || !(set & 1u << i));
    return text;
}
