"""InternLM 2 and 2.5, and InternVL with code of its own, which joins InternViT to them or to a Qwen 2.

Code and defaults: `modeling_internlm2.py` at https://huggingface.co/internlm/internlm2_5-7b-chat and
`modeling_intern_vit.py` and `modeling_internvl_chat.py` at https://huggingface.co/OpenGVLab/InternVL2_5-8B .
Query, key and value are one tensor, ordered by KV head.
"""

from __future__ import annotations

from gpufit.architecture.blocks import (
    Weights,
    belonging,
    convolution,
    gated_mlp,
    linear,
    norm,
    plain_mlp,
    scalars,
)
from gpufit.architecture.config import Config
from gpufit.architecture.decoder import Usual, Whole, decoder, widths
from gpufit.architecture.families.llava import shuffled
from gpufit.architecture.families.towers import as_tower, depth, square
from gpufit.architecture.joined import LLAVA_NAMES, joined, text_part
from gpufit.architecture.record import Architecture, Component, Split

_USUAL = Usual(vocabulary=103168)


def build(config: Config) -> Architecture:
    """The shapes of an InternLM 2, or of an InternVL."""
    return _internvl(config) if config.text("model_type") == "internvl_chat" else _internlm(config)


def _internlm(config: Config) -> Architecture:
    w = widths(config, _USUAL)
    bias = config.flag("bias", default=True)
    at = "model.layers.{layer}"
    out = (w.heads + 2 * w.kv_heads) * w.head_dim
    layers = (
        *norm(f"{at}.attention_norm", w.hidden, w.stack),
        *norm(f"{at}.ffn_norm", w.hidden, w.stack),
        *linear(f"{at}.attention.wqkv", out, w.hidden, Split.COLUMN, w.stack, bias=bias),
        *linear(f"{at}.attention.wo", w.hidden, w.heads * w.head_dim, Split.ROW, w.stack, bias=bias),
        *gated_mlp(
            f"{at}.feed_forward", w.stack, hidden=w.hidden, intermediate=w.intermediate, names=("w1", "w3", "w2")
        ),
    )
    whole = Whole(
        model_type="internlm2",
        class_name="InternLM2ForCausalLM",
        tied=config.flag("tie_word_embeddings"),
        embed="model.tok_embeddings",
        lm_head="output",
    )
    return decoder(config, w, whole, layers, (w.full_cache,))


def _internvl(config: Config) -> Architecture:
    # The language model's own flag decides: the whole's class ties nothing.
    tied = config.part("llm_config").flag("tie_word_embeddings")
    text = text_part(config.with_values(tie_word_embeddings=tied), "internlm2", key="llm_config")
    vision = config.part("vision_config")
    width = vision.count("hidden_size", default=3200)
    joint = shuffled(config, width)
    projector = (
        *norm("mlp1.0", joint, bias=True),
        *linear("mlp1.1", text.hidden, joint, Split.REPLICATED, bias=True),
        *linear("mlp1.3", text.hidden, text.hidden, Split.REPLICATED, bias=True),
    )
    return joined(
        config,
        text,
        class_name="InternVLChatModel",
        text_names=LLAVA_NAMES,
        towers=(*_internvit(vision, width), *belonging(projector, Component.PROJECTOR)),
    )


def _internvit(config: Config, width: int) -> Weights:
    """InternViT; defaults are those of its class, which describe the 6B."""
    inner, stack = config.count("intermediate_size", default=12800), depth(config, "num_hidden_layers", usual=48)
    patch, channels = config.count("patch_size", default=14), config.count("num_channels", default=3)
    rows = square(config, "image_size", patch, usual=224) + 1
    normed, norm_bias = config.flag("qk_normalization", default=True), config.text("norm_type") == "layer_norm"
    at = "encoder.layers.{layer}"
    found = (
        scalars("embeddings.class_embedding", (1, 1, width)),
        *convolution("embeddings.patch_embedding", (width, channels, patch, patch), bias=True),
        scalars("embeddings.position_embedding", (1, rows, width)),
        *linear(f"{at}.attn.qkv", 3 * width, width, Split.REPLICATED, stack, bias=config.flag("qkv_bias")),
        *linear(f"{at}.attn.proj", width, width, Split.REPLICATED, stack, bias=True),
        *(norm(f"{at}.attn.q_norm", width, stack) if normed else ()),
        *(norm(f"{at}.attn.k_norm", width, stack) if normed else ()),
        *plain_mlp(f"{at}.mlp.", stack, hidden=width, intermediate=inner, names=("fc1", "fc2")),
        *norm(f"{at}.norm1", width, stack, bias=norm_bias),
        *norm(f"{at}.norm2", width, stack, bias=norm_bias),
        scalars(f"{at}.ls1", (width,), stack),
        scalars(f"{at}.ls2", (width,), stack),
    )
    return as_tower(found, "vision_model.")
