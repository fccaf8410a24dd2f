/* The steps of config_load. Each fills or corrects what the one before left. */
#ifndef FATHOM_WEIGHTS_CONFIG_PARTS_H
#define FATHOM_WEIGHTS_CONFIG_PARTS_H

#include "weights/config.h"
#include "weights/config_json.h"

#define MAX_DIM 65536
#define MAX_HEADS 1024
#define MAX_EXPERTS 4096
#define MAX_VOCAB ((size_t)1 << 22)
#define MAX_CTX ((size_t)1 << 20)
#define MAX_SIDE 4096

/* Encoder heads of a config that names none. */
#define ENCODER_HEAD_DIM 64

/* config.json: c begins as published and takes what the file says. encoder.n_heads and the head_dims are 0 when it does
 * not say them. kind_known is false when neither architecture nor model_type is one of ours, and c->kind is then what it
 * was before. */
void config_from_json(struct model_config *c, bool *kind_known, struct config_reader *r, const struct json_node *root);

/* Of what no tensor's shape shows, the numbers that every file of these models states: an absent one is an error that
 * names it. The rest (RoPE's base, epsilons, token ids) the published files leave out themselves; it is as published. */
void config_require(enum model_kind kind, struct config_reader *r, const struct json_node *root);

/* Sizes from the tensors' shapes. */
enum fathom_status config_from_tensors(struct model_config *c, const struct weights *w, struct fathom_err *err);

/* The image processor's file. */
void config_view_from_json(struct view_config *v, struct config_reader *r, const struct json_node *object);

#endif
