/* Markdown that is written as it is generated. */
#ifndef FATHOM_CLI_LIVE_H
#define FATHOM_CLI_LIVE_H

#include "session.h"

/* Reads the inputs one after the other to the session's output, as long as nothing stops it. Returns how many were left
 * unread. */
size_t live_read(struct session *s);

#endif
