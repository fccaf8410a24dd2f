#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <ftw.h>
#include <unistd.h>

char *temp_create(void)
{
    const char *parent = getenv("TMPDIR");
    char *dir = temp_path(parent && *parent ? parent : "/tmp", "fathom-test-XXXXXX");
    assert_non_null(mkdtemp(dir));
    return dir;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

void temp_remove(char *dir)
{
    assert_int_equal(nftw(dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
    free(dir);
}

char *temp_path(const char *dir, const char *name)
{
    char *path = NULL;
    assert_true(asprintf(&path, "%s/%s", dir, name) > 0);
    return path;
}

void write_bytes(const char *dir, const char *name, const void *data, size_t n)
{
    char *path = temp_path(dir, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    free(path);
}

void write_text(const char *dir, const char *name, const char *text) { write_bytes(dir, name, text, strlen(text)); }

uint8_t *safetensors_bytes(const char *header, const void *data, size_t n, size_t *n_file)
{
    size_t n_header = strlen(header);
    uint8_t *file = malloc(8 + n_header + n);
    assert_non_null(file);
    for (int i = 0; i < 8; i++)
        file[i] = (uint8_t)((uint64_t)n_header >> 8 * i);
    memcpy(file + 8, header, n_header);
    if (n > 0)
        memcpy(file + 8 + n_header, data, n);
    *n_file = 8 + n_header + n;
    return file;
}

void write_safetensors(const char *dir, const char *name, const char *header, const void *data, size_t n)
{
    size_t n_file;
    uint8_t *file = safetensors_bytes(header, data, n, &n_file);
    write_bytes(dir, name, file, n_file);
    free(file);
}
