/* Feeds the files of the given folders to a fuzzer's entry point, each whole and cut short at up to 64 places, so that
 * seeds and old crashers are tests in every build and with every compiler. */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The input lies in a block of exactly its size: reading one byte past it is an error that a sanitizer sees. */
static int feed(const uint8_t *bytes, size_t n)
{
    uint8_t *exact = malloc(n ? n : 1);
    if (!exact)
        return 1;
    memcpy(exact, bytes, n);
    LLVMFuzzerTestOneInput(exact, n);
    free(exact);
    return 0;
}

static int replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return 1;
    size_t n = 0, room = 1 << 16;
    uint8_t *bytes = malloc(room);
    while (bytes) {
        n += fread(bytes + n, 1, room - n, file);
        if (n < room)
            break;
        uint8_t *more = realloc(bytes, room *= 2);
        if (!more)
            free(bytes);
        bytes = more;
    }
    int failed = !bytes || ferror(file);
    fclose(file);
    for (size_t cut = 0; !failed && cut <= 64; cut++)
        if (cut == 64 || n * cut / 64 != n * (cut + 1) / 64)
            failed = feed(bytes, n * cut / 64);
    free(bytes);
    return failed;
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
                if (replay(path)) {
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
