#include "kernel/cuda/ops.h"
#include "kernel/device.h"

/* What only DeepSeek-V4 needs is not here: its models are not placed on a GPU. */
extern const struct kernels kernels_cuda;
const struct kernels kernels_cuda = {
    .name = "cuda",
    .max_rows = 8192,
    .max_views = 8,
    .upload = upload_cuda,
    .upload_ids = upload_ids_cuda,
    .download = download_cuda,
    .copy = copy_cuda,
    .positions = positions_cuda,
    .resize_1d = resize_1d_cuda,
    .resize_2d = resize_2d_cuda,
    .linear = linear_cuda,
    .swiglu = swiglu_cuda,
    .conv2d = conv2d_cuda,
    .layernorm = layernorm_cuda,
    .rmsnorm = rmsnorm_cuda,
    .rope = rope_cuda,
    .add = add_cuda,
    .embed = embed_cuda,
    .attention_relpos = attention_relpos_cuda,
    .attention_prefix = attention_prefix_cuda,
    .attention_causal = attention_causal_cuda,
    .softmax_topk = softmax_topk_cuda,
    .moe = moe_cuda,
};
