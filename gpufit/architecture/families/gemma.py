"""Gemma 1, 2 and 3 (text). Embeddings are tied unless a config says otherwise.

Shapes and defaults: gemma, gemma2 and gemma3 in
https://github.com/huggingface/transformers/tree/main/src/transformers/models
Gemma 2 alternates sliding and full layers, beginning with a sliding one; in Gemma 3 each sixth layer is full.
"""

from __future__ import annotations

from gpufit.architecture.config import Config
from gpufit.architecture.decoder import (
    Block,
    Usual,
    Whole,
    decoder,
    dense_layers,
    every,
    kinds,
    of_kind,
    widths,
    windowed_caches,
)
from gpufit.architecture.record import Architecture

_TWO = Usual(
    hidden=2304, layers=26, heads=8, kv_heads=4, head_dim=256, intermediate=9216, vocabulary=256000, positions=8192
)
_THREE = Usual(
    hidden=2304, layers=26, heads=8, kv_heads=4, head_dim=256, intermediate=9216, vocabulary=262208, positions=131072
)
USUAL = {
    "gemma": Usual(
        hidden=3072,
        layers=28,
        heads=16,
        kv_heads=16,
        head_dim=256,
        intermediate=24576,
        vocabulary=256000,
        positions=8192,
    ),
    "gemma2": _TWO,
    "gemma3_text": _THREE,
}
_CLASSES = {"gemma": "GemmaForCausalLM", "gemma2": "Gemma2ForCausalLM", "gemma3_text": "Gemma3ForCausalLM"}
_MORE = ("pre_feedforward_layernorm", "post_feedforward_layernorm")


def build(config: Config) -> Architecture:
    """The shapes of one of these families."""
    family = config.text("model_type")
    w = widths(config, USUAL[family])
    bias = config.flag("attention_bias")
    block = Block(
        qkv_bias=bias,
        out_bias=bias,
        more_norms=() if family == "gemma" else _MORE,
        qk_norm="head" if family == "gemma3_text" else "",
    )
    period = config.count("sliding_window_pattern", "_sliding_window_pattern", default=2 if family == "gemma2" else 6)
    usual = every(w.layers, period, one="full_attention", others="sliding_attention")
    sliding = 0 if family == "gemma" else len(of_kind(kinds(config, w.layers, usual), "sliding_attention"))
    whole = Whole(
        model_type=family,
        class_name=_CLASSES[family],
        tied=config.flag("tie_word_embeddings", default=True),
    )
    window = config.count("sliding_window", default=4096)
    return decoder(config, w, whole, dense_layers(w, block, w.stack), windowed_caches(w, sliding, window))
