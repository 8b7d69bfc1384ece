"""Kimi K2.5: MoonViT, a projector, and a DeepSeek V3.

Shapes and defaults: https://github.com/huggingface/transformers/tree/main/src/transformers/models/kimi_k25 ; names are
those of the published checkpoint.
"""

from __future__ import annotations

from gpufit.architecture.blocks import Weights, belonging, convolution, linear, norm, plain_mlp, scalars
from gpufit.architecture.config import Config
from gpufit.architecture.families.towers import as_tower, depth
from gpufit.architecture.joined import LLAVA_NAMES, joined, text_part
from gpufit.architecture.record import Architecture, Component, Split


def build(config: Config) -> Architecture:
    """The shapes of a Kimi K2.5."""
    text = text_part(config, "deepseek_v3")
    vision = config.part("vision_config")
    width = vision.count("hidden_size", "vt_hidden_size", default=1152)
    sides = vision.counts("merge_kernel_size", 1) or (2, 2)
    joint = width * sides[0] * sides[-1]
    projector = (
        *norm("mm_projector.pre_norm", width, bias=True),
        *linear("mm_projector.proj.0", joint, joint, Split.REPLICATED, bias=True),
        *linear("mm_projector.proj.2", text.hidden, joint, Split.REPLICATED, bias=True),
    )
    return joined(
        config,
        text,
        class_name="KimiK25ForConditionalGeneration",
        text_names=LLAVA_NAMES,
        towers=(*_moon_vit(vision, width), *belonging(projector, Component.PROJECTOR)),
    )


def _moon_vit(config: Config, width: int) -> Weights:
    inner = config.count("intermediate_size", "vt_intermediate_size", default=4304)
    stack = depth(config, "num_hidden_layers", "vt_num_hidden_layers", usual=27)
    patch = config.count("patch_size", default=14)
    grid = (
        config.count("pos_emb_height", "init_pos_emb_height", default=64),
        config.count("pos_emb_width", "init_pos_emb_width", default=64),
    )
    at = "encoder.blocks.{layer}"
    found = (
        scalars("patch_embed.pos_emb.weight", (*grid, width)),
        *convolution("patch_embed.proj", (width, 3, patch, patch), bias=True),
        *linear(f"{at}.wqkv", 3 * width, width, Split.REPLICATED, stack, bias=True),
        *linear(f"{at}.wo", width, width, Split.REPLICATED, stack, bias=True),
        *plain_mlp(f"{at}.mlp.", stack, hidden=width, intermediate=inner, names=("fc0", "fc1")),
        *norm(f"{at}.norm0", width, stack, bias=True),
        *norm(f"{at}.norm1", width, stack, bias=True),
        *norm("encoder.final_layernorm", width, bias=True),
    )
    return as_tower(found, "vision_tower.")
