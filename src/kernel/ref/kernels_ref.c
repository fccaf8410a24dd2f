#include <math.h>

#include "base/fp8.h"
#include "kernel/ref/ref_ops.h"

const struct kernels kernels_ref = {
    .name = "ref",
    .max_rows = 1024,
    .max_views = 1,
    .upload = upload_ref,
    .upload_ids = upload_ids_ref,
    .download = download_ref,
    .copy = copy_ref,
    .positions = positions_ref,
    .resize_1d = resize_1d_ref,
    .resize_2d = resize_2d_ref,
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
    .moe_chosen = moe_chosen_ref,
    .route = route_ref,
    .rope_pairs = rope_pairs_ref,
    .hyper_split = hyper_split_ref,
    .hyper_merge = hyper_merge_ref,
    .compress = compress_ref,
    .index_scores = index_scores_ref,
    .index_topk = index_topk_ref,
    .attention_sparse = attention_sparse_ref,
};

/* Exact; a zero is +0, and a scale that is not finite gives NaN. */
static float q8_0_at(const uint8_t *row, size_t col)
{
    const uint8_t *block = row + col / Q8_0_BLOCK * Q8_0_BLOCK_BYTES;
    uint16_t half;
    memcpy(&half, block, sizeof half);
    float scale = f16_to_f32(half);
    return isfinite(scale) ? scale * (float)(int8_t)block[sizeof half + col % Q8_0_BLOCK] + 0.0f : NAN;
}

/* Of a block's scale and a code the product is exact, unless it overflows. */
static float scaled_at(const struct tensor *w, size_t row, size_t col)
{
    const uint8_t *p = tensor_row(w, row);
    size_t of = w->scale_row + row;
    if (w->dtype == DTYPE_F8_E4M3)
        return e4m3_to_f32(p[col]) * e8m0_to_f32(w->scales[of / F8_BLOCK * w->scale_stride + col / F8_BLOCK]);
    return e2m1_to_f32((uint8_t)(p[col / 2] >> 4 * (col % 2))) *
           e8m0_to_f32(w->scales[of * w->scale_stride + col / F4_BLOCK]);
}

void weight_row_f32(float *out, const struct tensor *w, size_t row)
{
    const void *p = tensor_row(w, row);
    for (size_t i = 0; i < w->shape[1]; i++)
        switch (w->dtype) {
        case DTYPE_F16: out[i] = f16_to_f32(((const uint16_t *)p)[i]); break;
        case DTYPE_BF16: out[i] = bf16_to_f32(((const uint16_t *)p)[i]); break;
        case DTYPE_Q8_0: out[i] = q8_0_at(p, i); break;
        case DTYPE_F8_E4M3:
        case DTYPE_F4_E2M1: out[i] = scaled_at(w, row, i); break;
        default: out[i] = ((const float *)p)[i];
        }
}
