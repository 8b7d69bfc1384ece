"""Llama 4: experts stacked in one tensor beside a shared one, layers that see chunks, and a vision tower.

Shapes and defaults: https://github.com/huggingface/transformers/tree/main/src/transformers/models/llama4
Each `no_rope_layer_interval`-th layer sees everything, the others chunks of `attention_chunk_size` tokens. The stacked
tensors are (experts, in, out).
"""

from __future__ import annotations

from dataclasses import replace

from gpufit.architecture.blocks import (
    Layers,
    Weights,
    belonging,
    gated_mlp,
    linear,
    norm,
    plain_mlp,
    renamed,
    replicated,
    router,
    scalars,
    stacked,
)
from gpufit.architecture.config import MOST_LAYERS, Config
from gpufit.architecture.decoder import (
    Block,
    Usual,
    Whole,
    Widths,
    attention_layers,
    chosen,
    decoder,
    every,
    kinds,
    of_kind,
    widths,
    windowed_caches,
)
from gpufit.architecture.families.towers import square, tower_attention
from gpufit.architecture.joined import joined, text_part
from gpufit.architecture.record import Architecture, Component, Experts, Split

_USUAL = Usual(
    hidden=5120, layers=48, heads=40, kv_heads=8, head_dim=128, intermediate=8192, vocabulary=202048, positions=131072
)
_AT = "model.layers.{layer}"


def build(config: Config) -> Architecture:
    """The shapes of a Llama 4, with its vision tower or of the text model alone."""
    return _text(config) if config.text("model_type") == "llama4_text" else _whole(config)


def _text(config: Config) -> Architecture:
    w = widths(config, _USUAL)
    count = config.count("num_local_experts", default=16)
    sparse = _sparse(config, w)
    dense = chosen(w.stack, sparse)
    wide = config.count("intermediate_size_mlp", default=16384)
    bias = config.flag("attention_bias")
    at, inner = f"{_AT}.feed_forward", w.intermediate
    layers = (
        *attention_layers(w, Block(qkv_bias=bias, out_bias=bias), w.stack),
        *(gated_mlp(at, dense, hidden=w.hidden, intermediate=wide) if dense else ()),
        *(_mixture(w, at, sparse, count, inner) if sparse else ()),
    )
    usual = every(
        w.layers,
        config.count("no_rope_layer_interval", default=4),
        one="full_attention",
        others="chunked_attention",
    )
    chunked = len(of_kind(kinds(config, w.layers, usual), "chunked_attention"))
    chunk = config.maybe("attention_chunk_size") if "attention_chunk_size" in config.values else 8192
    whole = Whole(model_type="llama4_text", class_name="Llama4ForCausalLM", tied=config.flag("tie_word_embeddings"))
    built = decoder(
        config,
        w,
        whole,
        layers,
        windowed_caches(w, chunked, chunk),
        experts=Experts(len(sparse), count, config.count("num_experts_per_tok", default=1), inner, inner)
        if sparse
        else None,
    )
    return replace(built, intermediate=max(wide if dense else 0, inner if sparse else 0))


def _sparse(config: Config, w: Widths) -> Layers:
    named = config.counts("moe_layers")
    if named is not None:
        return tuple(one for one in w.stack if one in set(named))
    step = config.count("interleave_moe_layer_step", default=1)
    return tuple(range(step - 1, w.layers, step))


def _mixture(w: Widths, at: str, layers: Layers, count: int, inner: int) -> Weights:
    return (
        *router(f"{at}.router", count, w.hidden, layers),
        stacked(f"{at}.experts.gate_up_proj", (count, w.hidden, 2 * inner), layers, Split.COLUMN),
        stacked(f"{at}.experts.down_proj", (count, inner, w.hidden), layers, Split.ROW),
        *gated_mlp(f"{at}.shared_expert", layers, hidden=w.hidden, intermediate=inner),
    )


def _whole(config: Config) -> Architecture:
    vision = config.part("vision_config")
    text = text_part(config, "llama4_text")
    seen = vision.count("vision_output_dim", default=7680)
    projector = linear("multi_modal_projector.linear_1", text.hidden, seen, Split.REPLICATED)
    return joined(
        config,
        text,
        class_name="Llama4ForConditionalGeneration",
        text_names=(("", "language_model."),),
        towers=(*_vision(vision), *belonging(projector, Component.PROJECTOR)),
    )


def _vision(config: Config) -> Weights:
    hidden, inner = config.count("hidden_size", default=768), config.count("intermediate_size", default=5632)
    stack = tuple(range(config.count("num_hidden_layers", default=34, most=MOST_LAYERS)))
    patch = config.count("patch_size", default=14)
    rows = square(config, "image_size", patch, usual=448) + 1
    flat = config.count("num_channels", default=3) * patch * patch
    into, out = config.count("projector_input_dim", default=4096), config.count("projector_output_dim", default=4096)
    at = "model.layers.{layer}"
    found = (
        scalars("class_embedding", (hidden,)),
        scalars("positional_embedding_vlm", (rows, hidden)),
        *linear("patch_embedding.linear", hidden, flat, Split.REPLICATED),
        *norm("layernorm_pre", hidden, bias=True),
        *norm("layernorm_post", hidden, bias=True),
        *tower_attention(f"{at}.self_attn", hidden, stack, bias=True, out_name="o_proj"),
        *plain_mlp(f"{at}.mlp.", stack, hidden=hidden, intermediate=inner, names=("fc1", "fc2")),
        *norm(f"{at}.input_layernorm", hidden, stack, bias=True),
        *norm(f"{at}.post_attention_layernorm", hidden, stack, bias=True),
        *linear("vision_adapter.mlp.fc1", into, inner, Split.REPLICATED),
        *linear("vision_adapter.mlp.fc2", out, into, Split.REPLICATED),
    )
    return replicated(belonging(renamed(found, ("", "vision_model.")), Component.VISION))
