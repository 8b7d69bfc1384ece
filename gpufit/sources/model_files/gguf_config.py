"""A GGUF file's metadata under the names that a transformers config has.

llama.cpp's architectures and keys: https://github.com/ggml-org/llama.cpp/blob/master/gguf-py/gguf/constants.py
What its converter writes for which model: https://github.com/ggml-org/llama.cpp/blob/master/convert_hf_to_gguf.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpufit.errors import UnreadableInputError
from gpufit.sources.model_files.gguf import ArrayLength, GgufHeader
from gpufit.sources.model_files.record import StoredTensor

_DECODER = {
    "block_count": "num_hidden_layers",
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.sliding_window": "sliding_window",
    "rope.freq_base": "rope_theta",
}
"""What nearly every decoder has."""

_LOCAL_EXPERTS = {"expert_count": "num_local_experts", "expert_used_count": "num_experts_per_tok"}
_QWEN_EXPERTS = {
    "expert_count": "num_experts",
    "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
}
_ROUTED_EXPERTS = {
    "expert_count": "n_routed_experts",
    "expert_used_count": "num_experts_per_tok",
    "expert_shared_count": "n_shared_experts",
    "expert_feed_forward_length": "moe_intermediate_size",
    "leading_dense_block_count": "first_k_dense_replace",
}
_DELTA_NET = {
    "full_attention_interval": "full_attention_interval",
    "ssm.conv_kernel": "linear_conv_kernel_dim",
    "ssm.state_size": "linear_key_head_dim",
    "ssm.group_count": "linear_num_key_heads",
    "ssm.time_step_rank": "linear_num_value_heads",
}
_GPT2 = {
    "block_count": "n_layer",
    "context_length": "n_positions",
    "embedding_length": "n_embd",
    "feed_forward_length": "n_inner",
    "attention.head_count": "n_head",
}

_ARCHITECTURES: dict[str, tuple[str, Mapping[str, str]]] = {
    "llama": ("llama", _DECODER | _LOCAL_EXPERTS),
    "llama4": (
        "llama4_text",
        _DECODER
        | _LOCAL_EXPERTS
        | {
            "feed_forward_length": "intermediate_size_mlp",
            "expert_feed_forward_length": "intermediate_size",
            "interleave_moe_layer_step": "interleave_moe_layer_step",
        },
    ),
    "mistral3": ("mistral", _DECODER),
    "qwen2": ("qwen2", _DECODER),
    "qwen2vl": ("qwen2", _DECODER),
    "qwen2moe": ("qwen2_moe", _DECODER | _QWEN_EXPERTS),
    "qwen3": ("qwen3", _DECODER),
    "qwen3vl": ("qwen3", _DECODER),
    "qwen3moe": ("qwen3_moe", _DECODER | _QWEN_EXPERTS),
    "qwen3vlmoe": ("qwen3_moe", _DECODER | _QWEN_EXPERTS),
    "qwen3next": ("qwen3_next", _DECODER | _QWEN_EXPERTS | _DELTA_NET),
    "qwen35": ("qwen3_5_text", _DECODER | _DELTA_NET),
    "qwen35moe": ("qwen3_5_moe_text", _DECODER | _QWEN_EXPERTS | _DELTA_NET),
    "gemma": ("gemma", _DECODER),
    "gemma2": ("gemma2", _DECODER),
    "gemma3": ("gemma3_text", _DECODER),
    "phi2": ("phi", _DECODER),
    "phi3": ("phi3", _DECODER | {"rope.scaling.original_context_length": "original_max_position_embeddings"}),
    "deepseek2": (
        "deepseek_v2",
        _DECODER
        | _ROUTED_EXPERTS
        | {
            "attention.q_lora_rank": "q_lora_rank",
            "attention.kv_lora_rank": "kv_lora_rank",
            "rope.dimension_count": "qk_rope_head_dim",
        },
    ),
    "gpt-oss": ("gpt_oss", _DECODER | _LOCAL_EXPERTS | {"expert_feed_forward_length": "intermediate_size"}),
    "glm4": ("glm4", _DECODER),
    "glm4moe": ("glm4_moe", _DECODER | _ROUTED_EXPERTS),
    "minimax-m2": (
        "minimax_m2",
        _DECODER | _LOCAL_EXPERTS | {"expert_feed_forward_length": "intermediate_size"},
    ),
    "command-r": ("cohere", _DECODER),
    "cohere2": ("cohere2", _DECODER),
    "starcoder2": ("starcoder2", _DECODER),
    "stablelm": ("stablelm", _DECODER),
    "smollm3": ("smollm3", _DECODER),
    "seed_oss": ("seed_oss", _DECODER),
    "olmo2": ("olmo2", _DECODER),
    "olmoe": ("olmoe", _DECODER | {"expert_count": "num_experts", "expert_used_count": "num_experts_per_tok"}),
    "granite": ("granite", _DECODER),
    "granitemoe": ("granitemoe", _DECODER | _LOCAL_EXPERTS),
    "exaone4": ("exaone4", _DECODER),
    "ernie4_5": ("ernie4_5", _DECODER),
    "hunyuan-dense": ("hunyuan_v1_dense", _DECODER),
    "nemotron": ("nemotron", _DECODER),
    "gpt2": ("gpt2", _GPT2),
}
"""llama.cpp's architecture -> transformers' `model_type`, and which keys of the metadata are which of the config's."""


def config_of(header: GgufHeader, where: str) -> dict[str, Any]:
    """The config that a GGUF header amounts to, in transformers' names.

    Raises UnreadableInputError for an architecture that is not known here, which it names, and for metadata that
    contradicts itself.
    """
    architecture = header.metadata.get("general.architecture")
    if not isinstance(architecture, str) or not architecture:
        raise UnreadableInputError(f"{where}: damaged GGUF header (it names no architecture)")
    if architecture not in _ARCHITECTURES:
        raise UnreadableInputError(
            f"{where}: gpufit does not know the GGUF architecture {architecture!a}; give the original model's "
            "directory or hub id instead"
        )
    model_type, keys = _ARCHITECTURES[architecture]
    config: dict[str, Any] = {"model_type": model_type, "quantization_config": {"quant_method": "gguf"}}
    for key, name in keys.items():
        value = _one_number(header.metadata.get(f"{architecture}.{key}"), key, where)
        if value is not None:
            config[name] = value
    tensors = {tensor.name: tensor for tensor in header.tensors}
    config["vocab_size"] = _vocabulary(header, architecture, tensors, where)
    config["tie_word_embeddings"] = "output.weight" not in tensors
    _finish(config, header.metadata, architecture, tensors, where)
    return config


def _one_number(value: Any, key: str, where: str) -> Any:
    """The value of a key; of one number a layer the one that they share, without the layers that lack the thing."""
    if isinstance(value, ArrayLength):
        raise UnreadableInputError(f"{where}: damaged GGUF header ({key} is a list of {value.count} entries)")
    if not isinstance(value, tuple):
        return value
    kinds = set(value) - {0}
    if len(kinds) != 1 or 0 in value:
        raise UnreadableInputError(f"{where}: its layers differ in {key}, which gpufit cannot size from a GGUF header")
    return kinds.pop()


def _vocabulary(header: GgufHeader, architecture: str, tensors: Mapping[str, StoredTensor], where: str) -> Any:
    """Rows of the embedding table, padding included; else what the metadata counts."""
    table = tensors.get("token_embd.weight")
    if table is not None and len(table.shape) == 2:
        return table.shape[0]
    named = header.metadata.get(f"{architecture}.vocab_size")
    if named is not None:
        return named
    tokens = header.metadata.get("tokenizer.ggml.tokens")
    if isinstance(tokens, ArrayLength):
        return tokens.count
    raise UnreadableInputError(f"{where}: its header tells neither the embeddings' shape nor the vocabulary's size")


def _finish(
    config: dict[str, Any],
    metadata: Mapping[str, Any],
    architecture: str,
    tensors: Mapping[str, StoredTensor],
    where: str,
) -> None:
    """What takes more than another name."""
    predicted = metadata.get(f"{architecture}.nextn_predict_layers")
    if isinstance(predicted, int) and predicted > 0:
        # llama.cpp counts the layers for multi-token prediction among its blocks, transformers does not.
        config["num_hidden_layers"] = config.get("num_hidden_layers", 0) - predicted
        config["num_nextn_predict_layers"] = predicted
    if "blk.0.attn_q.bias" in tensors:
        config["attention_bias"] = True
    if architecture == "llama":
        _finish_llama(config, metadata)
    if architecture == "deepseek2":
        _finish_deepseek(config, metadata, tensors, where)
    if architecture in ("qwen3next", "qwen35", "qwen35moe"):
        heads, inner = config.get("linear_num_value_heads"), metadata.get(f"{architecture}.ssm.inner_size")
        if not isinstance(heads, int) or not isinstance(inner, int) or heads < 1 or inner % heads:
            raise UnreadableInputError(f"{where}: damaged GGUF header (ssm.inner_size is not a multiple of its heads)")
        config["linear_value_head_dim"] = inner // heads


def _finish_llama(config: dict[str, Any], metadata: Mapping[str, Any]) -> None:
    """Llama, Mistral and Mixtral share a name; rotary dimensions are a whole head of theirs."""
    rotated = metadata.get("llama.rope.dimension_count")
    if "head_dim" not in config and rotated is not None:
        config["head_dim"] = rotated
    if config.get("num_local_experts"):
        config["model_type"] = "mixtral"


def _finish_deepseek(
    config: dict[str, Any], metadata: Mapping[str, Any], tensors: Mapping[str, StoredTensor], where: str
) -> None:
    """Multi-head latent attention: newer files give the lengths before compression under names of their own."""

    def length(of: str) -> int:
        for key in (f"deepseek2.attention.{of}_length_mla", f"deepseek2.attention.{of}_length"):
            value = metadata.get(key)
            if isinstance(value, int):
                return value
        raise UnreadableInputError(f"{where}: damaged GGUF header (no deepseek2.attention.{of}_length)")

    rotated = config.get("qk_rope_head_dim")
    if not isinstance(rotated, int) or rotated >= length("key"):
        raise UnreadableInputError(f"{where}: damaged GGUF header (a key is not longer than its rotated part)")
    config["qk_nope_head_dim"] = length("key") - rotated
    config["v_head_dim"] = length("value")
    config.setdefault("q_lora_rank", None)
    # The metadata counts the one latent that all heads share.
    config["num_key_value_heads"] = config.get("num_attention_heads")
    config.pop("head_dim", None)
    # The bias by which V3 and its kin choose experts; V2 has none.
    if any(name.endswith((".exp_probs_b.bias", ".exp_probs_b")) for name in tensors):
        config["model_type"] = "deepseek_v3"
