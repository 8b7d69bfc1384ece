"""GLM 4.1V and 4.5V: a tower of gated blocks, patches joined by a convolution, before a GLM 4 or a GLM 4.5.

Shapes and defaults: glm4v and glm4v_moe in
https://github.com/huggingface/transformers/tree/main/src/transformers/models
"""

from __future__ import annotations

from gpufit.architecture.blocks import Weights, convolution, gated_mlp, linear, norm, positions
from gpufit.architecture.config import Config
from gpufit.architecture.families.towers import as_tower, depth, square
from gpufit.architecture.joined import INNER_NAMES, joined
from gpufit.architecture.record import Architecture, Split
from gpufit.architecture.registry import build_family

_AT = "blocks.{layer}"


def build(config: Config) -> Architecture:
    """The shapes of one of these models."""
    sparse = config.text("model_type") == "glm4v_moe"
    nested = config.part("text_config")
    tied = config.flag("tie_word_embeddings")
    hidden, heads = nested.count("hidden_size", default=4096), nested.count("num_attention_heads", default=32)
    # Unlike GLM 4 alone, a head is the hidden width over the heads unless told otherwise.
    head_dim = nested.maybe("head_dim") or (None if sparse else nested.share(hidden, heads, "hidden width"))
    text = build_family(
        nested.with_values(
            head_dim=head_dim,
            model_type="glm4_moe" if sparse else "glm4",
            tie_word_embeddings=tied,
            attention_bias=nested.flag("attention_bias", default=True),
            vocab_size=nested.count("vocab_size", default=151424 if sparse else 151552),
        )
    )
    return joined(
        config,
        text,
        class_name="Glm4vMoeForConditionalGeneration" if sparse else "Glm4vForConditionalGeneration",
        text_names=INNER_NAMES,
        towers=_tower(config.part("vision_config")),
    )


def _tower(config: Config) -> Weights:
    inner = config.count("intermediate_size", default=13696)
    out = config.count("out_hidden_size", default=4096)
    return as_tower(patches_joined(config, inner=out, projected=inner, newer=False), "model.visual.")


def patches_joined(config: Config, *, inner: int, projected: int, newer: bool) -> Weights:
    """A tower whose patches a convolution joins before the projector.

    `inner` is the width inside its blocks, `projected` that inside the projector. The newer towers normalise queries
    and keys and have no table of positions.
    """
    width, out = config.count("hidden_size", default=1536), config.count("out_hidden_size", default=4096)
    stack = depth(config, "depth", usual=24)
    patch, side = config.count("patch_size", default=14), config.count("spatial_merge_size", default=2)
    channels, time = config.count("in_channels", default=3), config.count("temporal_patch_size", default=2)
    bias = config.flag("attention_bias")
    head_dim = config.share(width, config.count("num_heads", default=16 if newer else 12), "hidden width")
    rows = square(config, "image_size", patch, usual=336)
    older = (positions("embeddings.position_embedding", rows, width), *norm("post_conv_layernorm", width))
    normed = (*norm(f"{_AT}.attn.q_norm", head_dim, stack), *norm(f"{_AT}.attn.k_norm", head_dim, stack))
    return (
        *(normed if newer else older),
        *convolution("patch_embed.proj", (width, channels, time, patch, patch), bias=True),
        *linear(f"{_AT}.attn.qkv", 3 * width, width, Split.REPLICATED, stack, bias=bias),
        *linear(f"{_AT}.attn.proj", width, width, Split.REPLICATED, stack, bias=newer and bias),
        *gated_mlp(f"{_AT}.mlp", stack, hidden=width, intermediate=inner, bias=newer and bias),
        *norm(f"{_AT}.norm1", width, stack),
        *norm(f"{_AT}.norm2", width, stack),
        *norm("post_layernorm", width),
        *convolution("downsample", (out, width, side, side), bias=True),
        *linear("merger.proj", out, out, Split.REPLICATED),
        *norm("merger.post_projection_norm", out, bias=True),
        *gated_mlp("merger", (), hidden=out, intermediate=projected),
    )
