#include "weights/names.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAM "model.vision_tower.sam_encoder."

/* '#' stands for a layer number, a final '*' for any rest; both are carried over. The first rule that fits is taken. */
static const struct rename {
    const char *native, *published;
} renames[] = {
    {"model.language_model.*", "model.*"},
    {"model.multi_modal_projector.*", "model.projector.layers.*"},
    {"model.view_separator", "model.view_seperator"},
    {SAM "patch_embed.projection.*", "model.sam_model.patch_embed.proj.*"},
    {SAM "pos_embed", "model.sam_model.pos_embed"},
    {SAM "layers.#.layer_norm1.*", "model.sam_model.blocks.#.norm1.*"},
    {SAM "layers.#.layer_norm2.*", "model.sam_model.blocks.#.norm2.*"},
    {SAM "layers.#.*", "model.sam_model.blocks.#.*"},
    {SAM "neck.conv1.*", "model.sam_model.neck.0.*"},
    {SAM "neck.layer_norm1.*", "model.sam_model.neck.1.*"},
    {SAM "neck.conv2.*", "model.sam_model.neck.2.*"},
    {SAM "neck.layer_norm2.*", "model.sam_model.neck.3.*"},
    {SAM "proj.conv1.*", "model.sam_model.net_2.*"},
    {SAM "proj.conv2.*", "model.sam_model.net_3.*"},
    {"model.vision_tower.vision_encoder.*", "model.qwen2_model.model.model.*"},
    {"model.vision_tower.query_768_resolution.*", "model.qwen2_model.query_768.*"},
    {"model.vision_tower.query_1024_resolution.*", "model.qwen2_model.query_1024.*"},
};

/* What '#' and '*' stood for. */
struct capture {
    const char *number, *rest;
    int n_number;
};

static bool matches(const char *pattern, const char *name, struct capture *c)
{
    *c = (struct capture){"", "", 0};
    for (; *pattern; pattern++) {
        if (*pattern == '*') {
            c->rest = name;
            return true;
        }
        if (*pattern == '#') {
            c->number = name;
            c->n_number = (int)strspn(name, "0123456789");
            if (c->n_number == 0)
                return false;
            name += c->n_number;
        } else if (*pattern != *name++) {
            return false;
        }
    }
    return !*name;
}

static char *substitute(const char *pattern, const struct capture *c)
{
    size_t n = strlen(pattern) + (size_t)c->n_number + strlen(c->rest) + 1;
    char *out = malloc(n), *at = out;
    if (!out)
        return NULL;
    for (; *pattern; pattern++) {
        if (*pattern == '#')
            at = mempcpy(at, c->number, (size_t)c->n_number);
        else if (*pattern == '*')
            at = mempcpy(at, c->rest, strlen(c->rest));
        else
            *at++ = *pattern;
    }
    *at = 0;
    return out;
}

char *published_name(const char *name)
{
    struct capture c;
    for (size_t i = 0; i < sizeof renames / sizeof *renames; i++)
        if (matches(renames[i].native, name, &c))
            return substitute(renames[i].published, &c);
    return strdup(name);
}

enum fused_experts fused_experts(const char *published)
{
    struct capture c;
    if (matches("model.layers.#.mlp.experts.gate_up_proj", published, &c))
        return FUSED_GATE_UP;
    return matches("model.layers.#.mlp.experts.down_proj", published, &c) ? FUSED_DOWN : FUSED_NONE;
}

char *expert_name(const char *fused, size_t expert, const char *matrix)
{
    char *out;
    int n_prefix = (int)(strrchr(fused, '.') - fused);
    return asprintf(&out, "%.*s.%zu.%s.weight", n_prefix, fused, expert, matrix) < 0 ? NULL : out;
}
