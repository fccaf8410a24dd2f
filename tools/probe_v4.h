/* fathom-probe for DeepSeek-V4. */
#ifndef FATHOM_TOOLS_PROBE_V4_H
#define FATHOM_TOOLS_PROBE_V4_H

#include "base/err.h"

/* Whether dir's config.json is that of a DeepSeek-V4 model. */
bool v4_is_folder(const char *dir);

/* paths: MODEL, IN, OUT. */
enum fathom_status run_probe_v4(const char *const paths[3], const struct fathom_context_options *options,
                                struct fathom_err *err);

#endif
