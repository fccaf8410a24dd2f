/* Values that enter a run from outside the operations (pixels, tables) are rounded as the run's activations are. */
#ifndef FATHOM_NN_ACTIVATION_H
#define FATHOM_NN_ACTIVATION_H

#include "base/half.h"
#include "kernel/kernel.h"

static inline void round_activations(const struct run *run, float *x, size_t n)
{
    if (run->act != FATHOM_BF16)
        return;
    for (size_t i = 0; i < n; i++)
        x[i] = bf16_round(x[i]);
}

#endif
