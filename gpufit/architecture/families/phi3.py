"""Phi 3 and 4, and Phi 3 Vision: query, key and value in one tensor, gate and up in one.

Shapes and defaults: https://github.com/huggingface/transformers/tree/main/src/transformers/models/phi3 ; the vision
model has code of its own at https://huggingface.co/microsoft/Phi-3.5-vision-instruct : CLIP ViT-L/14 at 336 pixels, a
separator each for rows and images, and two linear layers from four patches to the decoder's width.
"""

from __future__ import annotations

from dataclasses import replace

from gpufit.architecture.blocks import Weights, belonging, linear, norm, scalars
from gpufit.architecture.config import Config
from gpufit.architecture.decoder import (
    Usual,
    Whole,
    Widths,
    decoder,
    packed_mlp,
    rotary_share,
    widths,
    windowed_caches,
)
from gpufit.architecture.families.towers import as_tower, clip_vision
from gpufit.architecture.record import Architecture, Component, Split
from gpufit.errors import UnreadableInputError

_USUAL = Usual(hidden=3072, intermediate=8192, vocabulary=32064, positions=4096)
_AT = "model.layers.{layer}"
_CLIP_LARGE = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "image_size": 336,
    "patch_size": 14,
}
_PATCHES_A_TOKEN = 4


def build(config: Config) -> Architecture:
    """The shapes of a Phi 3 or 4, with its vision tower where the family has one."""
    family = config.text("model_type")
    w = widths(config, _USUAL)
    whole = Whole(
        model_type=family,
        class_name="Phi3ForCausalLM",
        tied=config.flag("tie_word_embeddings"),
        rotary_dim=rotary_share(config, w.head_dim),
    )
    window = config.maybe("sliding_window")
    built = decoder(config, w, whole, _layers(w), windowed_caches(w, w.layers if window else 0, window))
    if family != "phi3_v":
        return built
    return replace(built, class_name="Phi3VForCausalLM", weights=(*built.weights, *_vision(config, w)))


def _layers(w: Widths) -> Weights:
    out = (w.heads + 2 * w.kv_heads) * w.head_dim
    return (
        *norm(f"{_AT}.input_layernorm", w.hidden, w.stack),
        *norm(f"{_AT}.post_attention_layernorm", w.hidden, w.stack),
        *linear(f"{_AT}.self_attn.qkv_proj", out, w.hidden, Split.COLUMN, w.stack),
        *linear(f"{_AT}.self_attn.o_proj", w.hidden, w.heads * w.head_dim, Split.ROW, w.stack),
        *packed_mlp(f"{_AT}.mlp", w.stack, hidden=w.hidden, intermediate=w.intermediate),
    )


def _vision(config: Config, w: Widths) -> Weights:
    at = "model.vision_embed_tokens"
    tower = config.part("img_processor").text("model_name", default="openai/clip-vit-large-patch14-336")
    if tower != "openai/clip-vit-large-patch14-336":
        raise UnreadableInputError(f"{config.where}: gpufit has no shape rules for a vision tower {tower!r}")
    clip = Config(_CLIP_LARGE, config.where, nested=True)
    wide = _PATCHES_A_TOKEN * clip.count("hidden_size")
    projector = (
        *linear(f"{at}.img_projection.0", w.hidden, wide, Split.REPLICATED, bias=True),
        *linear(f"{at}.img_projection.2", w.hidden, w.hidden, Split.REPLICATED, bias=True),
        scalars(f"{at}.glb_GN", (1, 1, wide), (), Split.REPLICATED),
        scalars(f"{at}.sub_GN", (1, 1, 1, wide), (), Split.REPLICATED),
    )
    return (
        *as_tower(clip_vision(clip), f"{at}.img_processor.vision_model."),
        *belonging(projector, Component.PROJECTOR),
    )
