/* Values of fathom ocr's options that are more than a number or a word. What is wrong with one is a usage error. */
#ifndef FATHOM_CLI_OCR_VALUES_H
#define FATHOM_CLI_OCR_VALUES_H

#include "ocr_options.h"

void ocr_set_task(struct argp_state *state, struct ocr_options *o, const char *task);
void ocr_set_prompt(struct argp_state *state, struct ocr_options *o, const char *prompt);
void ocr_set_guard(struct argp_state *state, struct fathom_read_options *read, const char *arg); /* N[:W]|off */
void ocr_set_formats(struct argp_state *state, struct ocr_options *o, const char *arg);          /* md,json,... */
void ocr_set_pages(struct argp_state *state, struct ocr_options *o, const char *arg);            /* 1-3,7,10- */
void ocr_set_shard(struct argp_state *state, struct ocr_options *o, const char *arg);            /* I/N */
void ocr_set_password(struct argp_state *state, struct ocr_options *o, const char *password);
void ocr_set_password_file(struct argp_state *state, struct ocr_options *o, const char *path); /* its first line */

#endif
