#include "live.h"

#include "interrupt.h"
#include "stream.h"

#include <stdio.h>
#include <string.h>

/* The file at hand. */
struct live {
    struct session *session;
    struct stream stream;
    const char *file;
    bool file_begun;     /* something of this file was written        */
    bool anything_begun; /* something of any file was                 */
    bool page_begun;     /* something of this page was                */
    bool again;          /* this page is being read once more         */
    bool page_told;      /* a page of this file was handed over       */
    size_t n_characters; /* generated for this page                   */
};

/* A page follows: an empty line after the one before, and the file's name where there are several files. '>' cannot
 * stand in the name, lest it end the comment. */
static void begin_page(struct live *l)
{
    if (l->page_begun)
        return;
    if (l->anything_begun)
        output_write(&l->session->out, "\n", 1);
    if (!l->file_begun && l->session->inputs->n > 1 && !l->session->options->no_header) {
        output_write(&l->session->out, "<!-- ", 5);
        for (const char *c = l->file; *c;) {
            size_t plain = strcspn(c, ">\n"); /* whole characters: a terminal gets them so */
            output_write(&l->session->out, c, plain);
            c += plain;
            if (*c)
                output_write(&l->session->out, *c == '>' ? "&gt;" : "?", *c == '>' ? 4 : 1);
            c += *c != '\0';
        }
        output_write(&l->session->out, " -->\n\n", 6);
    }
    l->page_begun = l->file_begun = l->anything_begun = true;
}

static void write_text(struct live *l, const char *text, size_t n)
{
    if (n == 0)
        return;
    if (l->session->out.is_terminal)
        terminal_clear(&l->session->report.terminal);
    begin_page(l);
    output_write(&l->session->out, text, n);
}

/* Text that another attempt may replace is shown to people, who are told, but not given to a file or a pipe. */
static bool shows_text(const struct live *l)
{
    const struct ocr_options *o = l->session->options;
    return !o->locate && !l->again && (l->session->out.is_terminal || o->read.no_retry);
}

/* Text is shown where it arises, so a progress line may share the screen only until the page's first text, or when the
 * page is read once more. */
static bool on_stage(void *user, const char *stage, size_t done, size_t total)
{
    struct live *l = user;
    if (!(l->session->out.is_terminal && l->page_begun) || l->again)
        report_stage(&l->session->report, stage, done, total);
    return !session_interrupted(l->session);
}

static bool on_text(void *user, const char *raw, size_t n)
{
    struct live *l = user;
    for (size_t i = 0; i < n; i++)
        l->n_characters += ((unsigned char)raw[i] & 0xc0) != 0x80;
    on_stage(l, "decode", l->n_characters, 0);
    if (shows_text(l)) {
        const char *text = stream_push(&l->stream, raw, n, &n);
        write_text(l, text, n);
        output_flush(&l->session->out);
    }
    return !l->session->out.error && !session_interrupted(l->session);
}

static bool on_attempt(void *user, const char *what)
{
    struct live *l = user;
    struct session *s = l->session;
    terminal_clear(&s->report.terminal);
    if (l->page_begun && !l->again)
        output_end_line(&s->out);
    output_flush(&s->out);
    terminal_note(&s->report.terminal, "%s: no end was found, reading the page again: %s", l->file, what);
    l->again = true;
    l->n_characters = 0;
    return !s->out.error && !session_interrupted(s);
}

/* The answer to locate: its Markdown is empty, for all of it is tags. */
static void write_boxes(struct live *l, const struct fathom_page *page)
{
    begin_page(l);
    for (size_t i = 0; i < page->n_blocks; i++)
        for (size_t b = 0; b < page->blocks[i].n_boxes; b++) {
            const struct fathom_box *box = &page->blocks[i].boxes[b];
            char numbers[64];
            int n = snprintf(numbers, sizeof numbers, "%d %d %d %d ", box->x0, box->y0, box->x1, box->y1);
            output_write(&l->session->out, numbers, (size_t)n);
            output_write(&l->session->out, page->blocks[i].label, strlen(page->blocks[i].label));
            output_write(&l->session->out, "\n", 1);
        }
}

static void finish_page(struct live *l, const struct fathom_page *page)
{
    struct session *s = l->session;
    const char *final = s->options->raw ? page->raw : page->markdown, *rest;
    if (s->cut && !l->page_begun && !*final)
        return; /* nothing but a header would come */
    if (s->options->locate && !s->options->raw) {
        write_boxes(l, page);
        return;
    }
    switch (stream_finish(&l->stream, final, &rest)) {
    case STREAM_MORE: write_text(l, rest, strlen(rest)); break;
    case STREAM_LESS: break;
    case STREAM_REVISED:
        if (page->status == FATHOM_PAGE_LOOPED && page->n_attempts <= 1)
            break; /* cut within a tag */
        output_end_line(&s->out);
        terminal_error(&s->report.terminal, "'%s': the text was revised; the last version of page %zu counts", l->file,
                       page->number);
        write_text(l, final, strlen(final));
        break;
    }
    begin_page(l);
    output_end_line(&s->out);
}

static bool on_page(void *user, const struct fathom_page *page)
{
    struct live *l = user;
    struct session *s = l->session;
    l->page_told = true;
    s->keep = s->keep || (page->status != FATHOM_PAGE_FAILED && !(s->cut && !*page->raw));
    terminal_clear(&s->report.terminal);
    if (page->status != FATHOM_PAGE_FAILED)
        finish_page(l, page);
    else
        output_end_line(&s->out);
    output_flush(&s->out);
    if (!s->out.error)
        report_page(&s->report, page, s->cut);
    session_stats(s, l->file, page);
    stream_reset(&l->stream);
    l->page_begun = l->again = false;
    l->n_characters = 0;
    return !s->out.error && !interrupt_signal();
}

static void read_file(struct live *l, const char *file)
{
    struct session *s = l->session;
    struct fathom_callbacks callbacks = {
        .user = l, .on_stage = on_stage, .on_text = on_text, .on_page = on_page, .on_attempt = on_attempt};
    struct fathom_err err = {0};
    l->file = file;
    l->file_begun = l->page_begun = l->page_told = l->again = s->cut = false;
    l->n_characters = 0;
    stream_reset(&l->stream);
    report_file(&s->report, file);
    enum fathom_status status = session_read_file(s, file, &s->options->read, &callbacks, &err);
    terminal_clear(&s->report.terminal);
    if (l->page_begun) /* the page was broken off */
        output_end_line(&s->out);
    output_flush(&s->out);
    if (status != FATHOM_OK && !s->out.error && !(status == FATHOM_ECANCELLED && l->page_told))
        report_file_failed(&s->report, &err);
    report_file_done(&s->report);
}

size_t live_read(struct session *s)
{
    struct live l = {.session = s, .stream.raw = s->options->raw};
    const struct ocr_options *o = s->options;
    size_t n_unread = 0;
    for (size_t i = 0; i < s->inputs->n; i++) {
        if (i % o->n_shards != o->shard)
            continue;
        if (s->out.error || interrupt_signal())
            n_unread++;
        else
            read_file(&l, s->inputs->files[i].path);
    }
    stream_free(&l.stream);
    return n_unread;
}
