/* The cubic convolution kernel with a = -0.5, which all resampling here weighs with. */
#ifndef FATHOM_BASE_CUBIC_H
#define FATHOM_BASE_CUBIC_H

#include <math.h>

static inline double cubic(double t)
{
    const double a = -0.5;
    t = fabs(t);
    if (t < 1)
        return ((a + 2) * t - (a + 3)) * t * t + 1;
    if (t < 2)
        return (((t - 5) * t + 8) * t - 4) * a;
    return 0;
}

#endif
