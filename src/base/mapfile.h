/* Files mapped read-only, whole small files read into memory, and paths. */
#ifndef FATHOM_BASE_MAPFILE_H
#define FATHOM_BASE_MAPFILE_H

#include "base/err.h"

struct mapfile {
    const uint8_t *data; /* owned by the mapping */
    size_t size;
};

/* Regular files only; an empty file gives size 0. */
enum fathom_status mapfile_open(struct mapfile *f, const char *path, struct fathom_err *err);
void mapfile_close(struct mapfile *f); /* a zeroed f is fine */

/* Reads a regular file of at most max_bytes and adds a final NUL. *out is the caller's to free. */
enum fathom_status file_read(const char *path, size_t max_bytes, char **out, size_t *n, struct fathom_err *err);

/* "dir/name"; the caller's to free. On failure *out is NULL. */
enum fathom_status path_join(char **out, const char *dir, const char *name, struct fathom_err *err);

#endif
