#include "kernel/ref/ref_ops.h"

const struct kernels kernels_ref = {
    .name = "ref",
    .linear = linear_ref,
    .swiglu = swiglu_ref,
    .conv2d = conv2d_ref,
    .layernorm = layernorm_ref,
    .rmsnorm = rmsnorm_ref,
    .rope = rope_ref,
    .add = add_ref,
    .embed = embed_ref,
    .attention_relpos = attention_relpos_ref,
    .attention_prefix = attention_prefix_ref,
    .attention_causal = attention_causal_ref,
    .softmax_topk = softmax_topk_ref,
    .moe = moe_ref,
};

float weight_f32(const struct tensor *w, size_t row, size_t col)
{
    const void *p = tensor_row(w, row);
    switch (w->dtype) {
    case DTYPE_F16: return f16_to_f32(((const uint16_t *)p)[col]);
    case DTYPE_BF16: return bf16_to_f32(((const uint16_t *)p)[col]);
    case DTYPE_Q8_0: {
        const uint8_t *block = (const uint8_t *)p + col / Q8_0_BLOCK * Q8_0_BLOCK_BYTES;
        uint16_t scale;
        memcpy(&scale, block, sizeof scale);
        return f16_to_f32(scale) * (float)(int8_t)block[2 + col % Q8_0_BLOCK];
    }
    default: return ((const float *)p)[col];
    }
}
