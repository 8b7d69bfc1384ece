"""GLM 5.3 Flash: delta-rule layers, latent attention with a pooled indexer, residual streams, and a vision tower.

Shapes and defaults: https://github.com/huggingface/transformers/tree/main/src/transformers/models/glm5_next
A checkpoint of text alone has the text model's keys at the top. The indexer keeps a key, as many gates and one mark a
token. Each fourth layer sees; the others keep a state.
"""

from __future__ import annotations

from dataclasses import replace

from gpufit.architecture.blocks import (
    Layers,
    Weights,
    correction,
    experts,
    gated_mlp,
    norm,
    router,
    scalars,
)
from gpufit.architecture.config import Config
from gpufit.architecture.decoder import Usual, Whole, Widths, chosen, decoder, every, kinds, of_kind, widths
from gpufit.architecture.families.glm_vl import patches_joined
from gpufit.architecture.families.kimi_linear import delta
from gpufit.architecture.families.latent import Latent, indexing, latent_attention
from gpufit.architecture.families.towers import as_tower
from gpufit.architecture.joined import INNER_NAMES, joined
from gpufit.architecture.record import (
    Architecture,
    Cache,
    Experts,
    Kind,
    LatentCache,
    Split,
    StateCache,
    Weight,
)

_USUAL = Usual(layers=45, heads=64, intermediate=12288, vocabulary=154880, positions=1048576)
_AT = "model.layers.{layer}"


def build(config: Config) -> Architecture:
    """The shapes of a GLM 5.3 Flash, with its tower or of the text model alone."""
    if config.text("model_type") == "glm5_next_text" or not (config.has("text_config") or config.has("vision_config")):
        return replace(_text(config), class_name="Glm5NextForConditionalGeneration")
    text = _text(config.part("text_config").with_values(tie_word_embeddings=config.flag("tie_word_embeddings")))
    vision = config.part("vision_config")
    width = vision.count("hidden_size", default=1024)
    tower = patches_joined(
        vision.with_values(
            hidden_size=width,
            attention_bias=vision.flag("attention_bias", default=True),
            out_hidden_size=vision.count("out_hidden_size", default=1536),
        ),
        inner=vision.count("intermediate_size", default=4096),
        projected=vision.count("projection_intermediate_size", default=10240),
        newer=True,
    )
    return joined(
        config,
        text,
        class_name="Glm5NextForConditionalGeneration",
        text_names=INNER_NAMES,
        towers=as_tower(tower, "model.visual."),
    )


def _text(config: Config) -> Architecture:
    w = widths(config.with_values(head_dim=None), _USUAL)
    usual = every(w.layers, 4, one="full_attention", others="linear_attention")
    types = kinds(config, w.layers, usual)
    straight = of_kind(types, "linear_attention")
    seeing = chosen(w.stack, straight)
    inner = config.section("linear_attn_config")
    source = config if inner is None else inner
    heads = source.count("num_heads", "linear_num_heads", default=64)
    dim = config.count("linear_head_dim", default=128) if inner is None else inner.count("head_dim", default=128)
    kernel = source.count("short_conv_kernel_size", "linear_conv_kernel_dim", default=4)
    it = _latent(config)
    own = indexing(config, seeing)
    mixture, mlps = _mlps(config, w)
    layers = (
        *norm(f"{_AT}.input_layernorm", w.hidden, w.stack),
        *norm(f"{_AT}.post_attention_layernorm", w.hidden, w.stack),
        *_streams(config, w),
        *(latent_attention(f"{_AT}.self_attn", w, it, seeing, own) if seeing else ()),
        *(_pooling(config, w, it, own) if own else ()),
        *(delta(w, straight, heads, dim, kernel, decay=(heads,)) if straight else ()),
        *mlps,
    )
    caches: tuple[Cache, ...] = (
        LatentCache(len(own), it.kv_rank, it.rope, 2 * it.indexer_dim + 1),
        LatentCache(len(seeing) - len(own), it.kv_rank, it.rope),
        StateCache(len(straight), 3 * heads * dim * kernel, heads * dim * dim),
    )
    whole = Whole(
        model_type="glm5_next",
        class_name="Glm5NextForCausalLM",
        tied=config.flag("tie_word_embeddings"),
        rotary_dim=it.rope,
    )
    built = decoder(config, w, whole, layers, tuple(one for one in caches if one.layers), experts=mixture)
    return replace(built, head_dim=it.nope + it.rope)


def _latent(config: Config) -> Latent:
    return Latent(
        q_rank=config.count("q_lora_rank", default=1536),
        kv_rank=config.count("kv_lora_rank", default=512),
        nope=config.count("qk_nope_head_dim", default=256),
        rope=config.count("qk_rope_head_dim", default=0, least=0),
        value=config.count("v_head_dim", default=256),
        indexer_dim=config.count("index_head_dim", default=128),
        indexer_heads=config.count("index_n_heads", default=32),
    )


def _pooling(config: Config, w: Widths, it: Latent, layers: Layers) -> Weights:
    at, pooled = f"{_AT}.self_attn.indexer", config.count("index_kpool", default=16)
    return (
        scalars(f"{at}.index_kpool_compress_ape", (pooled, it.indexer_dim), layers, Split.REPLICATED),
        Weight(
            f"{at}.index_kpool_compress_gate",
            (it.indexer_dim, w.hidden),
            Kind.LINEAR,
            Split.REPLICATED,
            layers=layers,
        ),
    )


def _streams(config: Config, w: Widths) -> Weights:
    """The mixing of residual streams (hyper-connections)."""
    streams = config.count("hc_mult", default=4)
    mixes = streams * (2 + streams)
    shapes = {"fn": (mixes, streams * w.hidden), "base": (mixes,), "scale": (3,)}
    return tuple(
        scalars(f"{_AT}.hc_{block}_{name}", shape, w.stack, Split.REPLICATED)
        for block in ("attn", "ffn")
        for name, shape in shapes.items()
    )


def _mlps(config: Config, w: Widths) -> tuple[Experts | None, Weights]:
    first = config.count("first_k_dense_replace", default=3, least=0)
    usual = tuple("sparse" if one >= first else "dense" for one in w.stack)
    sparse = of_kind(kinds(config, w.layers, usual, "mlp_layer_types"), "sparse")
    dense = chosen(w.stack, sparse)
    at = f"{_AT}.mlp"
    plain = gated_mlp(at, dense, hidden=w.hidden, intermediate=w.intermediate) if dense else ()
    if not sparse:
        return None, plain
    count = config.count("n_routed_experts", "num_local_experts", default=288)
    inner = config.count("moe_intermediate_size", default=2048)
    shared = inner * config.count("n_shared_experts", default=1, least=0)
    routed = (
        *router(f"{at}.gate", count, w.hidden, sparse, upcast=True),
        correction(f"{at}.gate.e_score_correction_bias", count, sparse),
        *experts(f"{at}.experts", sparse, count=count, hidden=w.hidden, intermediate=inner),
        *(gated_mlp(f"{at}.shared_experts", sparse, hidden=w.hidden, intermediate=shared) if shared else ()),
    )
    per_token = config.count("num_experts_per_tok", default=8)
    return Experts(len(sparse), count, per_token, inner, shared), (*plain, *routed)
