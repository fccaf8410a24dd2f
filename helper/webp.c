#include "helper/codec.h"

#ifndef FATHOM_WEBP

enum fathom_status webp_decode(struct decoded *out, const struct codec_input *in, struct fathom_err *err)
{
    (void)out, (void)in;
    return fail(err, FATHOM_EUNSUPPORTED, "WebP is not supported: built without libwebp");
}

#else

#include <stdlib.h>
#include <string.h>

#include <webp/decode.h>
#include <webp/demux.h>

#include "base/checked.h"
#include "helper/icc.h"

/* The frame's pixels at their place on the canvas, which is white where there are none. */
static enum fathom_status put_frame(struct image *canvas, const WebPIterator *frame, const struct codec_input *in,
                                    struct fathom_err *err)
{
    size_t w = (size_t)frame->width, h = (size_t)frame->height, stride = (size_t)canvas->width * 3, bytes;
    uint8_t *place = canvas->rgb + (size_t)frame->y_offset * stride + (size_t)frame->x_offset * 3;
    const uint8_t *data = frame->fragment.bytes;
    size_t n = frame->fragment.size, room = stride * (h - 1) + w * 3;

    if (!frame->has_alpha) {
        if (room > INT32_MAX)
            return fail(err, FATHOM_ELIMIT, "a WebP of %zu x %zu pixels is too large", w, h);
        return WebPDecodeRGBInto(data, n, place, room, (int)stride)
                   ? FATHOM_OK
                   : fail(err, FATHOM_EFORMAT, "the WebP's pixels are broken or break off");
    }
    if (!size_mul(w * h, 4, &bytes) || bytes > in->limits->max_work_bytes)
        return fail(err, FATHOM_ELIMIT, "a WebP of %zu x %zu pixels needs more memory than the limit of %zu bytes", w,
                    h, in->limits->max_work_bytes);
    uint8_t *pixels = malloc(bytes);
    if (!pixels)
        return fail_nomem(err, bytes, "the WebP's pixels");
    bool ok = WebPDecodeRGBAInto(data, n, pixels, bytes, (int)(4 * w));
    for (size_t y = 0; ok && y < h; y++)
        for (size_t x = 0; x < w; x++) {
            const uint8_t *src = pixels + 4 * (y * w + x);
            unsigned alpha = in->alpha == FATHOM_ALPHA_WHITE ? src[3] : 255;
            for (int c = 0; c < 3; c++)
                place[y * stride + 3 * x + (size_t)c] = over_white(src[c], alpha);
        }
    free(pixels);
    return ok ? FATHOM_OK : fail(err, FATHOM_EFORMAT, "the WebP's pixels are broken or break off");
}

static void read_chunks(WebPDemuxer *file, struct decoded *out, bool ignore_icc)
{
    static const char exif_name[6] = "Exif\0";
    WebPChunkIterator chunk;
    if (!ignore_icc && WebPDemuxGetChunk(file, "ICCP", 1, &chunk)) {
        icc_to_srgb(&out->image, chunk.chunk.bytes, chunk.chunk.size);
        WebPDemuxReleaseChunkIterator(&chunk);
    }
    if (WebPDemuxGetChunk(file, "EXIF", 1, &chunk)) {
        const uint8_t *bytes = chunk.chunk.bytes;
        size_t n = chunk.chunk.size, skip = n >= sizeof exif_name && memcmp(bytes, exif_name, sizeof exif_name) == 0;
        skip *= sizeof exif_name; /* which some writers put there, as in a JPEG */
        struct exif exif = exif_read(bytes + skip, n - skip);
        out->orientation = exif.orientation;
        out->dpi_x = exif.dpi_x;
        out->dpi_y = exif.dpi_y;
        WebPDemuxReleaseChunkIterator(&chunk);
    }
}

static enum fathom_status read_first(WebPDemuxer *file, struct decoded *out, const struct codec_input *in,
                                     struct fathom_err *err)
{
    size_t w = WebPDemuxGetI(file, WEBP_FF_CANVAS_WIDTH), h = WebPDemuxGetI(file, WEBP_FF_CANVAS_HEIGHT);
    WebPIterator frame;
    enum fathom_status status = image_alloc(&out->image, w, h, in->limits, err);
    if (status)
        return status;
    if (!WebPDemuxGetFrame(file, 1, &frame))
        return fail(err, FATHOM_EFORMAT, "the WebP has no picture");
    bool fits = frame.width > 0 && frame.height > 0 && frame.x_offset >= 0 && frame.y_offset >= 0 &&
                (size_t)frame.x_offset + (size_t)frame.width <= w && (size_t)frame.y_offset + (size_t)frame.height <= h;
    if (!fits)
        status = fail(err, FATHOM_EFORMAT, "the WebP's picture lies outside its canvas");
    else {
        if ((size_t)frame.width < w || (size_t)frame.height < h)
            memset(out->image.rgb, 255, w * h * 3);
        status = put_frame(&out->image, &frame, in, err);
    }
    WebPDemuxReleaseIterator(&frame);
    if (!status)
        read_chunks(file, out, in->ignore_icc);
    return status;
}

enum fathom_status webp_decode(struct decoded *out, const struct codec_input *in, struct fathom_err *err)
{
    WebPData data = {in->bytes, in->n};
    WebPDemuxer *file = WebPDemux(&data);
    if (!file)
        return fail(err, FATHOM_EFORMAT, "the WebP is broken or breaks off, after %zu bytes", in->n);
    enum fathom_status status = read_first(file, out, in, err);
    WebPDemuxDelete(file);
    return status;
}

#endif
