/* Reading documents in any format: into files of their own, with or without a job file, or one behind the other. */
#ifndef FATHOM_CLI_DOCUMENTS_H
#define FATHOM_CLI_DOCUMENTS_H

#include "outputs.h"
#include "session.h"
#include "store.h"

/* Reads the inputs from the first one on, as long as nothing stops it. store: the job file, or NULL. Returns how many
 * were left unread. */
size_t documents_read(struct session *s, struct store *store, const struct outputs_plan *plan);

#endif
