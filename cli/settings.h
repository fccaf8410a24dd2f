/* What the results of a job depend on, as text: the job file remembers it. */
#ifndef FATHOM_CLI_SETTINGS_H
#define FATHOM_CLI_SETTINGS_H

#include "ocr_options.h"
#include "store.h"

enum { MAX_SETTINGS = 24 };

/* Fills list and returns how many there are, 0 when memory is short; for settings_free. model: the folder's path. */
size_t settings_make(struct store_setting list[MAX_SETTINGS], const struct ocr_options *o, const char *model);
void settings_free(struct store_setting list[MAX_SETTINGS], size_t n);

#endif
