#include "helper/icc.h"

#ifndef FATHOM_ICC

bool icc_to_srgb(struct image *image, const void *profile, size_t n)
{
    (void)image, (void)profile, (void)n;
    return false;
}

struct icc_inks *icc_inks_open(const void *profile, size_t n)
{
    (void)profile, (void)n;
    return NULL;
}

void icc_inks_row(struct icc_inks *inks, uint8_t *dst, const uint8_t *src, size_t n)
{
    (void)inks, (void)dst, (void)src, (void)n;
}

void icc_inks_close(struct icc_inks *inks) { (void)inks; }

#else

#include <stdlib.h>

#include <lcms2.h>

/* White paper stays white: what the model was trained on has no tinted paper. */
static cmsHTRANSFORM open_transform(const void *bytes, size_t n, cmsColorSpaceSignature space, cmsUInt32Number from)
{
    cmsHPROFILE profile = n <= UINT32_MAX ? cmsOpenProfileFromMem(bytes, (cmsUInt32Number)n) : NULL;
    cmsHPROFILE srgb = cmsCreate_sRGBProfile();
    cmsHTRANSFORM transform = NULL;
    if (profile && srgb && cmsGetColorSpace(profile) == space)
        transform = cmsCreateTransform(profile, from, srgb, TYPE_RGB_8, INTENT_RELATIVE_COLORIMETRIC,
                                       cmsFLAGS_BLACKPOINTCOMPENSATION);
    if (profile)
        cmsCloseProfile(profile);
    if (srgb)
        cmsCloseProfile(srgb);
    return transform;
}

/* Most profiles are sRGB by one name or another: then the stored bytes are kept, to the last bit. */
static bool changes_little(cmsHTRANSFORM transform)
{
    enum { STEP = 51, TOLERANCE = 2 };
    for (int r = 0; r <= 255; r += STEP)
        for (int g = 0; g <= 255; g += STEP)
            for (int b = 0; b <= 255; b += STEP) {
                uint8_t from[3] = {(uint8_t)r, (uint8_t)g, (uint8_t)b}, to[3];
                cmsDoTransform(transform, from, to, 1);
                for (int c = 0; c < 3; c++)
                    if (abs(to[c] - from[c]) > TOLERANCE)
                        return false;
            }
    return true;
}

static bool convert_colours(struct image *image, cmsHTRANSFORM transform)
{
    size_t w = (size_t)image->width;
    if (changes_little(transform))
        return false;
    for (int y = 0; y < image->height; y++) {
        uint8_t *row = image->rgb + (size_t)y * w * 3;
        cmsDoTransform(transform, row, row, (cmsUInt32Number)w);
    }
    return true;
}

static bool convert_greys(struct image *image, cmsHTRANSFORM transform)
{
    uint8_t grey[256], table[256][3];
    bool changes = false;
    for (int i = 0; i < 256; i++)
        grey[i] = (uint8_t)i;
    cmsDoTransform(transform, grey, table, 256);
    for (int i = 0; i < 256; i++)
        changes = changes || abs(table[i][0] - i) > 2;
    size_t n = (size_t)image->width * (size_t)image->height;
    for (size_t i = 0; changes && i < n; i++) {
        uint8_t *p = image->rgb + 3 * i, v = p[0];
        p[0] = table[v][0];
        p[1] = table[v][1];
        p[2] = table[v][2];
    }
    return changes;
}

static bool is_grey(const struct image *image)
{
    size_t n = (size_t)image->width * (size_t)image->height;
    for (size_t i = 0; i < n; i++)
        if (image->rgb[3 * i] != image->rgb[3 * i + 1] || image->rgb[3 * i] != image->rgb[3 * i + 2])
            return false;
    return true;
}

bool icc_to_srgb(struct image *image, const void *profile, size_t n)
{
    bool changed = false;
    cmsHTRANSFORM transform = open_transform(profile, n, cmsSigRgbData, TYPE_RGB_8);
    if (transform)
        changed = convert_colours(image, transform);
    else if ((transform = open_transform(profile, n, cmsSigGrayData, TYPE_GRAY_8)) && is_grey(image))
        changed = convert_greys(image, transform);
    if (transform)
        cmsDeleteTransform(transform);
    return changed;
}

struct icc_inks {
    cmsHTRANSFORM transform;
};

struct icc_inks *icc_inks_open(const void *profile, size_t n)
{
    struct icc_inks *inks = malloc(sizeof *inks);
    if (inks && !(inks->transform = open_transform(profile, n, cmsSigCmykData, TYPE_CMYK_8_REV))) {
        free(inks);
        inks = NULL;
    }
    return inks;
}

void icc_inks_row(struct icc_inks *inks, uint8_t *dst, const uint8_t *src, size_t n)
{
    cmsDoTransform(inks->transform, src, dst, (cmsUInt32Number)n);
}

void icc_inks_close(struct icc_inks *inks)
{
    if (inks)
        cmsDeleteTransform(inks->transform);
    free(inks);
}

#endif
