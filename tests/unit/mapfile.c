#include "base/mapfile.h"
#include "base/outfile.h"
#include "support.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static int setup(void **state)
{
    *state = temp_create();
    return 0;
}

static int teardown(void **state)
{
    temp_remove(*state);
    return 0;
}

static void expect_message(const char *path, enum fathom_status status, const char *format)
{
    char expected[1024];
    struct fathom_err err;
    struct mapfile f;
    char *text;
    size_t n;
    snprintf(expected, sizeof expected, format, path);
    assert_int_equal(mapfile_open(&f, path, &err), status);
    assert_string_equal(err.message, expected);
    assert_null(f.data);
    mapfile_close(&f);
    assert_int_equal(file_read(path, 100, &text, &n, &err), status);
    assert_string_equal(err.message, expected);
    assert_null(text);
}

static void test_reads_and_maps(void **state)
{
    char *path = temp_path(*state, "file"), *text;
    struct mapfile f;
    size_t n;
    write_text(*state, "file", "hello");
    assert_int_equal(mapfile_open(&f, path, NULL), 0);
    assert_int_equal(f.size, 5);
    assert_memory_equal(f.data, "hello", 5);
    mapfile_close(&f);
    mapfile_close(&f);
    assert_int_equal(file_read(path, 5, &text, &n, NULL), 0);
    assert_int_equal(n, 5);
    assert_string_equal(text, "hello");
    free(text);
    free(path);
}

static void test_empty_file(void **state)
{
    char *path = temp_path(*state, "file"), *text;
    struct mapfile f;
    size_t n;
    write_text(*state, "file", "");
    assert_int_equal(mapfile_open(&f, path, NULL), 0);
    assert_int_equal(f.size, 0);
    mapfile_close(&f);
    assert_int_equal(file_read(path, 0, &text, &n, NULL), 0);
    assert_string_equal(text, "");
    free(text);
    free(path);
}

static void test_what_cannot_be_read(void **state)
{
    struct fathom_err err;
    char *path = temp_path(*state, "file"), *text, expected[512];
    size_t n;
    expect_message(path, FATHOM_EIO, "cannot open '%s': No such file or directory");
    expect_message(*state, FATHOM_EIO, "'%s' is a directory");
    assert_int_equal(mkfifo(path, 0600), 0); /* nobody writes: must not wait */
    expect_message(path, FATHOM_EIO, "'%s' is not a regular file");
    assert_int_equal(unlink(path), 0);
    write_text(*state, "file", "123456");
    assert_int_equal(file_read(path, 5, &text, &n, &err), FATHOM_ELIMIT);
    snprintf(expected, sizeof expected, "'%s' has 6 bytes, more than the limit of 5", path);
    assert_string_equal(err.message, expected);
    if (geteuid() != 0) { /* root may read everything */
        assert_int_equal(chmod(path, 0), 0);
        expect_message(path, FATHOM_EIO, "cannot open '%s': Permission denied");
    }
    free(path);
}

static size_t count_entries(const char *dir)
{
    size_t n = 0;
    char command[512];
    snprintf(command, sizeof command, "ls -A '%s'", dir);
    FILE *list = popen(command, "r");
    for (int c = getc(list); c != EOF; c = getc(list))
        n += c == '\n';
    pclose(list);
    return n;
}

static void test_outfile_appears_whole(void **state)
{
    char *path = temp_path(*state, "file"), *text;
    size_t n;
    struct outfile f;
    write_text(*state, "file", "old");
    assert_int_equal(outfile_create(&f, path, NULL), 0);
    assert_int_equal(outfile_write(&f, "new", 3, NULL), 0);
    assert_int_equal(file_read(path, 10, &text, &n, NULL), 0);
    assert_string_equal(text, "old");
    free(text);
    assert_int_equal(outfile_commit(&f, NULL), 0);
    assert_int_equal(file_read(path, 10, &text, &n, NULL), 0);
    assert_string_equal(text, "new");
    free(text);
    assert_int_equal(count_entries(*state), 1);

    assert_int_equal(outfile_create(&f, path, NULL), 0);
    outfile_discard(&f);
    outfile_discard(&f);
    assert_int_equal(count_entries(*state), 1);
    free(path);
}

/* A limit on the size of files stands for a full disk. */
static void test_outfile_when_the_disk_is_full(void **state)
{
    struct rlimit old, limit;
    struct fathom_err err;
    struct outfile f;
    char *path = temp_path(*state, "file"), expected[512], data[8192] = {0};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    limit = old;
    limit.rlim_cur = 4096;
    assert_int_equal(outfile_create(&f, path, &err), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    enum fathom_status status = outfile_write(&f, data, sizeof data, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(status, FATHOM_EIO);
    snprintf(expected, sizeof expected, "cannot write '%s': File too large", path);
    assert_string_equal(err.message, expected);
    outfile_discard(&f);
    assert_int_equal(count_entries(*state), 0);
    free(path);
}

static void test_outfile_without_a_folder(void **state)
{
    struct fathom_err err;
    struct outfile f;
    char *path = temp_path(*state, "none/file"), expected[512];
    assert_int_equal(outfile_create(&f, path, &err), FATHOM_EIO);
    snprintf(expected, sizeof expected, "cannot create '%s': No such file or directory", path);
    assert_string_equal(err.message, expected);
    outfile_discard(&f);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_reads_and_maps, setup, teardown),
        cmocka_unit_test_setup_teardown(test_empty_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_cannot_be_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_outfile_appears_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(test_outfile_when_the_disk_is_full, setup, teardown),
        cmocka_unit_test_setup_teardown(test_outfile_without_a_folder, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
