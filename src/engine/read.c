/* Reading files: options, and the pages one after the other. */
#include "base/clock.h"
#include "document/document.h"
#include "document/page_range.h"
#include "engine/page.h"

struct fathom_read_options fathom_read_defaults(void)
{
    return (struct fathom_read_options){.ngram = 20, .ngram_window = 90, .top_p = 1};
}

const char *fathom_page_status_name(enum fathom_page_status status)
{
    switch (status) {
    case FATHOM_PAGE_OK: return "ok";
    case FATHOM_PAGE_TRUNCATED: return "truncated";
    case FATHOM_PAGE_LOOPED: return "looped";
    case FATHOM_PAGE_RETRIED: return "retried";
    case FATHOM_PAGE_FAILED: return "failed";
    }
    return "unknown";
}

enum fathom_status fathom_check_pages(const char *pages, struct fathom_err *err)
{
    struct page_range range;
    enum fathom_status status = page_range_parse(&range, pages, 0, err);
    page_range_free(&range);
    return status;
}

static struct image_limits limits_of(const struct fathom_read_options *o)
{
    struct image_limits limits = image_default_limits;
    limits.max_pixels = o->max_pixels ? o->max_pixels : limits.max_pixels;
    return limits;
}

/* A picture's coordinates are its pixels. */
static struct document_page picture_page(struct image image)
{
    return (struct document_page){
        .image = image, .width_pt = image.width, .height_pt = image.height, .to_document = {1, 0, 0, 1, 0, 0}};
}

static struct fathom_page page_of(const struct document_page *d, size_t number, size_t n_pages)
{
    struct fathom_page page = {
        .number = number,
        .n_pages = n_pages,
        .width = d->image.width,
        .height = d->image.height,
        .width_pt = d->width_pt,
        .height_pt = d->height_pt,
        .text_layer = d->text_layer,
        .rgb = d->image.rgb,
        .jpeg = d->jpeg,
        .jpeg_bytes = d->jpeg_bytes,
    };
    for (int i = 0; i < 6; i++)
        page.to_document[i] = d->to_document[i];
    return page;
}

enum fathom_status fathom_read_pixels(struct fathom_context *ctx, const uint8_t *rgb, int width, int height,
                                      const struct fathom_read_options *options,
                                      const struct fathom_callbacks *callbacks, struct fathom_err *err)
{
    const struct fathom_read_options defaults = fathom_read_defaults();
    struct fathom_err ignored;
    const struct reader reader = {ctx, options ? options : &defaults, callbacks};
    struct document_page picture = picture_page((struct image){width, height, (uint8_t *)rgb});
    struct fathom_page page = page_of(&picture, 1, 1);

    if (width <= 0 || height <= 0)
        return fail(err, FATHOM_EINVAL, "a picture of %d x %d pixels", width, height);
    return page_read(&reader, &page, err ? err : &ignored);
}

static enum fathom_status open_document(struct fathom_context *ctx, const char *path,
                                        const struct fathom_read_options *o, struct document **out,
                                        struct fathom_err *err)
{
    const struct document_options options = {
        .alpha = o->alpha,
        .ignore_icc = o->ignore_icc,
        .text_layer = o->text_layer,
        .dpi = o->dpi,
        .password = o->password,
        .limits = limits_of(o),
    };
    enum fathom_status status = ctx->decoder ? FATHOM_OK : decoder_create(&ctx->decoder, err);
    return status ? status : document_open(out, ctx->decoder, path, &options, err);
}

static enum fathom_status read_number(const struct reader *reader, struct document *document, size_t number,
                                      struct fathom_err *err)
{
    struct document_page picture;
    struct fathom_err why;
    double start = clock_ms();
    enum fathom_status status = document_page(document, number, &picture, &why);
    struct fathom_page page = page_of(&picture, number, document_n_pages(document));
    page.stats.decode_image_ms = clock_ms() - start;
    status = status ? page_deliver_failed(reader, &page, &why, err) : page_read(reader, &page, err);
    document_page_release(&picture);
    return status;
}

enum fathom_status fathom_read_file(struct fathom_context *ctx, const char *path,
                                    const struct fathom_read_options *options, const struct fathom_callbacks *callbacks,
                                    struct fathom_err *err)
{
    const struct fathom_read_options defaults = fathom_read_defaults();
    struct fathom_err ignored;
    const struct reader reader = {ctx, options ? options : &defaults, callbacks};
    struct document *document = NULL;
    struct page_range range = {0};
    enum fathom_status status;

    err = err ? err : &ignored;
    if ((status = open_document(ctx, path, reader.options, &document, err)))
        return status;
    if ((status = page_range_parse(&range, reader.options->pages, document_n_pages(document), err)))
        fail_at(err, "'%s': ", path);
    for (size_t i = 0; !status && (i = page_range_next(&range, i)) != 0;)
        status = read_number(&reader, document, i, err);
    page_range_free(&range);
    document_close(document);
    return status;
}
