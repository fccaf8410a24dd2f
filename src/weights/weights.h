/* The tensors of a model by name: mapped from safetensors files, or made in memory (synth). Names are the published
 * ones ("original" layout, spec deepseek-ocr §1.3); a transformers-native folder is renamed when it is opened, and fused
 * expert tensors appear as one tensor an expert. */
#ifndef FATHOM_WEIGHTS_WEIGHTS_H
#define FATHOM_WEIGHTS_WEIGHTS_H

#include "base/err.h"
#include "kernel/tensor.h"

struct weights;

struct weight {
    const char *name;       /* published name: what the model asks for                                             */
    const char *file_name;  /* the name in the file, for messages; an expert of a fused tensor adds "[expert]"      */
    const char *file_dtype; /* as the file writes it ("BF16"; "U8" of a Q8_0 matrix)                               */
    size_t bytes;
    struct tensor tensor; /* true shape (a Q8_0 matrix is not shown as its bytes). n_dims 0: a dtype or a rank for
                               which struct tensor has no form; weights_get refuses it                             */
};

/* Opens model.safetensors, or the shards that *.safetensors.index.json names, or the only *.safetensors in dir. Headers
 * are checked completely: sizes, offsets inside the file, no overlap, dtype and shape against the byte range. Data is
 * mapped and not read, except that a tensor which the file does not align for its dtype is copied. A tensor that two
 * shards hold, or that the index places in a shard without it, is an error; the index's total_size is not looked at. */
enum fathom_status weights_open(struct weights **out, const char *dir, struct fathom_err *err);
enum fathom_status weights_open_file(struct weights **out, const char *path, struct fathom_err *err);

/* An empty set to be filled with tensors made in memory. weights_add takes ownership of data (malloc), also when it
 * fails; data may be NULL for a zero-sized placeholder. */
enum fathom_status weights_create(struct weights **out, struct fathom_err *err);
enum fathom_status weights_add(struct weights *w, const char *name, const struct tensor *tensor,
                               struct fathom_err *err);

void weights_close(struct weights *w); /* NULL is fine */

size_t weights_count(const struct weights *w);
const struct weight *weights_at(const struct weights *w, size_t i);           /* sorted by name */
const struct weight *weights_find(const struct weights *w, const char *name); /* NULL: not there */
size_t weights_mapped_bytes(const struct weights *w);                         /* size of the mapped files */
size_t weights_copied_bytes(const struct weights *w);                         /* of the copies made for alignment */

/* A tensor that must be there with this shape; format names it, like printf. Shapes are compared exactly except that
 * WEIGHT_ANY matches any extent, and that a [out, in, kh, kw] convolution also matches its flattened [out, in*kh*kw]
 * form (out then has two dimensions). Matrices of n_dims >= 2 may be f32, f16, bf16 or q8_0, vectors f32 or bf16. */
#define WEIGHT_ANY ((size_t)-1)
enum fathom_status weights_get(const struct weights *w, struct tensor *out, int n_dims, const size_t *shape,
                               struct fathom_err *err, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* The same for a matrix [rows, cols] that products alone use, which may also be F8_E4M3, or I8 [rows, cols / 2] holding FP4
 * codes, each with its scales beside it: "x.weight" and "x.scale", F8_E8M0 (spec deepseek-v4 §1.3). Scales are looked
 * through for NaN, weights are not read. */
enum fathom_status weights_get_linear(const struct weights *w, struct tensor *out, size_t rows, size_t cols,
                                      struct fathom_err *err, const char *name);

/* Looks for NaN and infinities: true when one was found, and then *name is the first such tensor. Reads everything. */
bool weights_find_nonfinite(const struct weights *w, const char **name);

#endif
