/* What the helper gives up before it looks at a stranger's byte. */
#ifndef FATHOM_HELPER_SANDBOX_H
#define FATHOM_HELPER_SANDBOX_H

#include "base/err.h"

/* Puts the process in its cage, for ever: bounded memory and output, no core dump, no new privileges; system calls by an
 * allow-list that lets it compute, read what is open, and open files to read in the folders of fonts and their
 * descriptions (the latter where the kernel has Landlock). No socket, no file for writing, no program, no other process.
 * Fails with FATHOM_EUNSUPPORTED when the kernel or the build lacks what it takes. */
enum fathom_status sandbox_enter(struct fathom_err *err);

/* From here on not even files to read can be opened: pictures need none. */
enum fathom_status sandbox_close_files(struct fathom_err *err);

/* Ends the process when it works for longer than this, or when the other end of the socket is closed. */
void sandbox_watch(int sock);
void sandbox_allow_time(unsigned seconds); /* from now; 0: no limit */

#endif
