/* Binding a model's fields to its tensors, in the order of the network. The first failure sticks and later calls do
 * nothing, so a bind function reads as a list and is checked once. */
#ifndef FATHOM_WEIGHTS_BIND_H
#define FATHOM_WEIGHTS_BIND_H

#include "weights/weights.h"

struct binder {
    const struct weights *weights;
    struct fathom_err *err;
    enum fathom_status status;
    char prefix[160]; /* in front of every name */
};

struct binder binder_init(const struct weights *w, struct fathom_err *err);

/* Sets the prefix, like printf: bind_prefix(&b, "model.layers.%d.", l). */
void bind_prefix(struct binder *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

void bind_vector(struct binder *b, struct tensor *out, const char *name, size_t n);
void bind_matrix(struct binder *b, struct tensor *out, const char *name, size_t rows, size_t cols);

/* A matrix that products alone use: also FP8 and FP4 with scales. */
void bind_linear(struct binder *b, struct tensor *out, const char *name, size_t rows, size_t cols);

void bind_conv(struct binder *b, struct tensor *out, const char *name, size_t n_out, size_t n_in, size_t kernel);

#endif
