/* JPEG: pictures of every kind against Pillow's pixels (the .ppm beside each), orientation, and hostile files. */
#include "picture.h"

#define PICTURES "tests/golden/pictures/"

static const char *const names[] = {"colour_444", "colour_422", "colour_420", "progressive",
                                    "grey",       "cmyk",       "arithmetic", "grey_progressive"};
#define N_NAMES (sizeof names / sizeof *names)

static struct blob picture(const char *name, const char *suffix)
{
    char path[256];
    snprintf(path, sizeof path, PICTURES "%s%s", name, suffix);
    return blob_read(path);
}

static int setup(void **state)
{
    struct blob *grey = malloc(sizeof *grey);
    *grey = picture("grey", ".jpg");
    *state = grey;
    return 0;
}

static int teardown(void **state)
{
    struct blob *grey = *state;
    blob_free(grey);
    free(grey);
    return 0;
}

static void pixels(void **state)
{
    need_format(*state);
    for (size_t i = 0; i < N_NAMES; i++) {
        struct blob file = picture(names[i], ".jpg"), expected = picture(names[i], ".ppm");
        struct image got = decode_ok(&file, FATHOM_ALPHA_WHITE), want = decode_ok(&expected, FATHOM_ALPHA_WHITE);
        assert_int_equal(got.width, want.width);
        assert_int_equal(got.height, want.height);
        for (int k = 0; k < got.width * got.height * 3; k++)
            if (got.rgb[k] != want.rgb[k])
                fail_msg("%s: byte %d is %d, expected %d", names[i], k, got.rgb[k], want.rgb[k]);
        image_free(&got);
        image_free(&want);
        blob_free(&file);
        blob_free(&expected);
    }
}

/* The file with an APP1 marker behind its SOI. */
static struct blob with_app1(const struct blob *file, const struct blob *exif)
{
    struct blob out = {0};
    put(&out, file->data, 2);
    put16(&out, 0xffe1);
    put16(&out, (unsigned)exif->n + 8);
    put(&out, "Exif\0", 6);
    put(&out, exif->data, exif->n);
    put(&out, file->data + 2, file->n - 2);
    return out;
}

static void orientation(void **state)
{
    need_format(*state);
    struct image plain = decode_ok(*state, FATHOM_ALPHA_WHITE);
    int w = plain.width, h = plain.height;
    for (unsigned o = 1; o <= 8; o++) {
        struct blob exif = exif_block(o % 2, o), file = with_app1(*state, &exif);
        struct image image = decode_ok(&file, FATHOM_ALPHA_WHITE);
        int corner_x = o == 2 || o == 3 || o == 7 || o == 8 ? w - 1 : 0; /* what becomes the top left pixel */
        int corner_y = o == 3 || o == 4 || o == 6 || o == 7 ? h - 1 : 0;
        assert_int_equal(image.width, o < 5 ? w : h);
        assert_int_equal(image.height, o < 5 ? h : w);
        assert_int_equal(image.rgb[0], plain.rgb[3 * (corner_y * w + corner_x)]);
        image_free(&image);
        blob_free(&exif);
        blob_free(&file);
    }
    image_free(&plain);
}

static void truncated(void **state)
{
    need_format(*state);
    for (size_t i = 0; i < N_NAMES; i++) {
        struct blob file = picture(names[i], ".jpg");
        assert_truncations_fail(&file);
        blob_free(&file);
    }
    struct blob file = picture("colour_420", ".jpg");
    struct blob header = {file.data, 30}, unfinished = {file.data, file.n - 2};
    assert_refused(&header, &image_default_limits, FATHOM_EFORMAT, "breaks off in its header");
    assert_refused(&unfinished, &image_default_limits, FATHOM_EFORMAT, "pixels break off in row");
    blob_free(&file);
    file = picture("progressive", ".jpg");
    file.n -= 40;
    assert_refused(&file, &image_default_limits, FATHOM_EFORMAT, "breaks off in scan");
    blob_free(&file);
}

/* Cut in the middle and closed with an end marker: libjpeg alone would fill the rest with grey. */
static void cut_and_closed(void **state)
{
    need_format(*state);
    struct blob file = picture("colour_444", ".jpg");
    file.n -= 300;
    put16(&file, 0xffd9);
    assert_refused(&file, &image_default_limits, FATHOM_EFORMAT, "pixels break off");
    blob_free(&file);
}

static void damaged(void **state)
{
    need_format(*state);
    assert_survives_damage(*state);
    struct blob file = picture("colour_422", ".jpg"), exif = exif_block(false, 5);
    struct blob turned = with_app1(&file, &exif);
    assert_survives_damage(&turned);
    blob_free(&turned);
    blob_free(&file);
    blob_free(&exif);
}

/* ---- by hand ----------------------------------------------------------------------------------------------------- */

/* SOI, a quantisation table, a frame of one component and a Huffman table in which one bit says "no difference". */
static struct blob start(unsigned sof, unsigned w, unsigned h)
{
    struct blob b = {0};
    put16(&b, 0xffd8);
    put16(&b, 0xffdb);
    put16(&b, 67);
    put8(&b, 0);
    for (int i = 0; i < 64; i++)
        put8(&b, 1);
    put16(&b, sof);
    put16(&b, 11);
    put8(&b, 8);
    put16(&b, h);
    put16(&b, w);
    put(&b, "\x01\x01\x11\x00", 4);
    put16(&b, 0xffc4);
    put16(&b, 20);
    put(&b, "\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 17);
    put8(&b, 0);
    return b;
}

/* A scan of DC coefficients alone. */
static void put_scan(struct blob *b, size_t n_bytes)
{
    put16(b, 0xffda);
    put16(b, 8);
    put(b, "\x01\x01\x00\x00\x00\x00", 6);
    for (size_t i = 0; i < n_bytes; i++)
        put8(b, 0);
}

static void scan_bomb(void **state)
{
    need_format(*state);
    for (int n = 1; n <= 301; n += 150) {
        struct blob file = start(0xffc2, 8, 8);
        for (int i = 0; i < n; i++)
            put_scan(&file, 1);
        put16(&file, 0xffd9);
        if (n <= 200) {
            struct image image = decode_ok(&file, FATHOM_ALPHA_WHITE);
            assert_int_equal(image.rgb[0], 128);
            image_free(&image);
        } else
            assert_refused(&file, &image_default_limits, FATHOM_ELIMIT, "more than 200 scans");
        blob_free(&file);
    }
}

static void size_bombs(void **state)
{
    need_format(*state);
    struct blob file = start(0xffc0, 65500, 65500);
    put_scan(&file, 10);
    assert_refused(&file, &image_default_limits, FATHOM_ELIMIT, "65500 x 65500 pixels, the limit is 178956970 in all");
    blob_free(&file);

    file = start(0xffc0, 65535, 65535);
    put_scan(&file, 10);
    assert_refused(&file, &image_default_limits, FATHOM_ELIMIT, "too large");
    blob_free(&file);

    file = start(0xffc2, 20000, 20000);
    put_scan(&file, 10);
    struct image_limits limits = image_default_limits;
    limits.max_work_bytes = 500 * 1000 * 1000;
    assert_refused(&file, &limits, FATHOM_ELIMIT, "progressive JPEG of 20000 x 20000 pixels needs");
    blob_free(&file);

    file = start(0xffc0, 8, 0);
    put_scan(&file, 10);
    assert_refused(&file, &image_default_limits, FATHOM_EFORMAT, "broken");
    blob_free(&file);
}

static void other_kinds(void **state)
{
    need_format(*state);
    struct blob lossless = start(0xffc3, 8, 8), deep = start(0xffc1, 8, 8);
    put_scan(&lossless, 4);
    assert_refused(&lossless, &image_default_limits, FATHOM_EUNSUPPORTED, "not supported");
    for (size_t i = 0; i + 4 < deep.n; i++)
        if (deep.data[i] == 0xff && deep.data[i + 1] == 0xc1)
            deep.data[i + 4] = 12; /* bits a sample */
    put_scan(&deep, 4);
    assert_refused(&deep, &image_default_limits, FATHOM_EUNSUPPORTED, "not supported");
    blob_free(&lossless);
    blob_free(&deep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels),         cmocka_unit_test(orientation), cmocka_unit_test(truncated),
        cmocka_unit_test(cut_and_closed), cmocka_unit_test(damaged),     cmocka_unit_test(scan_bomb),
        cmocka_unit_test(size_bombs),     cmocka_unit_test(other_kinds),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
