"""MiniCPM-V 2.6: a SigLIP tower, a resampler with learned queries, a Qwen 2.

Code and defaults: `modeling_minicpmv.py`, `modeling_navit_siglip.py` and `resampler.py` at
https://huggingface.co/openbmb/MiniCPM-V-2_6 . Other versions share the family's name and are refused.
"""

from __future__ import annotations

from gpufit.architecture.blocks import Weights, belonging, linear, norm, scalars
from gpufit.architecture.config import Config
from gpufit.architecture.families.towers import as_tower, siglip_vision
from gpufit.architecture.joined import joined
from gpufit.architecture.record import Architecture, Component, Kind, Split, Weight
from gpufit.architecture.registry import build_family
from gpufit.errors import UnreadableInputError


def build(config: Config) -> Architecture:
    """The shapes of a MiniCPM-V 2.6."""
    version = config.values.get("version")
    if version not in (2.6, "2.6"):
        raise UnreadableInputError(
            f"{config.where}: gpufit has shape rules for minicpmv version 2.6 alone; run it on fake tensors instead: "
            "gpufit simulate"
        )
    text = build_family(config.with_values(model_type="qwen2"))
    vision = config.part("vision_config")
    width = vision.count("hidden_size", default=1152)
    seen = siglip_vision(vision.with_values(hidden_size=width), patch=14, inner=4304, pooled=False)
    return joined(
        config,
        text,
        class_name="MiniCPMV",
        text_names=(("", "llm."),),
        towers=(*as_tower(seen, "vpm."), *_resampler(config.count("query_num", default=64), text.hidden, width)),
    )


def _resampler(queries: int, out: int, into: int) -> Weights:
    at = "resampler"
    found = (
        scalars(f"{at}.query", (queries, out), (), Split.REPLICATED),
        *linear(f"{at}.kv_proj", out, into, Split.REPLICATED),
        Weight(f"{at}.attn.in_proj_weight", (3 * out, out), Kind.LINEAR, Split.REPLICATED),
        scalars(f"{at}.attn.in_proj_bias", (3 * out,), (), Split.REPLICATED),
        *linear(f"{at}.attn.out_proj", out, out, Split.REPLICATED, bias=True),
        *(one for name in ("ln_q", "ln_kv", "ln_post") for one in norm(f"{at}.{name}", out, bias=True)),
        scalars(f"{at}.proj", (out, out), (), Split.REPLICATED),
    )
    return belonging(found, Component.PROJECTOR)
