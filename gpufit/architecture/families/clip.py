"""CLIP and SigLIP, both towers: models that compare images with text and generate nothing.

Shapes and defaults: clip and siglip in https://github.com/huggingface/transformers/tree/main/src/transformers/models
"""

from __future__ import annotations

from gpufit.architecture.blocks import Weights, belonging, embedding, linear, norm, positions, renamed, scalars
from gpufit.architecture.config import Config
from gpufit.architecture.families.towers import as_tower, clip_layers, clip_vision, depth, siglip_vision
from gpufit.architecture.record import Architecture, Component, Split


def build(config: Config) -> Architecture:
    """The shapes of a CLIP or a SigLIP."""
    clip = config.text("model_type") == "clip"
    text, vision = config.part("text_config"), config.part("vision_config")
    hidden = text.count("hidden_size", default=512 if clip else 768)
    inner = text.count("intermediate_size", default=2048 if clip else 3072)
    heads = text.count("num_attention_heads", default=8 if clip else 12)
    rows, limit = text.count("vocab_size", default=49408 if clip else 32000), _limit(text, clip=clip)
    stack = depth(text, "num_hidden_layers", usual=12)
    read: Weights = (
        embedding("embeddings.token_embedding", rows, hidden),
        positions("embeddings.position_embedding", limit, hidden),
        *clip_layers(hidden, inner, stack),
        *norm("final_layer_norm", hidden, bias=True),
    )
    seen = vision.count("hidden_size", default=768)
    if clip:
        out = config.count("projection_dim", default=512)
        ends = (
            scalars("logit_scale", (), (), Split.REPLICATED),
            *linear("visual_projection", out, seen, Split.REPLICATED),
            *linear("text_projection", out, hidden, Split.REPLICATED),
        )
    else:
        out = text.count("projection_size", default=hidden)
        read = (*read, *linear("head", out, hidden, Split.REPLICATED, bias=True))
        ends = (
            scalars("logit_scale", (1,), (), Split.REPLICATED),
            scalars("logit_bias", (1,), (), Split.REPLICATED),
        )
    tower = clip_vision(vision) if clip else siglip_vision(vision)
    return Architecture(
        model_type=config.text("model_type"),
        class_name="CLIPModel" if clip else "SiglipModel",
        weights=(
            *renamed(read, ("", "text_model.")),
            *as_tower(tower, "vision_model."),
            *belonging(ends, Component.PROJECTOR),
        ),
        caches=(),
        layers=len(stack),
        hidden=hidden,
        intermediate=inner,
        gated=False,
        vocabulary=rows,
        heads=heads,
        head_dim=config.share(hidden, heads, "hidden width"),
        tied=False,
        generates=False,
        position_limit=limit,
    )


def _limit(text: Config, *, clip: bool) -> int:
    return text.count("max_position_embeddings", default=77 if clip else 64)
