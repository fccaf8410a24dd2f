/* fathom-synth KIND [CONFIG.json] DIR
 *
 * Writes a checkpoint folder of synth-v1 weights: DIR/model.safetensors in bf16 with the published names, and
 * DIR/config.json. KIND is ocr1 or ocr2; the published sizes are built in, CONFIG (either dialect) gives others. Or it is
 * v4, always with a CONFIG, in the published names and dtypes: FP8
 * and FP4 when the config has a quantization_config. No tokenizer is written.
 * Tensors are made and written in pieces, so that the memory needed does not depend on the size. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mapfile.h"
#include "base/outfile.h"
#include "base/pool.h"
#include "folder_v4.h"
#include "weights/synth_weights.h"

#define MAX_CONFIG_BYTES ((size_t)4 << 20)

/* The published files' fields, as far as they mean anything. What differs is the architecture, the projector's input and
 * the second half of the vision tower. */
#define PUBLISHED_CONFIG(architecture, input_dim, second_tower)                                                        \
    "{\n"                                                                                                              \
    "  \"architectures\": [\"" architecture "\"],\n"                                                                   \
    "  \"model_type\": \"deepseek_vl_v2\",\n"                                                                          \
    "  \"torch_dtype\": \"bfloat16\",\n"                                                                               \
    "  \"language_config\": {\n"                                                                                       \
    "    \"hidden_size\": 1280,\n"                                                                                     \
    "    \"num_hidden_layers\": 12,\n"                                                                                 \
    "    \"num_attention_heads\": 10,\n"                                                                               \
    "    \"num_key_value_heads\": 10,\n"                                                                               \
    "    \"intermediate_size\": 6848,\n"                                                                               \
    "    \"moe_intermediate_size\": 896,\n"                                                                            \
    "    \"n_routed_experts\": 64,\n"                                                                                  \
    "    \"num_experts_per_tok\": 6,\n"                                                                                \
    "    \"n_shared_experts\": 2,\n"                                                                                   \
    "    \"first_k_dense_replace\": 1,\n"                                                                              \
    "    \"topk_method\": \"greedy\",\n"                                                                               \
    "    \"vocab_size\": 129280,\n"                                                                                    \
    "    \"max_position_embeddings\": 8192,\n"                                                                         \
    "    \"use_mla\": false,\n"                                                                                        \
    "    \"bos_token_id\": 0,\n"                                                                                       \
    "    \"eos_token_id\": 1\n"                                                                                        \
    "  },\n"                                                                                                           \
    "  \"projector_config\": {\n"                                                                                      \
    "    \"projector_type\": \"linear\", \"input_dim\": " input_dim ", \"n_embed\": 1280\n"                            \
    "  },\n"                                                                                                           \
    "  \"vision_config\": {\n"                                                                                         \
    "    \"image_size\": 1024,\n"                                                                                      \
    "    \"width\": {\n"                                                                                               \
    "      \"sam_vit_b\": {\n"                                                                                         \
    "        \"width\": 768, \"layers\": 12, \"heads\": 12,\n"                                                         \
    "        \"global_attn_indexes\": [2, 5, 8, 11],\n"                                                                \
    "        \"downsample_channels\": [512, 1024]\n"                                                                   \
    "      },\n"                                                                                                       \
    "      " second_tower "\n"                                                                                         \
    "    }\n"                                                                                                          \
    "  }\n"                                                                                                            \
    "}\n"

static const struct kind {
    const char *name;
    struct model_config (*published)(void);
    const char *config;
} kinds[] = {
    {"ocr1", config_ocr1_published,
     PUBLISHED_CONFIG("DeepseekOCRForCausalLM", "2048",
                      "\"clip-l-14-224\": {\"width\": 1024, \"layers\": 24, \"heads\": 16, \"image_size\": 224, "
                      "\"patch_size\": 14}")},
    {"ocr2", config_ocr2_published,
     PUBLISHED_CONFIG("DeepseekOCR2ForCausalLM", "896", "\"qwen2-0-5b\": {\"dim\": 896}")},
};

static enum fathom_status write_file(const char *path, const char *text, size_t n, struct fathom_err *err)
{
    struct outfile f;
    enum fathom_status status = outfile_create(&f, path, err);
    if (!status)
        status = outfile_write(&f, text, n, err);
    if (!status)
        return outfile_commit(&f, err);
    outfile_discard(&f);
    return status;
}

/* config_path NULL: the published one. */
static enum fathom_status write_config(const char *dir, const struct kind *kind, const char *config_path,
                                       struct fathom_err *err)
{
    char *text = NULL, *path;
    size_t n;
    enum fathom_status status = path_join(&path, dir, "config.json", err);
    if (!status && config_path)
        status = file_read(config_path, MAX_CONFIG_BYTES, &text, &n, err);
    if (!status)
        status = write_file(path, text ? text : kind->config, text ? n : strlen(kind->config), err);
    free(text);
    free(path);
    return status;
}

static enum fathom_status write_weights(const char *dir, const struct model_config *c, struct pool *pool,
                                        struct fathom_err *err)
{
    char *path;
    size_t n;
    struct tensor_spec *specs;
    enum fathom_status status = ocr_tensors(&specs, &n, c, err);
    if (status)
        return status;
    status = path_join(&path, dir, "model.safetensors", err);
    if (!status)
        status = synth_write(path, specs, n, pool, err);
    free(path);
    free(specs);
    return status;
}

static enum fathom_status write_folder(const char *dir, const struct kind *kind, const char *config_path,
                                       struct fathom_err *err)
{
    struct pool *pool;
    const struct model_config published = kind->published();
    struct model_config c = published;
    enum fathom_status status = config_path ? config_read(&c, config_path, err) : FATHOM_OK;
    if (status)
        return status;
    if (c.kind != published.kind)
        return fail(err, FATHOM_EINVAL, "'%s' does not describe a model of kind %s", config_path, kind->name);
    if (mkdir(dir, 0777) && errno != EEXIST)
        return fail(err, FATHOM_EIO, "cannot create '%s': %s", dir, strerror(errno));
    status = pool_create(pool_default_threads(), &pool, err);
    if (status)
        return status;
    status = write_weights(dir, &c, pool, err);
    pool_destroy(pool);
    return status ? status : write_config(dir, kind, config_path, err);
}

int main(int argc, char **argv)
{
    struct fathom_err err = {0};
    const struct kind *kind = NULL;
    bool is_help = argc == 2 && !strcmp(argv[1], "--help"), is_v4 = argc == 4 && !strcmp(argv[1], "v4");
    for (size_t i = 0; argc > 1 && i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(argv[1], kinds[i].name))
            kind = &kinds[i];
    if (is_help || (argc != 3 && argc != 4) || !(kind || is_v4)) {
        fputs("usage: fathom-synth ocr1|ocr2 [CONFIG.json] DIR, or fathom-synth v4 CONFIG.json DIR\n",
              is_help ? stdout : stderr);
        return is_help ? 0 : 2;
    }
    if (is_v4 ? write_folder_v4(argv[3], argv[2], &err)
              : write_folder(argv[argc - 1], kind, argc == 4 ? argv[2] : NULL, &err)) {
        fprintf(stderr, "fathom-synth: %s\n", err.message);
        return 1;
    }
    return 0;
}
