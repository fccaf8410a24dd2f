/* The inside of struct weights, for the files that fill it. */
#ifndef FATHOM_WEIGHTS_SET_H
#define FATHOM_WEIGHTS_SET_H

#include "base/mapfile.h"
#include "weights/weights.h"

struct weights {
    struct weight *items; /* sorted by name once complete; their strings are owned */
    size_t n, capacity;
    struct mapfile *files;
    size_t n_files;
    void **blocks; /* memory that tensors lie in: made weights and aligned copies */
    size_t n_blocks, block_capacity;
    size_t mapped_bytes, copied_bytes;
};

/* Appends w's own copy of the description, unsorted; item->name and item->file_name were allocated and become w's, also
 * on failure; a NULL among them is reported as out of memory. */
enum fathom_status set_append(struct weights *w, const struct weight *item, struct fathom_err *err);

/* block becomes w's to free, also on failure; NULL is passed over. */
enum fathom_status set_own_block(struct weights *w, void *block, struct fathom_err *err);

/* Sorts by name; two tensors of one name are an error. */
enum fathom_status set_finish(struct weights *w, struct fathom_err *err);

#endif
