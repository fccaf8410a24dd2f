/* fathom-quantize IN_DIR OUT_DIR
 *
 * Makes a model folder whose matrices are Q8_0 (weights/safetensors.h says how they are stored) from any model folder that
 * fathom reads. Norms, biases, tables and the router stay as they are; the configuration, tokenizer and preprocessor files
 * are copied. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mapfile.h"
#include "base/outfile.h"
#include "weights/quantize.h"

#define MAX_FILE_BYTES ((size_t)256 << 20)

static const char *const copied[] = {
    "config.json",           "generation_config.json",   "tokenizer.json", "tokenizer_config.json",
    "processor_config.json", "preprocessor_config.json", "LICENSE",
};

static enum fathom_status copy(const char *from, const char *to, struct fathom_err *err)
{
    char *text;
    size_t n;
    struct outfile f;
    enum fathom_status status = file_read(from, MAX_FILE_BYTES, &text, &n, err);
    if (status)
        return status;
    status = outfile_create(&f, to, err);
    if (!status) {
        status = outfile_write(&f, text, n, err);
        if (!status)
            status = outfile_commit(&f, err);
        outfile_discard(&f);
    }
    free(text);
    return status;
}

static enum fathom_status copy_if_there(const char *in_dir, const char *out_dir, const char *name,
                                        struct fathom_err *err)
{
    char *from, *to = NULL;
    enum fathom_status status = path_join(&from, in_dir, name, err);
    if (!status && access(from, F_OK) == 0) {
        status = path_join(&to, out_dir, name, err);
        if (!status)
            status = copy(from, to, err);
    }
    free(from);
    free(to);
    return status;
}

static enum fathom_status quantize_folder(const char *in_dir, const char *out_dir, struct fathom_err *err)
{
    char *path;
    struct weights *w;
    enum fathom_status status = weights_open(&w, in_dir, err);
    if (status)
        return status;
    if (mkdir(out_dir, 0777) && errno != EEXIST)
        status = fail(err, FATHOM_EIO, "cannot create '%s': %s", out_dir, strerror(errno));
    if (!status && !(status = path_join(&path, out_dir, "model.safetensors", err))) {
        status = quantize_write(path, w, err);
        free(path);
    }
    weights_close(w);
    for (size_t i = 0; !status && i < sizeof copied / sizeof *copied; i++)
        status = copy_if_there(in_dir, out_dir, copied[i], err);
    return status;
}

int main(int argc, char **argv)
{
    struct fathom_err err = {0};
    bool is_help = argc == 2 && !strcmp(argv[1], "--help");
    if (is_help || argc != 3) {
        fputs("usage: fathom-quantize IN_DIR OUT_DIR\n", is_help ? stdout : stderr);
        return is_help ? 0 : 2;
    }
    if (quantize_folder(argv[1], argv[2], &err)) {
        fprintf(stderr, "fathom-quantize: %s\n", err.message);
        return 1;
    }
    return 0;
}
