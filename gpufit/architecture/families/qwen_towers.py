"""The towers of Qwen's models that see and hear.

Shapes and defaults: qwen2_vl, qwen2_5_vl, qwen3_vl, qwen3_5 and qwen3_omni_moe in
https://github.com/huggingface/transformers/tree/main/src/transformers/models
A merger joins a square of patches (`spatial_merge_size` on a side) and carries it to the decoder's width.
"""

from __future__ import annotations

from dataclasses import replace

from gpufit.architecture.blocks import (
    Layers,
    Weights,
    convolution,
    gated_mlp,
    linear,
    norm,
    plain_mlp,
    positions,
)
from gpufit.architecture.config import Config
from gpufit.architecture.families.towers import as_tower, audio_encoder, depth, tower_attention
from gpufit.architecture.record import Component, Split

_AT = "blocks.{layer}"


def _patches(config: Config, width: int, patch: int, *, bias: bool) -> Weights:
    channels = config.count("in_channels", "in_chans", default=3)
    time, side = config.count("temporal_patch_size", default=2), config.count("patch_size", default=patch)
    return convolution("patch_embed.proj", (width, channels, time, side, side), bias=bias)


def _attention(width: int, stack: Layers) -> Weights:
    return (
        *linear(f"{_AT}.attn.qkv", 3 * width, width, Split.REPLICATED, stack, bias=True),
        *linear(f"{_AT}.attn.proj", width, width, Split.REPLICATED, stack, bias=True),
    )


def _attention_apart(width: int, stack: Layers) -> Weights:
    return tuple(
        one
        for name in ("q", "k", "v", "proj")
        for one in linear(f"{_AT}.attn.{name}", width, width, Split.REPLICATED, stack, bias=True)
    )


def _merged(config: Config, width: int) -> int:
    return width * config.count("spatial_merge_size", default=2) ** 2


def _merger(width: int, merged: int, out: int, *, norm_bias: bool) -> Weights:
    return (
        *norm("merger.ln_q", width, bias=norm_bias),
        *linear("merger.mlp.0", merged, merged, Split.REPLICATED, bias=True),
        *linear("merger.mlp.2", out, merged, Split.REPLICATED, bias=True),
    )


def seen_by_two(config: Config, prefix: str) -> Weights:
    """Qwen2-VL's tower: `embed_dim` is its width and `hidden_size` the decoder's."""
    width = config.count("embed_dim", default=1280)
    stack = depth(config, "depth", usual=32)
    inner = int(width * config.number("mlp_ratio", 4))
    found = (
        *_patches(config, width, 14, bias=False),
        *_attention(width, stack),
        *plain_mlp(f"{_AT}.mlp.", stack, hidden=width, intermediate=inner, names=("fc1", "fc2")),
        *norm(f"{_AT}.norm1", width, stack, bias=True),
        *norm(f"{_AT}.norm2", width, stack, bias=True),
        *_merger(width, _merged(config, width), config.count("hidden_size", default=3584), norm_bias=True),
    )
    return as_tower(found, prefix)


def seen_by_two_five(config: Config, prefix: str, *, apart: bool = False) -> Weights:
    """Qwen2.5-VL's tower: gated MLPs, norms without biases; `apart` where query, key and value are three tensors."""
    width = config.count("hidden_size", default=3584)
    stack = depth(config, "depth", usual=32)
    inner = config.count("intermediate_size", default=3420)
    found = (
        *_patches(config, width, 14, bias=False),
        *(_attention_apart(width, stack) if apart else _attention(width, stack)),
        *gated_mlp(f"{_AT}.mlp", stack, hidden=width, intermediate=inner, bias=True),
        *norm(f"{_AT}.norm1", width, stack),
        *norm(f"{_AT}.norm2", width, stack),
        *_merger(width, _merged(config, width), config.count("out_hidden_size", default=3584), norm_bias=False),
    )
    return as_tower(found, prefix)


def seen_by_three(config: Config, prefix: str, *, deep: bool, omni: bool = False) -> Weights:
    """The tower of Qwen3-VL, 3.5 and Omni; `deep` adds mergers after some of its layers."""
    width, inner = config.count("hidden_size", default=1152), config.count("intermediate_size", default=4304)
    stack = depth(config, "depth", usual=27)
    merged, out = _merged(config, width), config.count("out_hidden_size", default=3584)
    named = config.counts("deepstack_visual_indexes")
    more = tuple(range((3 if named is None else len(named)) if deep else 0))
    found = (
        *_patches(config, width, 16, bias=True),
        positions("pos_embed", config.count("num_position_embeddings", default=2304), width),
        *_attention(width, stack),
        *plain_mlp(f"{_AT}.mlp.", stack, hidden=width, intermediate=inner, names=("linear_fc1", "linear_fc2")),
        *norm(f"{_AT}.norm1", width, stack, bias=True),
        *norm(f"{_AT}.norm2", width, stack, bias=True),
        *_merger_of_three("merger", width, merged, out, omni=omni),
        *(_merger_of_three(_deeper(omni=omni), merged, merged, out, omni=omni, layers=more) if more else ()),
    )
    return as_tower(found, prefix)


def _deeper(*, omni: bool) -> str:
    return "merger_list.{layer}" if omni else "deepstack_merger_list.{layer}"


def _merger_of_three(name: str, normed: int, merged: int, out: int, *, omni: bool, layers: Layers = ()) -> Weights:
    of_norm, first, second = ("ln_q", "mlp.0", "mlp.2") if omni else ("norm", "linear_fc1", "linear_fc2")
    return (
        *norm(f"{name}.{of_norm}", normed, layers, bias=True),
        *linear(f"{name}.{first}", merged, merged, Split.REPLICATED, layers, bias=True),
        *linear(f"{name}.{second}", out, merged, Split.REPLICATED, layers, bias=True),
    )


def heard_by_two_five(config: Config, prefix: str) -> Weights:
    """Qwen2.5-Omni's encoder of sound: Whisper's without a table of positions, and a projection with two marks."""
    hidden, inner = config.count("d_model", default=1280), config.count("encoder_ffn_dim", default=5120)
    stack, out = depth(config, "encoder_layers", usual=32), config.count("output_dim", default=3584)
    mels = config.count("num_mel_bins", default=128)
    whisper = audio_encoder(config, mels=mels, hidden=hidden, inner=inner, layers=stack)
    ends = {"layer_norm.weight": "ln_post.weight", "layer_norm.bias": "ln_post.bias"}
    found = (
        *(replace(one, name=ends.get(one.name, one.name)) for one in whisper if one.name != "embed_positions.weight"),
        *linear("proj", out, hidden, Split.REPLICATED, bias=True),
        positions("audio_bos_eos_token", 2, out),
    )
    return as_tower(found, prefix, Component.AUDIO)


def heard_by_omni(config: Config, prefix: str) -> Weights:
    """Omni's encoder of sound: three convolutions that each halve mel bins and frames, then plain layers."""
    hidden, inner = config.count("d_model", default=1280), config.count("encoder_ffn_dim", default=5120)
    stack = depth(config, "encoder_layers", usual=32)
    channels, out = config.count("downsample_hidden_size", default=480), config.count("output_dim", default=3584)
    bins = config.count("num_mel_bins", default=128)
    for _ in range(3):
        bins = (bins + 1) // 2
    at = "layers.{layer}"
    found = (
        *convolution("conv2d1", (channels, 1, 3, 3), bias=True),
        *convolution("conv2d2", (channels, channels, 3, 3), bias=True),
        *convolution("conv2d3", (channels, channels, 3, 3), bias=True),
        *linear("conv_out", hidden, channels * bins, Split.REPLICATED),
        *tower_attention(f"{at}.self_attn", hidden, stack, bias=True),
        *norm(f"{at}.self_attn_layer_norm", hidden, stack, bias=True),
        *plain_mlp(f"{at}.", stack, hidden=hidden, intermediate=inner, names=("fc1", "fc2")),
        *norm(f"{at}.final_layer_norm", hidden, stack, bias=True),
        *norm("ln_post", hidden, bias=True),
        *linear("proj1", hidden, hidden, Split.REPLICATED, bias=True),
        *linear("proj2", out, hidden, Split.REPLICATED, bias=True),
    )
    return as_tower(found, prefix, Component.AUDIO)
