/* Position tables resized to another grid (spec deepseek-ocr §3.1 steps 2 and 4). */
#ifndef FATHOM_VISION_POS_TABLE_H
#define FATHOM_VISION_POS_TABLE_H

#include "kernel/kernel.h"

/* table [side, side, dim] (f32 or bf16, any leading 1s) as rows [g*g, dim] from the arena: the table itself when
 * side == g, else antialiased bicubic (a = -0.5, align_corners false), rounded to bf16 in a bf16 run. */
struct tensor pos_table_2d(struct run *run, const struct tensor *table, size_t side, size_t g);

/* table [2 side - 1, dim] as [2 g - 1, dim]: itself when the lengths agree, else linear interpolation without
 * antialiasing, align_corners false, rounded likewise. */
struct tensor pos_table_1d(struct run *run, const struct tensor *table, size_t n_out);

#endif
