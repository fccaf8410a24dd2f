/* The safetensors format: u64 header length, a JSON header, then the bytes of all tensors.
 *
 * fathom adds one convention. A Q8_0 matrix of [rows, cols] is a U8 tensor [rows, cols / 32 * 34], and `__metadata__` has
 * a member with the tensor's name and the text "q8_0 [rows, cols]". Convolutions are stored flattened, [out, in*kh*kw]. */
#ifndef FATHOM_WEIGHTS_SAFETENSORS_H
#define FATHOM_WEIGHTS_SAFETENSORS_H

#include "base/mapfile.h"
#include "kernel/tensor.h"

/* The format's own limits. */
#define SAFETENSORS_MAX_HEADER ((size_t)100000000)
#define SAFETENSORS_MAX_DTYPE 16

struct safetensors_tensor {
    char *name;                        /* owned                                                               */
    char dtype[SAFETENSORS_MAX_DTYPE]; /* as the file writes it, cut when longer                              */
    size_t bytes;                      /* of its data                                                         */
    struct tensor tensor;              /* data in the mapping, perhaps unaligned; n_dims 0 when struct tensor
                                           has no such dtype or rank; a scalar is shown as [1]                 */
};

struct safetensors {
    struct mapfile file;
    struct safetensors_tensor *tensors; /* sorted by name */
    size_t n_tensors;
};

/* Maps a file and checks its whole header: limits, types, unique names, shapes against byte ranges, and ranges that
 * cover the data without overlap or gap. Tensor data is not read. Messages start with the path. */
enum fathom_status safetensors_open(struct safetensors *s, const char *path, struct fathom_err *err);

/* The same over memory, which is borrowed while s lives; messages start with what is wrong. */
enum fathom_status safetensors_parse(struct safetensors *s, const uint8_t *data, size_t n, struct fathom_err *err);

void safetensors_close(struct safetensors *s); /* a zeroed s is fine */

const struct safetensors_tensor *safetensors_find(const struct safetensors *s, const char *name); /* NULL: not there */

/* ---- writing ------------------------------------------------------------------------------------------------- */

struct safetensors_spec {
    const char *name; /* borrowed until safetensors_create returns */
    enum dtype dtype; /* Q8_0: two dimensions, the last a multiple of 32 */
    int n_dims;
    size_t shape[TENSOR_MAX_DIMS];
};

struct safetensors_writer;

/* Starts path with the header for n tensors; their data follows in the same order through safetensors_append, in pieces
 * of any size. The file appears at path when safetensors_commit finds it complete. Data is aligned for its dtype when
 * wider dtypes come before narrower ones and Q8_0 comes last. */
enum fathom_status safetensors_create(struct safetensors_writer **out, const char *path,
                                      const struct safetensors_spec *specs, size_t n, struct fathom_err *err);
enum fathom_status safetensors_append(struct safetensors_writer *w, const void *data, size_t bytes,
                                      struct fathom_err *err);
enum fathom_status safetensors_commit(struct safetensors_writer *w, struct fathom_err *err); /* frees w in any case */
void safetensors_discard(struct safetensors_writer *w); /* frees w and removes what was written; NULL is fine */

#endif
