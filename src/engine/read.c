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

enum fathom_status fathom_read_file(struct fathom_context *ctx, const char *path,
                                    const struct fathom_read_options *options, const struct fathom_callbacks *callbacks,
                                    struct fathom_err *err)
{
    const struct fathom_read_options defaults = fathom_read_defaults();
    struct fathom_err ignored;
    const struct reader reader = {ctx, options ? options : &defaults, callbacks};
    const struct image_limits limits = limits_of(reader.options);
    struct image image = {0};
    struct page_range range;
    enum fathom_status status;

    err = err ? err : &ignored;
    double start = clock_ms();
    if ((status = image_load(&image, path, reader.options->alpha, &limits, err)))
        return status;
    status = page_range_parse(&range, reader.options->pages, 1, err);
    page_range_free(&range);
    if (status) {
        image_free(&image);
        return fail_at(err, "'%s': ", path);
    }
    struct document_page picture = picture_page(image);
    struct fathom_page page = page_of(&picture, 1, 1);
    page.stats.decode_image_ms = clock_ms() - start;
    status = page_read(&reader, &page, err);
    image_free(&image);
    return status;
}
