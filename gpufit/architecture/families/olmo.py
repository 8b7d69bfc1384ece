"""OLMo 1, 2 and 3, EXAONE 4 and Cohere's Command R: Llamas with other norms.

Shapes and defaults: olmo, olmo2, olmo3, exaone4, cohere and cohere2 in
https://github.com/huggingface/transformers/tree/main/src/transformers/models
OLMo 1 has norms without weights; OLMo 2 and 3 and EXAONE 4 normalise after attention and MLP; Cohere has one norm
a layer and ties its embeddings unless told otherwise.
"""

from __future__ import annotations

from gpufit.architecture.blocks import Weights
from gpufit.architecture.config import Config
from gpufit.architecture.decoder import (
    Block,
    Usual,
    Whole,
    Widths,
    decoder,
    dense_layers,
    every,
    kinds,
    of_kind,
    widths,
    windowed_caches,
)
from gpufit.architecture.record import Architecture, Kind, Split, Weight

_OLMO = Usual(vocabulary=50304)
_COHERE = Usual(hidden=8192, layers=40, heads=64, intermediate=22528, vocabulary=256000, positions=8192)
_POST = Block(before="post_attention_layernorm", after="post_feedforward_layernorm")
_POST_ALL = Block(before=_POST.before, after=_POST.after, qk_norm="all")
_POST_HEAD = Block(before=_POST.before, after=_POST.after, qk_norm="head")
_FAMILIES: dict[str, tuple[str, Usual, Block]] = {
    "olmo": ("OlmoForCausalLM", _OLMO, Block(norms=False)),
    "olmo2": ("Olmo2ForCausalLM", _OLMO, _POST_ALL),
    "olmo3": ("Olmo3ForCausalLM", _OLMO, _POST_ALL),
    "exaone4": (
        "Exaone4ForCausalLM",
        Usual(intermediate=16384, vocabulary=102400, kv_heads=32),
        _POST_HEAD,
    ),
    "cohere": ("CohereForCausalLM", _COHERE, Block(after="")),
    "cohere2": ("Cohere2ForCausalLM", _COHERE, Block(after="")),
}


def build(config: Config) -> Architecture:
    """The shapes of one of these families."""
    family = config.text("model_type")
    class_name, usual, block = _FAMILIES[family]
    w = widths(config, usual)
    bias = config.flag("attention_bias") if family != "exaone4" else False
    block = Block(
        before=block.before,
        after=block.after,
        norms=block.norms,
        qk_norm=block.qk_norm,
        qkv_bias=bias,
        out_bias=bias,
    )
    whole = Whole(
        model_type=family,
        class_name=class_name,
        tied=config.flag("tie_word_embeddings", default=family.startswith("cohere")),
        final="" if family == "olmo" else "model.norm",
    )
    layers: Weights = dense_layers(w, block, w.stack)
    if family == "cohere" and config.flag("use_qk_norm"):
        layers = (*layers, *_norms_of_heads(w))
    return decoder(config, w, whole, layers, windowed_caches(w, *_windows(config, w, family)))


def _windows(config: Config, w: Widths, family: str) -> tuple[int, int | None]:
    if family not in ("olmo3", "exaone4", "cohere2"):
        return 0, None
    window = config.maybe("sliding_window") if "sliding_window" in config.values else 4096
    if window is None:
        return 0, None
    period = config.count("sliding_window_pattern", default=4) if family != "exaone4" else _exaone_period(config)
    usual = every(w.layers, period, one="full_attention", others="sliding_attention")
    return len(of_kind(kinds(config, w.layers, usual), "sliding_attention")), window


def _exaone_period(config: Config) -> int:
    """EXAONE 4 writes its pattern as a number, or in letters (`LLLG`)."""
    value = config.values.get("sliding_window_pattern")
    if isinstance(value, str):
        return max(len(value), 1)
    return config.count("sliding_window_pattern", default=4)


def _norms_of_heads(w: Widths) -> Weights:
    """Command R+ normalises queries and keys by a weight for each head and dimension."""
    at = "model.layers.{layer}.self_attn"
    return tuple(
        Weight(f"{at}.{name}.weight", (heads, w.head_dim), Kind.NORM, split, layers=w.stack)
        for name, heads, split in (("q_norm", w.heads, Split.COLUMN), ("k_norm", w.kv_heads, Split.KV_HEADS))
    )
