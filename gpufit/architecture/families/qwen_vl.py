"""Qwen's models that see: Qwen2-VL, Qwen2.5-VL, Qwen3-VL, Qwen 3.5, and the thinkers of the Omni models.

Shapes and defaults: qwen2_vl, qwen2_5_vl, qwen3_vl, qwen3_vl_moe, qwen3_5, qwen3_5_moe, qwen2_5_omni and
qwen3_omni_moe in https://github.com/huggingface/transformers/tree/main/src/transformers/models
The first two write the language model's keys beside `vision_config`, the others under `text_config`. Of an Omni only
the thinker is told: engines that answer in text load no more. Qwen3-VL stacks its experts, (experts, in, out).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gpufit.architecture.blocks import Weights, renamed
from gpufit.architecture.config import Config
from gpufit.architecture.decoder import Usual
from gpufit.architecture.families import qwen, qwen_towers
from gpufit.architecture.joined import INNER_NAMES, joined
from gpufit.architecture.record import Architecture, Kind, Weight
from gpufit.architecture.registry import build_family

_TWO = Usual(hidden=8192, layers=80, heads=64, kv_heads=8, intermediate=29568, vocabulary=152064, positions=32768)
_THREE = Usual(head_dim=128, kv_heads=32, intermediate=22016, vocabulary=151936, positions=128000)
_THREE_MOE = Usual(
    hidden=2048, layers=24, heads=16, kv_heads=16, intermediate=5632, vocabulary=151936, positions=128000
)
_OMNI_TWO = Usual(hidden=3584, layers=28, heads=28, kv_heads=4, intermediate=18944, vocabulary=152064, positions=32768)
_OMNI = Usual(hidden=2048, layers=28, heads=28, kv_heads=4, intermediate=18944, vocabulary=3584, positions=32768)


def build(config: Config) -> Architecture:
    """The shapes of one of these models."""
    return _BUILDERS[config.text("model_type")](config)


def _flat(config: Config) -> Architecture:
    """Qwen2-VL and 2.5-VL: text keys at the top, or nested as transformers 5 writes them."""
    family = config.text("model_type")
    nested = config.section("text_config")
    source = config if nested is None else nested
    tied = config.flag("tie_word_embeddings")
    text = qwen.built(source.with_values(model_type="qwen2", tie_word_embeddings=tied), "qwen2", _TWO)
    vision = config.part("vision_config")
    see = qwen_towers.seen_by_two if family == "qwen2_vl" else qwen_towers.seen_by_two_five
    name = "Qwen2VLForConditionalGeneration" if family == "qwen2_vl" else "Qwen2_5_VLForConditionalGeneration"
    return joined(config, text, class_name=name, text_names=(), towers=see(vision, "visual."))


def _three(config: Config) -> Architecture:
    family = config.text("model_type")
    sparse = family == "qwen3_vl_moe"
    source = config.part("text_config").with_values(
        model_type="qwen3_moe" if sparse else "qwen3", tie_word_embeddings=config.flag("tie_word_embeddings")
    )
    if sparse:
        source = source.with_values(
            num_experts=source.count("num_experts", "num_local_experts", default=60),
            num_experts_per_tok=source.count("num_experts_per_tok", default=4),
            moe_intermediate_size=source.count("moe_intermediate_size", default=1408),
        )
    text = qwen.built(source, "qwen3_moe" if sparse else "qwen3", _THREE_MOE if sparse else _THREE)
    text = replace(text, weights=_stacked(text.weights))
    return joined(
        config,
        text,
        class_name="Qwen3VLMoeForConditionalGeneration" if sparse else "Qwen3VLForConditionalGeneration",
        text_names=INNER_NAMES,
        towers=qwen_towers.seen_by_three(config.part("vision_config"), "model.visual.", deep=True),
    )


def _stacked(weights: Weights) -> Weights:
    """Gate and up projections of all experts in one tensor, down projections in another."""
    found: list[Weight] = []
    for one in weights:
        if one.kind is not Kind.EXPERT:
            found.append(one)
            continue
        lead = one.name.removesuffix(".weight").rsplit(".", 2)[0]
        out, into = one.shape
        if one.name.endswith("down_proj.weight"):
            found.append(replace(one, name=f"{lead}.down_proj", shape=(one.experts, into, out), experts=1))
        elif one.name.endswith("gate_proj.weight"):
            shape = (one.experts, into, 2 * out)
            found.append(replace(one, name=f"{lead}.gate_up_proj", shape=shape, experts=1, fused=""))
    return tuple(found)


def _five(config: Config) -> Architecture:
    family = config.text("model_type")
    tied = config.flag("tie_word_embeddings")
    source = config.part("text_config").with_values(model_type=f"{family}_text", tie_word_embeddings=tied)
    text = build_family(source)
    return joined(
        config,
        text,
        class_name="Qwen3_5ForConditionalGeneration" if family == "qwen3_5" else "Qwen3_5MoeForConditionalGeneration",
        text_names=INNER_NAMES,
        towers=qwen_towers.seen_by_three(config.part("vision_config"), "model.visual.", deep=False),
    )


def _omni(config: Config) -> Architecture:
    thinker = config.part("thinker_config")
    source = thinker.part("text_config").with_values(
        model_type="qwen3_moe", tie_word_embeddings=thinker.flag("tie_word_embeddings")
    )
    text = qwen.built(source, "qwen3_moe", _OMNI)
    towers = (
        *qwen_towers.heard_by_omni(thinker.part("audio_config"), "audio_tower."),
        *qwen_towers.seen_by_three(thinker.part("vision_config"), "visual.", deep=True, omni=True),
    )
    return _thinker(config, thinker, text, towers, "Qwen3OmniMoeForConditionalGeneration")


def _omni_two_five(config: Config) -> Architecture:
    thinker = config.part("thinker_config")
    tied = thinker.flag("tie_word_embeddings")
    text = qwen.built(
        thinker.part("text_config").with_values(model_type="qwen2", tie_word_embeddings=tied), "qwen2", _OMNI_TWO
    )
    towers = (
        *qwen_towers.heard_by_two_five(thinker.part("audio_config"), "audio_tower."),
        *qwen_towers.seen_by_two_five(thinker.part("vision_config"), "visual.", apart=True),
    )
    return _thinker(config, thinker, text, towers, "Qwen2_5OmniForConditionalGeneration")


def _thinker(config: Config, thinker: Config, text: Architecture, towers: Weights, class_name: str) -> Architecture:
    """A language model and its towers as the part that thinks."""
    whole = joined(
        config,
        text,
        class_name=class_name,
        text_names=(),
        towers=towers,
        notes=("the thinker alone: the parts that speak are left out",),
    )
    dtype = thinker.text("dtype", "torch_dtype", default=whole.dtype)
    return replace(whole, weights=renamed(whole.weights, ("", "thinker.")), dtype=dtype)


_BUILDERS: dict[str, Callable[[Config], Architecture]] = {
    "qwen2_vl": _flat,
    "qwen2_5_vl": _flat,
    "qwen3_vl": _three,
    "qwen3_vl_moe": _three,
    "qwen3_5": _five,
    "qwen3_5_moe": _five,
    "qwen2_5_omni": _omni_two_five,
    "qwen3_omni_moe": _omni,
}
