/* The views of a page as the models take them. */
#ifndef FATHOM_ENGINE_PAGE_VIEWS_H
#define FATHOM_ENGINE_PAGE_VIEWS_H

#include "image/views.h"
#include "models/picture.h"

/* Borrows v's pixels. */
static inline struct picture views_picture(const struct views *v)
{
    return (struct picture){
        .global = v->global,
        .local = v->local,
        .n_local = v->n_local,
        .across = (size_t)v->across,
        .down = (size_t)v->down,
        .tile_side = v->tile_side,
        .base_side = v->base_side,
    };
}

#endif
