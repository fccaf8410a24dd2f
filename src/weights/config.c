#include "weights/config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mapfile.h"
#include "weights/config_parts.h"

#define MAX_CONFIG_BYTES ((size_t)4 << 20)

struct model_config config_ocr2_published(void)
{
    struct model_config c = {
        .kind = MODEL_OCR2,
        .sam = {.dim = 768,
                .n_layers = 12,
                .n_heads = 12,
                .mlp_dim = 3072,
                .neck_dim = 256,
                .mid_dim = 512,
                .out_dim = 896,
                .patch = 16,
                .window = 14,
                .pos_side = 64,
                .norm_eps = 1e-6f},
        .encoder = {.dim = 896,
                    .n_layers = 24,
                    .n_heads = 14,
                    .n_kv_heads = 2,
                    .head_dim = 64,
                    .mlp_dim = 4864,
                    .rope_theta = 1e6f,
                    .norm_eps = 1e-6f},
        .decoder = {.dim = 1280,
                    .n_layers = 12,
                    .n_dense_layers = 1,
                    .n_heads = 10,
                    .n_kv_heads = 10,
                    .head_dim = 128,
                    .mlp_dim = 6848,
                    .expert_dim = 896,
                    .shared_dim = 1792,
                    .n_experts = 64,
                    .top_k = 6,
                    .vocab_size = 129280,
                    .n_ctx = 8192,
                    .rope_theta = 1e4f,
                    .norm_eps = 1e-6f,
                    .routed_scale = 1.0f,
                    .bos_id = 0,
                    .eos_id = 1},
        .view = {.tiles = true,
                 .base_side = 1024,
                 .tile_side = 768,
                 .min_tiles = 2,
                 .max_tiles = 6,
                 .mean = {0.5f, 0.5f, 0.5f},
                 .std = {0.5f, 0.5f, 0.5f},
                 .background = {127, 127, 127}},
        .image_id = 128815,
    };
    c.sam.is_global[2] = c.sam.is_global[5] = c.sam.is_global[8] = c.sam.is_global[11] = true;
    return c;
}

struct model_config config_ocr1_published(void)
{
    struct model_config c = config_ocr2_published();
    c.kind = MODEL_OCR1;
    c.sam.out_dim = 1024;
    c.encoder = (struct encoder_config){0};
    c.clip = (struct clip_config){
        .dim = 1024, .n_layers = 24, .n_heads = 16, .mlp_dim = 4096, .pos_side = 16, .norm_eps = 1e-5f};
    c.view.tile_side = 640;
    c.view.max_tiles = 9; /* as the model's own code, spec §2.7 */
    return c;
}

size_t config_view_tokens(const struct sam_config *sam, size_t side)
{
    size_t half = (side / sam->patch + 1) / 2, map = (half + 1) / 2;
    return map * map;
}

static enum fathom_status check_heads(const char *what, size_t dim, size_t n_heads, size_t n_kv_heads, size_t head_dim,
                                      struct fathom_err *err)
{
    if (head_dim == 0 || head_dim % 2)
        return fail(err, FATHOM_EFORMAT, "%s: width %zu cannot be divided into %zu heads of even size", what, dim,
                    n_heads);
    if (n_heads % n_kv_heads)
        return fail(err, FATHOM_EFORMAT, "%s: %zu heads cannot share %zu key and value heads", what, n_heads,
                    n_kv_heads);
    return FATHOM_OK;
}

static enum fathom_status check_decoder(const struct decoder_config *c, struct fathom_err *err)
{
    if (c->n_dense_layers > c->n_layers)
        return fail(err, FATHOM_EFORMAT, "decoder: %zu dense layers of %zu", c->n_dense_layers, c->n_layers);
    if (c->top_k > c->n_experts)
        return fail(err, FATHOM_EFORMAT, "decoder: num_experts_per_tok is %zu, but there are %zu experts", c->top_k,
                    c->n_experts);
    if ((size_t)c->bos_id >= c->vocab_size || (size_t)c->eos_id >= c->vocab_size)
        return fail(err, FATHOM_EFORMAT, "decoder: bos_token_id %d or eos_token_id %d is outside the vocabulary of %zu",
                    (int)c->bos_id, (int)c->eos_id, c->vocab_size);
    return check_heads("decoder", c->dim, c->n_heads, c->n_kv_heads, c->head_dim, err);
}

/* OCR-2's encoder has queries for 144 and for 256 tokens and for no other number; OCR-1 takes any map. */
static enum fathom_status check_view(const struct model_config *c, size_t side, struct fathom_err *err)
{
    size_t n = config_view_tokens(&c->sam, side);
    if (c->kind == MODEL_OCR1)
        return side % 64 || side < 256
                   ? fail(err, FATHOM_EUNSUPPORTED, "views of %zu pixels, expected a multiple of 64", side)
                   : FATHOM_OK;
    if (side % c->sam.patch || (n != 144 && n != 256))
        return fail(err, FATHOM_EUNSUPPORTED, "views of %zu pixels, expected 768 or 1024", side);
    return FATHOM_OK;
}

static enum fathom_status check(const struct model_config *c, struct fathom_err *err)
{
    const struct encoder_config *e = &c->encoder;
    enum fathom_status status = check_decoder(&c->decoder, err);
    if (!status && c->kind == MODEL_OCR1 && c->clip.dim % c->clip.n_heads)
        status =
            fail(err, FATHOM_EFORMAT, "CLIP: width %zu cannot be divided into %zu heads", c->clip.dim, c->clip.n_heads);
    if (!status && c->kind == MODEL_OCR2)
        status = check_heads("encoder", e->dim, e->n_heads, e->n_kv_heads, e->head_dim, err);
    if (!status && c->sam.dim % c->sam.n_heads)
        status = fail(err, FATHOM_EFORMAT, "vision tower: width %zu cannot be divided into %zu heads", c->sam.dim,
                      c->sam.n_heads);
    return status;
}

/* A file of JSON whose root is an object. */
static enum fathom_status load_json(struct json *j, const char *path, struct fathom_err *err)
{
    char *text;
    size_t n;
    *j = (struct json){0};
    enum fathom_status status = file_read(path, MAX_CONFIG_BYTES, &text, &n, err);
    if (status)
        return status;
    status = json_parse(j, text, n, err);
    free(text);
    if (!status && json_root(j)->type != JSON_OBJECT) {
        json_free(j);
        status = fail(err, FATHOM_EFORMAT, "not a JSON object");
    }
    if (status)
        fail_at(err, "'%s': ", path);
    return status;
}

static enum fathom_status fail_unknown(const struct json *j, struct fathom_err *err)
{
    const struct json_node *root = json_root(j), *list = json_get(j, root, "architectures");
    const struct json_node *name = list && list->type == JSON_ARRAY ? json_first(j, list) : NULL;
    if (!name || name->type != JSON_STRING)
        name = json_get(j, root, "model_type");
    if (!name || name->type != JSON_STRING)
        return fail(err, FATHOM_EFORMAT, "no model is named, neither in architectures nor in model_type");
    return fail(err, FATHOM_EUNSUPPORTED, "architecture '%.100s' is not supported", name->text);
}

/* Tensors that one kind alone has. */
static bool kind_of_tensors(const struct weights *w, enum model_kind *kind)
{
    bool is_ocr2 = weights_find(w, "model.qwen2_model.query_768.weight");
    if (!is_ocr2 && !weights_find(w, "model.vision_model.embeddings.class_embedding"))
        return false;
    *kind = is_ocr2 ? MODEL_OCR2 : MODEL_OCR1;
    return true;
}

/* w NULL: by the file alone. An architecture of another name may still be one of ours: its tensors tell. */
static enum fathom_status read_config(struct model_config *c, const char *path, const struct weights *w,
                                      struct fathom_err *err)
{
    struct json j;
    bool named;
    enum fathom_status status = load_json(&j, path, err);
    if (status)
        return status;
    struct config_reader r = {&j, err, FATHOM_OK};
    c->kind = MODEL_OCR2;
    bool shown = w && kind_of_tensors(w, &c->kind);
    config_from_json(c, &named, &r, json_root(&j));
    if (!r.status && ((!named && !shown) || c->kind == MODEL_V4))
        r.status = fail_unknown(&j, err);
    if (w)
        config_require(c->kind, &r, json_root(&j));
    status = r.status;
    json_free(&j);
    if (status)
        fail_at(err, "'%s': ", path);
    return status;
}

enum fathom_status config_read(struct model_config *c, const char *path, struct fathom_err *err)
{
    enum fathom_status status = read_config(c, path, NULL, err);
    if (status)
        return status;
    struct encoder_config *e = &c->encoder;
    struct decoder_config *d = &c->decoder;
    if (c->kind == MODEL_OCR2 && e->n_heads == 0)
        e->n_heads = e->dim / ENCODER_HEAD_DIM ? e->dim / ENCODER_HEAD_DIM : 1;
    if (c->kind == MODEL_OCR2 && e->head_dim == 0)
        e->head_dim = e->dim % e->n_heads ? 0 : e->dim / e->n_heads;
    if (d->head_dim == 0)
        d->head_dim = d->dim % d->n_heads ? 0 : d->dim / d->n_heads;
    status = check(c, err);
    if (status)
        fail_at(err, "'%s': ", path);
    return status;
}

/* Reads the view's settings from a file that may be absent; nested: they are its "image_processor", which a
 * processor_config.json may lack. *found tells whether there were any. */
static enum fathom_status read_view(struct model_config *c, const char *dir, const char *name, bool nested, bool *found,
                                    struct fathom_err *err)
{
    char *path;
    struct json j;
    *found = false;
    enum fathom_status status = path_join(&path, dir, name, err);
    if (!status && access(path, F_OK) == 0)
        status = load_json(&j, path, err);
    else {
        free(path);
        return status;
    }
    if (!status) {
        struct config_reader r = {&j, err, FATHOM_OK};
        const struct json_node *object = json_root(&j);
        if (nested)
            object = config_section(&r, object, "image_processor", "").object;
        *found = object != NULL;
        if (object)
            config_view_from_json(&c->view, &r, object);
        status = r.status;
        if (!status && object) {
            status = check_view(c, c->view.base_side, err);
            if (!status && c->view.tiles)
                status = check_view(c, c->view.tile_side, err);
        }
        json_free(&j);
        if (status)
            fail_at(err, "'%s': ", path);
    }
    free(path);
    return status;
}

enum fathom_status config_load(struct model_config *c, const char *dir, const struct weights *w, struct fathom_err *err)
{
    char *path;
    bool found;
    enum fathom_status status = path_join(&path, dir, "config.json", err);
    if (status)
        return status;
    status = read_config(c, path, w, err);
    if (!status) {
        status = config_from_tensors(c, w, err);
        if (!status)
            status = check(c, err);
        if (status)
            fail_at(err, "'%s': ", dir);
    }
    free(path);
    if (!status)
        status = read_view(c, dir, "processor_config.json", true, &found, err);
    if (!status && !found)
        status = read_view(c, dir, "preprocessor_config.json", false, &found, err);
    return status;
}
