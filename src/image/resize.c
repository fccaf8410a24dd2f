/* Pillow's 8-bit BICUBIC, bit for bit (spec deepseek-ocr §2.5): a horizontal pass to 8 bits, then a vertical one, with weights
 * in 22-bit fixed point. That is Pillow 9.4 to 12.1; later ones take the vertical pass first for some shapes (12.3: pictures
 * over 100 times as tall as wide), which differs in the rounding between the passes. */
#include "image/views.h"

#include "base/checked.h"
#include "base/cubic.h"
#include "image/resample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void axis_free(struct axis *a)
{
    free(a->first);
    free(a->n);
    free(a->hi);
    free(a->lo);
}

/* After a failure, too, axis_free is the caller's. */
static enum fathom_status axis_init(struct axis *a, int n_in, int n_out, struct fathom_err *err)
{
    double scale = (double)n_in / n_out, widen = fmax(scale, 1), support = 2 * widen, narrow = 1 / widen;
    size_t most = (size_t)ceil(support) * 2 + 1, n_weights, bytes;
    if (most > (size_t)n_in)
        most = (size_t)n_in;
    *a = (struct axis){.n_out = (size_t)n_out, .max_taps = most};
    a->stride = (most + RESAMPLE_LANES - 1) / RESAMPLE_LANES * RESAMPLE_LANES;
    if (!size_mul(a->n_out, a->stride, &n_weights) || !size_mul(n_weights, sizeof *a->hi, &bytes))
        return fail_nomem(err, SIZE_MAX, "resampling weights");
    a->first = calloc(a->n_out, sizeof *a->first);
    a->n = calloc(a->n_out, sizeof *a->n);
    a->hi = calloc(n_weights, sizeof *a->hi);
    a->lo = calloc(n_weights, sizeof *a->lo);
    double *w = calloc(most, sizeof *w);
    if (!a->first || !a->n || !a->hi || !a->lo || !w) {
        free(w);
        return fail_nomem(err, bytes, "resampling weights");
    }
    for (int i = 0; i < n_out; i++) {
        double center = (i + 0.5) * scale, sum = 0;
        int first = (int)(center - support + 0.5), end = (int)(center + support + 0.5);
        if (first < 0)
            first = 0;
        if (end > n_in)
            end = n_in;
        for (int k = first; k < end; k++) {
            w[k - first] = cubic((k - center + 0.5) * narrow);
            sum += w[k - first];
        }
        a->first[i] = (size_t)first;
        a->n[i] = (size_t)(end - first);
        for (size_t k = 0; k < a->n[i]; k++) {
            double fixed = w[k] / sum * (1 << RESAMPLE_WEIGHT_BITS);
            int q = (int)(fixed < 0 ? fixed - 0.5 : fixed + 0.5);
            int lo = q & ((1 << RESAMPLE_LOW_BITS) - 1);
            a->lo[(size_t)i * a->stride + k] = (int16_t)lo;
            a->hi[(size_t)i * a->stride + k] = (int16_t)((q - lo) / (1 << RESAMPLE_LOW_BITS));
        }
    }
    free(w);
    return FATHOM_OK;
}

static void to_planes(int16_t *restrict planes, size_t plane_stride, const uint8_t *restrict rgb, size_t w)
{
    for (size_t x = 0; x < w; x++) {
        planes[x] = rgb[3 * x];
        planes[plane_stride + x] = rgb[3 * x + 1];
        planes[2 * plane_stride + x] = rgb[3 * x + 2];
    }
}

/* The state of one call: rows go through the horizontal pass when the vertical pass first needs them, into a ring that holds
 * as many as one output row has taps. */
struct resize {
    struct axis across, down;
    uint8_t *ring;        /* [n_ring, dw, 3]                                */
    const uint8_t **taps; /* the rows of one output row, in the ring        */
    int16_t *planes;      /* [3, plane_stride]: one source row by channels  */
    size_t n_ring, plane_stride;
};

static enum fathom_status resize_init(struct resize *r, int dw, int dh, int sw, int sh, struct fathom_err *err)
{
    size_t ring_bytes;
    enum fathom_status status = axis_init(&r->across, sw, dw, err);
    if (status == FATHOM_OK)
        status = axis_init(&r->down, sh, dh, err);
    if (status != FATHOM_OK)
        return status;
    r->n_ring = r->down.max_taps;
    r->plane_stride = (size_t)sw + RESAMPLE_LANES;
    if (!size_mul(r->n_ring, (size_t)dw * 3, &ring_bytes))
        return fail_nomem(err, SIZE_MAX, "resampled rows");
    r->ring = malloc(ring_bytes);
    r->taps = calloc(r->n_ring + 1, sizeof *r->taps);
    r->planes = calloc(3 * r->plane_stride, sizeof *r->planes);
    if (!r->ring || !r->taps || !r->planes)
        return fail_nomem(err, ring_bytes + 3 * r->plane_stride * sizeof *r->planes, "resampled rows");
    return FATHOM_OK;
}

static void resize_run(struct resize *r, uint8_t *dst, int dw, int dh, const uint8_t *src, int sw)
{
    size_t dst_bytes = (size_t)dw * 3, src_bytes = (size_t)sw * 3, n_done = 0;
    for (size_t y = 0; y < (size_t)dh; y++) {
        size_t first = r->down.first[y], n = r->down.n[y];
        for (; n_done < first + n; n_done++) {
            uint8_t *row = r->ring + n_done % r->n_ring * dst_bytes;
            if (dw == sw) {
                memcpy(row, src + n_done * src_bytes, src_bytes);
                continue;
            }
            to_planes(r->planes, r->plane_stride, src + n_done * src_bytes, (size_t)sw);
            resample_row(row, r->planes, r->plane_stride, &r->across);
        }
        for (size_t k = 0; k < n; k++)
            r->taps[k] = r->ring + (first + k) % r->n_ring * dst_bytes;
        r->taps[n] = r->taps[0]; /* an odd tap is paired with a zero weight */
        resample_column(dst + y * dst_bytes, dst_bytes, r->taps, &r->down, y);
    }
}

enum fathom_status image_resize(uint8_t *dst, int dw, int dh, const uint8_t *src, int sw, int sh,
                                struct fathom_err *err)
{
    if (dw <= 0 || dh <= 0 || sw <= 0 || sh <= 0)
        return fail(err, FATHOM_EINVAL, "cannot resize %d x %d pixels to %d x %d", sw, sh, dw, dh);
    if (dw == sw && dh == sh) {
        memcpy(dst, src, (size_t)sw * (size_t)sh * 3);
        return FATHOM_OK;
    }
    struct resize r = {0};
    enum fathom_status status = resize_init(&r, dw, dh, sw, sh, err);
    if (status == FATHOM_OK)
        resize_run(&r, dst, dw, dh, src, sw);
    axis_free(&r.across);
    axis_free(&r.down);
    free(r.ring);
    free(r.taps);
    free(r.planes);
    return status;
}
