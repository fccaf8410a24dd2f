#include "nn/v4_rounding.h"

#include <math.h>

#include "base/fp8.h"

#define KEY_BLOCK 64
#define KEY_LEAST 1e-4f /* the least amax of a block, so that its scale is not too small */
#define INDEX_BLOCK 32
#define INDEX_LEAST (6 * 0x1p-126f)

static void round_bf16(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = bf16_round(x[i]);
}

/* One block: divided by its scale, rounded and multiplied again. NaN stays. */
static void round_trip(float *x, size_t n, float most, float least)
{
    float amax = least;
    for (size_t i = 0; i < n; i++)
        amax = fmaxf(amax, fabsf(x[i]));
    if (isinf(amax))
        return; /* the products will tell */
    float scale = e8m0_to_f32(e8m0_scale(amax, most));
    for (size_t i = 0; i < n; i++) {
        if (isnan(x[i]))
            continue;
        float y = x[i] / scale;
        x[i] = scale * (most > 6 ? e4m3_to_f32(e4m3_from_f32(y)) : e2m1_to_f32(e2m1_from_f32(y)));
    }
}

void v4_round_key(float *x, size_t d, size_t n_rotated)
{
    size_t n = d - n_rotated;
    round_bf16(x, d);
    for (size_t i = 0; i < n; i += KEY_BLOCK)
        round_trip(x + i, n - i < KEY_BLOCK ? n - i : KEY_BLOCK, 448, KEY_LEAST);
    round_bf16(x, n);
}

bool v4_can_round_index(size_t d) { return d > 0 && (d & (d - 1)) == 0; }

void v4_round_index(float *x, size_t d)
{
    float scale = 1.0f / sqrtf((float)d);
    round_bf16(x, d);
    for (size_t stride = 1; stride < d; stride *= 2)
        for (size_t i = 0; i < d; i++)
            if (!(i & stride)) {
                float a = x[i], b = x[i + stride];
                x[i] = a + b;
                x[i + stride] = a - b;
            }
    for (size_t i = 0; i < d; i++)
        x[i] = bf16_round(x[i] * scale);
    for (size_t i = 0; i < d; i += INDEX_BLOCK)
        round_trip(x + i, d - i < INDEX_BLOCK ? d - i : INDEX_BLOCK, 6, INDEX_LEAST);
    round_bf16(x, d);
}
