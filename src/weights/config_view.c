/* The image processor's settings, with the meaning that transformers gives them for OCR-2. */
#include <math.h>

#include "weights/config_parts.h"

#define BICUBIC 3 /* Pillow's number for it */
#define MAX_TILES 64

/* A list of three numbers, or one for all three. */
static void read_three(struct config_reader *r, const struct config_section *s, const char *key, double min, double max,
                       float out[3])
{
    double value[3];
    const struct json_node *node = config_field(r, s, key);
    if (!node)
        return;
    bool is_list = node->type == JSON_ARRAY, good = !is_list || node->n == 3;
    const struct json_node *e = is_list ? json_first(r->json, node) : node;
    for (int i = 0; good && i < 3; i++) {
        good = json_f64(e, &value[i]) && value[i] >= min && value[i] <= max;
        if (is_list)
            e = json_next(r->json, node, e);
    }
    if (!good) {
        config_bad(r, s, key, node, FATHOM_EFORMAT, "a finite number or a list of three, no deviation being 0");
        return;
    }
    for (int i = 0; i < 3; i++)
        out[i] = (float)value[i];
}

/* One number is the red of a colour without green and blue. */
static void read_background(struct config_reader *r, const struct config_section *s, uint8_t out[3])
{
    static const char key[] = "background_color";
    size_t value[3] = {0};
    const struct json_node *node = config_field(r, s, key);
    if (!node)
        return;
    if (node->type == JSON_ARRAY && node->n != 3)
        config_bad(r, s, key, node, FATHOM_EFORMAT, "three whole numbers from 0 to 255");
    else if (node->type == JSON_ARRAY)
        for (size_t i = 0; i < 3; i++)
            config_list_size(r, s, key, i, 0, 255, &value[i]);
    else
        config_size(r, s, key, 0, 255, &value[0]);
    for (int i = 0; i < 3; i++)
        out[i] = (uint8_t)value[i];
}

/* {"height": n, "width": n} or n. */
static void read_size(struct config_reader *r, const struct config_section *s, const struct json_node *object,
                      size_t *side)
{
    const struct json_node *node = config_field(r, s, "size");
    if (!node || node->type != JSON_OBJECT) {
        config_size(r, s, "size", 1, MAX_SIDE, side);
        return;
    }
    struct config_section size = config_section(r, object, "size", "size.");
    size_t width = 0;
    if (!config_size(r, &size, "height", 1, MAX_SIDE, side) && !r->status)
        config_bad(r, s, "size", node, FATHOM_EUNSUPPORTED, "a height and a width");
    if (config_size(r, &size, "width", 1, MAX_SIDE, &width) && width != *side)
        config_bad(r, &size, "width", config_field(r, &size, "width"), FATHOM_EUNSUPPORTED, "the height");
}

static void refuse_other_arithmetic(struct config_reader *r, const struct config_section *s)
{
    float factor = 1.0f / 255;
    size_t resample = BICUBIC;
    config_only_bool(r, s, "do_resize", true);
    config_only_bool(r, s, "do_rescale", true);
    config_size(r, s, "resample", 0, 5, &resample);
    if (resample != BICUBIC)
        config_bad(r, s, "resample", config_field(r, s, "resample"), FATHOM_EUNSUPPORTED, "3 (bicubic)");
    config_float(r, s, "rescale_factor", 0, 1, &factor);
    if (fabsf(factor * 255 - 1) > 1e-6f)
        config_bad(r, s, "rescale_factor", config_field(r, s, "rescale_factor"), FATHOM_EUNSUPPORTED, "1/255");
}

void config_view_from_json(struct view_config *v, struct config_reader *r, const struct json_node *object)
{
    struct config_section s = {object, NULL, ""};
    bool normalize = true;
    config_bool(r, &s, "crop_to_patches", &v->tiles);
    config_size(r, &s, "tile_size", 1, MAX_SIDE, &v->tile_side);
    read_size(r, &s, object, &v->base_side);
    config_size(r, &s, "min_patches", 1, MAX_TILES, &v->min_tiles);
    config_size(r, &s, "max_patches", 1, MAX_TILES, &v->max_tiles);
    if (!r->status && v->min_tiles > v->max_tiles)
        r->status = fail(r->err, FATHOM_EFORMAT, "min_patches is %zu, more than max_patches, which is %zu",
                         v->min_tiles, v->max_tiles);
    read_background(r, &s, v->background);
    refuse_other_arithmetic(r, &s);
    read_three(r, &s, "image_mean", -1e3, 1e3, v->mean);
    read_three(r, &s, "image_std", 1e-3, 1e3, v->std);
    if (config_bool(r, &s, "do_normalize", &normalize) && !normalize)
        for (int i = 0; i < 3; i++) {
            v->mean[i] = 0;
            v->std[i] = 1;
        }
    if (!v->tiles) /* the single view has the size of a tile, whatever "size" says */
        v->base_side = v->tile_side;
}
