#include "report.h"

#include "interrupt.h"
#include "page_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LINE_MS 30000.0  /* between lines about one document where there is no terminal */
#define MAX_FAILURES 100 /* that the summary names again                                 */
#define BAR_WIDTH 20

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

void report_init(struct report *r, size_t n_files, const char *pages, bool is_job, bool quiet)
{
    *r = (struct report){.terminal = terminal_init(quiet), .n_files = n_files, .pages = pages};
    r->is_job = is_job && !quiet;
    r->start_ms = r->line_ms = now_ms();
}

void report_free(struct report *r) { text_free(&r->failures); }

void report_file(struct report *r, const char *path)
{
    r->file = path;
    r->page = r->n_pages = r->file_sought = r->file_failed = 0;
}

static void learn_pages(struct report *r, size_t n_pages)
{
    if (r->n_pages || n_pages == 0)
        return;
    r->n_pages = n_pages;
    for (size_t page = 1; page <= n_pages; page++)
        r->file_sought += page_set_has(r->pages, page);
}

void report_page_begins(struct report *r, const struct fathom_page *page)
{
    learn_pages(r, page->n_pages ? page->n_pages : 1);
    r->page = page->number;
}

static size_t n_failed(const struct report *r) { return r->by_status[FATHOM_PAGE_FAILED]; }

static size_t n_done(const struct report *r)
{
    size_t n = 0;
    for (int status = 0; status <= FATHOM_PAGE_FAILED; status++)
        n += r->by_status[status];
    return n;
}

/* How many pages there will be, if the files to come are like those that were begun. */
static double expected_pages(const struct report *r)
{
    double begun = (double)r->n_files_done + (r->file_sought != 0), n = (double)(r->n_sought + r->file_sought);
    return begun > 0 ? n / begun * (double)r->n_files : 0;
}

static double pages_per_ms(const struct report *r)
{
    double elapsed = now_ms() - r->start_ms;
    return elapsed > 0 ? (double)r->n_read / elapsed : 0;
}

static void add_duration(char *s, size_t size, double ms)
{
    unsigned long seconds = (unsigned long)(ms / 1e3 + 0.5), minutes = seconds / 60;
    if (minutes >= 60)
        snprintf(s, size, "%lu:%02lu:%02lu", minutes / 60, minutes % 60, seconds % 60);
    else
        snprintf(s, size, "%lu:%02lu", minutes, seconds % 60);
}

/* "12 of about 60 pages, 1 failed, 4.2 pages/min, ETA 3:10" */
static void account(const struct report *r, char *s, size_t size)
{
    double expected = expected_pages(r), rate = pages_per_ms(r), left = expected - (double)n_done(r);
    bool exact = r->n_files_done + 1 >= r->n_files;
    char failed[40] = "", eta[40] = "", of[40] = "";
    if (n_failed(r))
        snprintf(failed, sizeof failed, ", %zu failed", n_failed(r));
    if (expected > 0)
        snprintf(of, sizeof of, " of %s%.0f", exact ? "" : "about ", expected);
    if (rate > 0 && left > 0) {
        char time[30];
        add_duration(time, sizeof time, left / rate);
        snprintf(eta, sizeof eta, ", ETA %s", time);
    }
    snprintf(s, size, "%zu%s pages%s, %.1f pages/min%s", n_done(r), of, failed, rate * 60e3, eta);
}

static void draw_bar(const struct report *r, char bar[BAR_WIDTH + 3])
{
    double expected = expected_pages(r), share = expected > 0 ? (double)n_done(r) / expected : 0;
    int n = share >= 1 ? BAR_WIDTH : (int)(share * BAR_WIDTH);
    bar[0] = '[';
    memset(bar + 1, '=', (size_t)n);
    memset(bar + 1 + n, ' ', (size_t)(BAR_WIDTH - n));
    memcpy(bar + 1 + BAR_WIDTH, "]", 2);
}

void report_stage(struct report *r, const char *stage, size_t done, size_t total)
{
    char within[80], line[200], bar[BAR_WIDTH + 3];
    if (!r->terminal.draws)
        return;
    if (total)
        snprintf(within, sizeof within, "%s %zu/%zu", stage, done, total);
    else
        snprintf(within, sizeof within, "%s, %zu characters", stage, done);
    if (r->n_files == 1 && r->n_pages <= 1) {
        terminal_progress(&r->terminal, "%s: %s", r->file, within);
        return;
    }
    account(r, line, sizeof line);
    draw_bar(r, bar);
    terminal_progress(&r->terminal, "%s %s; %s, page %zu: %s", bar, line, r->file, r->page, within);
}

/* Says what failed, and remembers it for the summary. page 0: the whole file. */
static void fail_at(struct report *r, size_t page, const struct fathom_err *err)
{
    char *text = file_error(r->file, page, err);
    terminal_error(&r->terminal, "%s", text ? text : "out of memory");
    if (text && r->n_failures++ < MAX_FAILURES && r->is_job)
        text_add(&r->failures, text, strlen(text) + 1);
    free(text);
}

static void plain_line(struct report *r)
{
    char line[200];
    if (!r->is_job || r->terminal.draws || now_ms() - r->line_ms < LINE_MS)
        return;
    r->line_ms = now_ms();
    account(r, line, sizeof line);
    print_info("%s: page %zu of %zu; %s", r->file, r->page, r->n_pages, line);
}

static double decode_tok_s(const struct fathom_stats *s)
{
    return s->decode_ms > 0 ? (double)s->n_output_tokens / s->decode_ms * 1e3 : 0;
}

void report_page(struct report *r, const struct fathom_page *page, bool cut)
{
    const struct fathom_stats *s = &page->stats;
    report_page_begins(r, page);
    if (cut) {
        terminal_error(&r->terminal, "'%s': page %zu of %zu was cut by %s", r->file, page->number, r->n_pages,
                       interrupt_name());
        return;
    }
    r->by_status[page->status]++;
    r->n_read++;
    switch (page->status) {
    case FATHOM_PAGE_TRUNCATED:
        terminal_error(&r->terminal, "'%s': page %zu is truncated: the limit of %zu tokens came first", r->file,
                       page->number, s->n_output_tokens);
        break;
    case FATHOM_PAGE_LOOPED:
        terminal_error(&r->terminal, "'%s': page %zu looped: its text repeated itself and was cut", r->file,
                       page->number);
        break;
    case FATHOM_PAGE_FAILED:
        r->file_failed++;
        fail_at(r, r->n_pages > 1 ? page->number : 0, &page->err);
        break;
    case FATHOM_PAGE_OK:
    case FATHOM_PAGE_RETRIED: break;
    }
    if (page->status != FATHOM_PAGE_FAILED && !r->is_job)
        terminal_note(&r->terminal, "%s: %zu tokens; vision %.2f s, prefill %.2f s, decode %.2f s, %.1f tokens/s",
                      r->file, s->n_output_tokens, s->vision_ms / 1e3, s->prefill_ms / 1e3, s->decode_ms / 1e3,
                      decode_tok_s(s));
    plain_line(r);
}

void report_kept(struct report *r, size_t n_pages, const size_t by_status[FATHOM_PAGE_FAILED + 1])
{
    for (int status = 0; status <= FATHOM_PAGE_FAILED; status++)
        r->by_status[status] += by_status[status];
    r->file_failed += by_status[FATHOM_PAGE_FAILED];
    learn_pages(r, n_pages);
    if (by_status[FATHOM_PAGE_FAILED])
        fail_at(r, 0, &(struct fathom_err){FATHOM_EIO, "pages failed in an earlier run (--retry-failed)"});
}

void report_file_failed(struct report *r, const struct fathom_err *err)
{
    r->n_files_failed++;
    fail_at(r, 0, err);
}

void report_file_done(struct report *r)
{
    char line[200], failed[40] = "";
    r->n_files_done++;
    r->n_sought += r->file_sought;
    if (r->file_failed)
        snprintf(failed, sizeof failed, ", %zu of them failed", r->file_failed);
    if (r->is_job && !r->terminal.draws) {
        size_t pages = r->file_sought;
        r->file_sought = 0;
        r->line_ms = now_ms();
        account(r, line, sizeof line);
        print_info("%s: %zu page%s%s; %zu of %zu files, %s", r->file, pages, pages == 1 ? "" : "s", failed,
                   r->n_files_done, r->n_files, line);
    }
    r->file_sought = 0;
}

void report_summary(struct report *r)
{
    char duration[30];
    terminal_clear(&r->terminal);
    if (!r->is_job)
        return;
    double elapsed = now_ms() - r->start_ms;
    add_duration(duration, sizeof duration, elapsed);
    print_info("%zu of %zu files, %zu of them failed; %zu pages: %zu ok, %zu retried, %zu truncated, %zu looped, "
               "%zu failed; %zu read in %s, %.1f pages/min",
               r->n_files_done, r->n_files, r->n_files_failed, n_done(r), r->by_status[FATHOM_PAGE_OK],
               r->by_status[FATHOM_PAGE_RETRIED], r->by_status[FATHOM_PAGE_TRUNCATED], r->by_status[FATHOM_PAGE_LOOPED],
               n_failed(r), r->n_read, duration, pages_per_ms(r) * 60e3);
    if (r->n_failures && !r->failures.failed) {
        print_info("failed:");
        for (const char *line = r->failures.bytes; line < r->failures.bytes + r->failures.n; line += strlen(line) + 1)
            print_info("  %s", line);
        if (r->n_failures > MAX_FAILURES)
            print_info("  and %zu more", r->n_failures - MAX_FAILURES);
    }
}

bool report_has_failures(const struct report *r) { return r->n_files_failed || n_failed(r); }
