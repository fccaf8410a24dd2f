#include "image/views.h"

#include "base/checked.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SIDE 16384 /* of a view: hostile configs end here and not in the allocator */
#define MAX_TILES 1024

void choose_grid(int width, int height, int tile_side, int min_tiles, int max_tiles, int *across, int *down)
{
    double ratio = (double)width / height, best = INFINITY, area = (double)width * height;
    *across = *down = 1;
    if (width <= tile_side && height <= tile_side)
        return;
    for (int n = min_tiles; n <= max_tiles; n++)
        for (int i = 1; i <= n; i++) {
            if (n % i != 0)
                continue;
            int j = n / i;
            double distance = fabs(ratio - (double)i / j);
            if (distance < best || (distance == best && area > 0.5 * tile_side * tile_side * n)) {
                best = distance;
                *across = i;
                *down = j;
            }
        }
}

/* rint(short / long * side), at least 1. */
static int fitted(int side, int numerator, int denominator)
{
    double n = rint((double)numerator / denominator * side);
    return n < 1 ? 1 : (int)n;
}

static void fill(uint8_t *dst, size_t n_pixels, const uint8_t colour[3])
{
    for (size_t i = 0; i < n_pixels; i++)
        memcpy(dst + 3 * i, colour, 3);
}

enum fathom_status image_fit_pad(uint8_t *dst, int side, const uint8_t *src, int sw, int sh,
                                 const uint8_t background[3], struct fathom_err *err)
{
    if (side <= 0 || sw <= 0 || sh <= 0)
        return fail(err, FATHOM_EINVAL, "cannot fit %d x %d pixels into a square of %d", sw, sh, side);
    int w = sw < sh ? fitted(side, sw, sh) : side, h = sw > sh ? fitted(side, sh, sw) : side;
    size_t row = (size_t)side * 3, x = (size_t)rint((side - w) * 0.5), y = (size_t)rint((side - h) * 0.5);
    fill(dst, (size_t)side * (size_t)side, background);
    if (w == side) /* whole rows: in place */
        return image_resize(dst + y * row, w, h, src, sw, sh, err);

    size_t bytes = (size_t)w * 3;
    uint8_t *fit = malloc(bytes * (size_t)h);
    if (!fit)
        return fail_nomem(err, bytes * (size_t)h, "a fitted picture");
    enum fathom_status status = image_resize(fit, w, h, src, sw, sh, err);
    if (status == FATHOM_OK)
        for (size_t i = 0; i < (size_t)h; i++)
            memcpy(dst + (y + i) * row + x * 3, fit + i * bytes, bytes);
    free(fit);
    return status;
}

/* Every byte's value after normalisation, for each channel. */
struct normal {
    float value[3][256];
};

static struct normal normal_for(const struct view_config *config)
{
    struct normal n;
    for (int c = 0; c < 3; c++)
        for (int p = 0; p < 256; p++)
            n.value[c][p] = ((float)p / 255.0f - config->mean[c]) / config->std[c];
    return n;
}

/* A square [side, side, 3] inside rows of `stride` bytes to planes [3, side, side]. */
static void to_planes(float *dst, const uint8_t *src, size_t stride, size_t side, const struct normal *normal)
{
    float *r = dst, *g = r + side * side, *b = g + side * side;
    for (size_t y = 0; y < side; y++) {
        const uint8_t *p = src + y * stride;
        for (size_t x = 0; x < side; x++, p += 3) {
            *r++ = normal->value[0][p[0]];
            *g++ = normal->value[1][p[1]];
            *b++ = normal->value[2][p[2]];
        }
    }
}

static enum fathom_status make_global(struct views *v, const uint8_t *rgb, int width, int height,
                                      const struct view_config *config, const struct normal *normal,
                                      struct fathom_err *err)
{
    size_t side = config->base_side, n = side * side * 3;
    uint8_t *square = malloc(n);
    v->global = malloc(n * sizeof *v->global);
    enum fathom_status status;
    if (!square || !v->global)
        status = fail_nomem(err, n * (1 + sizeof *v->global), "the global view");
    else if (config->stretch)
        status = image_resize(square, (int)side, (int)side, rgb, width, height, err);
    else
        status = image_fit_pad(square, (int)side, rgb, width, height, config->background, err);
    if (status == FATHOM_OK)
        to_planes(v->global, square, side * 3, side, normal);
    free(square);
    return status;
}

static enum fathom_status make_local(struct views *v, const uint8_t *rgb, int width, int height,
                                     const struct view_config *config, const struct normal *normal,
                                     struct fathom_err *err)
{
    size_t side = config->tile_side, n_tile = side * side * 3, n, bytes;
    size_t across = (size_t)v->across, stride = across * side * 3;
    if (!size_mul(v->n_local, n_tile, &n) || !size_mul(n, sizeof *v->local, &bytes))
        return fail_nomem(err, SIZE_MAX, "the tiles");
    uint8_t *whole = malloc(n);
    v->local = malloc(bytes);
    enum fathom_status status;
    if (!whole || !v->local)
        status = fail_nomem(err, bytes, "the tiles");
    else
        status = image_resize(whole, v->across * (int)side, v->down * (int)side, rgb, width, height, err);
    if (status == FATHOM_OK)
        for (size_t t = 0; t < v->n_local; t++)
            to_planes(v->local + t * n_tile, whole + t / across * side * stride + t % across * side * 3, stride, side,
                      normal);
    free(whole);
    return status;
}

enum fathom_status views_make(struct views *out, const uint8_t *rgb, int width, int height,
                              const struct view_config *config, struct fathom_err *err)
{
    *out = (struct views){.across = 1, .down = 1, .base_side = config->base_side, .tile_side = config->tile_side};
    if (width <= 0 || height <= 0)
        return fail(err, FATHOM_EINVAL, "a picture of %d x %d pixels", width, height);
    if (config->base_side == 0 || config->base_side > MAX_SIDE)
        return fail(err, FATHOM_EINVAL, "a view of %zu pixels a side, expected 1 to %d", config->base_side, MAX_SIDE);
    if (config->tiles) {
        if (config->tile_side == 0 || config->tile_side > MAX_SIDE || config->max_tiles > MAX_TILES ||
            config->min_tiles == 0 || config->min_tiles > config->max_tiles)
            return fail(err, FATHOM_EINVAL,
                        "%zu to %zu tiles of %zu pixels a side, expected 1 to %d tiles of 1 to %d pixels",
                        config->min_tiles, config->max_tiles, config->tile_side, MAX_TILES, MAX_SIDE);
        choose_grid(width, height, (int)config->tile_side, (int)config->min_tiles, (int)config->max_tiles, &out->across,
                    &out->down);
    }
    struct normal normal = normal_for(config);
    enum fathom_status status = make_global(out, rgb, width, height, config, &normal, err);
    if (status == FATHOM_OK && out->across * out->down > 1) {
        out->n_local = (size_t)out->across * (size_t)out->down;
        status = make_local(out, rgb, width, height, config, &normal, err);
    }
    if (status != FATHOM_OK)
        views_free(out);
    return status;
}

void views_free(struct views *v)
{
    free(v->global);
    free(v->local);
    *v = (struct views){0};
}
