/* Position tables resized to another grid (spec deepseek-ocr §3.1 steps 2 and 4), from the arena. */
#ifndef FATHOM_VISION_POS_TABLE_H
#define FATHOM_VISION_POS_TABLE_H

#include "kernel/kernel.h"

/* table [side, side, dim] (f32 or bf16, any leading 1s) as rows [g*g, dim]. */
static inline struct tensor pos_table_2d(struct run *run, const struct tensor *table, size_t side, size_t g)
{
    struct tensor out = run_alloc(run, g * g, table->shape[table->n_dims - 1]);
    resize_2d(run, &out, table, side, g);
    return out;
}

/* table [n_in, dim] as [n_out, dim]: itself when the lengths agree. */
static inline struct tensor pos_table_1d(struct run *run, const struct tensor *table, size_t n_out)
{
    if (table->shape[0] == n_out)
        return *table;
    struct tensor out = run_alloc(run, n_out, table->shape[1]);
    resize_1d(run, &out, table);
    return out;
}

#endif
