/* Model folders with Q8_0 matrices. */
#ifndef FATHOM_WEIGHTS_QUANTIZE_H
#define FATHOM_WEIGHTS_QUANTIZE_H

#include "weights/weights.h"

/* Whether this tensor is stored as Q8_0: a matrix or convolution whose rows (flattened) are whole blocks. Norms, biases,
 * position tables, query tables and the router stay as they are, and so does what is Q8_0 already. */
bool quantize_wants(const struct weight *weight);

/* Writes all tensors of w to a safetensors file, those that quantize_wants as Q8_0, the others unchanged, under their
 * published names. Fails when a number to be quantised is NaN or infinite. */
enum fathom_status quantize_write(const char *path, const struct weights *w, struct fathom_err *err);

#endif
