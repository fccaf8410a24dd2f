/* BMP, GIF, WebP and TIFF, and colour profiles: files made here, by hand or with the formats' own libraries. */
#include "picture.h"
#include "support.h"

#include <unistd.h>

#include "helper/source.h"

/* ---- BMP ------------------------------------------------------------------------------------------------------- */

static void put_le(struct blob *b, uint32_t v, int n_bytes)
{
    for (int i = 0; i < n_bytes; i++)
        put8(b, v >> (8 * i) & 255);
}

/* Headers of the usual 40 bytes, a palette of black, red, green, blue, and the pixels' bytes. */
static struct blob bmp_file(int w, int h, unsigned depth, unsigned compression, const void *pixels, size_t n)
{
    static const uint32_t colours[4] = {0x000000, 0xff0000, 0x00ff00, 0x0000ff};
    struct blob b = {0};
    size_t n_colours = depth <= 8 ? 4 : compression == 3 ? 3 : 0;
    put(&b, "BM", 2);
    put_le(&b, 0, 4);
    put_le(&b, 0, 4);
    put_le(&b, (uint32_t)(54 + 4 * n_colours), 4);
    put_le(&b, 40, 4);
    put_le(&b, (uint32_t)w, 4);
    put_le(&b, (uint32_t)h, 4);
    put_le(&b, 1, 2);
    put_le(&b, depth, 2);
    put_le(&b, compression, 4);
    for (int i = 0; i < 5; i++)
        put_le(&b, i == 1 || i == 2 ? 3937 : 0, 4); /* 100 dots an inch */
    for (size_t i = 0; depth <= 8 && i < n_colours; i++)
        put_le(&b, colours[i], 4);
    if (compression == 3) {
        put_le(&b, 0xf800, 4);
        put_le(&b, 0x07e0, 4);
        put_le(&b, 0x001f, 4);
    }
    put(&b, pixels, n);
    return b;
}

/* k: black, w: white, r, g, b: colours; a '/' ends a row. */
static void check_pixels(const struct blob *file, int w, int h, const char *want)
{
    struct image image = decode_ok(file, FATHOM_ALPHA_WHITE);
    assert_int_equal(image.width, w);
    assert_int_equal(image.height, h);
    char got[256];
    size_t n = 0;
    for (int i = 0; i < w * h; i++) {
        const uint8_t *p = image.rgb + 3 * i;
        int kind = (p[0] > 127) | (p[1] > 127) << 1 | (p[2] > 127) << 2;
        got[n++] = "krgybmcw"[kind];
        if (i % w == w - 1)
            got[n++] = '/';
    }
    got[n] = 0;
    assert_string_equal(got, want);
    image_free(&image);
}

static void bmp(void **state)
{
    (void)state;
    static const struct {
        int w, h;
        unsigned depth, compression;
        const char *pixels;
        size_t n;
        const char *want;
    } cases[] = {
        {3, 2, 8, 0, "\1\2\3\0\0\1\2\0", 8, "krg/rgb/"},
        {3, -2, 8, 0, "\1\2\3\0\0\1\2\0", 8, "rgb/krg/"},
        {3, 1, 4, 0, "\x12\x30\0\0", 4, "rgb/"},
        {9, 1, 1, 0, "\xaa\x80\0\0", 4, "rkrkrkrkr/"},
        {2, 1, 24, 0, "\0\0\xff\xff\0\0\0\0", 8, "rb/"},
        {2, 1, 32, 0, "\0\xff\0\0\xff\xff\xff\0", 8, "gw/"},
        {2, 1, 16, 0, "\0\x7c\x1f\0", 4, "rb/"},
        {2, 1, 16, 3, "\0\xf8\xe0\x07", 4, "rg/"},
        {4, 2, 8, 1, "\3\1\1\2\0\0\0\3\1\2\3\0\0\2\1\0\0\1", 18, "rgbk/rrrg/"},
        {4, 1, 4, 2, "\3\x12\0\1", 4, "rgrk/"},
        {4, 1, 4, 2, "\0\4\x12\x30\0\1", 6, "rgbk/"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct blob file =
            bmp_file(cases[i].w, cases[i].h, cases[i].depth, cases[i].compression, cases[i].pixels, cases[i].n);
        check_pixels(&file, cases[i].w, abs(cases[i].h), cases[i].want);
        assert_truncations_fail(&file);
        assert_survives_damage(&file);
        blob_free(&file);
    }
    struct blob file = bmp_file(2147483647, 1, 24, 0, "", 0);
    assert_refused(&file, &image_default_limits, FATHOM_ELIMIT, "a side");
    blob_free(&file);
    file = bmp_file(5, INT32_MIN, 24, 0, "", 0);
    assert_refused(&file, &image_default_limits, FATHOM_EFORMAT, "BMP");
    blob_free(&file);
    file = bmp_file(2, 2, 24, 4, "", 0);
    assert_refused(&file, &image_default_limits, FATHOM_EUNSUPPORTED, "compression 4");
    blob_free(&file);
}

/* ---- GIF ------------------------------------------------------------------------------------------------------- */

/* Codes of three bits with a clear code before every second colour, so that they never grow; a palette of black, red,
 * green, blue. */
static struct blob gif_file(int screen_w, int screen_h, int x, int y, int w, int h, bool interlaced, int transparent,
                            const char *indices)
{
    struct blob b = {0}, codes = {0};
    unsigned held = 0, n_held = 0;
    put(&b, "GIF89a", 6);
    put_le(&b, (uint32_t)screen_w, 2);
    put_le(&b, (uint32_t)screen_h, 2);
    put(&b, "\x81\0\0", 3);
    put(&b, "\0\0\0\xff\0\0\0\xff\0\0\0\xff", 12);
    put(&b, "\x21\xfe\5hello\0", 9);
    if (transparent >= 0) {
        put(&b, "\x21\xf9\4\1\0\0", 6);
        put8(&b, (unsigned)transparent);
        put8(&b, 0);
    }
    put8(&b, 0x2c);
    put_le(&b, (uint32_t)x, 2);
    put_le(&b, (uint32_t)y, 2);
    put_le(&b, (uint32_t)w, 2);
    put_le(&b, (uint32_t)h, 2);
    put8(&b, interlaced ? 0x40 : 0);
    put8(&b, 2);
    for (size_t i = 0; i <= strlen(indices); i++) {
        unsigned all[2] = {4, indices[i] ? (unsigned)(indices[i] - '0') : 5};
        for (size_t k = i % 2; k < 2; k++) { /* a clear code first, every second time */
            held |= all[k] << n_held;
            n_held += 3;
        }
        while (n_held >= 8 || (!indices[i] && n_held > 0)) {
            put8(&codes, held & 255);
            held >>= 8;
            n_held -= n_held < 8 ? n_held : 8;
        }
    }
    put8(&b, (unsigned)codes.n);
    put(&b, codes.data, codes.n);
    put(&b, "\0;", 2);
    blob_free(&codes);
    return b;
}

static void gif(void **state)
{
    (void)state;
    struct blob file = gif_file(3, 2, 0, 0, 3, 2, false, -1, "123012");
    check_pixels(&file, 3, 2, "rgb/krg/");
    assert_survives_damage(&file);
    for (size_t n = 0; n + 4 < file.n; n++) { /* the last bytes say only that it is over */
        struct image image;
        struct fathom_err err;
        if (decode_n(&image, &file, n, FATHOM_ALPHA_WHITE, &image_default_limits, &err) == FATHOM_OK)
            fail_msg("the first %zu of %zu bytes gave a picture", n, file.n);
    }
    blob_free(&file);
    file = gif_file(3, 2, 1, 1, 2, 1, false, 1, "12"); /* on white, and partly transparent */
    check_pixels(&file, 3, 2, "www/wwg/");
    blob_free(&file);
    file = gif_file(1, 1, 0, 0, 2, 1, false, -1, "12"); /* larger than its screen */
    check_pixels(&file, 2, 1, "rg/");
    blob_free(&file);
    file = gif_file(1, 5, 0, 0, 1, 5, true, -1, "01230"); /* rows 0, 4, 2, 1, 3 */
    check_pixels(&file, 1, 5, "k/b/g/k/r/");
    blob_free(&file);
    file = gif_file(65535, 65535, 0, 0, 2, 1, false, -1, "12");
    assert_refused(&file, &image_default_limits, FATHOM_ELIMIT, "a side");
    blob_free(&file);
}

/* ---- what libraries write -------------------------------------------------------------------------------------- */

#ifdef FATHOM_WEBP
#include <webp/encode.h>

static void webp(void **state)
{
    (void)state;
    static const uint8_t rgba[2][3][4] = {{{255, 0, 0, 255}, {0, 255, 0, 255}, {0, 0, 255, 255}},
                                          {{0, 0, 0, 255}, {0, 0, 0, 0}, {255, 255, 255, 255}}};
    uint8_t *bytes;
    size_t n = WebPEncodeLosslessRGBA(&rgba[0][0][0], 3, 2, 12, &bytes);
    struct blob file = {bytes, n};
    check_pixels(&file, 3, 2, "rgb/kww/");
    assert_truncations_fail(&file);
    assert_survives_damage(&file);
    WebPFree(bytes);

    static uint8_t grey[40][50][3];
    memset(grey, 100, sizeof grey);
    n = WebPEncodeRGB(&grey[0][0][0], 50, 40, 150, 90, &bytes);
    file = (struct blob){bytes, n};
    struct image image = decode_ok(&file, FATHOM_ALPHA_WHITE);
    assert_in_range(image.rgb[3 * 50 * 20], 98, 102);
    image_free(&image);
    assert_refused(&file, &(struct image_limits){1 << 20, 1999, 65500, 1 << 20}, FATHOM_ELIMIT, "the limit is 1999");
    WebPFree(bytes);
}
#endif

#ifdef FATHOM_TIFF
#include <tiffio.h>

struct page_spec {
    uint16_t photometric, depth, samples, orientation, compression;
    uint32_t type;
    const void *row;
    size_t n;
};

static void write_tiff(const char *path, const struct page_spec *pages, size_t n_pages)
{
    TIFF *t = TIFFOpen(path, "w");
    assert_non_null(t);
    for (size_t i = 0; i < n_pages; i++) {
        const struct page_spec *p = &pages[i];
        TIFFSetField(t, TIFFTAG_IMAGEWIDTH, 3);
        TIFFSetField(t, TIFFTAG_IMAGELENGTH, 1);
        TIFFSetField(t, TIFFTAG_BITSPERSAMPLE, p->depth);
        TIFFSetField(t, TIFFTAG_SAMPLESPERPIXEL, p->samples);
        TIFFSetField(t, TIFFTAG_PHOTOMETRIC, p->photometric);
        TIFFSetField(t, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
        TIFFSetField(t, TIFFTAG_COMPRESSION, p->compression);
        TIFFSetField(t, TIFFTAG_ORIENTATION, p->orientation);
        TIFFSetField(t, TIFFTAG_SUBFILETYPE, p->type);
        TIFFSetField(t, TIFFTAG_XRESOLUTION, 144.0);
        TIFFSetField(t, TIFFTAG_YRESOLUTION, 144.0);
        if (p->samples == 4 && p->photometric == PHOTOMETRIC_RGB)
            TIFFSetField(t, TIFFTAG_EXTRASAMPLES, 1, (uint16_t[]){EXTRASAMPLE_UNASSALPHA});
        assert_int_equal(TIFFWriteScanline(t, (void *)p->row, 0, 0), 1);
        assert_int_equal(TIFFWriteDirectory(t), 1);
    }
    TIFFClose(t);
}

static void tiff(void **state)
{
    (void)state;
    static const uint16_t deep[3] = {0, 65535, 0};
    static const struct page_spec pages[] = {
        {PHOTOMETRIC_RGB, 8, 3, 1, COMPRESSION_LZW, 0, "\377\0\0\0\377\0\0\0\377", 9},
        {PHOTOMETRIC_MINISBLACK, 8, 1, 1, COMPRESSION_NONE, FILETYPE_REDUCEDIMAGE, "\0\0\0", 3},
        {PHOTOMETRIC_MINISWHITE, 1, 1, 1, COMPRESSION_CCITTFAX4, FILETYPE_PAGE, "\xa0", 1},
        {PHOTOMETRIC_MINISBLACK, 16, 1, 1, COMPRESSION_ADOBE_DEFLATE, 0, deep, 6},
        {PHOTOMETRIC_RGB, 8, 3, 6, COMPRESSION_PACKBITS, 0, "\377\0\0\0\377\0\0\0\377", 9},
        {PHOTOMETRIC_RGB, 8, 4, 1, COMPRESSION_NONE, 0, "\377\0\0\377\0\377\0\0\0\0\377\377", 12},
        {PHOTOMETRIC_SEPARATED, 8, 4, 1, COMPRESSION_NONE, 0, "\0\377\377\0\0\0\0\0\0\0\0\377", 12},
    };
    static const struct {
        int w, h;
        const char *want;
    } wants[] = {{3, 1, "rgb/"}, {3, 1, "kwk/"}, {3, 1, "kwk/"}, {1, 3, "r/g/b/"}, {3, 1, "rwb/"}, {3, 1, "rwk/"}};
    enum { N = sizeof wants / sizeof *wants };
    char *dir = temp_create(), *path = temp_path(dir, "a.tif");
    struct document_options options = {.limits = image_default_limits};
    struct source *source;
    struct fathom_err err;
    write_tiff(path, pages, sizeof pages / sizeof *pages);
    FILE *file = fopen(path, "rb");
    if (source_open(&source, dup(fileno(file)), &options, &err))
        fail_msg("%s", err.message);
    fclose(file);
    assert_int_equal(source_n_pages(source), N); /* without the thumbnail */
    for (size_t i = N; i-- > 0;) {
        struct source_page page;
        if (source_page(source, i + 1, &page, &err))
            fail_msg("page %zu: %s", i + 1, err.message);
        const struct image *image = &page.page.image;
        assert_int_equal(image->width, wants[i].w);
        assert_int_equal(image->height, wants[i].h);
        assert_true(page.page.width_pt == wants[i].w / 2.0);
        char got[16];
        size_t n = 0;
        for (int k = 0; k < 3; k++) {
            const uint8_t *p = image->rgb + 3 * k;
            got[n++] = "krgybmcw"[(p[0] > 127) | (p[1] > 127) << 1 | (p[2] > 127) << 2];
            if (image->width == 1 || k == 2)
                got[n++] = '/';
        }
        got[n] = 0;
        assert_string_equal(got, wants[i].want);
        source_page_release(&page);
    }
    source_close(source);
    struct blob whole = blob_read(path);
    assert_survives_damage(&whole);
    blob_free(&whole);
    free(path);
    temp_remove(dir);
}
#endif

#ifdef FATHOM_ICC
#include <lcms2.h>

#include "helper/icc.h"

/* A profile with these primaries as bytes. */
static struct blob profile_of(bool is_srgb, double gamma)
{
    cmsCIExyY white = {0.3127, 0.3290, 1};
    cmsCIExyYTRIPLE wide = {{0.64, 0.33, 1}, {0.21, 0.71, 1}, {0.15, 0.06, 1}}; /* Adobe's green */
    cmsToneCurve *curve = cmsBuildGamma(NULL, gamma), *curves[3] = {curve, curve, curve};
    cmsHPROFILE profile = is_srgb ? cmsCreate_sRGBProfile() : cmsCreateRGBProfile(&white, &wide, curves);
    cmsUInt32Number n = 0;
    cmsSaveProfileToMem(profile, NULL, &n);
    struct blob b = {malloc(n), n};
    cmsSaveProfileToMem(profile, b.data, &n);
    cmsCloseProfile(profile);
    cmsFreeToneCurve(curve);
    return b;
}

static void profiles(void **state)
{
    (void)state;
    uint8_t pixels[4][3] = {{255, 255, 255}, {0, 0, 0}, {0, 128, 0}, {200, 100, 50}}, before[4][3];
    struct image image = {2, 2, &pixels[0][0]};
    struct blob same = profile_of(true, 0), wide = profile_of(false, 2.2);
    memcpy(before, pixels, sizeof pixels);
    assert_false(icc_to_srgb(&image, same.data, same.n));
    assert_memory_equal(pixels, before, sizeof pixels);
    assert_false(icc_to_srgb(&image, same.data, 100));
    assert_false(icc_to_srgb(&image, "no profile", 10));
    assert_memory_equal(pixels, before, sizeof pixels);
    assert_true(icc_to_srgb(&image, wide.data, wide.n));
    assert_in_range(pixels[0][0], 254, 255);
    assert_in_range(pixels[1][1], 0, 1);
    assert_true(pixels[3][0] > 205); /* a wider gamut's red is redder */

    /* The same through a PNG, unless stored colours are asked for. */
    static const uint16_t samples[3] = {200, 100, 50};
    struct blob plain = png_file(&(struct png_spec){.w = 1, .h = 1, .type = 2, .depth = 8, .samples = samples});
    struct blob file = {0}, chunk = {0}, z = zlib_stored(&wide);
    put(&chunk, "wide\0", 6);
    put(&chunk, z.data, z.n);
    put(&file, plain.data, 33);
    put_chunk(&file, "iCCP", chunk.data, chunk.n);
    put(&file, plain.data + 33, plain.n - 33);
    for (int ignore = 0; ignore < 2; ignore++) {
        struct codec_input in = {file.data, file.n, FATHOM_ALPHA_WHITE, ignore, &image_default_limits};
        struct decoded out;
        struct fathom_err err;
        assert_int_equal(picture_decode(&out, &in, &err), FATHOM_OK);
        assert_in_range(out.image.rgb[0], ignore ? 200 : 206, ignore ? 200 : 255);
        decoded_free(&out);
    }
    blob_free(&plain);
    blob_free(&file);
    blob_free(&chunk);
    blob_free(&z);
    blob_free(&same);
    blob_free(&wide);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bmp),      cmocka_unit_test(gif),
#ifdef FATHOM_WEBP
        cmocka_unit_test(webp),
#endif
#ifdef FATHOM_TIFF
        cmocka_unit_test(tiff),
#endif
#ifdef FATHOM_ICC
        cmocka_unit_test(profiles),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
