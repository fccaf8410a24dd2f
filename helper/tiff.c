#include "helper/tiff.h"

#ifndef FATHOM_TIFF

enum fathom_status tiff_open(struct tiff_pages **out, const struct codec_input *in, struct fathom_err *err)
{
    (void)in;
    *out = NULL;
    return fail(err, FATHOM_EUNSUPPORTED, "TIFF is not supported: built without libtiff");
}

void tiff_close(struct tiff_pages *t) { (void)t; }

size_t tiff_n_pages(const struct tiff_pages *t)
{
    (void)t;
    return 0;
}

enum fathom_status tiff_page(struct tiff_pages *t, size_t number, struct decoded *out, struct fathom_err *err)
{
    (void)t, (void)number, (void)out;
    return fail(err, FATHOM_EUNSUPPORTED, "TIFF is not supported: built without libtiff");
}

#else

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tiffio.h>

#include "base/checked.h"
#include "helper/icc.h"

#define MAX_DIRECTORIES 65535

struct tiff_pages {
    struct codec_input in;
    size_t at; /* of the next read */
    TIFF *tiff;
    tdir_t *directories; /* [n_pages], owned */
    size_t n_pages;
    char message[256]; /* libtiff's last */
};

/* ---- the file is a block of memory --------------------------------------------------------------------------- */

static tmsize_t on_read(thandle_t handle, void *out, tmsize_t n)
{
    struct tiff_pages *t = handle;
    size_t left = t->at < t->in.n ? t->in.n - t->at : 0, take = n < 0 ? 0 : (size_t)n < left ? (size_t)n : left;
    if (take)
        memcpy(out, t->in.bytes + t->at, take);
    t->at += take;
    return (tmsize_t)take;
}

static tmsize_t on_write(thandle_t handle, void *bytes, tmsize_t n)
{
    (void)handle, (void)bytes, (void)n;
    return -1;
}

static toff_t on_seek(thandle_t handle, toff_t offset, int whence)
{
    struct tiff_pages *t = handle;
    t->at = (size_t)(whence == SEEK_CUR ? t->at + offset : whence == SEEK_END ? t->in.n + offset : offset);
    return t->at;
}

static int on_close(thandle_t handle)
{
    (void)handle;
    return 0;
}

static toff_t on_size(thandle_t handle) { return ((struct tiff_pages *)handle)->in.n; }

static int on_map(thandle_t handle, void **base, toff_t *size)
{
    struct tiff_pages *t = handle;
    *base = (void *)t->in.bytes;
    *size = t->in.n;
    return 1;
}

static void on_unmap(thandle_t handle, void *base, toff_t size) { (void)handle, (void)base, (void)size; }

static int on_error(TIFF *tiff, void *user, const char *module, const char *format, va_list args)
{
    struct tiff_pages *t = user;
    (void)tiff, (void)module;
    vsnprintf(t->message, sizeof t->message, format, args);
    return 1;
}

static int on_warning(TIFF *tiff, void *user, const char *module, const char *format, va_list args)
{
    (void)tiff, (void)user, (void)module, (void)format, (void)args;
    return 1;
}

static enum fathom_status fail_tiff(const struct tiff_pages *t, enum fathom_status status, const char *what,
                                    struct fathom_err *err)
{
    return fail(err, status, "%s: %s", what, t->message[0] ? t->message : "libtiff gives no reason");
}

/* ---- pages --------------------------------------------------------------------------------------------------- */

static bool is_page(TIFF *tiff)
{
    uint32_t type = 0;
    return !TIFFGetField(tiff, TIFFTAG_SUBFILETYPE, &type) || !(type & (FILETYPE_REDUCEDIMAGE | FILETYPE_MASK));
}

/* A file of thumbnails alone has them for pages. */
static enum fathom_status list_pages(struct tiff_pages *t, struct fathom_err *err)
{
    size_t n = 0, capacity = 0;
    tdir_t *all = NULL;
    t->n_pages = 0;
    do {
        if (n == capacity) {
            capacity = 2 * capacity + 16;
            tdir_t *larger = realloc(all, capacity * sizeof *all);
            if (!larger) {
                free(all);
                return fail_nomem(err, capacity * sizeof *all, "a list of pages");
            }
            all = larger;
        }
        if (is_page(t->tiff))
            all[t->n_pages++] = TIFFCurrentDirectory(t->tiff);
        n++;
    } while (n < MAX_DIRECTORIES && TIFFReadDirectory(t->tiff));
    for (; t->n_pages == 0 && n > 0; n--)
        all[n - 1] = (tdir_t)(n - 1);
    t->directories = all;
    return FATHOM_OK;
}

enum fathom_status tiff_open(struct tiff_pages **out, const struct codec_input *in, struct fathom_err *err)
{
    struct tiff_pages *t = calloc(1, sizeof *t);
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    enum fathom_status status = FATHOM_OK;
    *out = NULL;
    if (!t || !options) {
        free(t);
        TIFFOpenOptionsFree(options);
        return fail_nomem(err, sizeof *t, "the TIFF");
    }
    t->in = *in;
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, (tmsize_t)in->limits->max_work_bytes);
    TIFFOpenOptionsSetErrorHandlerExtR(options, on_error, t);
    TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, t);
    t->tiff =
        TIFFClientOpenExt("the TIFF", "r", t, on_read, on_write, on_seek, on_close, on_size, on_map, on_unmap, options);
    TIFFOpenOptionsFree(options);
    status = t->tiff ? list_pages(t, err) : fail_tiff(t, FATHOM_EFORMAT, "the TIFF is broken", err);
    if (status) {
        tiff_close(t);
        return status;
    }
    *out = t;
    return FATHOM_OK;
}

void tiff_close(struct tiff_pages *t)
{
    if (!t)
        return;
    if (t->tiff)
        TIFFClose(t->tiff);
    free(t->directories);
    free(t);
}

size_t tiff_n_pages(const struct tiff_pages *t) { return t->n_pages; }

/* ---- a page -------------------------------------------------------------------------------------------------- */

/* libtiff's pixels are multiplied by their alpha. */
static void put_pixels(uint8_t *dst, const uint32_t *src, size_t n, bool has_alpha, enum fathom_alpha alpha)
{
    for (size_t i = 0; i < n; i++, dst += 3) {
        unsigned colour[3] = {TIFFGetR(src[i]), TIFFGetG(src[i]), TIFFGetB(src[i])}, a = TIFFGetA(src[i]);
        for (int c = 0; c < 3; c++) {
            unsigned v = colour[c];
            if (has_alpha && alpha == FATHOM_ALPHA_WHITE)
                v += 255 - a;
            else if (has_alpha && a)
                v = (v * 255 + a / 2) / a;
            dst[c] = (uint8_t)(v < 255 ? v : 255);
        }
    }
}

static enum fathom_status read_pixels(struct tiff_pages *t, struct decoded *out, struct fathom_err *err)
{
    char reason[1024] = "";
    TIFFRGBAImage reader;
    size_t w = (size_t)out->image.width, h = (size_t)out->image.height, bytes;
    if (!size_mul(w * h, sizeof(uint32_t), &bytes) || bytes > t->in.limits->max_work_bytes)
        return fail(err, FATHOM_ELIMIT, "a TIFF of %zu x %zu pixels needs more memory than the limit of %zu bytes", w,
                    h, t->in.limits->max_work_bytes);
    if (!TIFFRGBAImageBegin(&reader, t->tiff, 1, reason))
        return fail(err, FATHOM_EUNSUPPORTED, "this kind of TIFF is not supported: %s", reason);
    uint32_t *raster = malloc(bytes);
    if (!raster) {
        TIFFRGBAImageEnd(&reader);
        return fail_nomem(err, bytes, "the TIFF's pixels");
    }
    reader.orientation = reader.req_orientation = ORIENTATION_TOPLEFT; /* as stored: turning is our own affair */
    bool has_alpha = reader.alpha != 0;
    bool ok = TIFFRGBAImageGet(&reader, raster, (uint32_t)w, (uint32_t)h);
    TIFFRGBAImageEnd(&reader);
    if (ok)
        put_pixels(out->image.rgb, raster, w * h, has_alpha, t->in.alpha);
    free(raster);
    return ok ? FATHOM_OK : fail_tiff(t, FATHOM_EFORMAT, "the TIFF's pixels are broken", err);
}

static void describe(TIFF *tiff, struct decoded *out)
{
    uint16_t orientation = 1, unit = RESUNIT_INCH;
    float x = 0, y = 0;
    TIFFGetFieldDefaulted(tiff, TIFFTAG_ORIENTATION, &orientation);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_RESOLUTIONUNIT, &unit);
    out->orientation = orientation >= 1 && orientation <= 8 ? orientation : 1;
    if (unit != RESUNIT_NONE && TIFFGetField(tiff, TIFFTAG_XRESOLUTION, &x) &&
        TIFFGetField(tiff, TIFFTAG_YRESOLUTION, &y)) {
        out->dpi_x = x * (unit == RESUNIT_CENTIMETER ? 2.54 : 1);
        out->dpi_y = y * (unit == RESUNIT_CENTIMETER ? 2.54 : 1);
    }
}

enum fathom_status tiff_page(struct tiff_pages *t, size_t number, struct decoded *out, struct fathom_err *err)
{
    uint32_t w = 0, h = 0, profile_bytes = 0;
    void *profile = NULL;
    enum fathom_status status;
    *out = (struct decoded){.orientation = 1};
    t->message[0] = 0;
    if (!TIFFSetDirectory(t->tiff, t->directories[number - 1]))
        return fail_tiff(t, FATHOM_EFORMAT, "the TIFF's page is broken", err);
    TIFFGetField(t->tiff, TIFFTAG_IMAGEWIDTH, &w);
    TIFFGetField(t->tiff, TIFFTAG_IMAGELENGTH, &h);
    if (!(status = image_alloc(&out->image, w, h, t->in.limits, err)) && !(status = read_pixels(t, out, err))) {
        describe(t->tiff, out);
        if (!t->in.ignore_icc && TIFFGetField(t->tiff, TIFFTAG_ICCPROFILE, &profile_bytes, &profile))
            icc_to_srgb(&out->image, profile, profile_bytes);
        status = picture_orient(out, err);
    }
    if (status)
        decoded_free(out);
    return status;
}

#endif
