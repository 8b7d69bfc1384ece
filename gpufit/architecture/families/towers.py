"""Towers that see or hear, as several families join them: CLIP, SigLIP, Pixtral and Whisper's encoder.

Shapes and defaults: clip, siglip, pixtral and whisper in
https://github.com/huggingface/transformers/tree/main/src/transformers/models
Every weight of a tower is whole on each rank here: engines that divide towers do so by an option.
"""

from __future__ import annotations

from collections.abc import Iterable

from gpufit.architecture.blocks import (
    Layers,
    Weights,
    belonging,
    convolution,
    gated_mlp,
    linear,
    norm,
    plain_mlp,
    positions,
    renamed,
    replicated,
    scalars,
)
from gpufit.architecture.config import MOST_LAYERS, Config
from gpufit.architecture.record import Component, Kind, Split, Weight


def as_tower(weights: Iterable[Weight], prefix: str, component: Component = Component.VISION) -> Weights:
    """The weights of a tower under its prefix, whole on each rank."""
    return replicated(belonging(renamed(weights, ("", prefix)), component))


def depth(config: Config, *keys: str, usual: int) -> Layers:
    """The numbers of a tower's layers."""
    return tuple(range(config.count(*keys, default=usual, most=MOST_LAYERS)))


def square(config: Config, key: str, patch: int, *, usual: int) -> int:
    """Patches of a square image."""
    size = config.count(key, default=usual)
    return int(config.share(size, patch, key)) ** 2


def tower_attention(
    at: str, hidden: int, layers: Layers, *, bias: bool, out_name: str = "out_proj", inner: int | None = None
) -> Weights:
    """Attention of a tower, as many KV heads as query heads."""
    wide = inner or hidden
    return (
        *(
            one
            for name in ("q_proj", "k_proj", "v_proj")
            for one in linear(f"{at}.{name}", wide, hidden, Split.REPLICATED, layers, bias=bias)
        ),
        *linear(f"{at}.{out_name}", hidden, wide, Split.REPLICATED, layers, bias=bias),
    )


def clip_layers(hidden: int, inner: int, stack: Layers) -> Weights:
    """Layers of CLIP and SigLIP, for text and images alike."""
    at = "encoder.layers.{layer}"
    return (
        *tower_attention(f"{at}.self_attn", hidden, stack, bias=True),
        *norm(f"{at}.layer_norm1", hidden, stack, bias=True),
        *plain_mlp(f"{at}.mlp.", stack, hidden=hidden, intermediate=inner, names=("fc1", "fc2")),
        *norm(f"{at}.layer_norm2", hidden, stack, bias=True),
    )


def clip_vision(config: Config) -> Weights:
    """CLIP's vision transformer, without a projection. Defaults are those of ViT-B/32."""
    hidden = config.count("hidden_size", default=768)
    patch = config.count("patch_size", default=32)
    channels = config.count("num_channels", default=3)
    stack = depth(config, "num_hidden_layers", usual=12)
    return (
        scalars("embeddings.class_embedding", (hidden,)),
        *convolution("embeddings.patch_embedding", (hidden, channels, patch, patch)),
        positions("embeddings.position_embedding", square(config, "image_size", patch, usual=224) + 1, hidden),
        *norm("pre_layrnorm", hidden, bias=True),
        *clip_layers(hidden, config.count("intermediate_size", default=3072), stack),
        *norm("post_layernorm", hidden, bias=True),
    )


def siglip_vision(config: Config, *, patch: int = 16, inner: int = 3072, pooled: bool | None = None) -> Weights:
    """SigLIP's vision transformer, with its pooling head unless `vision_use_head` (or `pooled`) says no."""
    hidden = config.count("hidden_size", default=768)
    patch = config.count("patch_size", default=patch)
    channels = config.count("num_channels", default=3)
    inner = config.count("intermediate_size", default=inner)
    stack = depth(config, "num_hidden_layers", usual=12)
    with_head = config.flag("vision_use_head", default=True) if pooled is None else pooled
    return (
        *convolution("embeddings.patch_embedding", (hidden, channels, patch, patch), bias=True),
        positions("embeddings.position_embedding", square(config, "image_size", patch, usual=224), hidden),
        *clip_layers(hidden, inner, stack),
        *norm("post_layernorm", hidden, bias=True),
        *(_pooling_head(hidden, inner) if with_head else ()),
    )


def _pooling_head(hidden: int, inner: int) -> Weights:
    return (
        scalars("head.probe", (1, 1, hidden)),
        Weight("head.attention.in_proj_weight", (3 * hidden, hidden), Kind.LINEAR, Split.REPLICATED),
        scalars("head.attention.in_proj_bias", (3 * hidden,)),
        *linear("head.attention.out_proj", hidden, hidden, Split.REPLICATED, bias=True),
        *norm("head.layernorm", hidden, bias=True),
        *plain_mlp("head.mlp.", (), hidden=hidden, intermediate=inner, names=("fc1", "fc2")),
    )


def pixtral_vision(config: Config) -> Weights:
    """Pixtral's vision transformer: rotary positions, gated MLPs."""
    hidden = config.count("hidden_size", default=1024)
    inner = config.count("intermediate_size", default=4096)
    patch = config.count("patch_size", default=16)
    channels = config.count("num_channels", default=3)
    stack = depth(config, "num_hidden_layers", usual=24)
    at = "transformer.layers.{layer}"
    return (
        *convolution("patch_conv", (hidden, channels, patch, patch)),
        *norm("ln_pre", hidden),
        *tower_attention(f"{at}.attention", hidden, stack, bias=False, out_name="o_proj"),
        *norm(f"{at}.attention_norm", hidden, stack),
        *gated_mlp(f"{at}.feed_forward", stack, hidden=hidden, intermediate=inner),
        *norm(f"{at}.ffn_norm", hidden, stack),
    )


def audio_attention(at: str, hidden: int, layers: Layers) -> Weights:
    """Whisper's attention: every projection but the keys' has a bias."""
    return (
        *linear(f"{at}.k_proj", hidden, hidden, Split.COLUMN, layers),
        *linear(f"{at}.v_proj", hidden, hidden, Split.COLUMN, layers, bias=True),
        *linear(f"{at}.q_proj", hidden, hidden, Split.COLUMN, layers, bias=True),
        *linear(f"{at}.out_proj", hidden, hidden, Split.ROW, layers, bias=True),
    )


def audio_encoder(config: Config, *, mels: int, hidden: int, inner: int, layers: Layers) -> Weights:
    """Whisper's encoder: two convolutions over mel bins, fixed positions, plain layers."""
    at = "layers.{layer}"
    return (
        *convolution("conv1", (hidden, mels, 3), bias=True),
        *convolution("conv2", (hidden, hidden, 3), bias=True),
        positions("embed_positions", config.count("max_source_positions", default=1500), hidden),
        *audio_attention(f"{at}.self_attn", hidden, layers),
        *norm(f"{at}.self_attn_layer_norm", hidden, layers, bias=True),
        *plain_mlp(f"{at}.", layers, hidden=hidden, intermediate=inner, names=("fc1", "fc2")),
        *norm(f"{at}.final_layer_norm", hidden, layers, bias=True),
        *norm("layer_norm", hidden, bias=True),
    )
