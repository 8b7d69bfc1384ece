"""MiMo V2 Flash: sliding layers with more KV heads than the full ones, keys wider than values, experts.

Shapes and defaults: https://github.com/huggingface/transformers/tree/main/src/transformers/models/mimo_v2_flash
`hybrid_layer_pattern` writes 1 for a sliding layer, `moe_layer_freq` 1 for one with experts. The layers for multi-token
prediction are left out: the config does not describe them.
"""

from __future__ import annotations

from gpufit.architecture.blocks import Layers, Weights, attention, correction, experts, gated_mlp, norm, router, scalars
from gpufit.architecture.config import Config
from gpufit.architecture.decoder import Usual, Whole, Widths, chosen, decoder, kinds, of_kind, rotary_share, widths
from gpufit.architecture.record import Architecture, AttentionCache, Experts

_USUAL = Usual(
    hidden=4096, layers=48, heads=64, kv_heads=4, head_dim=192, intermediate=16384, vocabulary=152576, positions=131072
)
_AT = "model.layers.{layer}"


def build(config: Config) -> Architecture:
    """The shapes of a MiMo V2 Flash."""
    w = widths(config, _USUAL)
    sliding = _numbered(config, "hybrid_layer_pattern", w, "layer_types", "sliding_attention", 5)
    sparse = _numbered(config, "moe_layer_freq", w, "mlp_layer_types", "sparse", None)
    full, dense = chosen(w.stack, sliding), chosen(w.stack, sparse)
    of_full = AttentionCache(len(full), w.kv_heads, w.head_dim, config.count("v_head_dim", default=128))
    of_sliding = AttentionCache(
        len(sliding),
        config.count("swa_num_key_value_heads", default=2 * w.kv_heads),
        config.count("swa_head_dim", default=w.head_dim),
        config.count("swa_v_head_dim", default=of_full.value_dim),
        _window(config),
    )
    swa_heads = config.count("swa_num_attention_heads", default=w.heads)
    count, inner = config.count("n_routed_experts", default=256), config.count("moe_intermediate_size", default=2048)
    layers = (
        *_attention(config, w, of_full, full, w.heads, sinks=config.flag("add_full_attention_sink_bias")),
        *_attention(
            config, w, of_sliding, sliding, swa_heads, sinks=config.flag("add_swa_attention_sink_bias", default=True)
        ),
        *norm(f"{_AT}.input_layernorm", w.hidden, w.stack),
        *norm(f"{_AT}.post_attention_layernorm", w.hidden, w.stack),
        *(gated_mlp(f"{_AT}.mlp", dense, hidden=w.hidden, intermediate=w.intermediate) if dense else ()),
        *(_mixture(w, sparse, count, inner) if sparse else ()),
    )
    whole = Whole(
        model_type="mimo_v2_flash",
        class_name="MiMoV2FlashForCausalLM",
        tied=config.flag("tie_word_embeddings"),
        rotary_dim=rotary_share(config, w.head_dim, 0.334),
    )
    return decoder(
        config,
        w,
        whole,
        layers,
        tuple(one for one in (of_full, of_sliding) if one.layers),
        experts=Experts(len(sparse), count, config.count("num_experts_per_tok", default=8), inner) if sparse else None,
        notes=("layers for multi-token prediction, which the config does not describe, are left out",),
    )


def _window(config: Config) -> int:
    """Tokens a sliding layer sees: `sliding_window_size` before it and its own."""
    size = config.maybe("sliding_window_size")
    return config.count("sliding_window", default=129) if size is None else size + 1


def _numbered(config: Config, key: str, w: Widths, types: str, wanted: str, period: int | None) -> Layers:
    """Layers that a list of 0 and 1 marks, or that a list of kinds names, or each that the family usually has."""
    found = config.counts(key) if isinstance(config.values.get(key), (list, tuple)) else None
    if found is not None and len(found) >= w.layers:
        return tuple(number for number in w.stack if found[number])
    usual = tuple(
        wanted if (number and (period is None or (number + 1) % (period + 1))) else "other" for number in w.stack
    )
    return of_kind(kinds(config, w.layers, usual, types), wanted)


def _attention(
    config: Config, w: Widths, cached: AttentionCache, layers: Layers, heads: int, *, sinks: bool
) -> Weights:
    if not layers:
        return ()
    at = f"{_AT}.self_attn"
    return (
        *attention(
            at,
            layers,
            hidden=w.hidden,
            heads=heads,
            kv_heads=cached.kv_heads,
            head_dim=cached.key_dim,
            value_dim=cached.value_dim,
            bias=config.flag("attention_bias"),
        ),
        *((scalars(f"{at}.attention_sink_bias", (heads,), layers),) if sinks else ()),
    )


def _mixture(w: Widths, layers: Layers, count: int, inner: int) -> Weights:
    at = f"{_AT}.mlp"
    return (
        *router(f"{at}.gate", count, w.hidden, layers, upcast=True),
        correction(f"{at}.gate.e_score_correction_bias", count, layers),
        *experts(f"{at}.experts", layers, count=count, hidden=w.hidden, intermediate=inner),
    )
