/* Turns the model's output into Markdown while it is being generated: hands on what no later text can change, and
 * nothing else. The library's Markdown of the finished page decides; this only runs ahead of it. */
#ifndef FATHOM_CLI_STREAM_H
#define FATHOM_CLI_STREAM_H

#include "text.h"

struct stream {
    bool raw;         /* hand everything on as it is, tags and all                    */
    struct text text; /* the model's output so far                                    */
    size_t done;      /* bytes of it that are dealt with                              */
    struct text sent; /* what was handed on so far                                    */
    size_t n_images;  /* picture items seen                                           */
    bool held;        /* something came whose Markdown only the finished page tells   */
};

/* Takes the next piece of output. Returns the newly certain text (valid until the next call) and its length. */
const char *stream_push(struct stream *s, const char *bytes, size_t n, size_t *n_certain);

/* How the finished page's text relates to what was handed on. */
enum stream_end {
    STREAM_MORE,    /* *rest is still to be written, perhaps nothing                           */
    STREAM_LESS,    /* more was handed on than the page kept: a repetition was cut             */
    STREAM_REVISED, /* the page's text is another one: the model was asked again               */
};
enum stream_end stream_finish(const struct stream *s, const char *final, const char **rest);

/* Forgets the page, ready for the next. */
void stream_reset(struct stream *s);
void stream_free(struct stream *s);

#endif
