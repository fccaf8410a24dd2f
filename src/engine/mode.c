#include "engine/mode.h"

/* A page has no use for more; the spec's models were published with 6 and 9. */
#define MAX_MAX_TILES 64

static const struct mode {
    const char *name;
    size_t base_side;
    bool stretch, tiles, ocr2; /* ocr2: DeepSeek-OCR-2 has it too */
} modes[] = {
    [FATHOM_MODE_DEFAULT] = {"default", 0, false, false, true},
    [FATHOM_MODE_TINY] = {"tiny", 512, true, false, false},
    [FATHOM_MODE_SMALL] = {"small", 640, true, false, false},
    [FATHOM_MODE_BASE] = {"base", 1024, false, false, true},
    [FATHOM_MODE_LARGE] = {"large", 1280, false, false, false},
    [FATHOM_MODE_GUNDAM] = {"gundam", 1024, false, true, true},
};

const char *mode_name(enum fathom_mode mode)
{
    return (size_t)mode < sizeof modes / sizeof *modes ? modes[mode].name : NULL;
}

/* A folder that turns tiles off says nothing of their size. */
static void use_published_tiles(struct view_config *v, enum model_kind kind)
{
    struct model_config published = kind == MODEL_OCR1 ? config_ocr1_published() : config_ocr2_published();
    v->tile_side = published.view.tile_side;
    v->min_tiles = published.view.min_tiles;
    v->max_tiles = published.view.max_tiles;
}

enum fathom_status mode_views(struct view_config *out, const struct model_config *config, enum fathom_mode mode,
                              int max_tiles, struct fathom_err *err)
{
    *out = config->view;
    if (!mode_name(mode))
        return fail(err, FATHOM_EINVAL, "mode %d is none: tiny, small, base, large or gundam", (int)mode);
    const struct mode *m = &modes[mode];
    if (config->kind == MODEL_OCR2 && !m->ocr2)
        return fail(err, FATHOM_EUNSUPPORTED, "DeepSeek-OCR-2 has no mode '%s', only base and gundam", m->name);
    if (mode != FATHOM_MODE_DEFAULT) {
        if (m->tiles && !out->tiles)
            use_published_tiles(out, config->kind);
        out->base_side = m->tiles && out->tiles ? out->base_side : m->base_side;
        out->tiles = m->tiles;
        out->stretch = m->stretch;
    }
    if (max_tiles == 0 || !out->tiles)
        return FATHOM_OK;
    if (max_tiles < (int)out->min_tiles || max_tiles > MAX_MAX_TILES)
        return fail(err, FATHOM_EINVAL, "a limit of %d tiles, expected %zu to %d, or a mode without tiles", max_tiles,
                    out->min_tiles, MAX_MAX_TILES);
    out->max_tiles = (size_t)max_tiles;
    return FATHOM_OK;
}
