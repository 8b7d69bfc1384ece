"""Nemotron-H and Nemotron 3: each layer is one of Mamba 2, attention, an MLP or experts.

Shapes and defaults: https://github.com/huggingface/transformers/tree/main/src/transformers/models/nemotron_h
`hybrid_override_pattern` writes M, *, - and E for them. With `moe_latent_size` experts work in a narrower space. The
layers for multi-token prediction repeat `mtp_hybrid_override_pattern`, behind norms and one projection, as vLLM's
nemotron_h_mtp reads them: https://github.com/vllm-project/vllm/tree/main/vllm/model_executor/models
"""

from __future__ import annotations

from gpufit.architecture.blocks import (
    Layers,
    Weights,
    attention,
    belonging,
    correction,
    experts,
    linear,
    norm,
    plain_mlp,
    router,
)
from gpufit.architecture.config import MOST_LAYERS, Config
from gpufit.architecture.decoder import Usual, Whole, Widths, decoder, of_kind, widths
from gpufit.architecture.families.state_space import MambaTwo
from gpufit.architecture.record import Architecture, AttentionCache, Component, Experts, Split
from gpufit.errors import UnreadableInputError

_USUAL = Usual(layers=4, kv_heads=8, head_dim=128, intermediate=21504, vocabulary=131072, positions=4096)
_LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
_SAME = {"linear_attention": "mamba", "full_attention": "attention"}
_AT = "backbone.layers.{layer}"


def build(config: Config) -> Architecture:
    """The shapes of a Nemotron-H."""
    types = _types(config)
    w = widths(_named(config, len(types)), _USUAL)
    seeing = of_kind(types, "attention")
    mamba = _mamba(config, w)
    straight = of_kind(types, "mamba")
    layers = (*norm(f"{_AT}.norm", w.hidden, w.stack), *_blocks(config, w, types))
    caches = (
        AttentionCache(len(seeing), w.kv_heads, w.head_dim, w.head_dim),
        mamba.cache(len(straight)),
    )
    whole = Whole(
        model_type="nemotron_h",
        class_name="NemotronHForCausalLM",
        tied=config.flag("tie_word_embeddings"),
        embed="backbone.embeddings",
        final="backbone.norm_f",
        gated=False,
        rotary_dim=0,
    )
    sparse = len(of_kind(types, "moe"))
    return decoder(
        config,
        w,
        whole,
        layers,
        tuple(one for one in caches if one.layers),
        experts=_experts(config, sparse) if sparse else None,
        extra=_predictor(config, w),
    )


def _named(config: Config, layers: int) -> Config:
    """The older configs call the width of a head `attention_head_dim`."""
    dim = config.maybe("head_dim", "attention_head_dim") or 128
    return config.with_values(num_hidden_layers=layers, head_dim=dim)


def _types(config: Config) -> tuple[str, ...]:
    pattern = config.text("hybrid_override_pattern")
    if pattern and not config.has("layers_block_type", "layer_types"):
        return _spelled(config, "hybrid_override_pattern", pattern)
    found = config.texts("layers_block_type") or config.texts("layer_types")
    if not found:
        if config.nested:
            return ("mamba", "moe", "attention", "mlp")
        raise UnreadableInputError(f"{config.where}: no hybrid_override_pattern or layers_block_type")
    if len(found) > MOST_LAYERS:
        raise config.wrong("layers_block_type", f"a list of at most {MOST_LAYERS}")
    return tuple(_SAME.get(one, one) for one in found)


def _spelled(config: Config, key: str, pattern: str) -> tuple[str, ...]:
    if not set(pattern) <= set(_LETTERS) or len(pattern) > MOST_LAYERS:
        raise config.wrong(key, "made of M, *, - and E")
    return tuple(_LETTERS[one] for one in pattern)


def _mamba(config: Config, w: Widths) -> MambaTwo:
    return MambaTwo(
        hidden=w.hidden,
        heads=config.count("mamba_num_heads", default=128),
        head_dim=config.count("mamba_head_dim", default=64),
        groups=config.count("n_groups", "mamba_n_groups", default=8),
        state=config.count("ssm_state_size", default=128),
        kernel=config.count("conv_kernel", "mamba_d_conv", default=4),
        conv_bias=config.flag("use_conv_bias", "mamba_conv_bias", default=True),
        bias=config.flag("use_bias"),
    )


def _experts(config: Config, layers: int) -> Experts:
    return Experts(
        layers,
        config.count("n_routed_experts", default=8),
        config.count("num_experts_per_tok", default=2),
        config.count("moe_intermediate_size", default=7688),
        config.count("moe_shared_expert_intermediate_size", default=7688),
    )


def _blocks(config: Config, w: Widths, types: tuple[str, ...], at: str = _AT) -> Weights:
    here = f"{at}.mixer"
    mlp_bias = config.flag("mlp_bias")
    straight, seeing, dense, sparse = (of_kind(types, one) for one in ("mamba", "attention", "mlp", "moe"))
    return (
        *(_mamba(config, w).weights(here, straight) if straight else ()),
        *(
            attention(
                here,
                seeing,
                hidden=w.hidden,
                heads=w.heads,
                kv_heads=w.kv_heads,
                head_dim=w.head_dim,
            )
            if seeing
            else ()
        ),
        *(
            plain_mlp(
                f"{here}.",
                dense,
                hidden=w.hidden,
                intermediate=w.intermediate,
                names=("up_proj", "down_proj"),
                bias=mlp_bias,
            )
            if dense
            else ()
        ),
        *(_mixture(config, w, here, sparse, bias=mlp_bias) if sparse else ()),
    )


def _mixture(config: Config, w: Widths, at: str, layers: Layers, *, bias: bool) -> Weights:
    it = _experts(config, len(layers))
    latent = config.maybe("moe_latent_size")
    narrow = (
        (
            *linear(f"{at}.fc1_latent_proj", latent, w.hidden, Split.REPLICATED, layers, bias=bias),
            *linear(f"{at}.fc2_latent_proj", w.hidden, latent, Split.REPLICATED, layers, bias=bias),
        )
        if latent
        else ()
    )
    return (
        *router(f"{at}.gate", it.count, w.hidden, layers, upcast=True),
        correction(f"{at}.gate.e_score_correction_bias", it.count, layers),
        *experts(
            f"{at}.experts",
            layers,
            count=it.count,
            hidden=latent or w.hidden,
            intermediate=it.intermediate,
            names=("up_proj", "down_proj"),
        ),
        *plain_mlp(
            f"{at}.shared_experts.",
            layers,
            hidden=w.hidden,
            intermediate=it.shared_intermediate,
            names=("up_proj", "down_proj"),
            bias=bias,
        ),
        *narrow,
    )


def _predictor(config: Config, w: Widths) -> Weights:
    count = config.count("num_nextn_predict_layers", default=0, least=0, most=64)
    if not count:
        return ()
    pattern = config.text("mtp_hybrid_override_pattern", default="*E")
    named = config.texts("mtp_layers_block_type")
    one = (
        tuple(_SAME.get(kind, kind) for kind in named)
        if named
        else _spelled(config, "mtp_hybrid_override_pattern", pattern)
    )
    types = one * count
    firsts = tuple(range(0, len(types), max(len(one), 1)))
    lasts = tuple(first + len(one) - 1 for first in firsts)
    at = "mtp.layers.{layer}"
    found = (
        *norm(f"{at}.norm", w.hidden, tuple(range(len(types)))),
        *_blocks(config, w, types, at),
        *norm(f"{at}.enorm", w.hidden, firsts),
        *norm(f"{at}.hnorm", w.hidden, firsts),
        *linear(f"{at}.eh_proj", w.hidden, 2 * w.hidden, Split.REPLICATED, firsts),
        *norm(f"{at}.final_layernorm", w.hidden, lasts),
    )
    return belonging(found, Component.PREDICTOR)
