"""DeepSeek MoE, V2, V3, V3.2, and what copies them: Kimi K2, GLM 5, GLM 4.7 Flash, Mistral Small 4, MiniCPM 3.

Shapes and defaults: deepseek_v2, deepseek_v3, deepseek_v32, glm_moe_dsa, glm4_moe_lite, mistral4 and minicpm3 in
https://github.com/huggingface/transformers/tree/main/src/transformers/models ; the first DeepSeek MoE has code of its
own at https://huggingface.co/deepseek-ai/deepseek-moe-16b-base .
From V2 on a layer caches one latent and one rotary key a token for all heads (https://arxiv.org/abs/2405.04434); V3.2
and GLM 5 add an indexer's key. Layers for multi-token prediction follow the last layer and repeat embeddings and head:
https://huggingface.co/deepseek-ai/DeepSeek-V3/blob/main/README_WEIGHTS.md
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpufit.architecture.blocks import (
    Layers,
    Weights,
    attention,
    belonging,
    correction,
    embedding,
    experts,
    gated_mlp,
    head,
    linear,
    norm,
    router,
    stacked,
)
from gpufit.architecture.config import Config
from gpufit.architecture.decoder import Usual, Whole, Widths, chosen, decoder, kinds, of_kind, widths
from gpufit.architecture.families.latent import Latent, indexing, latent_attention
from gpufit.architecture.record import Architecture, Cache, Component, Experts, LatentCache, Split

_AT = "model.layers.{layer}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Family:
    class_name: str
    usual: Usual
    latent: bool = True
    indexer: bool = False
    tied: bool = False
    """What a config without `tie_word_embeddings` means."""
    corrected: bool = True
    """Whether a correction is added to the router's scores."""
    upcast: bool = True
    """Whether transformers holds the router in float32."""
    stacked: bool = False
    """Whether all experts of a layer are one tensor."""
    q_rank: int | None = 1536
    kv_rank: int = 512
    nope: int = 128
    rope: int = 64
    value: int = 128
    experts: int = 256
    shared: int = 1
    inner: int = 2048
    first_dense: int = 3


_V3 = Usual(hidden=7168, layers=61, heads=128, intermediate=18432, vocabulary=129280, positions=4096)
_FAMILIES = {
    "deepseek": _Family(
        class_name="DeepseekForCausalLM",
        usual=Usual(vocabulary=102400),
        latent=False,
        corrected=False,
        experts=64,
        shared=2,
        inner=1407,
        first_dense=0,
    ),
    "deepseek_v2": _Family(
        class_name="DeepseekV2ForCausalLM",
        usual=Usual(vocabulary=102400),
        corrected=False,
        experts=64,
        shared=2,
        inner=1407,
        first_dense=0,
    ),
    "deepseek_v3": _Family(class_name="DeepseekV3ForCausalLM", usual=_V3),
    "deepseek_v32": _Family(class_name="DeepseekV32ForCausalLM", usual=_V3, indexer=True),
    "glm_moe_dsa": _Family(
        class_name="GlmMoeDsaForCausalLM",
        usual=Usual(hidden=6144, layers=78, heads=64, intermediate=12288, vocabulary=154880, positions=202752),
        indexer=True,
        q_rank=2048,
        nope=192,
        value=256,
    ),
    "glm4_moe_lite": _Family(
        class_name="Glm4MoeLiteForCausalLM",
        usual=Usual(hidden=2048, layers=47, heads=20, intermediate=10240, vocabulary=154880, positions=202752),
        q_rank=768,
        nope=192,
        value=256,
        experts=64,
        inner=1536,
        first_dense=1,
    ),
}
_FAMILIES |= {
    "mistral4": _Family(
        class_name="Mistral4ForCausalLM",
        usual=Usual(layers=36, heads=32, intermediate=12288, vocabulary=131072, positions=1048576),
        corrected=False,
        upcast=False,
        stacked=True,
        q_rank=1024,
        kv_rank=256,
        nope=64,
        experts=128,
        first_dense=0,
    ),
    "minicpm3": _Family(
        class_name="MiniCPM3ForCausalLM",
        usual=Usual(hidden=2560, layers=62, heads=40, intermediate=6400, vocabulary=73448, positions=32768),
        tied=True,
        q_rank=768,
        kv_rank=256,
        nope=64,
        rope=32,
        value=64,
        experts=0,
    ),
}
_SAME = {"kimi_k2": "deepseek_v3"}
"""Families whose config differs in name alone."""


@dataclass(frozen=True, slots=True)
class _Mixture:
    """Experts of one layer."""

    count: int
    inner: int
    shared: int
    family: _Family


def build(config: Config) -> Architecture:
    """The shapes of one of these families."""
    model_type = config.text("model_type")
    family = _FAMILIES[_SAME.get(model_type, model_type)]
    w = widths(config, family.usual)
    bias = config.flag("attention_bias")
    mixture = _mixture(config, family)
    sparse = _sparse(config, w, family) if mixture.count else ()
    dense = chosen(w.stack, sparse)
    whole = Whole(
        model_type=model_type,
        class_name=family.class_name,
        tied=config.flag("tie_word_embeddings", default=family.tied),
        rotary_dim=config.count("qk_rope_head_dim", default=family.rope) if family.latent else None,
    )
    layers = (
        *_attention(config, w, family, w.stack, bias=bias),
        *norm(f"{_AT}.input_layernorm", w.hidden, w.stack),
        *norm(f"{_AT}.post_attention_layernorm", w.hidden, w.stack),
        *(gated_mlp(f"{_AT}.mlp", dense, hidden=w.hidden, intermediate=w.intermediate) if dense else ()),
        *(_experts(w, mixture, sparse) if sparse else ()),
    )
    built = decoder(
        config,
        w,
        whole,
        layers,
        _caches(config, w, family),
        experts=Experts(
            len(sparse),
            mixture.count,
            config.count("num_experts_per_tok", default=8),
            mixture.inner,
            mixture.inner * mixture.shared,
        )
        if sparse
        else None,
        extra=_predictor(config, w, family, mixture, bias=bias),
    )
    it = _latent(config, family)
    return replace(built, head_dim=it.nope + it.rope) if family.latent else built


def _mixture(config: Config, family: _Family) -> _Mixture:
    return _Mixture(
        config.count("n_routed_experts", "num_local_experts", default=family.experts, least=0),
        config.count("moe_intermediate_size", default=family.inner),
        config.count("n_shared_experts", default=0 if "n_shared_experts" in config.values else family.shared, least=0),
        family,
    )


def _sparse(config: Config, w: Widths, family: _Family) -> Layers:
    first = config.count("first_k_dense_replace", default=family.first_dense, least=0)
    step = config.count("moe_layer_freq", default=1)
    usual = tuple("sparse" if one >= first and one % step == 0 else "dense" for one in w.stack)
    return of_kind(kinds(config, w.layers, usual, "mlp_layer_types"), "sparse")


def _latent(config: Config, family: _Family) -> Latent:
    given = "q_lora_rank" in config.values
    return Latent(
        q_rank=config.maybe("q_lora_rank") if given else family.q_rank,
        kv_rank=config.count("kv_lora_rank", default=family.kv_rank),
        nope=config.count("qk_nope_head_dim", default=family.nope, least=0),
        rope=config.count("qk_rope_head_dim", default=family.rope),
        value=config.count("v_head_dim", default=family.value),
        indexer_dim=config.count("index_head_dim", default=128) if family.indexer else 0,
        indexer_heads=config.count("index_n_heads", default=64 if family.usual is _V3 else 32),
    )


def _attention(config: Config, w: Widths, family: _Family, layers: Layers, *, bias: bool) -> Weights:
    at = f"{_AT}.self_attn"
    if not family.latent:
        return attention(
            at,
            layers,
            hidden=w.hidden,
            heads=w.heads,
            kv_heads=w.kv_heads,
            head_dim=w.head_dim,
            bias=bias,
            out_bias=bias,
        )
    return latent_attention(at, w, _latent(config, family), layers, indexing(config, layers), bias=bias)


def _caches(config: Config, w: Widths, family: _Family) -> tuple[Cache, ...]:
    if not family.latent:
        return (w.full_cache,)
    it, own = _latent(config, family), indexing(config, w.stack)
    if not family.indexer:
        return (LatentCache(w.layers, it.kv_rank, it.rope),)
    found = (
        LatentCache(len(own), it.kv_rank, it.rope, it.indexer_dim),
        LatentCache(w.layers - len(own), it.kv_rank, it.rope),
    )
    return tuple(one for one in found if one.layers)


def _experts(w: Widths, it: _Mixture, layers: Layers) -> Weights:
    at = f"{_AT}.mlp"
    shared = it.inner * it.shared
    return (
        *router(f"{at}.gate", it.count, w.hidden, layers, upcast=it.family.upcast),
        *((correction(f"{at}.gate.e_score_correction_bias", it.count, layers),) if it.family.corrected else ()),
        *(_one_tensor(w, it, at, layers) if it.family.stacked else _apart(w, it, at, layers)),
        *(gated_mlp(f"{at}.shared_experts", layers, hidden=w.hidden, intermediate=shared) if shared else ()),
    )


def _apart(w: Widths, it: _Mixture, at: str, layers: Layers) -> Weights:
    return experts(f"{at}.experts", layers, count=it.count, hidden=w.hidden, intermediate=it.inner)


def _one_tensor(w: Widths, it: _Mixture, at: str, layers: Layers) -> Weights:
    """Experts stacked as (experts, out, in)."""
    return (
        stacked(f"{at}.experts.gate_up_proj", (it.count, 2 * it.inner, w.hidden), layers, Split.COLUMN),
        stacked(f"{at}.experts.down_proj", (it.count, w.hidden, it.inner), layers, Split.ROW),
    )


def _predictor(config: Config, w: Widths, family: _Family, mixture: _Mixture, *, bias: bool) -> Weights:
    count = config.count("num_nextn_predict_layers", default=0, least=0, most=64)
    if not count or not mixture.count:
        return ()
    layers = tuple(range(w.layers, w.layers + count))
    return belonging(
        (
            *_attention(config, w, family, layers, bias=bias),
            *norm(f"{_AT}.input_layernorm", w.hidden, layers),
            *norm(f"{_AT}.post_attention_layernorm", w.hidden, layers),
            *_experts(w, mixture, layers),
            *predictor_ends(w, layers),
        ),
        Component.PREDICTOR,
    )


def predictor_ends(w: Widths, layers: Layers, at: str = _AT) -> Weights:
    """What a layer for multi-token prediction has beside a usual layer, copies of embeddings and head among it."""
    return (
        *norm(f"{at}.enorm", w.hidden, layers),
        *norm(f"{at}.hnorm", w.hidden, layers),
        *linear(f"{at}.eh_proj", w.hidden, 2 * w.hidden, Split.REPLICATED, layers),
        *norm(f"{at}.shared_head.norm", w.hidden, layers),
        replace(embedding(f"{at}.embed_tokens", w.vocabulary, w.hidden), layers=layers),
        replace(head(f"{at}.shared_head.head", w.vocabulary, w.hidden)[0], layers=layers),
    )
