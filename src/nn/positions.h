#ifndef FATHOM_NN_POSITIONS_H
#define FATHOM_NN_POSITIONS_H

#include <stddef.h>
#include <stdint.h>

/* pos[i] = first + i */
static inline void position_ids(int32_t *pos, size_t first, size_t n)
{
    for (size_t i = 0; i < n; i++)
        pos[i] = (int32_t)(first + i);
}

#endif
