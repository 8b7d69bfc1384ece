"""LLaVA and its kin: LLaVA-NeXT, LLaVA-OneVision, Gemma 3, Mistral 3, Pixtral, PaliGemma, InternVL, Idefics 3, SmolVLM.

Shapes and defaults: the folders of these names in
https://github.com/huggingface/transformers/tree/main/src/transformers/models
A language model of any known family, a vision tower of any known kind, and a projector between. Published checkpoints
write CLIP's and SigLIP's names behind `vision_model.`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gpufit.architecture.blocks import Weights, belonging, linear, norm, plain_mlp, scalars
from gpufit.architecture.config import Config
from gpufit.architecture.families.towers import (
    as_tower,
    clip_vision,
    depth,
    pixtral_vision,
    siglip_vision,
    square,
    tower_attention,
)
from gpufit.architecture.joined import LLAVA_NAMES, joined, text_part, two_layer_projector
from gpufit.architecture.record import Architecture, Component, Kind, Split, Weight
from gpufit.errors import UnreadableInputError

_CLIP_L = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "image_size": 336, "patch_size": 14}
_SIGLIP_SO = {
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_hidden_layers": 26,
    "image_size": 384,
    "patch_size": 14,
    "vision_use_head": False,
}


def build(config: Config) -> Architecture:
    """The shapes of one of these models."""
    return _BUILDERS[config.text("model_type")](config)


def _tower(config: Config, usual: str, absent: Mapping[str, object] | None = None) -> tuple[Weights, int]:
    """The vision tower and its width; `absent` are the defaults where there is no `vision_config` at all."""
    vision = config.section("vision_config") or config.part("vision_config").with_values(**(absent or {}))
    kind = vision.text("model_type", default=usual)
    if kind == "clip_vision_model":
        return as_tower(clip_vision(vision), "vision_tower.vision_model."), vision.count("hidden_size", default=768)
    if kind == "siglip_vision_model":
        return as_tower(siglip_vision(vision), "vision_tower.vision_model."), vision.count("hidden_size", default=768)
    if kind == "pixtral":
        return as_tower(pixtral_vision(vision), "vision_tower."), vision.count("hidden_size", default=1024)
    raise UnreadableInputError(f"{vision.where}: gpufit has no shape rules for a vision tower of type {kind!r}")


def _llava(config: Config) -> Architecture:
    family = config.text("model_type")
    onevision = family == "llava_onevision"
    text = text_part(config, "qwen2" if onevision else "llama")
    usual = "siglip_vision_model" if onevision else "clip_vision_model"
    tower, width = _tower(config, usual, _SIGLIP_SO if onevision else _CLIP_L)
    layers = config.values.get("vision_feature_layer")
    joined_layers = max(len(layers), 1) if isinstance(layers, list) else 1
    bias = config.flag("multimodal_projector_bias", default=True)
    projector = two_layer_projector("multi_modal_projector", width * joined_layers, text.hidden, bias=bias)
    newline = () if family == "llava" else (scalars("image_newline", (text.hidden,), (), Split.REPLICATED),)
    names = {
        "llava": "LlavaForConditionalGeneration",
        "llava_next": "LlavaNextForConditionalGeneration",
        "llava_onevision": "LlavaOnevisionForConditionalGeneration",
    }
    return joined(
        config,
        text,
        class_name=names[family],
        text_names=LLAVA_NAMES,
        towers=(*tower, *projector, *belonging(newline, Component.PROJECTOR)),
    )


def _gemma3(config: Config) -> Architecture:
    text = text_part(config, "gemma3_text", tied=True)
    tower, width = _tower(config, "siglip_vision_model")
    projector = (
        Weight("multi_modal_projector.mm_input_projection_weight", (width, text.hidden), Kind.LINEAR, Split.REPLICATED),
        *norm("multi_modal_projector.mm_soft_emb_norm", width),
    )
    return joined(
        config,
        text,
        class_name="Gemma3ForConditionalGeneration",
        text_names=LLAVA_NAMES,
        towers=(*tower, *belonging(projector, Component.PROJECTOR)),
    )


def _mistral3(config: Config) -> Architecture:
    """Mistral Small 3.1 and Ministral 3."""
    text = text_part(config, "mistral")
    absent = {"image_size": 1540, "patch_size": 14}
    tower, width = _tower(config, "pixtral", absent)
    side = config.count("spatial_merge_size", default=2)
    at = "multi_modal_projector"
    bias = config.flag("multimodal_projector_bias")
    projector = (
        *norm(f"{at}.norm", width),
        *linear(f"{at}.patch_merger.merging_layer", width, width * side * side, Split.REPLICATED),
        *two_layer_projector(at, width, text.hidden, bias=bias),
    )
    return joined(
        config,
        text,
        class_name="Mistral3ForConditionalGeneration",
        text_names=LLAVA_NAMES,
        towers=(*tower, *belonging(projector, Component.PROJECTOR)),
    )


def _paligemma(config: Config) -> Architecture:
    nested = config.part("text_config")
    usual = {"vocab_size": 257152, "hidden_size": 2048, "num_hidden_layers": 18, "intermediate_size": 16384}
    heads = {"num_attention_heads": 8, "num_key_value_heads": 1}
    filled = config if nested.values else config.with_values(text_config={**usual, **heads})
    text = text_part(filled, "gemma", tied=True)
    tower, width = _tower(
        config,
        "siglip_vision_model",
        {**_SIGLIP_SO, "intermediate_size": 4096, "num_hidden_layers": 27, "image_size": 224},
    )
    out = config.part("vision_config").count("projection_dim", default=config.count("projection_dim", default=2048))
    projector = linear("multi_modal_projector.linear", out, width, Split.REPLICATED, bias=True)
    return joined(
        config,
        text,
        class_name="PaliGemmaForConditionalGeneration",
        text_names=LLAVA_NAMES,
        towers=(*tower, *belonging(projector, Component.PROJECTOR)),
    )


def _internvl(config: Config) -> Architecture:
    text = text_part(config, "qwen2")
    vision = config.part("vision_config")
    width = vision.count("hidden_size", default=1024)
    joint = shuffled(config, width)
    return joined(
        config,
        text,
        class_name="InternVLForConditionalGeneration",
        text_names=LLAVA_NAMES,
        towers=(
            *_internvit(vision, width),
            *two_layer_projector("multi_modal_projector", joint, text.hidden, normed=True),
        ),
    )


def shuffled(config: Config, width: int) -> int:
    """The width of patches joined to one by pixel shuffling: 1 / `downsample_ratio` of them on a side."""
    ratio = config.number("downsample_ratio", 0.5)
    if not 0.001 <= ratio <= 1:
        raise config.wrong("downsample_ratio", "a number from 0.001 to 1")
    return width * int(1 / ratio) ** 2


def _side(config: Config, key: str, usual: int) -> int:
    """A size written as a number or as a pair of equal ones."""
    pair = config.counts(key, 1) if isinstance(config.values.get(key), (list, tuple)) else None
    return pair[0] if pair else config.count(key, default=usual)


def _internvit(config: Config, width: int) -> Weights:
    inner, stack = config.count("intermediate_size", default=4096), depth(config, "num_hidden_layers", usual=24)
    patch, channels = _side(config, "patch_size", 14), config.count("num_channels", default=3)
    rows = square(config.with_values(image_size=_side(config, "image_size", 448)), "image_size", patch, usual=448) + 1
    rms = config.text("norm_type", default="layer_norm") == "rms_norm"
    at = "encoder.layer.{layer}"
    bias = config.flag("attention_bias")
    found: Weights = (
        scalars("embeddings.cls_token", (1, 1, width)),
        *(
            (scalars("embeddings.position_embeddings", (1, rows, width)),)
            if config.flag("use_absolute_position_embeddings", default=True)
            else ()
        ),
        Weight(
            "embeddings.patch_embeddings.projection.weight",
            (width, channels, patch, patch),
            Kind.CONVOLUTION,
            Split.REPLICATED,
        ),
        Weight("embeddings.patch_embeddings.projection.bias", (width,), Kind.BIAS, Split.REPLICATED),
        *tower_attention(f"{at}.attention", width, stack, bias=bias, out_name="projection_layer"),
        *(
            ()
            if bias
            else (Weight(f"{at}.attention.projection_layer.bias", (width,), Kind.BIAS, Split.REPLICATED, layers=stack),)
        ),
        *plain_mlp(f"{at}.mlp.", stack, hidden=width, intermediate=inner, names=("fc1", "fc2")),
        *norm(f"{at}.layernorm_before", width, stack, bias=not rms),
        *norm(f"{at}.layernorm_after", width, stack, bias=not rms),
        scalars(f"{at}.lambda_1", (width,), stack),
        scalars(f"{at}.lambda_2", (width,), stack),
    )
    if config.flag("use_qk_norm"):
        found = (*found, *norm(f"{at}.attention.q_norm", width, stack), *norm(f"{at}.attention.k_norm", width, stack))
    if not config.flag("use_mean_pooling", default=True):
        found = (*found, *norm("layernorm", width, bias=True))
    return as_tower(found, "vision_tower.")


def _idefics3(config: Config) -> Architecture:
    text = text_part(config, "llama")
    vision = config.part("vision_config")
    width = vision.count("hidden_size", default=1152)
    seen = siglip_vision(vision.with_values(hidden_size=width), patch=32, pooled=False)
    scale = config.count("scale_factor", default=2)
    projector = linear("model.connector.modality_projection.proj", text.hidden, width * scale * scale, Split.REPLICATED)
    smol = config.text("model_type") == "smolvlm"
    return joined(
        config,
        text,
        class_name="SmolVLMForConditionalGeneration" if smol else "Idefics3ForConditionalGeneration",
        text_names=(("model.", "model.text_model."),),
        towers=(*as_tower(seen, "model.vision_model."), *belonging(projector, Component.PROJECTOR)),
    )


_BUILDERS: dict[str, Callable[[Config], Architecture]] = {
    "llava": _llava,
    "llava_next": _llava,
    "llava_onevision": _llava,
    "gemma3": _gemma3,
    "mistral3": _mistral3,
    "ministral3": _mistral3,
    "paligemma": _paligemma,
    "internvl": _internvl,
    "idefics3": _idefics3,
    "smolvlm": _idefics3,
}
