/* fathom ocr: pages to Markdown or JSON. */
#include "command.h"
#include "interrupt.h"
#include "ocr_options.h"
#include "output.h"
#include "page_json.h"
#include "stream.h"
#include "terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The whole run, and the file that is being read. */
struct job {
    const struct ocr_options *options;
    struct terminal terminal;
    struct output out;
    struct stream stream;
    struct json line;
    const char *file;
    bool file_begun;     /* something of this file was written */
    bool anything_begun; /* something of any file was          */
    bool page_begun;     /* something of this page was         */
    size_t n_characters; /* generated for this page            */
    bool page_failed;    /* a page of this file was said to be failed */
    bool page_told;      /* a page of this file was handed over */
    bool cut;            /* an interrupt ended the page at hand */
    bool failed;         /* anything did                        */
    bool keep;           /* there is something worth keeping    */
};

static bool is_markdown(const struct job *job) { return !job->options->json; }

/* Text is shown where it arises, so a progress line may share the screen only until the page's first text. */
static bool shares_screen(const struct job *job) { return job->out.is_terminal && is_markdown(job); }

/* A page follows: an empty line after the one before, and the file's name where there are several files. '>' cannot
 * stand in the name, lest it end the comment. */
static void begin_page(struct job *job)
{
    if (job->page_begun)
        return;
    if (job->anything_begun)
        output_write(&job->out, "\n", 1);
    if (!job->file_begun && job->options->n_files > 1 && !job->options->no_header) {
        output_write(&job->out, "<!-- ", 5);
        for (const char *c = job->file; *c;) {
            size_t plain = strcspn(c, ">\n"); /* whole characters: a terminal gets them so */
            output_write(&job->out, c, plain);
            c += plain;
            if (*c)
                output_write(&job->out, *c == '>' ? "&gt;" : "?", *c == '>' ? 4 : 1);
            c += *c != '\0';
        }
        output_write(&job->out, " -->\n\n", 6);
    }
    job->page_begun = job->file_begun = job->anything_begun = true;
}

static void write_text(struct job *job, const char *text, size_t n)
{
    if (n == 0)
        return;
    if (shares_screen(job))
        terminal_clear(&job->terminal);
    begin_page(job);
    output_write(&job->out, text, n);
}

/* Whether the page at hand has to end. */
static bool interrupted(struct job *job)
{
    job->cut = job->cut || interrupt_signal();
    return job->cut;
}

static bool on_stage(void *user, const char *stage, size_t done, size_t total)
{
    struct job *job = user;
    if (!(shares_screen(job) && job->page_begun)) {
        if (total)
            terminal_progress(&job->terminal, "%s: %s %zu/%zu", job->file, stage, done, total);
        else
            terminal_progress(&job->terminal, "%s: %s, %zu characters", job->file, stage, done);
    }
    return !interrupted(job);
}

static bool on_text(void *user, const char *raw, size_t n)
{
    struct job *job = user;
    for (size_t i = 0; i < n; i++)
        job->n_characters += ((unsigned char)raw[i] & 0xc0) != 0x80;
    on_stage(job, "decode", job->n_characters, 0);
    if (is_markdown(job) && !job->options->locate) {
        const char *text = stream_push(&job->stream, raw, n, &n);
        write_text(job, text, n);
        output_flush(&job->out);
    }
    return !job->out.error && !interrupted(job);
}

/* The answer to locate: its Markdown is empty, for all of it is tags. */
static void write_boxes(struct job *job, const struct fathom_page *page)
{
    begin_page(job);
    for (size_t i = 0; i < page->n_blocks; i++)
        for (size_t b = 0; b < page->blocks[i].n_boxes; b++) {
            const struct fathom_box *box = &page->blocks[i].boxes[b];
            text_clear(&job->line.text);
            text_add_format(&job->line.text, "%d %d %d %d %s\n", box->x0, box->y0, box->x1, box->y1,
                            page->blocks[i].label);
            if (!job->line.text.failed)
                output_write(&job->out, job->line.text.bytes, job->line.text.n);
        }
}

static void finish_markdown(struct job *job, const struct fathom_page *page)
{
    const char *final = job->options->raw ? page->raw : page->markdown, *rest;
    if (job->cut && !job->page_begun && !*final)
        return; /* nothing but a header would come */
    if (job->options->locate && !job->options->raw) {
        write_boxes(job, page);
        return;
    }
    switch (stream_finish(&job->stream, final, &rest)) {
    case STREAM_MORE: write_text(job, rest, strlen(rest)); break;
    case STREAM_LESS: break;
    case STREAM_REVISED:
        if (page->status == FATHOM_PAGE_LOOPED)
            break; /* cut within a tag */
        output_end_line(&job->out);
        terminal_error(&job->terminal, "'%s': the text was revised; the last version of page %zu counts", job->file,
                       page->number);
        write_text(job, final, strlen(final));
        break;
    }
    begin_page(job);
    output_end_line(&job->out);
}

/* Writes the JSON line that was made and forgets it. */
static void write_json_line(struct job *job, struct output *out)
{
    text_add(&job->line.text, "\n", 1);
    if (job->line.text.failed) {
        terminal_error(&job->terminal, "'%s': out of memory", job->file);
        job->failed = true;
    } else {
        output_write(out, job->line.text.bytes, job->line.text.n);
    }
    text_clear(&job->line.text);
    job->line.separate = false;
}

static void say_how_it_ended(struct job *job, const struct fathom_page *page)
{
    const struct fathom_stats *s = &page->stats;
    switch (page->status) {
    case FATHOM_PAGE_TRUNCATED:
        if (job->out.error)
            break; /* it was us who cut it */
        if (job->cut) {
            terminal_error(&job->terminal, "'%s': page %zu of %zu was cut by %s", job->file, page->number,
                           page->n_pages ? page->n_pages : 1, interrupt_name());
            break;
        }
        terminal_error(&job->terminal, "'%s': page %zu is truncated: the limit of %zu tokens came first", job->file,
                       page->number, s->n_output_tokens);
        break;
    case FATHOM_PAGE_LOOPED:
        terminal_error(&job->terminal, "'%s': page %zu looped: its text repeated itself and was cut", job->file,
                       page->number);
        break;
    case FATHOM_PAGE_FAILED:
        terminal_file_error(&job->terminal, job->file, page->number, &page->err);
        job->page_failed = job->failed = true;
        break;
    case FATHOM_PAGE_OK:
    case FATHOM_PAGE_RETRIED: break;
    }
    if (page->status != FATHOM_PAGE_FAILED && !job->out.error)
        terminal_note(&job->terminal, "%s: %zu tokens; vision %.2f s, prefill %.2f s, decode %.2f s, %.1f tokens/s",
                      job->file, s->n_output_tokens, s->vision_ms / 1e3, s->prefill_ms / 1e3, s->decode_ms / 1e3,
                      decode_tok_s(s));
}

static bool on_page(void *user, const struct fathom_page *page)
{
    struct job *job = user;
    job->page_told = true;
    job->keep = job->keep || (page->status != FATHOM_PAGE_FAILED && !(job->cut && !*page->raw)) || !is_markdown(job);
    terminal_clear(&job->terminal);
    if (!is_markdown(job)) {
        page_json(&job->line, job->file, page);
        write_json_line(job, &job->out);
    } else if (page->status != FATHOM_PAGE_FAILED) {
        finish_markdown(job, page);
    } else {
        output_end_line(&job->out);
    }
    output_flush(&job->out);
    say_how_it_ended(job, page);
    if (job->options->stats) {
        struct output errors = {.file = stderr};
        page_json_stats(&job->line, job->file, page);
        write_json_line(job, &errors);
    }
    stream_reset(&job->stream);
    job->page_begun = false;
    job->n_characters = 0;
    return !job->out.error && !interrupt_signal();
}

static void fail_file(struct job *job, const struct fathom_err *err)
{
    terminal_file_error(&job->terminal, job->file, 0, err);
    job->failed = true;
    if (!is_markdown(job)) {
        job->keep = true;
        page_json_failure(&job->line, job->file, err);
        write_json_line(job, &job->out);
        output_flush(&job->out);
    }
}

static void read_file(struct job *job, struct engine *engine, const char *file)
{
    static const struct fathom_err no_stdin = {
        FATHOM_EUNSUPPORTED, "standard input cannot be read; name a file, or ./- for a file of that name"};
    struct fathom_callbacks callbacks = {.user = job, .on_stage = on_stage, .on_text = on_text, .on_page = on_page};
    struct fathom_err err = {0};
    job->file = file;
    job->file_begun = job->page_begun = job->page_failed = job->page_told = job->cut = false;
    job->n_characters = 0;
    stream_reset(&job->stream);
    if (strcmp(file, "-") == 0) {
        fail_file(job, &no_stdin);
        return;
    }
    enum fathom_status status = fathom_read_file(engine->context, file, &job->options->read, &callbacks, &err);
    terminal_clear(&job->terminal);
    if (job->page_begun) /* the page was broken off */
        output_end_line(&job->out);
    output_flush(&job->out);
    bool stopped = job->out.error || (status == FATHOM_ECANCELLED && job->page_told);
    if (status == FATHOM_ECANCELLED)
        snprintf(err.message, sizeof err.message, "stopped by %s before its first page", interrupt_name());
    if (status != FATHOM_OK && !stopped && !job->page_failed)
        fail_file(job, &err);
}

/* Whether writing to path would destroy a file that is to be read. */
static bool is_input(const struct ocr_options *o, const char *path)
{
    struct stat output, input;
    if (stat(path, &output) != 0)
        return false;
    for (size_t i = 0; i < o->n_files; i++)
        if (stat(o->files[i], &input) == 0 && input.st_dev == output.st_dev && input.st_ino == output.st_ino)
            return true;
    return false;
}

/* After an interrupt. */
static void say_what_is_left(const struct job *job, size_t n_unread)
{
    const char *output = job->options->output;
    if (n_unread)
        print_error("stopped by %s: %zu file%s left unread", interrupt_name(), n_unread, n_unread == 1 ? "" : "s");
    if (output && job->keep)
        print_error("'%s' holds the text so far", output);
    else if (output)
        print_error("'%s' is left alone: no text was read", output);
}

static int run(const struct ocr_options *options, struct engine *engine)
{
    struct job job = {.options = options, .terminal = terminal_init(options->quiet), .stream.raw = options->raw};
    if (options->output && is_input(options, options->output)) {
        print_error("'%s': is an input file too, and will not be overwritten", options->output);
        return EXIT_FAILED;
    }
    if (!output_open(&job.out, options->output))
        return interrupt_signal() ? EXIT_SIGNAL + interrupt_signal() : EXIT_FAILED;
    size_t n_read = 0;
    while (n_read < options->n_files && !job.out.error && !interrupt_signal())
        read_file(&job, engine, options->files[n_read++]);
    bool written = output_close(&job.out, job.keep);
    if (written && interrupt_signal())
        say_what_is_left(&job, options->n_files - n_read);
    stream_free(&job.stream);
    text_free(&job.line.text);
    if (interrupt_signal())
        return EXIT_SIGNAL + interrupt_signal();
    return written && !job.failed ? EXIT_DONE : EXIT_FAILED;
}

int command_ocr(int argc, char **argv)
{
    struct ocr_options options;
    struct engine engine;
    ocr_options_parse(&options, argc, argv);
    int status = EXIT_FAILED;
    if (engine_open(&engine, &options.engine)) {
        interrupt_setup();
        status = run(&options, &engine);
        engine_close(&engine);
    }
    ocr_options_free(&options);
    return status;
}
