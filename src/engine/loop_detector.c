#include "engine/loop_detector.h"

size_t loop_detect(const int32_t *ids, size_t n)
{
    const size_t min_copies = 4, min_tokens = 256, max_period = 512;

    for (size_t period = 1; period <= max_period; period++) {
        size_t need = min_copies * period > min_tokens ? min_copies * period : min_tokens, run = 0;
        if (need > n)
            break;
        while (run + period < n && ids[n - 1 - run] == ids[n - 1 - run - period])
            run++;
        if (run + period >= need)
            return n - run;
    }
    return 0;
}
