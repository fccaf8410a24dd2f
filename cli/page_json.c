#include "page_json.h"

double decode_tok_s(const struct fathom_stats *stats)
{
    return stats->decode_ms > 0 ? (double)stats->n_output_tokens / stats->decode_ms * 1e3 : 0;
}

static bool add(void *user, const char *text, size_t n)
{
    struct text *line = user;
    text_add(line, text, n);
    return !line->failed;
}

/* One page as a document of its own; the line feed is left to the caller. */
static void write_line(struct json *j, enum fathom_format format, const char *file, const struct fathom_page *page)
{
    struct fathom_writer_options options = {.file = file};
    struct fathom_writer *writer;
    j->text.failed = j->text.failed || fathom_writer_open(format, &options, add, &j->text, &writer, NULL) != FATHOM_OK;
    if (j->text.failed)
        return;
    j->text.failed = fathom_writer_page(writer, page, NULL) != FATHOM_OK;
    fathom_writer_discard(writer);
    if (!j->text.failed && j->text.n && j->text.bytes[j->text.n - 1] == '\n')
        j->text.bytes[--j->text.n] = 0;
}

void page_json(struct json *j, const char *file, const struct fathom_page *page)
{
    write_line(j, FATHOM_JSON_LINES, file, page);
}

void page_json_failure(struct json *j, const char *file, const struct fathom_err *err)
{
    write_line(j, FATHOM_JSON_LINES, file, &(struct fathom_page){.status = FATHOM_PAGE_FAILED, .err = *err});
}

void page_json_stats(struct json *j, const char *file, const struct fathom_page *page)
{
    write_line(j, FATHOM_STATS, file, page);
}
