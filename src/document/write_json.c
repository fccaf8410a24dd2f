/* JSON: one object for a document, or one a page and line; docs/page.schema.json is the schema. */
#include "base/json_writer.h"
#include "document/figures.h"
#include "document/kind.h"
#include "document/writer.h"

#include <string.h>
#include <sys/resource.h>

/* The number of the schema; it rises when a field changes its meaning or goes. */
enum { SCHEMA = 2 };

static uint64_t max_rss_bytes(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}

static void stats_members(struct json_writer *j, const struct fathom_stats *s)
{
    json_member_integer(j, "views", s->n_views);
    json_member_integer(j, "prompt_tokens", s->n_prompt_tokens);
    json_member_integer(j, "output_tokens", s->n_output_tokens);
    json_member_number(j, "decode_image_ms", s->decode_image_ms);
    json_member_number(j, "vision_ms", s->vision_ms);
    json_member_number(j, "prefill_ms", s->prefill_ms);
    json_member_number(j, "decode_ms", s->decode_ms);
    json_member_number(j, "ttft_ms", s->decode_image_ms + s->vision_ms + s->prefill_ms);
    json_member_number(j, "tok_s", s->decode_ms > 0 ? (double)s->n_output_tokens / s->decode_ms * 1e3 : 0);
    json_member_integer(j, "arena_peak_bytes", s->arena_peak_bytes);
    json_member_integer(j, "vision_peak_bytes", s->vision_peak_bytes);
    json_member_integer(j, "kv_bytes", s->kv_bytes);
    json_member_integer(j, "packed_bytes", s->packed_bytes);
    json_member_integer(j, "mapped_bytes", s->mapped_bytes);
    json_member_integer(j, "max_rss_bytes", max_rss_bytes());
}

static const char *mode_name(enum fathom_mode mode)
{
    static const char *const names[] = {
        [FATHOM_MODE_DEFAULT] = "default", [FATHOM_MODE_TINY] = "tiny",   [FATHOM_MODE_SMALL] = "small",
        [FATHOM_MODE_BASE] = "base",       [FATHOM_MODE_LARGE] = "large", [FATHOM_MODE_GUNDAM] = "gundam",
    };
    return (size_t)mode < sizeof names / sizeof *names ? names[mode] : "unknown";
}

static void member_bool(struct json_writer *j, const char *key, bool value)
{
    json_key(j, key);
    json_bool(j, value);
}

/* How the pages were read; the password is nobody's business. */
static void options_object(struct json_writer *j, const struct fathom_read_options *o)
{
    json_open(j, '{');
    if (o->prompt)
        json_member_string(j, "prompt", o->prompt);
    json_member_string(j, "mode", mode_name(o->mode));
    json_member_integer(j, "max_tokens", o->max_tokens > 0 ? (uint64_t)o->max_tokens : 0);
    json_member_integer(j, "max_tiles", o->max_tiles > 0 ? (uint64_t)o->max_tiles : 0);
    json_member_integer(j, "ngram", o->ngram > 0 ? (uint64_t)o->ngram : 0);
    json_member_integer(j, "ngram_window", o->ngram_window > 0 ? (uint64_t)o->ngram_window : 0);
    json_member_number(j, "temperature", o->temperature);
    json_member_number(j, "top_p", o->top_p);
    json_member_integer(j, "seed", o->seed);
    member_bool(j, "retry", !o->no_retry);
    if (o->pages)
        json_member_string(j, "pages", o->pages);
    json_member_number(j, "dpi", o->dpi > 0 ? o->dpi : 144);
    json_member_string(j, "alpha", o->alpha == FATHOM_ALPHA_DROP ? "drop" : "white");
    member_bool(j, "icc", !o->ignore_icc);
    json_close(j, '}');
}

/* What a document and a line begin with. */
static void head(struct json_writer *j, const struct fathom_writer *w)
{
    json_open(j, '{');
    json_member_integer(j, "schema", SCHEMA);
    json_member_string(j, "fathom", fathom_version());
    json_member_string(j, "file", w->options.file);
    if (w->options.model)
        json_member_string(j, "model", w->options.model);
    if (w->options.read) {
        json_key(j, "options");
        options_object(j, w->options.read);
    }
}

static void box_arrays(struct json_writer *j, const struct fathom_page *page, const struct fathom_block *block)
{
    json_key(j, "boxes");
    json_open(j, '[');
    for (size_t i = 0; i < block->n_boxes; i++) {
        const struct fathom_box *box = &block->boxes[i];
        const int sides[] = {box->x0, box->y0, box->x1, box->y1};
        json_open(j, '[');
        for (int side = 0; side < 4; side++)
            json_decimal(j, sides[side], 0);
        json_close(j, ']');
    }
    json_close(j, ']');
    json_key(j, "boxes_pt");
    json_open(j, '[');
    for (size_t i = 0; i < block->n_boxes; i++) {
        double sides[4];
        fathom_page_box_pt(page, &block->boxes[i], sides);
        json_open(j, '[');
        for (int side = 0; side < 4; side++)
            json_decimal(j, sides[side], 3);
        json_close(j, ']');
    }
    json_close(j, ']');
}

static void block_array(struct json_writer *j, const struct fathom_writer *w, const struct fathom_page *page)
{
    size_t n_figures = 0;
    json_open(j, '[');
    for (size_t i = 0; i < page->n_blocks; i++) {
        const struct fathom_block *block = &page->blocks[i];
        json_open(j, '{');
        json_member_string(j, "label", block->label);
        json_member_string(j, "kind", kind_name(block_kind(block)));
        json_member_string(j, "text", block->text);
        box_arrays(j, page, block);
        if (label_is_image(block->label, strlen(block->label))) {
            char name[FATHOM_FIGURE_NAME];
            fathom_page_figure_name(page, n_figures++, name);
            if (w->options.figures) {
                struct strbuf path = {0};
                strbuf_addf(&path, "%s%s", w->options.figures, name);
                json_member_string(j, "figure", strbuf_text(&path));
                j->out->failed = j->out->failed || path.failed;
                strbuf_free(&path);
            }
        }
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void attempt_array(struct json_writer *j, const struct fathom_writer *w, const struct fathom_page *page)
{
    json_open(j, '[');
    for (size_t i = 0; i < page->n_attempts; i++) {
        const struct fathom_attempt *attempt = &page->attempts[i];
        json_open(j, '{');
        json_member_string(j, "what", attempt->what ? attempt->what : "");
        json_member_string(j, "status", fathom_page_status_name(attempt->status));
        json_member_integer(j, "tokens", attempt->n_tokens);
        member_bool(j, "chosen", attempt->chosen);
        if (!w->options.no_stats)
            json_member_number(j, "ms", attempt->ms);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void read_members(struct json_writer *j, const struct fathom_writer *w, const struct fathom_page *page)
{
    json_member_number(j, "width", page->width);
    json_member_number(j, "height", page->height);
    if (page->width_pt > 0 && page->height_pt > 0) {
        json_member_number(j, "width_pt", page->width_pt);
        json_member_number(j, "height_pt", page->height_pt);
        json_key(j, "to_document");
        json_open(j, '[');
        for (int i = 0; i < 6; i++)
            json_decimal(j, page->to_document[i], 9);
        json_close(j, ']');
    }
    json_member_string(j, "text", page->markdown ? page->markdown : "");
    json_member_string(j, "raw", page->raw ? page->raw : "");
    json_key(j, "blocks");
    block_array(j, w, page);
}

/* The members of a page, which a '{' or the head comes before, and its '}'. */
static void page_members(struct json_writer *j, const struct fathom_writer *w, const struct fathom_page *page)
{
    json_key(j, "page");
    if (page->number)
        json_integer(j, page->number);
    else
        json_null(j);
    if (page->n_pages)
        json_member_integer(j, "n_pages", page->n_pages);
    json_member_string(j, "status", fathom_page_status_name(page->status));
    if (page->status == FATHOM_PAGE_FAILED)
        json_member_string(j, "error", page->err.message);
    else
        read_members(j, w, page);
    if (page->n_attempts) {
        json_key(j, "attempts");
        attempt_array(j, w, page);
    }
    if (page->text_layer)
        json_member_string(j, "text_layer", page->text_layer);
    if (page->status != FATHOM_PAGE_FAILED && !w->options.no_stats) {
        json_key(j, "stats");
        json_open(j, '{');
        stats_members(j, &page->stats);
        json_close(j, '}');
    }
    json_close(j, '}');
}

static enum fathom_status document_begin(struct fathom_writer *w, struct fathom_err *err)
{
    (void)err;
    struct json_writer j = {.out = &w->out};
    head(&j, w);
    json_key(&j, "pages");
    strbuf_adds(&w->out, "[");
    return FATHOM_OK;
}

static enum fathom_status document_page(struct fathom_writer *w, const struct fathom_page *page, struct fathom_err *err)
{
    (void)err;
    struct json_writer j = {.out = &w->out};
    strbuf_adds(&w->out, w->n_pages ? ",\n" : "\n");
    json_open(&j, '{');
    page_members(&j, w, page);
    return FATHOM_OK;
}

static enum fathom_status document_end(struct fathom_writer *w, struct fathom_err *err)
{
    (void)err;
    strbuf_adds(&w->out, "\n]}\n");
    return FATHOM_OK;
}

static enum fathom_status line(struct fathom_writer *w, const struct fathom_page *page, struct fathom_err *err)
{
    (void)err;
    struct json_writer j = {.out = &w->out};
    head(&j, w);
    page_members(&j, w, page);
    strbuf_adds(&w->out, "\n");
    return FATHOM_OK;
}

static enum fathom_status stats_line(struct fathom_writer *w, const struct fathom_page *page, struct fathom_err *err)
{
    (void)err;
    struct json_writer j = {.out = &w->out};
    json_open(&j, '{');
    json_member_string(&j, "file", w->options.file);
    json_member_integer(&j, "page", page->number);
    json_member_string(&j, "status", fathom_page_status_name(page->status));
    stats_members(&j, &page->stats);
    json_close(&j, '}');
    strbuf_adds(&w->out, "\n");
    return FATHOM_OK;
}

const struct writer_format writer_json = {.begin = document_begin, .page = document_page, .end = document_end};
const struct writer_format writer_json_lines = {.page = line};
const struct writer_format writer_stats = {.page = stats_line};
