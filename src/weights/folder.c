/* Opening a model's files: one safetensors file, or the shards of an index. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "weights/names.h"
#include "weights/safetensors.h"
#include "weights/set.h"

#define MAX_INDEX_BYTES SAFETENSORS_MAX_HEADER
#define MAX_FUSED_EXPERTS 4096

/* One line of an index: which shard holds which tensor. */
struct index_entry {
    const char *shard, *tensor; /* borrowed from the index's JSON */
};

static size_t dtype_alignment(enum dtype dtype) { return dtype == DTYPE_Q8_0 ? 1 : dtype_bytes(dtype, 1); }

/* Kernels read elements as their own type. The format pads no tensor, so behind a header of odd length or a tensor of
 * bytes one may lie at an address where that is not allowed; such a tensor gets a copy. */
static enum fathom_status align(struct weights *w, const struct safetensors_tensor *file, struct tensor *t,
                                struct fathom_err *err)
{
    if (t->n_dims == 0 || (uintptr_t)t->data % dtype_alignment(t->dtype) == 0)
        return FATHOM_OK;
    void *copy = malloc(file->bytes + 1);
    if (!copy)
        return fail_nomem(err, file->bytes, "an aligned copy of a tensor");
    memcpy(copy, t->data, file->bytes);
    t->data = copy;
    w->copied_bytes += file->bytes;
    return set_own_block(w, copy, err);
}

/* Adds rows [first, first + rows) of one expert of a fused tensor as a matrix of its own. */
static enum fathom_status add_expert(struct weights *w, const struct weight *fused, size_t expert, const char *matrix,
                                     size_t first, size_t rows, struct fathom_err *err)
{
    const struct tensor *t = &fused->tensor;
    size_t cols = t->shape[2], skipped = (expert * t->shape[1] + first) * cols;
    char *file_name;
    struct weight item = *fused;
    item.name = expert_name(fused->name, expert, matrix);
    item.file_name = asprintf(&file_name, "%s[%zu]", fused->file_name, expert) < 0 ? NULL : file_name;
    item.bytes = dtype_bytes(t->dtype, rows * cols);
    item.tensor = tensor_2d(t->dtype, (uint8_t *)t->data + dtype_bytes(t->dtype, skipped), rows, cols);
    return set_append(w, &item, err);
}

static enum fathom_status add_experts(struct weights *w, const struct weight *fused, enum fused_experts kind,
                                      struct fathom_err *err)
{
    const struct tensor *t = &fused->tensor;
    size_t rows = t->shape[1];
    if (t->shape[0] > MAX_FUSED_EXPERTS)
        return fail(err, FATHOM_ELIMIT, "tensor '%s' has %zu experts, more than the limit of %d", fused->file_name,
                    t->shape[0], MAX_FUSED_EXPERTS);
    if (kind == FUSED_GATE_UP && rows % 2)
        return fail(err, FATHOM_EFORMAT,
                    "tensor '%s' has %zu rows an expert, expected gate and up rows in equal number", fused->file_name,
                    rows);
    enum fathom_status status = FATHOM_OK;
    for (size_t e = 0; !status && e < t->shape[0]; e++) {
        if (kind == FUSED_DOWN) {
            status = add_expert(w, fused, e, "down_proj", 0, rows, err);
        } else {
            status = add_expert(w, fused, e, "gate_proj", 0, rows / 2, err);
            if (!status)
                status = add_expert(w, fused, e, "up_proj", rows / 2, rows / 2, err);
        }
    }
    return status;
}

static enum fathom_status add_tensor(struct weights *w, const struct safetensors_tensor *file, struct fathom_err *err)
{
    struct weight item = {NULL, NULL, file->dtype, file->bytes, file->tensor};
    enum fathom_status status = align(w, file, &item.tensor, err);
    if (status)
        return status;
    char *name = published_name(file->name), *file_name = strdup(file->name);
    item.name = name;
    item.file_name = file_name;
    enum fused_experts fused = name ? fused_experts(name) : FUSED_NONE;
    if (!file_name || fused == FUSED_NONE || item.tensor.n_dims != 3)
        return set_append(w, &item, err);
    status = add_experts(w, &item, fused, err);
    free(name);
    free(file_name);
    return status;
}

/* Moves s into w. */
static enum fathom_status add_file(struct weights *w, struct safetensors *s, struct fathom_err *err)
{
    struct mapfile *files = reallocarray(w->files, w->n_files + 1, sizeof *files);
    if (!files)
        return fail_nomem(err, (w->n_files + 1) * sizeof *files, "the file table");
    w->files = files;
    w->files[w->n_files++] = s->file;
    w->mapped_bytes += s->file.size;
    s->file = (struct mapfile){0};
    enum fathom_status status = FATHOM_OK;
    for (size_t i = 0; !status && i < s->n_tensors; i++)
        status = add_tensor(w, &s->tensors[i], err);
    return status;
}

/* Opens one file into w; each of the n entries must be in it. */
static enum fathom_status open_shard(struct weights *w, const char *path, const struct index_entry *entries, size_t n,
                                     struct fathom_err *err)
{
    struct safetensors s;
    enum fathom_status status = safetensors_open(&s, path, err);
    if (status)
        return status;
    for (size_t i = 0; !status && i < n; i++)
        if (!safetensors_find(&s, entries[i].tensor))
            status = fail(err, FATHOM_EFORMAT, "tensor '%s' is missing, though the index places it there",
                          entries[i].tensor);
    if (!status)
        status = add_file(w, &s, err);
    safetensors_close(&s);
    if (status)
        fail_at(err, "'%s': ", path);
    return status;
}

static int compare_entries(const void *a, const void *b)
{
    const struct index_entry *x = a, *y = b;
    return strcmp(x->shard, y->shard);
}

/* A shard lies beside its index: whoever wrote the index shall not choose another file of the machine. */
static enum fathom_status check_shard(const char *tensor, const struct json_node *shard, struct fathom_err *err)
{
    if (shard->type != JSON_STRING)
        return fail(err, FATHOM_EFORMAT, "tensor '%s' is not placed in a file: its entry is no string", tensor);
    if (shard->n_text == 0)
        return fail(err, FATHOM_EFORMAT, "tensor '%s' is placed in a file with an empty name", tensor);
    if (shard->n_text != strlen(shard->text))
        return fail(err, FATHOM_EFORMAT, "tensor '%s' is placed in a file with a zero byte in its name, after '%s'",
                    tensor, shard->text);
    if (shard->text[0] == '.' || strchr(shard->text, '/'))
        return fail(err, FATHOM_EFORMAT, "tensor '%s' is placed in '%s', which is not a plain file name", tensor,
                    shard->text);
    return FATHOM_OK;
}

static enum fathom_status read_index(const struct json *j, struct index_entry **out, size_t *n, struct fathom_err *err)
{
    const struct json_node *map = json_get(j, json_root(j), "weight_map");
    if (!map || map->type != JSON_OBJECT)
        return fail(err, FATHOM_EFORMAT, "no weight_map");
    if (map->n == 0)
        return fail(err, FATHOM_EFORMAT, "weight_map is empty");
    struct index_entry *entries = calloc(map->n, sizeof *entries);
    if (!entries)
        return fail_nomem(err, map->n * sizeof *entries, "the index");
    *out = entries;
    *n = 0;
    const struct json_node *key = json_first(j, map);
    while (key) {
        const struct json_node *shard = json_next(j, map, key);
        enum fathom_status status = check_shard(key->text, shard, err);
        if (status)
            return status;
        entries[(*n)++] = (struct index_entry){shard->text, key->text};
        key = json_next(j, map, shard);
    }
    qsort(entries, *n, sizeof *entries, compare_entries);
    return FATHOM_OK;
}

static enum fathom_status open_shards(struct weights *w, const char *dir, const struct index_entry *entries, size_t n,
                                      struct fathom_err *err)
{
    enum fathom_status status = FATHOM_OK;
    for (size_t first = 0, end; !status && first < n; first = end) {
        for (end = first + 1; end < n && !strcmp(entries[end].shard, entries[first].shard);)
            end++;
        char *path;
        status = path_join(&path, dir, entries[first].shard, err);
        if (!status)
            status = open_shard(w, path, entries + first, end - first, err);
        free(path);
    }
    return status;
}

static enum fathom_status open_index(struct weights *w, const char *dir, const char *path, struct fathom_err *err)
{
    char *text;
    size_t n_text, n = 0;
    struct json j = {0};
    struct index_entry *entries = NULL;
    enum fathom_status status = file_read(path, MAX_INDEX_BYTES, &text, &n_text, err);
    if (status)
        return status;
    status = json_parse(&j, text, n_text, err);
    free(text);
    if (!status)
        status = read_index(&j, &entries, &n, err);
    if (status)
        fail_at(err, "'%s': ", path);
    else
        status = open_shards(w, dir, entries, n, err);
    free(entries);
    json_free(&j);
    return status;
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n > m && !strcmp(name + n - m, end);
}

/* The only file in dir with this ending; *path NULL: there is none. */
static enum fathom_status find_only(char **path, const char *dir, const char *ending, struct fathom_err *err)
{
    *path = NULL;
    DIR *d = opendir(dir);
    if (!d)
        return fail(err, FATHOM_EIO, "cannot open '%s': %s", dir, strerror(errno));
    enum fathom_status status = FATHOM_OK;
    for (struct dirent *e = readdir(d); !status && e; e = readdir(d)) {
        if (e->d_name[0] == '.' || !ends_with(e->d_name, ending))
            continue;
        if (*path)
            status =
                fail(err, FATHOM_EFORMAT, "'%s' has more than one *%s and none called model%s", dir, ending, ending);
        else
            status = path_join(path, dir, e->d_name, err);
    }
    closedir(d);
    if (status) {
        free(*path);
        *path = NULL;
    }
    return status;
}

/* The file to open with this ending: model<ending>, or the only one; *path NULL: there is none. */
static enum fathom_status find_file(char **path, const char *dir, const char *ending, struct fathom_err *err)
{
    char name[64];
    snprintf(name, sizeof name, "model%s", ending);
    enum fathom_status status = path_join(path, dir, name, err);
    if (status || access(*path, F_OK) == 0)
        return status;
    free(*path);
    return find_only(path, dir, ending, err);
}

static enum fathom_status open_folder(struct weights *w, const char *dir, struct fathom_err *err)
{
    char *path, *single;
    enum fathom_status status = path_join(&single, dir, "model.safetensors", err);
    if (status)
        return status;
    if (access(single, F_OK) == 0) {
        status = open_shard(w, single, NULL, 0, err);
        free(single);
        return status;
    }
    free(single);
    status = find_file(&path, dir, ".safetensors.index.json", err);
    if (!status && path) {
        status = open_index(w, dir, path, err);
    } else if (!status) {
        status = find_only(&path, dir, ".safetensors", err);
        if (!status)
            status =
                path ? open_shard(w, path, NULL, 0, err) : fail(err, FATHOM_EIO, "'%s' has no *.safetensors file", dir);
    }
    free(path);
    return status;
}

typedef enum fathom_status open_fn(struct weights *w, const char *path, struct fathom_err *err);

static enum fathom_status open_file(struct weights *w, const char *path, struct fathom_err *err)
{
    return open_shard(w, path, NULL, 0, err);
}

static enum fathom_status open_with(open_fn *open, struct weights **out, const char *path, struct fathom_err *err)
{
    enum fathom_status status = weights_create(out, err);
    if (status)
        return status;
    status = open(*out, path, err);
    if (!status) {
        status = set_finish(*out, err);
        if (status)
            fail_at(err, "'%s': ", path);
    }
    if (status) {
        weights_close(*out);
        *out = NULL;
    }
    return status;
}

enum fathom_status weights_open(struct weights **out, const char *dir, struct fathom_err *err)
{
    return open_with(open_folder, out, dir, err);
}

enum fathom_status weights_open_file(struct weights **out, const char *path, struct fathom_err *err)
{
    return open_with(open_file, out, path, err);
}
