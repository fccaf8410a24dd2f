/* The forms of output. */
#ifndef FATHOM_CLI_FORMATS_H
#define FATHOM_CLI_FORMATS_H

#include <fathom.h>
#include <stdbool.h>
#include <stddef.h>

struct format {
    enum fathom_format format;
    const char *name;   /* of --format                                        */
    const char *ending; /* of its files                                       */
    bool follows;       /* documents make sense one behind the other          */
    bool needs_pixels;  /* of every page                                      */
    bool is_text;       /* for a terminal                                     */
};

/* In the order in which they are written. Sets of them are bits, 1 << index. */
enum { N_FORMATS = 8, FORMAT_MARKDOWN = 1 << 0, FORMAT_JSON = 1 << 1, FORMAT_JSON_LINES = 1 << 2 };
extern const struct format formats[N_FORMATS];

/* The set that "md,json" names; 0 when a word is no format's name. */
unsigned formats_parse(const char *list);

/* "md, json and txt" */
const char *formats_names(void);

/* Whether each of a set follows, or is text, or any needs pixels. */
bool formats_follow(unsigned set);
bool formats_are_text(unsigned set);
bool formats_need_pixels(unsigned set);

#endif
