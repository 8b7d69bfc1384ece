"""Jamba, Bamba, Falcon H1 and Granite 4: Mamba layers with attention among them, or beside it in each layer.

Shapes and defaults: jamba, bamba, falcon_h1 and granitemoehybrid in
https://github.com/huggingface/transformers/tree/main/src/transformers/models
Jamba has Mamba 1 and attention in one layer of `attn_layer_period`; the others Mamba 2. Every layer of Falcon H1 has
both. Granite's MLPs are shared experts, with routed ones beside them where `num_local_experts` is not 0.
"""

from __future__ import annotations

from collections.abc import Callable

from gpufit.architecture.blocks import Layers, Weights, attention, experts, gated_mlp, norm, router
from gpufit.architecture.config import Config
from gpufit.architecture.decoder import Usual, Whole, Widths, chosen, decoder, kinds, of_kind, widths
from gpufit.architecture.families.granite_moe import shared_mlp, stacked_experts
from gpufit.architecture.families.state_space import MambaOne, MambaTwo
from gpufit.architecture.record import Architecture, AttentionCache, Cache, Experts, StateCache

_AT = "model.layers.{layer}"
_JAMBA = Usual(kv_heads=8, intermediate=14336, vocabulary=65536, positions=262144)
_BAMBA = Usual(kv_heads=8, intermediate=14336, vocabulary=128000, positions=262144)
_H1 = Usual(kv_heads=8, intermediate=14336, vocabulary=128000, positions=8192)
_GRANITE = Usual()


def build(config: Config) -> Architecture:
    """The shapes of one of these families."""
    return _BUILDERS[config.text("model_type")](config)


def _attention(w: Widths, layers: Layers, *, bias: bool = False) -> Weights:
    return attention(
        f"{_AT}.self_attn",
        layers,
        hidden=w.hidden,
        heads=w.heads,
        kv_heads=w.kv_heads,
        head_dim=w.head_dim,
        bias=bias,
        out_bias=bias,
    )


def _norms(w: Widths, second: str) -> Weights:
    return (
        *norm(f"{_AT}.input_layernorm", w.hidden, w.stack),
        *norm(f"{_AT}.{second}", w.hidden, w.stack),
    )


def _both(w: Widths, seeing: Layers, state: StateCache) -> tuple[Cache, ...]:
    found = (AttentionCache(len(seeing), w.kv_heads, w.head_dim, w.head_dim), state)
    return tuple(one for one in found if one.layers)


def _periodic(config: Config, w: Widths, name: str, period: int, offset: int) -> Layers:
    every = config.count(f"{name}_layer_period", default=period)
    first = config.count(f"{name}_layer_offset", default=offset, least=0)
    return tuple(one for one in w.stack if one % every == first)


def _jamba(config: Config) -> Architecture:
    w = widths(config, _JAMBA)
    seeing = _periodic(config, w, "attn", 8, 4)
    count = config.count("num_experts", "num_local_experts", default=16)
    sparse = _periodic(config, w, "expert", 2, 1) if count > 1 else ()
    straight, dense = chosen(w.stack, seeing), chosen(w.stack, sparse)
    given = config.values.get("mamba_dt_rank")
    mixer = MambaOne(
        hidden=w.hidden,
        inner=w.hidden * config.count("mamba_expand", default=2),
        state=config.count("mamba_d_state", default=16),
        kernel=config.count("mamba_d_conv", default=4),
        rank=-(-w.hidden // 16) if given in (None, "auto") else config.count("mamba_dt_rank"),
        conv_bias=config.flag("mamba_conv_bias", default=True),
        bias=config.flag("mamba_proj_bias"),
    )
    at, mlp = f"{_AT}.mamba", f"{_AT}.feed_forward"
    per_token = config.count("num_experts_per_tok", default=2)
    inner_norms = {"dt_layernorm": mixer.rank, "b_layernorm": mixer.state, "c_layernorm": mixer.state}
    layers = (
        *_norms(w, "pre_ff_layernorm"),
        *(_attention(w, seeing) if seeing else ()),
        *(mixer.weights(at, straight) if straight else ()),
        *(one for name, size in inner_norms.items() if straight for one in norm(f"{at}.{name}", size, straight)),
        *(gated_mlp(mlp, dense, hidden=w.hidden, intermediate=w.intermediate) if dense else ()),
        *(router(f"{mlp}.router", count, w.hidden, sparse) if sparse else ()),
        *(
            experts(f"{mlp}.experts", sparse, count=count, hidden=w.hidden, intermediate=w.intermediate)
            if sparse
            else ()
        ),
    )
    whole = Whole(
        model_type="jamba",
        class_name="JambaForCausalLM",
        tied=config.flag("tie_word_embeddings"),
        final="model.final_layernorm",
        rotary_dim=0,
    )
    mixture = Experts(len(sparse), count, per_token, w.intermediate) if sparse else None
    return decoder(config, w, whole, layers, _both(w, seeing, mixer.cache(len(straight))), experts=mixture)


def _mamba_two(config: Config, w: Widths, *, inner: int | None = None, normed: bool = True) -> MambaTwo:
    heads = config.count("mamba_n_heads", default=128)
    whole = inner or w.hidden * config.count("mamba_expand", default=2)
    given = config.values.get("mamba_d_head")
    wanted = config.share(whole, heads, "Mamba's inner width")
    return MambaTwo(
        hidden=w.hidden,
        heads=heads,
        head_dim=wanted if given in (None, "auto") or inner else config.count("mamba_d_head"),
        groups=config.count("mamba_n_groups", default=1),
        state=config.count("mamba_d_state", default=256),
        kernel=config.count("mamba_d_conv", default=4),
        conv_bias=config.flag("mamba_conv_bias", default=True),
        bias=config.flag("mamba_proj_bias"),
        normed=normed,
    )


def _bamba(config: Config) -> Architecture:
    w = widths(config, _BAMBA)
    seeing = tuple(one for one in w.stack if one in set(config.counts("attn_layer_indices") or ()))
    straight = chosen(w.stack, seeing)
    mixer = _mamba_two(config, w)
    bias = config.flag("attention_bias")
    layers = (
        *_norms(w, "pre_ff_layernorm"),
        *(_attention(w, seeing, bias=bias) if seeing else ()),
        *(mixer.weights(f"{_AT}.mamba", straight) if straight else ()),
        *gated_mlp(
            f"{_AT}.feed_forward",
            w.stack,
            hidden=w.hidden,
            intermediate=w.intermediate,
            bias=config.flag("mlp_bias"),
        ),
    )
    whole = Whole(
        model_type="bamba",
        class_name="BambaForCausalLM",
        tied=config.flag("tie_word_embeddings"),
        final="model.final_layernorm",
        rotary_dim=w.head_dim // 2,
    )
    return decoder(config, w, whole, layers, _both(w, seeing, mixer.cache(len(straight))))


def _falcon_h1(config: Config) -> Architecture:
    w = widths(config, _H1)
    given = config.maybe("mamba_d_ssm") if "mamba_d_ssm" in config.values else 1024
    mixer = _mamba_two(config, w, inner=given, normed=config.flag("mamba_rms_norm"))
    bias = config.flag("attention_bias")
    layers = (
        *_norms(w, "pre_ff_layernorm"),
        *_attention(w, w.stack, bias=bias),
        *mixer.weights(f"{_AT}.mamba", w.stack),
        *gated_mlp(
            f"{_AT}.feed_forward",
            w.stack,
            hidden=w.hidden,
            intermediate=w.intermediate,
            bias=config.flag("mlp_bias"),
        ),
    )
    whole = Whole(
        model_type="falcon_h1",
        class_name="FalconH1ForCausalLM",
        tied=config.flag("tie_word_embeddings"),
        final="model.final_layernorm",
    )
    return decoder(config, w, whole, layers, _both(w, w.stack, mixer.cache(w.layers)))


def _granite(config: Config) -> Architecture:
    w = widths(config, _GRANITE)
    types = kinds(config, w.layers, ("mamba",) * w.layers, "layer_types", "layers_block_type")
    seeing = of_kind(types, "attention", "full_attention")
    straight = chosen(w.stack, seeing)
    mixer = _mamba_two(config, w)
    shared = config.count("shared_intermediate_size", default=1024, least=0)
    mixture, routed = stacked_experts(config, w, usual=8, shared=shared)
    layers = (
        *_norms(w, "post_attention_layernorm"),
        *(_attention(w, seeing, bias=config.flag("attention_bias")) if seeing else ()),
        *(mixer.weights(f"{_AT}.mamba", straight) if straight else ()),
        *shared_mlp(w, shared),
        *routed,
    )
    rotated = config.text("position_embedding_type", default="nope") == "rope"
    whole = Whole(
        model_type="granitemoehybrid",
        class_name="GraniteMoeHybridForCausalLM",
        tied=config.flag("tie_word_embeddings"),
        rotary_dim=None if rotated else 0,
    )
    return decoder(config, w, whole, layers, _both(w, seeing, mixer.cache(len(straight))), experts=mixture)


_BUILDERS: dict[str, Callable[[Config], Architecture]] = {
    "jamba": _jamba,
    "bamba": _bamba,
    "falcon_h1": _falcon_h1,
    "granitemoehybrid": _granite,
}
