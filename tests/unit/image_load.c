/* Files and formats: what is not a picture is told apart, limits hold, messages name the file. */
#include "picture.h"

#include <sys/stat.h>
#include <unistd.h>

static char folder[64], path[128];

static int setup(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/fathom-image-XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/page.ppm", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void write_file(const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    fclose(file);
}

static void check_load_fails(const char *name, const struct image_limits *limits, enum fathom_status status,
                             const char *part)
{
    struct image image;
    struct fathom_err err = {0};
    assert_int_equal(image_load(&image, name, FATHOM_ALPHA_WHITE, limits, &err), status);
    assert_null(image.rgb);
    if (!strstr(err.message, name) || !strstr(err.message, part))
        fail_msg("'%s' does not name '%s' and say '%s'", err.message, name, part);
}

static void files(void **state)
{
    (void)state;
    struct image image;
    struct fathom_err err = {0};
    write_file("P6 2 1 255 abcdef", 17);
    assert_int_equal(image_load(&image, path, FATHOM_ALPHA_WHITE, &image_default_limits, &err), FATHOM_OK);
    assert_int_equal(image.width, 2);
    assert_memory_equal(image.rgb, "abcdef", 6);
    image_free(&image);

    struct image_limits small = image_default_limits;
    small.max_file_bytes = 16;
    check_load_fails(path, &small, FATHOM_ELIMIT, "16");
    write_file("", 0);
    check_load_fails(path, &image_default_limits, FATHOM_EFORMAT, "an empty file");
    write_file("P6 2 1 255 abcde", 16);
    check_load_fails(path, &image_default_limits, FATHOM_EFORMAT, "': the PNM picture breaks off in row 1 of 1");
    check_load_fails(folder, &image_default_limits, FATHOM_EIO, "directory");
    check_load_fails("/nonexistent/x.png", &image_default_limits, FATHOM_EIO, "No such file");
    if (geteuid() != 0) {
        chmod(path, 0);
        check_load_fails(path, &image_default_limits, FATHOM_EIO, "Permission denied");
        chmod(path, 0600);
    }
}

static void fifo_does_not_block(void **state)
{
    (void)state;
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    check_load_fails(path, &image_default_limits, FATHOM_EIO, "not a regular file");
}

static void formats(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        enum fathom_status status;
        const char *part;
    } cases[] = {
        {"", 0, FATHOM_EFORMAT, "an empty file"},
        {"h", 1, FATHOM_EFORMAT, "begins with 68"},
        {"<html>", 6, FATHOM_EFORMAT, "begins with 3c 68 74 6d 6c 3e"},
        {"GIF89a", 6, FATHOM_EFORMAT, "GIF"},
        {"\xff\n......", 8, FATHOM_EUNSUPPORTED, "JPEG XL"},
        {"\0\0\0\x18"
         "ftypheic",
         12, FATHOM_EUNSUPPORTED, "HEIF"},
        {"%PDF-1.7", 8, FATHOM_EUNSUPPORTED, "PDF"},
        {"BM....\0\0\0\0", 10, FATHOM_EFORMAT, "BMP"},
        {"BM......", 8, FATHOM_EFORMAT, "begins with 42 4d"},
        {"P7\nWIDTH", 8, FATHOM_EUNSUPPORTED, "PAM"},
        {"P6x", 3, FATHOM_EFORMAT, "begins with 50 36 78"},
        {"\xff\xd8\xfe", 3, FATHOM_EFORMAT, "begins with ff d8 fe"},
        {"\x89PNG\n\n\x1a\n", 8, FATHOM_EFORMAT, "begins with 89 50"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct blob file = {(uint8_t *)cases[i].bytes, cases[i].n};
        assert_refused(&file, &image_default_limits, cases[i].status, cases[i].part);
    }
}

static void limits(void **state)
{
    (void)state;
    struct blob file = {(uint8_t *)"P6 3 2 255 abcdefghijklmnopqr", 29};
    struct image_limits exact = {29, 6, 3, 0};
    struct image image;
    struct fathom_err err;
    assert_int_equal(decode_n(&image, &file, file.n, FATHOM_ALPHA_WHITE, &exact, &err), FATHOM_OK);
    image_free(&image);
    assert_refused(&file, &(struct image_limits){28, 6, 3, 0}, FATHOM_ELIMIT, "29 bytes, the limit is 28");
    assert_refused(&file, &(struct image_limits){29, 5, 3, 0}, FATHOM_ELIMIT, "3 x 2 pixels, the limit is 5 in all");
    assert_refused(&file, &(struct image_limits){29, 6, 2, 0}, FATHOM_ELIMIT, "3 x 2 pixels, the limit is 2 a side");
    assert_refused(&file, &(struct image_limits){29, 6, -1, 0}, FATHOM_ELIMIT, "a side");
}

static void long_and_tiny(void **state)
{
    (void)state;
    struct blob file = {0};
    put(&file, "P5 20000 30 255 ", 16);
    for (int i = 0; i < 20000 * 30; i++)
        put8(&file, (unsigned)i % 251);
    struct image image = decode_ok(&file, FATHOM_ALPHA_WHITE);
    assert_int_equal(image.width, 20000);
    assert_int_equal(image.height, 30);
    assert_int_equal(image.rgb[3 * (20000 * 30 - 1)], (20000 * 30 - 1) % 251);
    image_free(&image);
    blob_free(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files),  cmocka_unit_test(fifo_does_not_block), cmocka_unit_test(formats),
        cmocka_unit_test(limits), cmocka_unit_test(long_and_tiny),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
