/* Which model folder to open. */
#ifndef FATHOM_CLI_MODEL_PATH_H
#define FATHOM_CLI_MODEL_PATH_H

/* The folder given with -m if it is not NULL, else FATHOM_MODEL of the environment, else the built-in model: looked for
 * from the program's own place in ../share/fathom/models/mini (installed) and ../../models/mini (built in the source
 * folder), then where the build said that data go. Owned by the caller (free); NULL, after saying why, if there is none.
 * *source: " of FATHOM_MODEL" if the environment named it, else "". */
char *model_path(const char *given, const char **source);

#endif
