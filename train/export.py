"""A checkpoint as a model folder:  python3 export.py CHECKPOINT OUT [--size mini]

Writes model.safetensors (bf16, the published tensor names), config.json (transformers' form), tokenizer.json, tokenizer_config.json and
preprocessor_config.json. fathom-quantize makes the 8-bit file that is shipped.
"""
import argparse
import json
import os
import shutil

import torch

import tokenizer as T
from model import SIZES, Mini

HERE = os.path.dirname(os.path.abspath(__file__))


def tensors(model):
    """Published name -> tensor."""
    out = {}
    sam, enc, lm = "model.sam_model.", "model.qwen2_model.", "model."
    both = lambda name, module: out.update({name + ".weight": module.weight, name + ".bias": module.bias})
    grey = model.patch.weight.view(-1, 1, 16, 16) / 3
    out[sam + "patch_embed.proj.weight"] = grey.expand(-1, 3, -1, -1)
    out[sam + "patch_embed.proj.bias"] = model.patch.bias
    out[sam + "pos_embed"] = model.pos_embed[None]
    for i, layer in enumerate(model.sam):
        p = sam + "blocks.%d." % i
        both(p + "norm1", layer.norm1)
        both(p + "norm2", layer.norm2)
        both(p + "attn.qkv", layer.attn.qkv)
        both(p + "attn.proj", layer.attn.proj)
        both(p + "mlp.lin1", layer.lin1)
        both(p + "mlp.lin2", layer.lin2)
        out[p + "attn.rel_pos_h"], out[p + "attn.rel_pos_w"] = layer.attn.tables()
    out[sam + "neck.0.weight"] = model.neck1.weight
    both(sam + "neck.1", model.neck_norm1)
    out[sam + "neck.2.weight"] = model.neck2.weight
    both(sam + "neck.3", model.neck_norm2)
    out[sam + "net_2.weight"], out[sam + "net_3.weight"] = model.down1.weight, model.down2.weight
    for i, layer in enumerate(model.enc):
        p = enc + "model.model.layers.%d." % i
        for a in "qkv":
            both(p + "self_attn.%s_proj" % a, getattr(layer, a + "_proj"))
        out[p + "self_attn.o_proj.weight"] = layer.o_proj.weight
        shared_names(out, p, layer)
    out[enc + "model.model.norm.weight"] = model.enc_norm.weight
    out[enc + "query_1024.weight"], out[enc + "query_768.weight"] = model.query1024, model.query768
    both(lm + "projector.layers", model.projector)
    out[lm + "view_seperator"] = model.separator
    out[lm + "embed_tokens.weight"] = model.embed.weight
    for i, layer in enumerate(model.dec):
        p = lm + "layers.%d." % i
        for a in "qkvo":
            out[p + "self_attn.%s_proj.weight" % a] = getattr(layer, a + "_proj").weight
        shared_names(out, p, layer)
    out[lm + "norm.weight"] = model.norm.weight
    out["lm_head.weight"] = model.lm_head.weight
    return {k: v.detach().to(torch.bfloat16).contiguous().cpu() for k, v in out.items()}


def shared_names(out, p, layer):
    """What encoder and decoder layers have in common, and the experts of the latter."""
    for norm in ("input_layernorm", "post_attention_layernorm"):
        out[p + norm + ".weight"] = getattr(layer, norm).weight
    mlp = layer.mlp
    if not hasattr(mlp, "gate"):
        for a in ("gate", "up", "down"):
            out[p + "mlp.%s_proj.weight" % a] = getattr(mlp, a + "_proj").weight
        return
    out[p + "mlp.gate.weight"] = mlp.gate
    for e in range(mlp.experts):
        q = p + "mlp.experts.%d." % e
        out[q + "gate_proj.weight"], out[q + "up_proj.weight"] = mlp.gate_up_proj[e].chunk(2)
        out[q + "down_proj.weight"] = mlp.down_proj[e]
    for a in ("gate", "up", "down"):
        out[p + "mlp.shared_experts.%s_proj.weight" % a] = getattr(mlp.shared_experts, a + "_proj").weight


def config(sizes, image_token):
    sam, enc, dec = sizes["sam"], sizes["enc"], sizes["dec"]
    rope = lambda c: {"rope_type": "default", "rope_theta": c["theta"]}
    return {
        "architectures": ["DeepseekOcr2ForConditionalGeneration"], "model_type": "deepseek_ocr2", "dtype": "bfloat16",
        "image_token_id": image_token, "tie_word_embeddings": False, "transformers_version": "5.17.0",
        "text_config": {
            "model_type": "deepseek_ocr2_text", "vocab_size": sizes["vocab"], "hidden_size": dec["dim"], "intermediate_size": dec["mlp"],
            "num_hidden_layers": dec["layers"], "num_attention_heads": dec["heads"], "num_key_value_heads": dec["heads"],
            "head_dim": dec["dim"] // dec["heads"], "hidden_act": "silu", "max_position_embeddings": 8192, "rms_norm_eps": 1e-6,
            "rope_parameters": rope(dec), "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2, "attention_bias": False, "mlp_bias": False,
            "n_routed_experts": dec["experts"], "n_shared_experts": dec["shared"], "num_experts_per_tok": dec["top_k"],
            "moe_intermediate_size": dec["width"], "routed_scaling_factor": 1.0, "topk_method": "greedy", "n_group": 1, "topk_group": 1,
            "mlp_layer_types": ["dense"] + ["sparse"] * (dec["layers"] - 1), "tie_word_embeddings": False},
        "vision_config": {
            "model_type": "deepseek_ocr2_vision",
            "sam_config": {
                "model_type": "deepseek_ocr2_sam_vision_model", "hidden_size": sam["dim"], "output_channels": sam["neck"],
                "num_hidden_layers": sam["layers"], "num_attention_heads": sam["heads"], "num_channels": 3, "image_size": 1024, "patch_size": 16,
                "hidden_act": "gelu", "layer_norm_eps": 1e-6, "qkv_bias": True, "mlp_ratio": 4.0, "mlp_dim": 4 * sam["dim"],
                "use_abs_pos": True, "use_rel_pos": True, "window_size": sam["window"], "global_attn_indexes": sam["global_at"],
                "downsample_channels": sam["down"]},
            "encoder_config": {
                "model_type": "deepseek_ocr2_encoder", "vocab_size": 1, "hidden_size": enc["dim"], "intermediate_size": enc["mlp"],
                "num_hidden_layers": enc["layers"], "num_attention_heads": enc["heads"], "num_key_value_heads": enc["kv"], "hidden_act": "silu",
                "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "rope_parameters": rope(enc), "use_sliding_window": False}}}


PREPROCESSOR = {"crop_to_patches": True, "tile_size": 768, "size": {"height": 1024, "width": 1024}, "min_patches": 2, "max_patches": 6,
                "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "background_color": [127, 127, 127]}


def write(model, sizes, out):
    from safetensors.torch import save_file
    os.makedirs(out, exist_ok=True)
    save_file(tensors(model), out + "/model.safetensors", metadata={"format": "pt"})
    tok = os.path.join(HERE, "tokenizer.json")
    shutil.copy(tok, out + "/tokenizer.json")
    files = {"config.json": config(sizes, T.Tokenizer(tok).image), "preprocessor_config.json": PREPROCESSOR,
             "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": T.BOS, "eos_token": T.EOS, "pad_token": T.PAD,
                                       "model_max_length": 8192, "clean_up_tokenization_spaces": False}}
    for name, content in files.items():
        with open("%s/%s" % (out, name), "w", encoding="utf-8") as f:
            json.dump(content, f, indent=1, ensure_ascii=False)
            f.write("\n")


def main():
    from train import load
    a = argparse.ArgumentParser()
    a.add_argument("checkpoint")
    a.add_argument("out")
    a.add_argument("--size", default="mini", choices=SIZES)
    args = a.parse_args()
    model = Mini(SIZES[args.size])
    load(model, torch.load(args.checkpoint, map_location="cpu"))
    write(model, SIZES[args.size], args.out)


if __name__ == "__main__":
    main()
