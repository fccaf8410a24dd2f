#include "stream.h"

#include <stdio.h>
#include <string.h>

#define REF "<|ref|>"
#define REF_TO_DET "<|/ref|><|det|>"
#define DET_END "<|/det|>"
#define IMAGE "<|ref|>image<|/ref|>"

enum match { NO, PARTLY, WHOLE };

/* Whether text begins with literal, or is a shorter beginning of it. */
static enum match match(const char *text, size_t n, const char *literal)
{
    size_t length = strlen(literal);
    if (memcmp(text, literal, n < length ? n : length) != 0)
        return NO;
    return n < length ? PARTLY : WHOLE;
}

static bool is_space(char c) { return c == ' ' || (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x1f); }

/* The length of the space character at text, which the page loses at both its ends; 0 if it is none. */
static size_t space_length(const char *text, size_t n)
{
    static const char *const wide[] = {"\xc2\x85", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003",
                                       "\u2004",   "\u2005", "\u2006", "\u2007", "\u2008", "\u2009", "\u200a",
                                       "\u2028",   "\u2029", "\u202f", "\u205f", "\u3000"};
    if (is_space(*text))
        return 1;
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (match(text, n, wide[i]) == WHOLE)
            return strlen(wide[i]);
    return 0;
}

static size_t spaces_length(const char *text, size_t n)
{
    size_t length = 0;
    for (size_t one; length < n && (one = space_length(text + length, n - length)) > 0;)
        length += one;
    return length;
}

/* Adds to what was handed on. Of Markdown the line ends that tags left behind are dropped: at the beginning, and after
 * two others. */
static void put(struct stream *s, const char *text, size_t n)
{
    if (s->raw)
        text_add(&s->sent, text, n);
    for (size_t i = 0; i < n && !s->raw; i++) {
        size_t at = s->sent.n;
        bool spare = at == 0 || (at >= 2 && s->sent.bytes[at - 1] == '\n' && s->sent.bytes[at - 2] == '\n');
        if (text[i] != '\n' || !spare)
            text_add(&s->sent, text + i, 1);
    }
}

static void send(struct stream *s, const char *text, size_t n)
{
    put(s, text, n);
    s->done += n;
}

/* The length of the layout item that begins at text, 0 if its end has not come yet. */
static size_t item_length(const char *text, size_t n)
{
    const char *label = text + strlen(REF);
    const char *boxes = memmem(label, n - strlen(REF), REF_TO_DET, strlen(REF_TO_DET));
    if (!boxes)
        return 0;
    boxes += strlen(REF_TO_DET);
    const char *end = memmem(boxes, (size_t)(text + n - boxes), DET_END, strlen(DET_END));
    return end ? (size_t)(end - text) + strlen(DET_END) : 0;
}

/* Passes the item over: a picture becomes a link, others vanish. The reference replaces by an item's text, wherever it
 * stands; so an item that came before, or that holds the beginning of another, is left to the finished page. */
static void take_item(struct stream *s, const char *item, size_t n)
{
    const char *label = item + strlen(REF);
    if (memmem(label, n - strlen(REF), REF, strlen(REF)) || memmem(s->text.bytes, s->done, item, n)) {
        s->held = true;
        return;
    }
    if (match(item, n, IMAGE) == WHOLE) {
        char link[64];
        put(s, link, (size_t)snprintf(link, sizeof link, "![](images/%zu.jpg)\n", s->n_images++));
    }
    s->done += n;
}

/* Deals with what stands at s->done. False when the text to come decides. */
static bool step(struct stream *s)
{
    const char *at = s->text.bytes + s->done;
    size_t n = s->text.n - s->done, spaces = spaces_length(at, n);
    if (spaces) {
        if (spaces == n)
            return false; /* perhaps the end of the page */
        if (s->done == 0)
            s->done = spaces;
        else
            send(s, at, spaces);
        return true;
    }
    switch (match(at, n, REF)) {
    case PARTLY: return false;
    case WHOLE: {
        size_t length = item_length(at, n);
        if (length)
            take_item(s, at, length);
        return length && !s->held;
    }
    case NO: break;
    }
    /* Spelled out on a page that has items, but left alone on a page without: the finished page tells. */
    enum match colon = match(at, n, "\\coloneqq"), equals = match(at, n, "\\eqqcolon");
    if (colon != NO || equals != NO) {
        s->held = colon == WHOLE || equals == WHOLE;
        return false;
    }
    size_t plain = 1;
    while (plain < n && at[plain] != '<' && at[plain] != '\\' && !space_length(at + plain, n - plain))
        plain++;
    send(s, at, plain);
    return true;
}

const char *stream_push(struct stream *s, const char *bytes, size_t n, size_t *n_certain)
{
    size_t before = s->sent.n;
    text_add(&s->text, bytes, n);
    if (s->raw && !s->text.failed)
        send(s, bytes, n);
    while (!s->text.failed && !s->held && s->done < s->text.n && step(s))
        ;
    *n_certain = s->sent.n - before;
    return s->sent.bytes ? s->sent.bytes + before : "";
}

enum stream_end stream_finish(const struct stream *s, const char *final, const char **rest)
{
    const char *sent = s->sent.bytes ? s->sent.bytes : "";
    size_t n = strlen(final);
    *rest = "";
    if (n >= s->sent.n && memcmp(final, sent, s->sent.n) == 0) {
        *rest = final + s->sent.n;
        return STREAM_MORE;
    }
    return n < s->sent.n && memcmp(final, sent, n) == 0 ? STREAM_LESS : STREAM_REVISED;
}

void stream_reset(struct stream *s)
{
    text_clear(&s->text);
    text_clear(&s->sent);
    s->done = s->n_images = 0;
    s->held = false;
}

void stream_free(struct stream *s)
{
    text_free(&s->text);
    text_free(&s->sent);
}
