"""RecurrentGemma and LFM2: recurrent or convolving layers with attention among them.

Shapes and defaults: recurrent_gemma, lfm2 and lfm2_moe in
https://github.com/huggingface/transformers/tree/main/src/transformers/models
RecurrentGemma's linear recurrence (https://arxiv.org/abs/2402.19427) keeps one float32 number a channel; its attention
sees a window. LFM2's short convolutions keep their last inputs and nothing else.
"""

from __future__ import annotations

from gpufit.architecture.blocks import (
    Layers,
    Weights,
    attention,
    convolution,
    correction,
    experts,
    gated_mlp,
    linear,
    norm,
    router,
    scalars,
)
from gpufit.architecture.config import Config
from gpufit.architecture.decoder import Usual, Whole, Widths, chosen, decoder, kinds, of_kind, rotary_share, widths
from gpufit.architecture.record import Architecture, AttentionCache, Cache, Experts, Split, StateCache

_GRIFFIN = Usual(hidden=2560, layers=26, heads=10, intermediate=7680, vocabulary=256000, positions=None)
_LFM = Usual(hidden=2560, heads=32, kv_heads=8, intermediate=12288, vocabulary=65536, positions=128000)
_LFM_MOE = Usual(hidden=2048, heads=32, kv_heads=8, intermediate=7168, vocabulary=65536, positions=128000)
_AT = "model.layers.{layer}"


def build(config: Config) -> Architecture:
    """The shapes of one of these families."""
    return _griffin(config) if config.text("model_type") == "recurrent_gemma" else _lfm(config)


def _griffin(config: Config) -> Architecture:
    w = widths(config.with_values(head_dim=None), _GRIFFIN)
    pattern = config.texts("block_types") or config.texts("_block_types") or ("recurrent", "recurrent", "attention")
    types = tuple(pattern[number % len(pattern)] for number in w.stack)
    seeing, straight = of_kind(types, "attention"), of_kind(types, "recurrent")
    wide, kernel = config.count("lru_width", default=w.hidden), config.count("conv1d_width", default=4)
    inner = config.share(w.intermediate, 2, "intermediate_size")
    layers = (
        *norm(f"{_AT}.temporal_pre_norm", w.hidden, w.stack),
        *norm(f"{_AT}.channel_pre_norm", w.hidden, w.stack),
        *gated_mlp(f"{_AT}.mlp_block", w.stack, hidden=w.hidden, intermediate=inner, bias=True),
        *(_griffin_attention(config, w, seeing) if seeing else ()),
        *(_recurrence(config, w, straight, wide, kernel) if straight else ()),
    )
    whole = Whole(
        model_type="recurrent_gemma",
        class_name="RecurrentGemmaForCausalLM",
        tied=config.flag("tie_word_embeddings", default=True),
        final="model.final_norm",
        rotary_dim=rotary_share(config, w.head_dim, 0.5),
    )
    caches: tuple[Cache, ...] = (
        AttentionCache(
            len(seeing), w.kv_heads, w.head_dim, w.head_dim, config.count("attention_window_size", default=2048)
        ),
        StateCache(len(straight), wide * (kernel - 1), wide),
    )
    return decoder(config, w, whole, layers, tuple(one for one in caches if one.layers))


def _griffin_attention(config: Config, w: Widths, layers: Layers) -> Weights:
    return attention(
        f"{_AT}.temporal_block",
        layers,
        hidden=w.hidden,
        heads=w.heads,
        kv_heads=w.kv_heads,
        head_dim=w.head_dim,
        bias=config.flag("attention_bias"),
        out_bias=True,
    )


def _recurrence(config: Config, w: Widths, layers: Layers, wide: int, kernel: int) -> Weights:
    at, block = f"{_AT}.temporal_block", config.share(wide, w.heads, "lru_width")
    gates = tuple(
        one
        for name in ("input_gate", "recurrent_gate")
        for one in (
            scalars(f"{at}.rg_lru.{name}_weight", (w.heads, block, block), layers),
            scalars(f"{at}.rg_lru.{name}_bias", (w.heads, block), layers),
        )
    )
    return (
        *linear(f"{at}.linear_y", wide, w.hidden, Split.COLUMN, layers, bias=True),
        *linear(f"{at}.linear_x", wide, w.hidden, Split.COLUMN, layers, bias=True),
        *linear(f"{at}.linear_out", w.hidden, wide, Split.ROW, layers, bias=True),
        *convolution(f"{at}.conv_1d", (wide, 1, kernel), layers, bias=True, split=Split.COLUMN),
        scalars(f"{at}.rg_lru.recurrent_param", (wide,), layers),
        *gates,
    )


def _lfm(config: Config) -> Architecture:
    sparse_family = config.text("model_type") == "lfm2_moe"
    w = widths(_named(config), _LFM_MOE if sparse_family else _LFM)
    named = config.counts("full_attn_idxs")
    seeing_usual = set(w.stack if named is None else named)
    usual = tuple("full_attention" if one in seeing_usual else "conv" for one in w.stack)
    seeing = of_kind(kinds(config, w.layers, usual), "full_attention")
    straight = chosen(w.stack, seeing)
    kernel, bias = config.count("conv_L_cache", default=3), config.flag("conv_bias")
    inner = w.intermediate if sparse_family else _adjusted(config, w.intermediate)
    first_sparse = min(config.count("num_dense_layers", default=2, least=0), w.layers) if sparse_family else w.layers
    dense, sparse = w.stack[:first_sparse], w.stack[first_sparse:]
    mlp = f"{_AT}.feed_forward"
    names = ("w1", "w3", "w2")
    layers = (
        *norm(f"{_AT}.operator_norm", w.hidden, w.stack),
        *norm(f"{_AT}.ffn_norm", w.hidden, w.stack),
        *(_lfm_attention(w, seeing) if seeing else ()),
        *(_short(w, straight, kernel, bias=bias) if straight else ()),
        *(gated_mlp(mlp, dense, hidden=w.hidden, intermediate=inner, names=names) if dense else ()),
    )
    mixture, routed = _lfm_experts(config, w, sparse, names) if sparse else (None, ())
    whole = Whole(
        model_type=config.text("model_type"),
        class_name="Lfm2MoeForCausalLM" if sparse_family else "Lfm2ForCausalLM",
        tied=config.flag("tie_embedding", "tie_word_embeddings", default=True),
        final="model.embedding_norm",
    )
    caches: tuple[Cache, ...] = (
        AttentionCache(len(seeing), w.kv_heads, w.head_dim, w.head_dim),
        StateCache(len(straight), w.hidden * kernel, 0),
    )
    return decoder(config, w, whole, (*layers, *routed), tuple(one for one in caches if one.layers), experts=mixture)


def _named(config: Config) -> Config:
    """LFM2's own configs call the inner width `block_ff_dim`."""
    inner = config.maybe("block_ff_dim", "intermediate_size")
    return config.with_values(intermediate_size=inner)


def _adjusted(config: Config, inner: int) -> int:
    """The inner width after `block_auto_adjust_ff_dim`: two thirds, scaled, rounded up to a multiple."""
    if not config.flag("block_auto_adjust_ff_dim", default=True):
        return inner
    scaled = int(config.number("block_ffn_dim_multiplier", 1.0) * int(2 * inner / 3))
    multiple = config.count("block_multiple_of", default=256)
    return -(-scaled // multiple) * multiple


def _lfm_attention(w: Widths, layers: Layers) -> Weights:
    at = f"{_AT}.self_attn"
    return (
        *attention(
            at,
            layers,
            hidden=w.hidden,
            heads=w.heads,
            kv_heads=w.kv_heads,
            head_dim=w.head_dim,
            out_name="out_proj",
        ),
        *norm(f"{at}.q_layernorm", w.head_dim, layers),
        *norm(f"{at}.k_layernorm", w.head_dim, layers),
    )


def _short(w: Widths, layers: Layers, kernel: int, *, bias: bool) -> Weights:
    at = f"{_AT}.conv"
    return (
        *linear(f"{at}.in_proj", 3 * w.hidden, w.hidden, Split.COLUMN, layers, bias=bias),
        *convolution(f"{at}.conv", (w.hidden, 1, kernel), layers, bias=bias, split=Split.COLUMN),
        *linear(f"{at}.out_proj", w.hidden, w.hidden, Split.ROW, layers, bias=bias),
    )


def _lfm_experts(config: Config, w: Widths, layers: Layers, names: tuple[str, str, str]) -> tuple[Experts, Weights]:
    at = f"{_AT}.feed_forward"
    count, inner = config.count("num_experts", default=32), config.count("moe_intermediate_size", default=1792)
    weights = (
        *router(f"{at}.gate", count, w.hidden, layers),
        *((correction(f"{at}.expert_bias", count, layers),) if config.flag("use_expert_bias", default=True) else ()),
        *experts(f"{at}.experts", layers, count=count, hidden=w.hidden, intermediate=inner, names=names),
    )
    return Experts(len(layers), count, config.count("num_experts_per_tok", default=4), inner), weights
