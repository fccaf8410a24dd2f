#include "helper/codec.h"

#ifndef FATHOM_JPEG

enum fathom_status jpeg_decode(struct decoded *out, const struct codec_input *in, struct fathom_err *err)
{
    (void)out, (void)in;
    return fail(err, FATHOM_EUNSUPPORTED, "JPEG is not supported: built without libjpeg");
}

#else

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "helper/icc.h"

/* A progressive picture has about ten scans; each pass over the coefficients costs time that a few bytes can ask for. */
#define MAX_SCANS 200

/* Everything that must outlive a longjmp: it belongs to the frame above the one that calls setjmp. */
struct reader {
    struct jpeg_decompress_struct jpeg; /* client_data points back here */
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    jmp_buf jump;
    const struct codec_input *in;
    struct image *out;
    uint8_t *row;    /* greys or CMYK */
    JOCTET *profile; /* libjpeg's, to be freed; NULL: none */
    unsigned profile_bytes;
    struct icc_inks *inks; /* how CMYK becomes RGB; NULL: naively */
    struct exif exif;
    bool has_exif, broke_off, too_many_scans;
    struct fathom_err *err;
};

static struct reader *reader_of(j_common_ptr jpeg) { return jpeg->client_data; }

/* ---- errors ------------------------------------------------------------------------------------------------ */

static _Noreturn void on_error(j_common_ptr jpeg) { longjmp(reader_of(jpeg)->jump, 1); }

static void on_output(j_common_ptr jpeg) { (void)jpeg; }

/* Warnings are ignored, but for those that say that pixels are lost: libjpeg would make them up. */
static void on_message(j_common_ptr jpeg, int level)
{
    if (level >= 0)
        return;
    switch (jpeg->err->msg_code) {
    case JWRN_HIT_MARKER: reader_of(jpeg)->broke_off = true; on_error(jpeg);
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_MUST_RESYNC: on_error(jpeg);
    }
}

static enum fathom_status fail_short(struct reader *r)
{
    if (!r->out->rgb)
        return fail(r->err, FATHOM_EFORMAT, "the JPEG breaks off in its header, after %zu bytes", r->in->n);
    if (r->jpeg.output_scanline == 0 && jpeg_has_multiple_scans(&r->jpeg))
        return fail(r->err, FATHOM_EFORMAT, "the JPEG breaks off in scan %d, after %zu bytes",
                    r->jpeg.input_scan_number, r->in->n);
    if (r->jpeg.output_scanline == r->jpeg.image_height)
        return fail(r->err, FATHOM_EFORMAT, "the JPEG breaks off before its end marker, after %zu bytes", r->in->n);
    return fail(r->err, FATHOM_EFORMAT, "the JPEG's pixels break off in row %u of %u", r->jpeg.output_scanline + 1,
                r->jpeg.image_height);
}

/* What libjpeg gave up on, in our terms. */
static enum fathom_status fail_from_jpeg(struct reader *r)
{
    char text[JMSG_LENGTH_MAX];
    if (r->broke_off)
        return fail_short(r);
    if (r->too_many_scans)
        return fail(r->err, FATHOM_ELIMIT, "the JPEG has more than %d scans", MAX_SCANS);
    r->errors.format_message((j_common_ptr)&r->jpeg, text);
    switch (r->errors.msg_code) {
    case JERR_OUT_OF_MEMORY: return fail(r->err, FATHOM_ENOMEM, "out of memory: libjpeg could not allocate");
    case JERR_IMAGE_TOO_BIG: return fail(r->err, FATHOM_ELIMIT, "the JPEG is too large: %s", text);
    case JERR_ARITH_NOTIMPL:
    case JERR_BAD_PRECISION:
    case JERR_CCIR601_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_NOTIMPL:
    case JERR_SOF_UNSUPPORTED: return fail(r->err, FATHOM_EUNSUPPORTED, "this kind of JPEG is not supported: %s", text);
    }
    return fail(r->err, FATHOM_EFORMAT, "the JPEG is broken: %s", text);
}

/* ---- source: the whole file is the buffer ------------------------------------------------------------------- */

static void on_start(j_decompress_ptr jpeg) { (void)jpeg; }

static _Noreturn void fail_source(j_decompress_ptr jpeg)
{
    reader_of((j_common_ptr)jpeg)->broke_off = true;
    on_error((j_common_ptr)jpeg);
}

/* Only called at the end of the file; libjpeg's own sources put an end marker there and fill the rest with grey. */
static boolean on_empty(j_decompress_ptr jpeg) { fail_source(jpeg); }

static void on_skip(j_decompress_ptr jpeg, long n)
{
    if (n <= 0)
        return;
    if ((size_t)n > jpeg->src->bytes_in_buffer)
        fail_source(jpeg);
    jpeg->src->next_input_byte += n;
    jpeg->src->bytes_in_buffer -= (size_t)n;
}

static void on_stop(j_decompress_ptr jpeg) { (void)jpeg; }

/* APP1 is looked at where it lies: saving markers would cost memory for each of them. */
static boolean on_app1(j_decompress_ptr jpeg)
{
    struct reader *r = reader_of((j_common_ptr)jpeg);
    static const char name[6] = "Exif\0";
    const uint8_t *p = jpeg->src->next_input_byte;
    size_t room = jpeg->src->bytes_in_buffer;
    if (room < 2)
        fail_source(jpeg);
    size_t n = (size_t)p[0] << 8 | p[1];
    if (n < 2)
        ERREXIT(jpeg, JERR_BAD_LENGTH);
    if (n > room)
        fail_source(jpeg);
    if (!r->has_exif && n >= 2 + sizeof name && memcmp(p + 2, name, sizeof name) == 0) {
        r->has_exif = true;
        r->exif = exif_read(p + 2 + sizeof name, n - 2 - sizeof name);
    }
    on_skip(jpeg, (long)n);
    return TRUE;
}

/* A profile comes in pieces of at most 64 KiB, in APP2 markers, which libjpeg puts together later. */
static void keep_profile(struct reader *r)
{
    enum { WHOLE = 0xffff };
    if (!r->in->ignore_icc && r->in->n <= r->in->limits->max_work_bytes) /* at most the file is kept */
        jpeg_save_markers(&r->jpeg, JPEG_APP0 + 2, WHOLE);
}

static void on_progress(j_common_ptr jpeg)
{
    struct reader *r = reader_of(jpeg);
    if (r->jpeg.input_scan_number > MAX_SCANS) {
        r->too_many_scans = true;
        on_error(jpeg);
    }
}

/* ---- pixels ------------------------------------------------------------------------------------------------ */

/* A picture in several scans keeps all its coefficients, two bytes each, until the last scan is in. */
static enum fathom_status check_coefficients(struct reader *r)
{
    size_t bytes = 0, limit = r->in->limits->max_work_bytes;
    if (!jpeg_has_multiple_scans(&r->jpeg))
        return FATHOM_OK;
    for (int i = 0; i < r->jpeg.num_components; i++) {
        const jpeg_component_info *c = &r->jpeg.comp_info[i];
        size_t across = (size_t)c->width_in_blocks + (size_t)c->h_samp_factor;
        size_t down = (size_t)c->height_in_blocks + (size_t)c->v_samp_factor;
        bytes += across * down * sizeof(JBLOCK); /* sides are at most 65,535: no overflow */
    }
    if (bytes > limit)
        return fail(r->err, FATHOM_ELIMIT,
                    "a progressive JPEG of %u x %u pixels needs %zu bytes of memory, the limit is %zu",
                    r->jpeg.image_width, r->jpeg.image_height, bytes, limit);
    return FATHOM_OK;
}

/* Adobe stores CMYK inverted, and so does everybody; the conversion is the naive one, rounded as Pillow's. */
static void put_cmyk(uint8_t *dst, const uint8_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++, src += 4, dst += 3)
        for (int c = 0; c < 3; c++) {
            unsigned light = src[3], product = (255u - src[c]) * light + 128;
            dst[c] = (uint8_t)(light - ((product + (product >> 8)) >> 8));
        }
}

static void put_grey(uint8_t *dst, const uint8_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++, dst += 3)
        memset(dst, src[i], 3);
}

static void read_rows(struct reader *r)
{
    struct jpeg_decompress_struct *jpeg = &r->jpeg;
    size_t w = jpeg->output_width;
    while (jpeg->output_scanline < jpeg->output_height) {
        uint8_t *dst = r->out->rgb + (size_t)jpeg->output_scanline * w * 3;
        JSAMPROW row = r->row ? r->row : dst;
        jpeg_read_scanlines(jpeg, &row, 1);
        if (jpeg->out_color_space == JCS_GRAYSCALE)
            put_grey(dst, row, w);
        else if (jpeg->out_color_space == JCS_CMYK && r->inks)
            icc_inks_row(r->inks, dst, row, w);
        else if (jpeg->out_color_space == JCS_CMYK)
            put_cmyk(dst, row, w);
    }
}

static enum fathom_status read_picture(struct reader *r)
{
    struct jpeg_decompress_struct *jpeg = &r->jpeg;
    jpeg_create_decompress(jpeg);
    jpeg->client_data = r;
    jpeg->src = &r->source;
    jpeg->progress = &r->progress;
    jpeg_set_marker_processor(jpeg, JPEG_APP0 + 1, on_app1);
    keep_profile(r);
    jpeg_read_header(jpeg, TRUE);

    switch (jpeg->num_components) {
    case 1: jpeg->out_color_space = JCS_GRAYSCALE; break;
    case 3: jpeg->out_color_space = JCS_RGB; break;
    case 4: jpeg->out_color_space = JCS_CMYK; break;
    default:
        return fail(r->err, FATHOM_EUNSUPPORTED, "a JPEG with %d colour channels is not supported",
                    jpeg->num_components);
    }
    enum fathom_status status = check_coefficients(r);
    if (status == FATHOM_OK)
        status = image_alloc(r->out, jpeg->image_width, jpeg->image_height, r->in->limits, r->err);
    if (status != FATHOM_OK)
        return status;
    jpeg->dct_method = JDCT_ISLOW;
    jpeg->do_fancy_upsampling = TRUE;
    if (jpeg->num_components != 3) {
        size_t bytes = (size_t)jpeg->image_width * (size_t)jpeg->num_components;
        r->row = malloc(bytes);
        if (!r->row)
            return fail_nomem(r->err, bytes, "a row");
    }
    if (!r->in->ignore_icc && !jpeg_read_icc_profile(jpeg, &r->profile, &r->profile_bytes))
        r->profile_bytes = 0;
    if (jpeg->num_components == 4 && r->profile)
        r->inks = icc_inks_open(r->profile, r->profile_bytes);
    jpeg_start_decompress(jpeg);
    read_rows(r);
    jpeg_finish_decompress(jpeg);
    return FATHOM_OK;
}

/* What the file says beside its pixels. JFIF states a resolution or, in its unit 0, only a shape. */
static void describe(const struct reader *r, struct decoded *out)
{
    enum { INCH = 1, CENTIMETRE = 2 };
    const struct jpeg_decompress_struct *jpeg = &r->jpeg;
    out->orientation = r->exif.orientation;
    out->dpi_x = r->exif.dpi_x;
    out->dpi_y = r->exif.dpi_y;
    if (jpeg->saw_JFIF_marker && (jpeg->density_unit == INCH || jpeg->density_unit == CENTIMETRE)) {
        double per_inch = jpeg->density_unit == CENTIMETRE ? 2.54 : 1;
        out->dpi_x = jpeg->X_density * per_inch;
        out->dpi_y = jpeg->Y_density * per_inch;
    }
    out->plain_jpeg = r->exif.orientation == 1 && jpeg->num_components != 4 && !jpeg->arith_code;
}

static enum fathom_status guarded(struct reader *r)
{
    if (setjmp(r->jump))
        return fail_from_jpeg(r);
    return read_picture(r);
}

enum fathom_status jpeg_decode(struct decoded *out, const struct codec_input *in, struct fathom_err *err)
{
    struct reader r = {.in = in, .out = &out->image, .exif = {.orientation = 1}, .err = err};
    r.jpeg.err = jpeg_std_error(&r.errors);
    r.jpeg.client_data = &r;
    r.errors.error_exit = on_error;
    r.errors.output_message = on_output;
    r.errors.emit_message = on_message;
    r.source = (struct jpeg_source_mgr){
        .next_input_byte = in->bytes,
        .bytes_in_buffer = in->n,
        .init_source = on_start,
        .fill_input_buffer = on_empty,
        .skip_input_data = on_skip,
        .resync_to_restart = jpeg_resync_to_restart,
        .term_source = on_stop,
    };
    r.progress.progress_monitor = on_progress;
    enum fathom_status status = guarded(&r);
    describe(&r, out);
    if (status == FATHOM_OK && r.profile && r.jpeg.num_components != 4 &&
        icc_to_srgb(&out->image, r.profile, r.profile_bytes))
        out->plain_jpeg = false;
    icc_inks_close(r.inks);
    free(r.profile);
    free(r.row);
    jpeg_destroy_decompress(&r.jpeg);
    return status;
}

#endif
