#include "helper/pdf.h"

#ifndef FATHOM_PDF

#include <unistd.h>

enum fathom_status pdf_open(struct pdf **out, int fd, const struct document_options *options, struct fathom_err *err)
{
    (void)options;
    *out = NULL;
    close(fd);
    return fail(err, FATHOM_EUNSUPPORTED, "PDF is not supported: built without poppler");
}

void pdf_prepare(void) {}

void pdf_close(struct pdf *pdf) { (void)pdf; }

size_t pdf_n_pages(const struct pdf *pdf)
{
    (void)pdf;
    return 0;
}

enum fathom_status pdf_page(struct pdf *pdf, size_t number, struct document_page *out, struct fathom_err *err)
{
    (void)pdf, (void)number, (void)out;
    return fail(err, FATHOM_EUNSUPPORTED, "PDF is not supported: built without poppler");
}

#else

#include <fcntl.h>
#include <iconv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <poppler.h>

#include "helper/pdf_place.h"

#define MAX_SIDE 32767         /* cairo's                                                     */
#define MAX_DRAWN_PIXELS 1.0e8 /* an A4 page at 900 dpi; more would be drawn to be shrunk again */

struct pdf {
    PopplerDocument *document;
    double dpi;
    bool text_layer;
    struct image_limits limits;
};

/* Passwords are tried in Latin-1 first; the C library has that conversion in a file of its own, and keeps it once open. */
void pdf_prepare(void) { iconv_open("ISO-8859-1", "UTF-8"); }

static enum fathom_status fail_open(const GError *error, struct fathom_err *err)
{
    if (g_error_matches(error, POPPLER_ERROR, POPPLER_ERROR_ENCRYPTED))
        return fail(err, FATHOM_EPASSWORD, "the PDF is encrypted and needs a password");
    if (g_error_matches(error, POPPLER_ERROR, POPPLER_ERROR_DAMAGED))
        return fail(err, FATHOM_EFORMAT, "the PDF is damaged beyond repair");
    if (g_error_matches(error, POPPLER_ERROR, POPPLER_ERROR_BAD_CATALOG))
        return fail(err, FATHOM_EFORMAT, "the PDF is broken: it has no list of pages");
    return fail(err, FATHOM_EFORMAT, "the PDF is broken: %s", error ? error->message : "no reason is known");
}

/* poppler calls a PDF damaged that a wrong password does not open; without any it knows that one is needed. */
static enum fathom_status fail_password(int fd, const GError *error, struct fathom_err *err)
{
    GError *without = NULL;
    PopplerDocument *document = poppler_document_new_from_fd(fd, NULL, &without);
    bool needs_one = g_error_matches(without, POPPLER_ERROR, POPPLER_ERROR_ENCRYPTED);
    g_clear_object(&document);
    g_clear_error(&without);
    return needs_one ? fail(err, FATHOM_EPASSWORD, "the password does not open this PDF") : fail_open(error, err);
}

enum fathom_status pdf_open(struct pdf **out, int fd, const struct document_options *options, struct fathom_err *err)
{
    struct pdf *pdf = calloc(1, sizeof *pdf);
    GError *error = NULL;
    enum fathom_status status;
    int again = options->password ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    *out = NULL;
    /* The document takes the descriptor over in any case. */
    PopplerDocument *document = poppler_document_new_from_fd(fd, options->password, &error);
    if (document && pdf) {
        if (again >= 0)
            close(again);
        *pdf = (struct pdf){document, options->dpi > 0 ? options->dpi : 144, options->text_layer, options->limits};
        *out = pdf;
        return FATHOM_OK;
    }
    if (!pdf)
        status = fail_nomem(err, sizeof *pdf, "the PDF");
    else
        status = again >= 0 ? fail_password(again, error, err) : fail_open(error, err);
    g_clear_error(&error);
    g_clear_object(&document);
    free(pdf);
    return status;
}

void pdf_close(struct pdf *pdf)
{
    if (!pdf)
        return;
    g_object_unref(pdf->document);
    free(pdf);
}

size_t pdf_n_pages(const struct pdf *pdf)
{
    int n = poppler_document_get_n_pages(pdf->document);
    return n > 0 ? (size_t)n : 0;
}

/* ---- how large --------------------------------------------------------------------------------------------- */

/* Pixels a page becomes, and points a page has. */
struct size {
    double width, height;
};

static bool is_near(struct size a, struct size b)
{
    return fabs(a.width - b.width) <= 2 + b.width / 100 && fabs(a.height - b.height) <= 2 + b.height / 100;
}

static struct size turned(struct size s) { return (struct size){s.height, s.width}; }

/* The pixels of the one picture that covers the page, upright as the page is; false when there is none such. The picture's
 * place is poppler's without /Rotate, and wrong when there is a crop box, but its size can be relied on; and all that
 * follows from it is a resolution. */
static bool covering_picture(PopplerPage *page, struct size points, struct size *pixels)
{
    GList *pictures = poppler_page_get_image_mapping(page);
    cairo_surface_t *picture = NULL;
    bool found = false;
    if (pictures && !pictures->next) {
        const PopplerImageMapping *m = pictures->data;
        struct size area = {fabs(m->area.x2 - m->area.x1), fabs(m->area.y2 - m->area.y1)};
        if (is_near(area, points) || is_near(area, turned(points)))
            picture = poppler_page_get_image(page, m->image_id);
    }
    if (picture && cairo_surface_get_type(picture) == CAIRO_SURFACE_TYPE_IMAGE) {
        *pixels = (struct size){cairo_image_surface_get_width(picture), cairo_image_surface_get_height(picture)};
        if ((pixels->width > pixels->height) != (points.width > points.height))
            *pixels = turned(*pixels);
        found = pixels->width >= 1 && pixels->height >= 1;
    }
    if (picture)
        cairo_surface_destroy(picture);
    poppler_page_free_image_mapping(pictures);
    return found;
}

/* Shrinks a size in proportion until it keeps within the limits, and makes it whole. */
static struct size within_limits(struct size pixels, const struct image_limits *limits)
{
    double side = fmin(MAX_SIDE, limits->max_side), area = fmin(MAX_DRAWN_PIXELS, (double)limits->max_pixels);
    double factor = fmin(1, fmin(side / pixels.width, side / pixels.height));
    factor = fmin(factor, sqrt(area / pixels.width / pixels.height));
    struct size whole = {fmax(1, round(pixels.width * factor)), fmax(1, round(pixels.height * factor))};
    if (whole.width * whole.height > area)
        whole = (struct size){fmax(1, floor(pixels.width * factor)), fmax(1, floor(pixels.height * factor))};
    return whole;
}

/* ---- drawing ----------------------------------------------------------------------------------------------- */

static enum fathom_status take_pixels(struct image *out, cairo_surface_t *surface, const struct image_limits *limits,
                                      struct fathom_err *err)
{
    size_t w = (size_t)cairo_image_surface_get_width(surface), h = (size_t)cairo_image_surface_get_height(surface);
    enum fathom_status status = image_alloc(out, w, h, limits, err);
    if (status)
        return status;
    cairo_surface_flush(surface);
    const uint8_t *data = cairo_image_surface_get_data(surface);
    size_t stride = (size_t)cairo_image_surface_get_stride(surface);
    uint8_t *dst = out->rgb;
    for (size_t y = 0; y < h; y++)
        for (size_t x = 0; x < w; x++, dst += 3) {
            uint32_t pixel;
            memcpy(&pixel, data + y * stride + 4 * x, sizeof pixel);
            dst[0] = (uint8_t)(pixel >> 16);
            dst[1] = (uint8_t)(pixel >> 8);
            dst[2] = (uint8_t)pixel;
        }
    return FATHOM_OK;
}

static enum fathom_status draw(PopplerPage *page, struct size points, struct size pixels, struct image *out,
                               const struct image_limits *limits, struct fathom_err *err)
{
    cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)pixels.width, (int)pixels.height);
    cairo_t *cairo = cairo_create(surface);
    enum fathom_status status;

    cairo_set_source_rgb(cairo, 1, 1, 1);
    cairo_paint(cairo);
    cairo_scale(cairo, pixels.width / points.width, pixels.height / points.height);
    poppler_page_render(page, cairo);
    cairo_status_t drawn = cairo_surface_status(surface);
    cairo_destroy(cairo);
    if (drawn == CAIRO_STATUS_NO_MEMORY)
        status = fail(err, FATHOM_ENOMEM, "out of memory: a page of %.0f x %.0f pixels", pixels.width, pixels.height);
    else if (drawn)
        status = fail(err, FATHOM_EFORMAT, "the page cannot be drawn: %s", cairo_status_to_string(drawn));
    else
        status = take_pixels(out, surface, limits, err);
    cairo_surface_destroy(surface);
    return status;
}

/* ---- a page ------------------------------------------------------------------------------------------------ */

static enum fathom_status read_page(struct pdf *pdf, PopplerPage *page, struct document_page *out,
                                    struct fathom_err *err)
{
    const double most = 1e7;
    struct size points, pixels;
    enum fathom_status status;

    poppler_page_get_size(page, &points.width, &points.height);
    if (!(points.width > 0 && points.height > 0 && points.width <= most && points.height <= most))
        return fail(err, FATHOM_EFORMAT, "a page of %g x %g points", points.width, points.height);
    if (!covering_picture(page, points, &pixels))
        pixels = (struct size){points.width * pdf->dpi / 72, points.height * pdf->dpi / 72};
    pixels = within_limits(pixels, &pdf->limits);
    if ((status = draw(page, points, pixels, &out->image, &pdf->limits, err)))
        return status;
    out->width_pt = points.width;
    out->height_pt = points.height;
    pdf_place(pdf->document, page, points.width / pixels.width, points.height / pixels.height, out->to_document);
    if (pdf->text_layer) {
        char *text = poppler_page_get_text(page);
        out->text_layer = strdup(text ? text : "");
        g_free(text);
        if (!out->text_layer)
            return fail_nomem(err, 1, "the text layer");
    }
    return FATHOM_OK;
}

enum fathom_status pdf_page(struct pdf *pdf, size_t number, struct document_page *out, struct fathom_err *err)
{
    PopplerPage *page = poppler_document_get_page(pdf->document, (int)number - 1);
    *out = (struct document_page){0};
    if (!page)
        return fail(err, FATHOM_EFORMAT, "the page is broken: the PDF does not say what is on it");
    enum fathom_status status = read_page(pdf, page, out, err);
    g_object_unref(page);
    if (status)
        document_page_release(out);
    return status;
}

#endif
