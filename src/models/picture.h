/* A page as the models take it: one global view and, for large pages, tiles. */
#ifndef FATHOM_MODELS_PICTURE_H
#define FATHOM_MODELS_PICTURE_H

#include <stdbool.h>
#include <stddef.h>

struct picture {
    const float *global;          /* [1, 3, base_side, base_side], normalised                       */
    const float *local;           /* [n_local, 3, tile_side, tile_side], row by row; NULL for none   */
    size_t n_local, across, down; /* across * down = n_local when there are tiles           */
    size_t tile_side, base_side;
};

/* View i in the order of the models, the tiles first: its pixels and their side. */
static inline const float *picture_view(const struct picture *p, size_t i, size_t *side)
{
    *side = i < p->n_local ? p->tile_side : p->base_side;
    return i < p->n_local ? p->local + i * 3 * *side * *side : p->global;
}

/* Called with the number of views that are done; false cancels the run. */
typedef bool picture_fn(void *ctx, size_t done, size_t total);

#endif
