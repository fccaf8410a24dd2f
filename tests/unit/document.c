/* Documents through the helper process: what comes in, and what a helper that was taken over can do to us. */
#include "decoder_fixture.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static struct document *open_ok(const char *path)
{
    struct document_options options = usual();
    struct document *d;
    struct fathom_err err;
    if (document_open(&d, decoder, path, &options, &err))
        fail_msg("%s", err.message);
    return d;
}

static void check_open_fails(const char *path, enum fathom_status status, const char *part)
{
    struct document_options options = usual();
    struct document *d;
    struct fathom_err err = {0};
    enum fathom_status got = document_open(&d, decoder, path, &options, &err);
    assert_null(d);
    if (got != status || !strstr(err.message, part) || !strstr(err.message, path))
        fail_msg("status %d, '%s'; expected %d and '%s'", got, err.message, status, part);
}

static void check_page_fails(struct document *d, size_t number, enum fathom_status status, const char *part)
{
    struct document_page page;
    struct fathom_err err = {0};
    enum fathom_status got = document_page(d, number, &page, &err);
    assert_null(page.image.rgb);
    assert_null(page.text_layer);
    assert_null(page.jpeg);
    if (got != status || !strstr(err.message, part))
        fail_msg("status %d, '%s'; expected %d and '%s'", got, err.message, status, part);
}

static struct document_page page_ok(struct document *d, size_t number)
{
    struct document_page page;
    struct fathom_err err;
    if (document_page(d, number, &page, &err))
        fail_msg("page %zu: %s", number, err.message);
    return page;
}

/* dir/name with these bytes; the caller's to free. */
static char *file_of(const char *name, const void *bytes, size_t n)
{
    write_bytes(dir, name, bytes, n);
    return temp_path(dir, name);
}

/* ---- files --------------------------------------------------------------------------------------------------- */

static void ppm_needs_no_helper(void **state)
{
    (void)state;
    char *path = file_of("page.png", "P6 2 1 255 abcdef", 17); /* names tell nothing */
    setenv("FATHOM_HELPER", "/nonexistent/helper", 1);
    struct document *d = open_ok(path);
    assert_int_equal(document_n_pages(d), 1);
    struct document_page page = page_ok(d, 1);
    assert_memory_equal(page.image.rgb, "abcdef", 6);
    assert_true(page.width_pt == 2 && page.height_pt == 1);
    document_page_release(&page);
    check_page_fails(d, 0, FATHOM_EINVAL, "no page 0");
    check_page_fails(d, 2, FATHOM_EINVAL, "no page 2 of 1");
    document_close(d);
    check_open_fails("examples/page.png", FATHOM_EUNSUPPORTED, "FATHOM_HELPER names '/nonexistent/helper'");
    unsetenv("FATHOM_HELPER");
    free(path);
}

static void pictures(void **state)
{
    (void)state;
    struct blob file = png_plain(30, 20, 77), jpeg = blob_read("tests/golden/pictures/grey.jpg");
    char *path = file_of("a", file.data, file.n);
    struct document *d = open_ok(path), *e = open_ok("tests/golden/pictures/grey.jpg");
    for (int i = 0; i < 2; i++) { /* two documents take turns on one decoder */
        struct document_page page = page_ok(d, 1), other = page_ok(e, 1);
        struct image want = decode_ok(&jpeg, FATHOM_ALPHA_WHITE);
        assert_int_equal(page.image.width, 30);
        assert_int_equal(page.image.rgb[3 * 30 * 20 - 1], 77);
        assert_null(page.jpeg);
        assert_int_equal(other.image.height, want.height);
        assert_memory_equal(other.image.rgb, want.rgb, (size_t)want.width * (size_t)want.height * 3);
        assert_int_equal(other.jpeg_bytes, jpeg.n);
        assert_memory_equal(other.jpeg, jpeg.data, jpeg.n);
        document_page_release(&page);
        document_page_release(&other);
        image_free(&want);
    }
    document_close(d);
    document_close(e);
    free(path);
    path = file_of("broken", file.data, file.n - 30);
    d = open_ok(path);
    check_page_fails(d, 1, FATHOM_EFORMAT, "the PNG breaks off");
    document_close(d);
    free(path);
    blob_free(&file);
    blob_free(&jpeg);
}

static void what_is_no_document(void **state)
{
    (void)state;
    char *path = file_of("empty", "", 0);
    check_open_fails(path, FATHOM_EFORMAT, "an empty file");
    free(path);
    path = file_of("text", "hello world", 11);
    check_open_fails(path, FATHOM_EFORMAT, "begins with 68 65");
    free(path);
    path = file_of("zip", "PK\3\4....", 8);
    check_open_fails(path, FATHOM_EUNSUPPORTED, "ZIP");
    free(path);
    check_open_fails(dir, FATHOM_EIO, "a directory");
    check_open_fails("/nonexistent/x", FATHOM_EIO, "No such file");
    check_open_fails("/dev/zero", FATHOM_EIO, "a device");
}

static void options_are_checked(void **state)
{
    (void)state;
    char password[300];
    struct document_options options = usual();
    struct document *d;
    struct fathom_err err;
    memset(password, 'x', sizeof password);
    password[sizeof password - 1] = 0;
    options.dpi = -3;
    assert_int_equal(document_open(&d, decoder, "examples/page.png", &options, &err), FATHOM_EINVAL);
    options.dpi = 0;
    options.password = password;
    assert_int_equal(document_open(&d, decoder, "examples/page.png", &options, &err), FATHOM_EINVAL);
    assert_null(strstr(err.message, "xxx"));
}

static void changes_while_it_is_read(void **state)
{
    (void)state;
    char *path = file_of("shrinks", "P6 2 1 255 abcdef", 17);
    struct document *d = open_ok(path);
    assert_int_equal(truncate(path, 12), 0);
    check_page_fails(d, 1, FATHOM_EFORMAT, "breaks off");
    assert_int_equal(truncate(path, 0), 0);
    check_page_fails(d, 1, FATHOM_EFORMAT, "an empty file");
    document_close(d);
    free(path);

    struct blob file = png_plain(300, 200, 77);
    path = file_of("shrinks.png", file.data, file.n);
    d = open_ok(path);
    assert_int_equal(truncate(path, 5000), 0); /* too late: pictures are read when they are opened */
    struct document_page page = page_ok(d, 1);
    document_page_release(&page);
    document_close(d);
    d = open_ok(path);
    check_page_fails(d, 1, FATHOM_EFORMAT, "breaks off");
    document_close(d);
    free(path);
    blob_free(&file);
}

/* ---- pipes --------------------------------------------------------------------------------------------------- */

/* A child that opens the path, when there is one, else writes to fd, slowly. */
static pid_t writer(const char *path, int fd, const char *bytes, size_t n)
{
    pid_t pid = fork();
    if (pid == 0) {
        usleep(100 * 1000);
        FILE *f = path ? fopen(path, "w") : fdopen(fd, "w");
        for (size_t i = 0; f && i < n; i++) {
            fputc(bytes[i], f);
            fflush(f);
            usleep(10 * 1000);
        }
        _exit(f && fclose(f) == 0 ? 0 : 1);
    }
    return pid;
}

static void pipes(void **state)
{
    (void)state;
    int ends[2], how, saved = dup(STDIN_FILENO);
    char *path = temp_path(dir, "fifo");
    assert_int_equal(mkfifo(path, 0600), 0);
    pid_t pid = writer(path, -1, "P5 2 2 255 wxyz", 15);
    struct document *d = open_ok(path);
    struct document_page page = page_ok(d, 1);
    assert_int_equal(page.image.rgb[11], 'z');
    document_page_release(&page);
    document_close(d);
    assert_int_equal(waitpid(pid, &how, 0), pid);
    check_open_fails(path, FATHOM_EIO, "nobody writes to");
    free(path);

    assert_int_equal(pipe(ends), 0);
    pid = writer(NULL, ends[1], "P5 2 2 255 wxyz", 15);
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    d = open_ok("-");
    page = page_ok(d, 1);
    assert_int_equal(page.image.rgb[11], 'z');
    document_page_release(&page);
    document_close(d);
    assert_int_equal(waitpid(pid, &how, 0), pid);

    dup2(saved, STDIN_FILENO);
    close(saved);
}

static void pipe_limit(void **state)
{
    (void)state;
    struct document_options options = usual();
    struct document *d;
    struct fathom_err err;
    char *path = temp_path(dir, "fifo");
    int how;
    options.limits.max_file_bytes = 10;
    assert_int_equal(mkfifo(path, 0600), 0);
    signal(SIGPIPE, SIG_IGN);
    pid_t pid = writer(path, -1, "P5 2 2 255 wxyz", 15);
    assert_int_equal(document_open(&d, decoder, path, &options, &err), FATHOM_ELIMIT);
    assert_non_null(strstr(err.message, "more than 10 bytes"));
    assert_int_equal(waitpid(pid, &how, 0), pid);
    free(path);
}

/* ---- a helper that misbehaves --------------------------------------------------------------------------------- */

/* What the fake helper is told to do, and what the library makes of it. */
struct fake_case {
    const char *word;
    enum fathom_status status;
    const char *part; /* of the message */
};

static void use_fake_helper(void)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 32);
    assert_true(n > 0);
    path[n] = 0;
    strcpy(strrchr(path, '/'), "/fake_helper");
    setenv("FATHOM_HELPER", path, 1);
}

static char *fake_file(const char *word)
{
    char bytes[64];
    snprintf(bytes, sizeof bytes, "\xff\xd8\xff%s", word);
    return file_of(word, bytes, strlen(bytes));
}

static void page_alone_fails(void **state)
{
    (void)state;
    static const struct fake_case cases[] = {
        {"dies", FATHOM_EIO, "died of signal 11 (Segmentation fault) on page 2"},
        {"ends", FATHOM_EIO, "ended with status 3 on page 2"},
        {"closes", FATHOM_EIO, "on page 2"},
        {"hangs", FATHOM_ELIMIT, "longer than 1 s on page 2"},
        {"short-packet", FATHOM_EIO, "no proper answer on page 2"},
        {"long-packet", FATHOM_EIO, "no proper answer on page 2"},
        {"with-file", FATHOM_EIO, "no proper answer on page 2"},
        {"no-pixels", FATHOM_ELIMIT, "longer than 1 s on page 2"},
        {"few-pixels", FATHOM_EIO, "no proper answer on page 2"},
        {"dies-late", FATHOM_EIO, "died of signal 7 (Bus error) on page 2"},
        {"wide", FATHOM_EIO, "no proper answer"},
        {"high", FATHOM_EIO, "no proper answer"},
        {"large", FATHOM_EIO, "no proper answer"},
        {"empty", FATHOM_EIO, "no proper answer"},
        {"nan", FATHOM_EIO, "no proper answer"},
        {"infinite", FATHOM_EIO, "no proper answer"},
        {"long-text", FATHOM_EIO, "no proper answer"},
        {"short-text", FATHOM_EIO, "no proper answer on page 2"},
        {"odd-status", FATHOM_EIO, "no proper answer"},
        {"cancelled", FATHOM_EIO, "no proper answer"},
        {"mute", FATHOM_EIO, "no proper answer"},
        {"endless-message", FATHOM_EIO, "no proper answer"},
        {"dirty-message", FATHOM_EFORMAT, "?[2Jcaf\xc3\xa9 ?%s%n"},
    };
    use_fake_helper();
    setenv("FATHOM_HELPER_TIMEOUT", "1", 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *path = fake_file(cases[i].word);
        struct document *d = open_ok(path);
        assert_int_equal(document_n_pages(d), 3);
        for (size_t number = 1; number <= 3; number += 2) {
            struct document_page page = page_ok(d, number);
            assert_memory_equal(page.image.rgb, "abcdefghijkl", 12);
            document_page_release(&page);
            if (number == 1)
                check_page_fails(d, 2, cases[i].status, cases[i].part);
        }
        document_close(d);
        free(path);
    }
    unsetenv("FATHOM_HELPER_TIMEOUT");
    unsetenv("FATHOM_HELPER");
}

static void file_fails(void **state)
{
    (void)state;
    static const struct fake_case cases[] = {
        {"open-dies", FATHOM_EIO, "died of signal 11 (Segmentation fault) on the file"},
        {"other-version", FATHOM_EIO, "not of this version"},
        {"many-pages", FATHOM_EIO, "no proper answer"},
        {"open-with-file", FATHOM_EIO, "no proper answer"},
        {"no-pages", FATHOM_EFORMAT, "without pages"},
    };
    use_fake_helper();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *path = fake_file(cases[i].word);
        check_open_fails(path, cases[i].status, cases[i].part);
        free(path);
    }
    unsetenv("FATHOM_HELPER");
}

static void what_is_delivered_is_cleaned(void **state)
{
    (void)state;
    use_fake_helper();
    char *path = fake_file("text");
    struct document *d = open_ok(path);
    struct document_page page = page_ok(d, 2);
    assert_string_equal(page.text_layer, "???text\n\xe2\x82\xac");
    document_page_release(&page);
    document_close(d);
    free(path);
    path = fake_file("jpeg"); /* the bytes are ours, not the helper's */
    d = open_ok(path);
    page = page_ok(d, 2);
    assert_int_equal(page.jpeg_bytes, 7);
    assert_memory_equal(page.jpeg, "\xff\xd8\xffjpeg", 7);
    document_page_release(&page);
    document_close(d);
    free(path);
    unsetenv("FATHOM_HELPER");
}

/* A program that ignores its children's ends, or waits for all of them, loses what killed the helper, and nothing else. */
static void children_that_others_reap(void **state)
{
    (void)state;
    use_fake_helper();
    signal(SIGCHLD, SIG_IGN);
    char *path = fake_file("dies");
    struct document *d = open_ok(path);
    check_page_fails(d, 2, FATHOM_EIO, "the decoder died on page 2");
    struct document_page page = page_ok(d, 3);
    document_page_release(&page);
    document_close(d);
    free(path);
    signal(SIGCHLD, SIG_DFL);
    unsetenv("FATHOM_HELPER");
}

static size_t n_descriptors(void)
{
    size_t n = 0;
    DIR *fds = opendir("/proc/self/fd");
    assert_non_null(fds);
    while (readdir(fds))
        n++;
    closedir(fds);
    return n;
}

static void nothing_is_left_over(void **state)
{
    (void)state;
    size_t before = n_descriptors();
    use_fake_helper();
    static const char *const words[] = {"dies", "few-pixels", "with-file", "long-packet", "nan", "text"};
    for (size_t i = 0; i < 3 * sizeof words / sizeof *words; i++) {
        char *path = fake_file(words[i % (sizeof words / sizeof *words)]);
        struct document *d = open_ok(path);
        struct document_page page;
        struct fathom_err err;
        if (document_page(d, 2, &page, &err) == FATHOM_OK)
            document_page_release(&page);
        document_close(d);
        free(path);
    }
    unsetenv("FATHOM_HELPER");
    assert_int_equal(n_descriptors(), before);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ppm_needs_no_helper, setup, teardown),
        cmocka_unit_test_setup_teardown(pictures, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_document, setup, teardown),
        cmocka_unit_test_setup_teardown(options_are_checked, setup, teardown),
        cmocka_unit_test_setup_teardown(changes_while_it_is_read, setup, teardown),
        cmocka_unit_test_setup_teardown(pipes, setup, teardown),
        cmocka_unit_test_setup_teardown(pipe_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(page_alone_fails, setup, teardown),
        cmocka_unit_test_setup_teardown(file_fails, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_delivered_is_cleaned, setup, teardown),
        cmocka_unit_test_setup_teardown(children_that_others_reap, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_is_left_over, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
