/* Tensor names: the transformers-native ones of OCR-2 to the published ones (spec deepseek-ocr §1.4). */
#ifndef FATHOM_WEIGHTS_NAMES_H
#define FATHOM_WEIGHTS_NAMES_H

#include <stddef.h>

/* The published name of a tensor; a name that no rule knows is its own. The caller frees it; NULL: out of memory. */
char *published_name(const char *name);

/* Experts of a layer that were fused into one tensor [n_experts, rows, cols]. */
enum fused_experts {
    FUSED_NONE,
    FUSED_GATE_UP, /* ...mlp.experts.gate_up_proj: the rows of gate_proj, then as many of up_proj */
    FUSED_DOWN,    /* ...mlp.experts.down_proj                                                    */
};
enum fused_experts fused_experts(const char *published);

/* "...mlp.experts.gate_up_proj", 3, "up_proj" -> "...mlp.experts.3.up_proj.weight". As published_name. */
char *expert_name(const char *fused, size_t expert, const char *matrix);

#endif
