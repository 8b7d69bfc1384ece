"""Llama and what copies it: Mistral, Qwen2, Yi, DeepSeek LLM, and others of the same blocks.

Source of shapes and defaults: https://github.com/huggingface/transformers/tree/main/src/transformers/models/llama
"""

from __future__ import annotations

from gpufit.architecture.blocks import attention, embedding, gated_mlp, head, norm
from gpufit.architecture.config import Config
from gpufit.architecture.record import Architecture, AttentionCache, Rotary


def build(config: Config) -> Architecture:
    """The shapes of a Llama. Raises UnreadableInputError for a config that lacks or garbles a key."""
    hidden, layers = config.count("hidden_size"), config.count("num_hidden_layers")
    heads = config.count("num_attention_heads")
    kv_heads = config.count("num_key_value_heads", default=heads)
    head_dim = config.count("head_dim", default=hidden // heads)
    intermediate, vocabulary = config.count("intermediate_size"), config.count("vocab_size")
    tied = config.flag("tie_word_embeddings")
    stack = tuple(range(layers))
    bias = config.flag("attention_bias")
    weights = (
        embedding("model.embed_tokens", vocabulary, hidden),
        *norm("model.layers.{layer}.input_layernorm", hidden, stack),
        *attention(
            "model.layers.{layer}.self_attn",
            stack,
            hidden=hidden,
            heads=heads,
            kv_heads=kv_heads,
            head_dim=head_dim,
            bias=bias,
            out_bias=bias,
        ),
        *norm("model.layers.{layer}.post_attention_layernorm", hidden, stack),
        *gated_mlp(
            "model.layers.{layer}.mlp",
            stack,
            hidden=hidden,
            intermediate=intermediate,
            bias=config.flag("mlp_bias"),
        ),
        *norm("model.norm", hidden),
        *(() if tied else (head("lm_head", vocabulary, hidden),)),
    )
    return Architecture(
        model_type="llama",
        class_name="LlamaForCausalLM",
        weights=weights,
        caches=(AttentionCache(layers, kv_heads, head_dim, head_dim),),
        layers=layers,
        hidden=hidden,
        intermediate=intermediate,
        gated=True,
        vocabulary=vocabulary,
        heads=heads,
        head_dim=head_dim,
        tied=tied,
        generates=True,
        position_limit=config.count("max_position_embeddings", default=2048),
        rotary=Rotary(head_dim),
    )
