"""Llama 3.2 Vision: layers of cross attention among a Llama's, behind a vision tower of two transformers.

Shapes and defaults: https://github.com/huggingface/transformers/tree/main/src/transformers/models/mllama
The embeddings have 8 rows more than the vocabulary. A cross-attention layer caches keys and values of the image alone:
tiles x (patches + 1) positions an image, which are not fixed by the config, as a prompt may have no image.
"""

from __future__ import annotations

from dataclasses import replace

from gpufit.architecture.blocks import (
    Layers,
    Weights,
    attention,
    belonging,
    embedding,
    gated_mlp,
    head,
    linear,
    norm,
    plain_mlp,
    renamed,
    replicated,
    scalars,
)
from gpufit.architecture.config import Config
from gpufit.architecture.decoder import Block, Usual, Widths, attention_layers, chosen, original_positions, widths
from gpufit.architecture.families.towers import as_tower, depth, square, tower_attention
from gpufit.architecture.record import (
    Architecture,
    AttentionCache,
    Cache,
    Component,
    CrossAttentionCache,
    Kind,
    Rotary,
    Split,
    Weight,
)

_USUAL = Usual(layers=40, kv_heads=8, intermediate=14336, vocabulary=128256, positions=131072)
_EXTRA_ROWS = 8
_AT = "model.layers.{layer}"


def build(config: Config) -> Architecture:
    """The shapes of a Llama 3.2 Vision, or of its text model alone."""
    alone = config.text("model_type") == "mllama_text_model"
    text = config if alone else config.part("text_config")
    vision = config.part("vision_config")
    w = widths(text, _USUAL)
    named = text.counts("cross_attention_layers")
    crossing = tuple(one for one in w.stack if one in set((3, 8, 13, 18, 23, 28, 33, 38) if named is None else named))
    tied = text.flag("tie_word_embeddings")
    weights = _text(w, crossing, tied=tied)
    if not alone:
        seen = vision.count("vision_output_dim", default=7680)
        projector = linear("multi_modal_projector", w.hidden, seen, Split.REPLICATED, bias=True)
        weights = (
            *renamed(weights, ("", "language_model.")),
            *belonging(projector, Component.PROJECTOR),
            *_vision(vision),
        )
    own = w.layers - len(crossing)
    caches: tuple[Cache, ...] = (
        *((AttentionCache(own, w.kv_heads, w.head_dim, w.head_dim),) if own else ()),
        *((CrossAttentionCache(len(crossing), w.kv_heads, w.head_dim),) if crossing else ()),
    )
    return Architecture(
        model_type=config.text("model_type"),
        class_name="MllamaForCausalLM" if alone else "MllamaForConditionalGeneration",
        weights=weights,
        caches=caches,
        layers=w.layers,
        hidden=w.hidden,
        intermediate=w.intermediate,
        gated=True,
        vocabulary=w.vocabulary + _EXTRA_ROWS,
        heads=w.heads,
        head_dim=w.head_dim,
        tied=tied,
        generates=True,
        position_limit=w.positions,
        rotary=Rotary(w.head_dim, original_positions(text)),
        dtype=text.text("dtype", "torch_dtype", default="float32"),
    )


def _text(w: Widths, crossing: Layers, *, tied: bool) -> Weights:
    own = chosen(w.stack, crossing)
    return (
        embedding("model.embed_tokens", w.vocabulary + _EXTRA_ROWS, w.hidden),
        *(attention_layers(w, Block(), own) if own else ()),
        *(_crossing(w, crossing) if crossing else ()),
        *gated_mlp(f"{_AT}.mlp", w.stack, hidden=w.hidden, intermediate=w.intermediate),
        *norm("model.norm", w.hidden),
        *(() if tied else head("lm_head", w.vocabulary, w.hidden)),
    )


def _crossing(w: Widths, layers: Layers) -> Weights:
    at = f"{_AT}.cross_attn"
    return (
        *norm(f"{_AT}.input_layernorm", w.hidden, layers),
        *norm(f"{_AT}.post_attention_layernorm", w.hidden, layers),
        *attention(at, layers, hidden=w.hidden, heads=w.heads, kv_heads=w.kv_heads, head_dim=w.head_dim),
        *norm(f"{at}.q_norm", w.head_dim, layers),
        *norm(f"{at}.k_norm", w.head_dim, layers),
        scalars(f"{_AT}.cross_attn_attn_gate", (1,), layers, Split.REPLICATED),
        scalars(f"{_AT}.cross_attn_mlp_gate", (1,), layers, Split.REPLICATED),
    )


def _vision(config: Config) -> Weights:
    hidden, inner = config.count("hidden_size", default=1280), config.count("intermediate_size", default=5120)
    patch, channels = config.count("patch_size", default=14), config.count("num_channels", default=3)
    rows = square(config, "image_size", patch, usual=448) + 1
    tiles = config.count("max_num_tiles", default=4)
    ratios = config.items("supported_aspect_ratios")
    kinds_of_ratio = (8 if ratios is None else max(len(ratios), 1)) + 1
    local = depth(config, "num_hidden_layers", usual=32)
    whole = depth(config, "num_global_layers", usual=8)
    gates = tuple(
        scalars(f"global_transformer.layers.{{layer}}.{name}", (1,), whole) for name in ("gate_attn", "gate_ffn")
    )
    found = (
        scalars("class_embedding", (hidden,)),
        Weight("patch_embedding.weight", (hidden, channels, patch, patch), Kind.CONVOLUTION, Split.REPLICATED),
        scalars("gated_positional_embedding.embedding", (rows, hidden)),
        scalars("gated_positional_embedding.gate", (1,)),
        *_table("gated_positional_embedding.tile_embedding", kinds_of_ratio, tiles * rows * hidden),
        *_table("pre_tile_positional_embedding.embedding", kinds_of_ratio, tiles * hidden),
        scalars("pre_tile_positional_embedding.gate", (1,)),
        *_table("post_tile_positional_embedding.embedding", kinds_of_ratio, tiles * hidden),
        scalars("post_tile_positional_embedding.gate", (1,)),
        *norm("layernorm_pre", hidden, bias=True),
        *norm("layernorm_post", hidden, bias=True),
        *_transformer("transformer", hidden, inner, local),
        *_transformer("global_transformer", hidden, inner, whole),
        *gates,
    )
    return as_tower(found, "vision_model.")


def _table(name: str, rows: int, width: int) -> Weights:
    return (replace(embedding(name, rows, width), split=Split.REPLICATED),)


def _transformer(name: str, hidden: int, inner: int, layers: Layers) -> Weights:
    at = f"{name}.layers.{{layer}}"
    return replicated(
        (
            *tower_attention(f"{at}.self_attn", hidden, layers, bias=False, out_name="o_proj"),
            *plain_mlp(f"{at}.mlp.", layers, hidden=hidden, intermediate=inner, names=("fc1", "fc2")),
            *norm(f"{at}.input_layernorm", hidden, layers, bias=True),
            *norm(f"{at}.post_attention_layernorm", hidden, layers, bias=True),
        )
    )
