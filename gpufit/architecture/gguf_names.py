"""llama.cpp's names of tensors, and which weights of transformers' they stand for.

Source: https://github.com/ggml-org/llama.cpp/blob/master/gguf-py/gguf/tensor_mapping.py
"""

from __future__ import annotations

import re

_BLOCK = re.compile(r"blk\.(?P<layer>\d+)\.(?P<part>[a-z0-9_]+)(?:\.(?P<leaf>weight|bias))?")

_OUTSIDE = {
    "token_embd": ("model.embed_tokens", "transformer.wte"),
    "position_embd": ("transformer.wpe",),
    "output_norm": ("model.norm", "transformer.ln_f", "model.final_layernorm"),
    "output": ("lm_head",),
}

_PARTS: dict[str, tuple[str, ...]] = {
    "attn_norm": ("input_layernorm", "ln_1"),
    "attn_q": ("self_attn.q_proj",),
    "attn_k": ("self_attn.k_proj",),
    "attn_v": ("self_attn.v_proj",),
    "attn_qkv": ("self_attn.qkv_proj", "attn.c_attn", "linear_attn.in_proj_qkv", "linear_attn.in_proj_qkvz"),
    "attn_output": ("self_attn.o_proj", "self_attn.dense", "attn.c_proj"),
    "attn_gate": ("linear_attn.in_proj_z",),
    "attn_q_norm": ("self_attn.q_norm", "self_attn.q_layernorm"),
    "attn_k_norm": ("self_attn.k_norm", "self_attn.k_layernorm"),
    "attn_sinks": ("self_attn.sinks",),
    "attn_q_a": ("self_attn.q_a_proj",),
    "attn_q_b": ("self_attn.q_b_proj",),
    "attn_kv_a_mqa": ("self_attn.kv_a_proj_with_mqa",),
    "attn_kv_b": ("self_attn.kv_b_proj",),
    "attn_k_b": ("self_attn.kv_b_proj",),
    "attn_v_b": ("self_attn.kv_b_proj",),
    "attn_q_a_norm": ("self_attn.q_a_layernorm",),
    "attn_kv_a_norm": ("self_attn.kv_a_layernorm",),
    "post_attention_norm": ("post_attention_layernorm", "post_self_attn_layernorm"),
    "ffn_norm": ("pre_feedforward_layernorm", "post_attention_layernorm", "ln_2"),
    "post_ffw_norm": ("post_feedforward_layernorm", "post_mlp_layernorm"),
    "ffn_gate": ("mlp.gate_proj",),
    "ffn_up": ("mlp.up_proj", "mlp.gate_up_proj", "mlp.fc1", "mlp.c_fc"),
    "ffn_down": ("mlp.down_proj", "mlp.fc2", "mlp.c_proj"),
    "ffn_gate_inp": ("mlp.gate", "mlp.router", "block_sparse_moe.gate", "feed_forward.router"),
    "ffn_gate_inp_shexp": ("mlp.shared_expert_gate",),
    "exp_probs_b": ("mlp.gate.e_score_correction_bias", "block_sparse_moe.e_score_correction_bias"),
    "ffn_gate_exps": (
        "mlp.experts.*.gate_proj",
        "block_sparse_moe.experts.*.w1",
        "mlp.experts.gate_up_proj",
        "feed_forward.experts.gate_up_proj",
    ),
    "ffn_up_exps": (
        "mlp.experts.*.up_proj",
        "block_sparse_moe.experts.*.w3",
        "mlp.experts.gate_up_proj",
        "feed_forward.experts.gate_up_proj",
    ),
    "ffn_down_exps": (
        "mlp.experts.*.down_proj",
        "block_sparse_moe.experts.*.w2",
        "mlp.experts.down_proj",
        "feed_forward.experts.down_proj",
    ),
    "ffn_gate_shexp": (
        "mlp.shared_experts.gate_proj",
        "mlp.shared_expert.gate_proj",
        "feed_forward.shared_expert.gate_proj",
    ),
    "ffn_up_shexp": ("mlp.shared_experts.up_proj", "mlp.shared_expert.up_proj", "feed_forward.shared_expert.up_proj"),
    "ffn_down_shexp": (
        "mlp.shared_experts.down_proj",
        "mlp.shared_expert.down_proj",
        "feed_forward.shared_expert.down_proj",
    ),
    "ssm_conv1d": ("linear_attn.conv1d",),
    "ssm_a": ("linear_attn.A_log",),
    "ssm_dt": ("linear_attn.dt_bias",),
    "ssm_norm": ("linear_attn.norm",),
    "ssm_out": ("linear_attn.out_proj",),
    "ssm_ba": ("linear_attn.in_proj_ba",),
    "ssm_in": ("linear_attn.in_proj_qkvz",),
}
"""Part of a block -> names in a transformers layer, those of different families after one another."""


def transformers_names(name: str) -> tuple[str, ...]:
    """The names that the weight of a GGUF tensor may have in transformers; `*` is a stack of all experts."""
    block = _BLOCK.fullmatch(name)
    if block is None:
        part, _, leaf = name.rpartition(".")
        return tuple(f"{one}.{leaf}" for one in _OUTSIDE.get(part, ()))
    leaf = block["leaf"]
    found = []
    for one in _PARTS.get(block["part"], ()):
        for stack in ("model.layers", "transformer.h"):
            module = f"{stack}.{block['layer']}.{one}"
            # Parameters that are no module's weight (`sinks`, `A_log`, stacked experts) have no leaf of their own.
            found += [f"{module}.{leaf}", module] if leaf else [module]
    return tuple(found)
