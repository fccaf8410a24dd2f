#include "kernel/x86/simd.h"
#include "kernel/x86/simd_ops.h"

const struct kernels SIMD_NAME(kernels) = {
    .name = SIMD_LANES == 16 ? "avx512" : "avx2",
    .linear = SIMD_NAME(linear),
    .swiglu = SIMD_NAME(swiglu),
    .conv2d = SIMD_NAME(conv2d),
    .layernorm = SIMD_NAME(layernorm),
    .rmsnorm = SIMD_NAME(rmsnorm),
    .rope = SIMD_NAME(rope),
    .add = SIMD_NAME(add),
    .embed = SIMD_NAME(embed),
    .attention_relpos = SIMD_NAME(attention_relpos),
    .attention_prefix = SIMD_NAME(attention_prefix),
    .attention_causal = SIMD_NAME(attention_causal),
    .softmax_topk = SIMD_NAME(softmax_topk),
    .moe = SIMD_NAME(moe),
    .moe_chosen = SIMD_NAME(moe_chosen),
    .route = SIMD_NAME(route),
    .rope_pairs = SIMD_NAME(rope_pairs),
    .hyper_split = SIMD_NAME(hyper_split),
    .hyper_merge = SIMD_NAME(hyper_merge),
    .compress = SIMD_NAME(compress),
    .index_scores = SIMD_NAME(index_scores),
    .index_topk = SIMD_NAME(index_topk),
    .attention_sparse = SIMD_NAME(attention_sparse),
};
