#include "helper/codec.h"

#ifndef FATHOM_PNG

enum fathom_status png_decode(struct decoded *out, const struct codec_input *in, struct fathom_err *err)
{
    (void)out, (void)in;
    return fail(err, FATHOM_EUNSUPPORTED, "PNG is not supported: built without libpng");
}

#else

#include "base/checked.h"
#include "helper/icc.h"

#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Everything that must outlive a longjmp: it belongs to the frame above the one that calls setjmp. */
struct reader {
    const struct codec_input *in;
    size_t at; /* bytes handed to libpng */
    png_structp png;
    png_infop info;
    struct image *out;
    uint8_t *row;       /* one row as libpng gives it */
    int pass, n_passes; /* 1, or the 7 of an interlaced picture */
    size_t y;           /* the row being read */
    bool broke_off;
    char message[128]; /* libpng's */
    struct fathom_err *err;
};

static void on_read(png_structp png, png_bytep dst, size_t n)
{
    struct reader *r = png_get_io_ptr(png);
    if (n > r->in->n - r->at) {
        r->broke_off = true;
        png_error(png, "end of file");
    }
    memcpy(dst, r->in->bytes + r->at, n);
    r->at += n;
}

static _Noreturn void on_error(png_structp png, png_const_charp message)
{
    struct reader *r = png_get_error_ptr(png);
    snprintf(r->message, sizeof r->message, "%s", message);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message) { (void)png, (void)message; }

static enum fathom_status fail_short(const struct reader *r)
{
    if (!r->out->rgb)
        return fail(r->err, FATHOM_EFORMAT, "the PNG breaks off in its header, after %zu bytes", r->in->n);
    if (r->pass == r->n_passes)
        return fail(r->err, FATHOM_EFORMAT, "the PNG breaks off before its end chunk, after %zu bytes", r->in->n);
    if (r->n_passes > 1)
        return fail(r->err, FATHOM_EFORMAT, "the PNG breaks off in row %zu of pass %d of %d", r->y + 1, r->pass + 1,
                    r->n_passes);
    return fail(r->err, FATHOM_EFORMAT, "the PNG breaks off in row %zu of %d", r->y + 1, r->out->height);
}

/* Writes n pixels, `step` pixels apart: the samples of src, `depth` bits each, become RGB. */
static void put_pixels(uint8_t *dst, size_t step, const uint8_t *src, size_t n, unsigned n_channels, unsigned depth,
                       enum fathom_alpha alpha)
{
    bool grey = n_channels <= 2, has_alpha = n_channels == 2 || n_channels == 4;
    for (size_t i = 0; i < n; i++, dst += 3 * step) {
        unsigned s[4];
        for (unsigned c = 0; c < n_channels; c++) {
            if (depth == 8) {
                s[c] = *src++;
                continue;
            }
            unsigned v = (unsigned)src[0] << 8 | src[1];
            src += 2;
            if (alpha == FATHOM_ALPHA_WHITE)
                s[c] = (v * 255 + 32767) / 65535;
            else if (n_channels == 1) /* Pillow: only plain greys keep 16 bits, and saturate in RGB */
                s[c] = v > 255 ? 255 : v;
            else
                s[c] = v >> 8;
        }
        unsigned a = has_alpha && alpha == FATHOM_ALPHA_WHITE ? s[n_channels - 1] : 255;
        for (unsigned c = 0; c < 3; c++)
            dst[c] = over_white(s[grey ? 0 : c], a);
    }
}

/* Row by row, also when interlaced: libpng hands out the rows of the seven reduced pictures as they are, so that one row
 * is all the memory besides the pixels. */
static void read_pass(struct reader *r, unsigned n_channels, unsigned depth)
{
    size_t w = (size_t)r->out->width, h = (size_t)r->out->height, x0 = 0, y0 = 0, dx = 1, dy = 1, n = w;
    if (r->n_passes > 1) {
        x0 = PNG_PASS_START_COL(r->pass);
        y0 = PNG_PASS_START_ROW(r->pass);
        dx = PNG_PASS_COL_OFFSET(r->pass);
        dy = PNG_PASS_ROW_OFFSET(r->pass);
        n = PNG_PASS_COLS(w, r->pass);
    }
    for (r->y = y0; n > 0 && r->y < h; r->y += dy) {
        uint8_t *dst = r->out->rgb + (r->y * w + x0) * 3;
        if (dx == 1 && n_channels == 3 && depth == 8)
            png_read_row(r->png, dst, NULL);
        else {
            png_read_row(r->png, r->row, NULL);
            put_pixels(dst, dx, r->row, n, n_channels, depth, r->in->alpha);
        }
    }
}

/* A chunk that says nothing of pixels, orientation, resolution or colours is skipped unread. sRGB and gamma are ignored. */
static void ignore_ornaments(png_structp png)
{
#ifdef PNG_HANDLE_AS_UNKNOWN_SUPPORTED
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_AS_DEFAULT, (png_const_bytep) "eXIf\0pHYs\0iCCP", 3);
#endif
    png_set_chunk_malloc_max(png, 1 << 20);
    png_set_chunk_cache_max(png, 16);
    png_set_benign_errors(png, 1);
}

static enum fathom_status read_picture(struct reader *r)
{
    png_set_read_fn(r->png, r, on_read);
    png_set_user_limits(r->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX); /* ours are tested below */
    ignore_ornaments(r->png);
    png_read_info(r->png, r->info);

    size_t w = png_get_image_width(r->png, r->info), h = png_get_image_height(r->png, r->info), bytes;
    /* Deflate packs at most 1032 bytes into one: a header that claims more than the file can hold is not worth memory. */
    if (size_mul(png_get_rowbytes(r->png, r->info), h, &bytes) && w <= r->in->limits->max_pixels / h &&
        bytes / 1032 > r->in->n)
        return fail(r->err, FATHOM_EFORMAT, "the PNG breaks off: %zu bytes cannot hold %zu x %zu pixels", r->in->n, w,
                    h);
    enum fathom_status status = image_alloc(r->out, w, h, r->in->limits, r->err);
    if (status != FATHOM_OK)
        return status;

    png_set_packing(r->png);
    if (png_get_color_type(r->png, r->info) == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(r->png); /* with its transparency, if any */
    else
        png_set_expand_gray_1_2_4_to_8(r->png);
    if (r->in->alpha == FATHOM_ALPHA_WHITE)
        png_set_tRNS_to_alpha(r->png);
    png_read_update_info(r->png, r->info);
    r->row = malloc(png_get_rowbytes(r->png, r->info));
    if (!r->row)
        return fail_nomem(r->err, png_get_rowbytes(r->png, r->info), "a row");
    r->n_passes = png_get_interlace_type(r->png, r->info) == PNG_INTERLACE_NONE ? 1 : PNG_INTERLACE_ADAM7_PASSES;
    for (r->pass = 0; r->pass < r->n_passes; r->pass++)
        read_pass(r, png_get_channels(r->png, r->info), png_get_bit_depth(r->png, r->info));
    png_read_end(r->png, r->info);
    return FATHOM_OK;
}

static void read_ornaments(const struct reader *r, struct decoded *out)
{
    const double inch = 0.0254;
    out->dpi_x = png_get_x_pixels_per_meter(r->png, r->info) * inch; /* 0 when absent */
    out->dpi_y = png_get_y_pixels_per_meter(r->png, r->info) * inch;
    png_charp name;
    png_bytep profile;
    png_uint_32 n;
    int compression;
    if (!r->in->ignore_icc && png_get_iCCP(r->png, r->info, &name, &compression, &profile, &n))
        icc_to_srgb(&out->image, profile, n);
#ifdef PNG_eXIf_SUPPORTED
    png_bytep exif;
    if (png_get_eXIf_1(r->png, r->info, &n, &exif))
        out->orientation = exif_read(exif, n).orientation;
#endif
}

static enum fathom_status guarded(struct reader *r)
{
    if (setjmp(png_jmpbuf(r->png))) {
        if (r->broke_off)
            return fail_short(r);
        return fail(r->err, FATHOM_EFORMAT, "the PNG is broken: %s", r->message);
    }
    return read_picture(r);
}

enum fathom_status png_decode(struct decoded *out, const struct codec_input *in, struct fathom_err *err)
{
    struct reader r = {.in = in, .out = &out->image, .err = err};
    enum fathom_status status;
    r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, on_error, on_warning);
    r.info = r.png ? png_create_info_struct(r.png) : NULL;
    if (!r.info)
        status = fail(err, FATHOM_ENOMEM, "out of memory: libpng did not start");
    else
        status = guarded(&r);
    if (status == FATHOM_OK)
        read_ornaments(&r, out);
    free(r.row);
    png_destroy_read_struct(&r.png, &r.info, NULL);
    return status;
}

#endif
