/* A compressor of DeepSeek-V4 (spec deepseek-v4 §2.7): token rows become entries, window by window. */
#ifndef FATHOM_NN_V4_COMPRESSOR_H
#define FATHOM_NN_V4_COMPRESSOR_H

#include "nn/v4_state.h"

struct v4_compressor {
    struct tensor value_w, score_w; /* [width, dim of the model]; width: that of an entry, twice with overlap */
    struct tensor ape;              /* [ratio, width]                                                         */
    struct tensor norm;             /* [dim of an entry]                                                      */
};

/* What becomes of the entries, before they are kept. */
enum v4_entry { V4_ENTRY_PLAIN, V4_ENTRY_KEY, V4_ENTRY_INDEX }; /* as it is, v4_round_key, v4_round_index */

/* The entries of the windows that the tokens with normed inputs a [n, dim], at positions pos .. pos + n - 1, complete:
 * pooled, normed and rotated at the window's first position. Gives [n_windows, dim of an entry] in the arena and moves rows
 * on. frequencies: of n_pairs rotated pairs. Rounded entries are also rounded to bfloat16 before their norm. */
struct tensor v4_compress(struct run *run, const struct v4_compressor *w, struct v4_rows *rows, const struct tensor *a,
                          size_t pos, float norm_eps, const float *frequencies, size_t n_pairs, enum v4_entry kind);

/* Stores index keys [n, dim] as entries first, first + 1, ... */
void v4_store_keys(struct index_keys *keys, const struct tensor *entries, size_t first);

#endif
