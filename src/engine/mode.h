/* Modes: how many views of which size a page becomes (spec deepseek-ocr §2.1). */
#ifndef FATHOM_ENGINE_MODE_H
#define FATHOM_ENGINE_MODE_H

#include "weights/config.h"

/* The views of a mode, colours and normalisation being the model's. max_tiles 0: the model's own limit. Fails with
 * FATHOM_EUNSUPPORTED when the model has no such mode, with FATHOM_EINVAL when a grid cannot have so many tiles. */
enum fathom_status mode_views(struct view_config *out, const struct model_config *config, enum fathom_mode mode,
                              int max_tiles, struct fathom_err *err);

/* "base"; NULL for a number that is no mode. */
const char *mode_name(enum fathom_mode mode);

#endif
