/* PBM, PGM and PPM, plain and binary. */
#include "picture.h"

#define TEXT(s) ((struct blob){(uint8_t *)(s), sizeof(s) - 1})

static void check(struct blob file, enum fathom_alpha alpha, int w, int h, const char *rgb)
{
    struct image image = decode_ok(&file, alpha);
    assert_int_equal(image.width, w);
    assert_int_equal(image.height, h);
    assert_memory_equal(image.rgb, rgb, (size_t)w * (size_t)h * 3);
    image_free(&image);
}

static void bilevel(void **state)
{
    (void)state;
    static const char want[] = "\xff\xff\xff\0\0\0\xff\xff\xff"
                               "\0\0\0\0\0\0\xff\xff\xff";
    check(TEXT("P1 3 2 010110"), FATHOM_ALPHA_WHITE, 3, 2, want);
    check(TEXT("P1\n# a comment\n3 # another\n2\n0 1\t0\n1#x\n1 0\n"), FATHOM_ALPHA_WHITE, 3, 2, want);
    check(TEXT("P4\n3 2\n\x40\xdf"), FATHOM_ALPHA_DROP, 3, 2, want);
    /* rows of nine pixels start on a byte */
    struct blob file = TEXT("P4 9 2 \xff\x7f\x00\x80");
    struct image image = decode_ok(&file, FATHOM_ALPHA_WHITE);
    for (int x = 0; x < 9; x++) {
        assert_int_equal(image.rgb[3 * x], x < 8 ? 0 : 255);
        assert_int_equal(image.rgb[3 * (9 + x)], x < 8 ? 255 : 0);
    }
    image_free(&image);
}

static void grey_and_colour(void **state)
{
    (void)state;
    check(TEXT("P2 2 1 15 0 10"), FATHOM_ALPHA_WHITE, 2, 1, "\0\0\0\xaa\xaa\xaa");
    check(TEXT("P5 2 1 255 a\xff"), FATHOM_ALPHA_WHITE, 2, 1, "aaa\xff\xff\xff");
    check(TEXT("P3\n1 2\n# max\n255\n1 2 3\n4 5 255"), FATHOM_ALPHA_WHITE, 1, 2, "\1\2\3\4\5\xff");
    check(TEXT("P6\n1 1\n#c\n255\nRGB"), FATHOM_ALPHA_WHITE, 1, 1, "RGB");
    check(TEXT("P6 1 1 255 RGBP6 what follows is another picture"), FATHOM_ALPHA_WHITE, 1, 1, "RGB");
    check(TEXT("P6 1 1 255\n\n\n#"), FATHOM_ALPHA_WHITE, 1, 1, "\n\n#"); /* one byte ends the header */
    check(TEXT("P6\r\n1 1\r255\tabc"), FATHOM_ALPHA_WHITE, 1, 1, "abc");
}

/* Scaled and rounded; without compositing, deep greys saturate as in Pillow, colours do not. */
static void deep(void **state)
{
    (void)state;
    check(TEXT("P5 2 1 65535\n\x80\x80\x01\x00"), FATHOM_ALPHA_WHITE, 2, 1, "\x80\x80\x80\1\1\1");
    check(TEXT("P5 2 1 65535\n\x80\x80\x00\x07"), FATHOM_ALPHA_DROP, 2, 1, "\xff\xff\xff\7\7\7");
    check(TEXT("P6 1 1 65535\n\x80\x80\x01\x00\xff\xff"), FATHOM_ALPHA_DROP, 1, 1, "\x80\1\xff");
    check(TEXT("P2 3 1 1000 0 500 1000"), FATHOM_ALPHA_WHITE, 3, 1, "\0\0\0\x80\x80\x80\xff\xff\xff");
    check(TEXT("P5 3 1 1 \0\1\0"), FATHOM_ALPHA_DROP, 3, 1, "\0\0\0\xff\xff\xff\0\0\0");
}

static void bad(void **state)
{
    (void)state;
    static const struct {
        struct blob file;
        enum fathom_status status;
        const char *part;
    } cases[] = {
        {TEXT("P6\n4 4\n255\nabc"), FATHOM_EFORMAT, "breaks off in row 1 of 4"},
        {TEXT("P6\n1 4\n255\nabcabca"), FATHOM_EFORMAT, "breaks off in row 3 of 4"},
        {TEXT("P6\n4"), FATHOM_EFORMAT, "breaks off before its height"},
        {TEXT("P6\n4 #"), FATHOM_EFORMAT, "breaks off before its height"},
        {TEXT("P6\n4 4 255"), FATHOM_EFORMAT, "header does not end"},
        {TEXT("P6\n4 4 0 "), FATHOM_EFORMAT, "the maxval is 0"},
        {TEXT("P6\n4 4 65536 "), FATHOM_EFORMAT, "maxval is greater than 65535"},
        {TEXT("P6\n-4 4 255 "), FATHOM_EFORMAT, "width is not a number"},
        {TEXT("P6\n0 4 255 "), FATHOM_EFORMAT, "0 x 4"},
        {TEXT("P6\n999999999 999999999\n255\n"), FATHOM_EFORMAT, "width is greater than"},
        {TEXT("P6\n65501 1\n255\n"), FATHOM_ELIMIT, "65500 a side"},
        {TEXT("P6\n65500 65500\n255\n"), FATHOM_EFORMAT, "breaks off in row 1 of 65500"},
        {TEXT("P6\n99999999999999999999999999999999999 1\n255\n"), FATHOM_EFORMAT, "width is greater"},
        {TEXT("P5 1 1 100 \x65"), FATHOM_EFORMAT, "sample is greater than 100"},
        {TEXT("P2 1 1 100 101"), FATHOM_EFORMAT, "sample is greater than 100"},
        {TEXT("P2 2 2 100 1 2 3#4"), FATHOM_EFORMAT, "breaks off in row 2 of 2"},
        {TEXT("P2 1 1 100 x"), FATHOM_EFORMAT, "sample is not a number"},
        {TEXT("P1 2 1 02"), FATHOM_EFORMAT, "other than 0 and 1"},
        {TEXT("P1 2 1 0 #1"), FATHOM_EFORMAT, "breaks off in row 1 of 1"},
        {TEXT("P4 9 1 \xff"), FATHOM_EFORMAT, "breaks off in row 1 of 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_refused(&cases[i].file, &image_default_limits, cases[i].status, cases[i].part);
}

static void truncated(void **state)
{
    (void)state;
    assert_truncations_fail(&TEXT("P1 3 2 010110"));
    assert_truncations_fail(&TEXT("P2\n#x\n3 1 255 1 2 3"));
    assert_truncations_fail(&TEXT("P3 1 1 9 1 2 3"));
    assert_truncations_fail(&TEXT("P4 9 1 ab"));
    assert_truncations_fail(&TEXT("P5 3 1 255 abc"));
    assert_truncations_fail(&TEXT("P6 1 2 65535 abcdefghijkl"));
}

static void damaged(void **state)
{
    (void)state;
    struct blob file = {0};
    put(&file, "P6\n# c\n3 2\n255\nabcdefghijklmnopqr", 33);
    assert_survives_damage(&file);
    blob_free(&file);
    put(&file, "P2\n# c\n3 2\n300\n1 2 3 4 5 6 ", 27);
    assert_survives_damage(&file);
    blob_free(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bilevel), cmocka_unit_test(grey_and_colour), cmocka_unit_test(deep),
        cmocka_unit_test(bad),     cmocka_unit_test(truncated),       cmocka_unit_test(damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
