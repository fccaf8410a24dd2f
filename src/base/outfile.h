/* Files that appear complete or not at all: written beside their place under another name, then renamed. */
#ifndef FATHOM_BASE_OUTFILE_H
#define FATHOM_BASE_OUTFILE_H

#include "base/err.h"

struct outfile {
    char *path, *temporary; /* owned */
    int fd;
};

/* On success the file must be ended by outfile_commit or outfile_discard. */
enum fathom_status outfile_create(struct outfile *f, const char *path, struct fathom_err *err);
enum fathom_status outfile_write(struct outfile *f, const void *data, size_t n, struct fathom_err *err);

/* Flushes to the disk and renames over path; when that fails the file is discarded. */
enum fathom_status outfile_commit(struct outfile *f, struct fathom_err *err);
void outfile_discard(struct outfile *f); /* a zeroed or ended f is fine */

#endif
