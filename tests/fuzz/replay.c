/* Feeds the files of the given folders to a fuzzer's entry point: each whole, cut short at up to 64 places, and whole
 * again with one allocation failing, for many choices of the one. So seeds and old crashers are tests in every build
 * and with every compiler, and running out of memory is tested at all. */
#include "fuzz.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The linker sends the allocations of our own objects here (--wrap); number fail_at of a run fails. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);

static size_t n_allocations, fail_at;

static bool fails(void) { return ++n_allocations == fail_at; }

void *__wrap_malloc(size_t size) { return fails() ? NULL : __real_malloc(size); }

void *__wrap_calloc(size_t n, size_t size) { return fails() ? NULL : __real_calloc(n, size); }

void *__wrap_realloc(void *old, size_t size) { return fails() ? NULL : __real_realloc(old, size); }

/* The input lies in a block of exactly its size: reading one byte past it is an error that a sanitizer sees. */
static bool feed(const uint8_t *bytes, size_t n, size_t failing)
{
    uint8_t *exact = malloc(n ? n : 1);
    if (!exact)
        return false;
    memcpy(exact, bytes, n);
    n_allocations = 0;
    fail_at = failing;
    LLVMFuzzerTestOneInput(exact, n);
    fail_at = 0;
    free(exact);
    return true;
}

static bool feed_all(const uint8_t *bytes, size_t n)
{
    for (size_t cut = 0; cut < 64; cut++)
        if (n * cut / 64 != n * (cut + 1) / 64 && !feed(bytes, n * cut / 64, 0))
            return false;
    for (size_t at = 1; at < 1000; at += 1 + at / 32) {
        if (!feed(bytes, n, at))
            return false;
        if (n_allocations < at)
            break;
    }
    return feed(bytes, n, 0);
}

static bool replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    struct stat st;
    uint8_t *bytes = NULL;
    size_t n = fstat(fileno(file), &st) ? 0 : (size_t)st.st_size;
    bool ok = (bytes = malloc(n + 1)) && fread(bytes, 1, n, file) == n && feed_all(bytes, n);
    free(bytes);
    fclose(file);
    return ok;
}

int main(int argc, char **argv)
{
    size_t n_files = 0;
    for (int i = 1; i < argc; i++) {
        struct dirent **entries;
        int n = scandir(argv[i], &entries, NULL, alphasort);
        if (n < 0) {
            perror(argv[i]);
            return 1;
        }
        for (int j = 0; j < n; j++) {
            char path[4096];
            snprintf(path, sizeof path, "%s/%s", argv[i], entries[j]->d_name);
            if (entries[j]->d_type == DT_REG) {
                fprintf(stderr, "%s\n", path);
                if (!replay(path)) {
                    perror(path);
                    return 1;
                }
                n_files++;
            }
            free(entries[j]);
        }
        free(entries);
    }
    if (!n_files) {
        fprintf(stderr, "no files to replay\n");
        return 1;
    }
    printf("%zu files replayed\n", n_files);
    return 0;
}
