#include "folder_v4.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mapfile.h"
#include "base/outfile.h"
#include "weights/synth_v4.h"

#define MAX_CONFIG_BYTES ((size_t)4 << 20)

static enum fathom_status write_tensors(const char *dir, const struct v4_config *c, struct fathom_err *err)
{
    struct v4_tensor *tensors = NULL;
    struct pool *pool = NULL;
    char *path = NULL;
    size_t n;
    enum fathom_status status = v4_tensors(&tensors, &n, c, err);
    if (!status)
        status = pool_create(pool_default_threads(), &pool, err);
    if (!status)
        status = path_join(&path, dir, "model.safetensors", err);
    if (!status)
        status = synth_v4_write(path, tensors, n, c->n_experts, pool, err);
    free(path);
    free(tensors);
    pool_destroy(pool);
    return status;
}

static enum fathom_status write_text(const char *dir, const char *text, size_t n, struct fathom_err *err)
{
    struct outfile f;
    char *path;
    enum fathom_status status = path_join(&path, dir, "config.json", err);
    if (status)
        return status;
    status = outfile_create(&f, path, err);
    if (!status) {
        status = outfile_write(&f, text, n, err);
        if (!status)
            status = outfile_commit(&f, err);
        outfile_discard(&f);
    }
    free(path);
    return status;
}

enum fathom_status write_folder_v4(const char *dir, const char *config_path, struct fathom_err *err)
{
    struct v4_config c;
    char *text;
    size_t n;
    enum fathom_status status = file_read(config_path, MAX_CONFIG_BYTES, &text, &n, err);
    if (status)
        return status;
    status = v4_config_parse(&c, text, n, err);
    if (status)
        fail_at(err, "'%s': ", config_path);
    if (!status && mkdir(dir, 0777) && errno != EEXIST)
        status = fail(err, FATHOM_EIO, "cannot create '%s': %s", dir, strerror(errno));
    if (!status)
        status = write_tensors(dir, &c, err);
    if (!status)
        status = write_text(dir, text, n, err);
    free(text);
    return status;
}
