"""GLM 4.5, dots.llm1, ERNIE 4.5 MoE and Hunyuan: experts behind usual attention.

Shapes and defaults: glm4_moe, dots1, ernie4_5_moe, hunyuan_v1_moe and hunyuan_v1_dense in
https://github.com/huggingface/transformers/tree/main/src/transformers/models
GLM's checkpoints hold a layer for multi-token prediction after the last, laid out as DeepSeek's.
"""

from __future__ import annotations

from gpufit.architecture.blocks import (
    Layers,
    Weights,
    belonging,
    correction,
    experts,
    gated_mlp,
    linear,
    router,
)
from gpufit.architecture.config import Config
from gpufit.architecture.decoder import (
    Block,
    Usual,
    Whole,
    Widths,
    attention_layers,
    chosen,
    decoder,
    dense_layers,
    kinds,
    of_kind,
    rotary_share,
    widths,
    windowed_caches,
)
from gpufit.architecture.families.deepseek import predictor_ends
from gpufit.architecture.record import Architecture, Component, Experts, Split
from gpufit.errors import UnreadableInputError

_GLM = Usual(layers=46, heads=96, kv_heads=8, intermediate=10944, vocabulary=151552, positions=131072)
_DOTS = Usual(hidden=4608, layers=62, intermediate=10944, vocabulary=152064)
_ERNIE = Usual(hidden=2560, layers=28, heads=20, kv_heads=4, intermediate=12288, vocabulary=103424, positions=131072)
_HUNYUAN = Usual(vocabulary=290943)
_AT = "model.layers.{layer}"


def build(config: Config) -> Architecture:
    """The shapes of one of these families."""
    family = config.text("model_type")
    if family == "ernie4_5_moe":
        return _ernie(config)
    return _hunyuan(config) if family.startswith("hunyuan") else _glm(config)


def _glm(config: Config) -> Architecture:
    family = config.text("model_type")
    dots = family == "dots1"
    w = widths(config, _DOTS if dots else _GLM)
    bias = config.flag("attention_bias")
    normed = dots or config.flag("use_qk_norm")
    block = Block(qkv_bias=bias, out_bias=dots and bias, qk_norm="head" if normed else "")
    mixture, shared = _glm_mixture(config, dots=dots)
    first = min(config.count("first_k_dense_replace", default=0 if dots else 1, least=0), w.layers)
    sparse, dense = w.stack[first:], w.stack[:first]
    layers = (
        *attention_layers(w, block, w.stack),
        *(gated_mlp(f"{_AT}.mlp", dense, hidden=w.hidden, intermediate=w.intermediate) if dense else ()),
        *(_routed(w, mixture, sparse, shared) if sparse else ()),
    )
    count = config.count("num_nextn_predict_layers", default=0, least=0, most=64)
    after = tuple(range(w.layers, w.layers + count))
    extra = (
        belonging(
            (*attention_layers(w, block, after), *_routed(w, mixture, after, shared), *predictor_ends(w, after)),
            Component.PREDICTOR,
        )
        if after
        else ()
    )
    whole = Whole(
        model_type=family,
        class_name="Dots1ForCausalLM" if dots else "Glm4MoeForCausalLM",
        tied=config.flag("tie_word_embeddings"),
        rotary_dim=rotary_share(config, w.head_dim, 1.0 if dots else 0.5),
    )
    window = config.maybe("sliding_window") if dots and config.has("layer_types") else None
    sliding = len(of_kind(kinds(config, w.layers, ()), "sliding_attention")) if window else 0
    told = Experts(len(sparse), mixture.count, mixture.per_token, mixture.intermediate, shared) if sparse else None
    return decoder(config, w, whole, layers, windowed_caches(w, sliding, window), experts=told, extra=extra)


def _glm_mixture(config: Config, *, dots: bool) -> tuple[Experts, int]:
    count = config.count("n_routed_experts", "num_local_experts", default=None if dots else 128)
    inner = config.count("moe_intermediate_size", default=1408)
    per_token = config.count("num_experts_per_tok", default=8)
    shared = inner * config.count("n_shared_experts", default=0 if dots else 1, least=0)
    return Experts(0, count, per_token, inner), shared


def _routed(w: Widths, it: Experts, layers: Layers, shared: int) -> Weights:
    at = f"{_AT}.mlp"
    return (
        *router(f"{at}.gate", it.count, w.hidden, layers, upcast=True),
        correction(f"{at}.gate.e_score_correction_bias", it.count, layers),
        *experts(f"{at}.experts", layers, count=it.count, hidden=w.hidden, intermediate=it.intermediate),
        *(gated_mlp(f"{at}.shared_experts", layers, hidden=w.hidden, intermediate=shared) if shared else ()),
    )


def _ernie(config: Config) -> Architecture:
    w = widths(config, _ERNIE)
    bias = config.flag("use_bias")
    count, inner = config.count("moe_num_experts", default=64), config.count("moe_intermediate_size", default=1536)
    first = config.count("moe_layer_start_index", default=1, least=0)
    given = config.values.get("moe_layer_end_index")
    last = w.layers - 1 if given in (None, -1) else config.count("moe_layer_end_index", least=0)
    step = config.count("moe_layer_interval", default=1)
    usual = tuple("sparse" if (one + 1) % step == 0 and first <= one <= last else "dense" for one in w.stack)
    sparse = of_kind(kinds(config, w.layers, usual, "mlp_layer_types"), "sparse")
    dense = chosen(w.stack, sparse)
    shared = inner * config.count("moe_num_shared_experts", default=2, least=0)
    at = f"{_AT}.mlp"
    routed = (
        (
            *router(f"{at}.gate", count, w.hidden, sparse, upcast=True),
            correction(f"{at}.moe_statics.e_score_correction_bias", count, sparse, shape=(1, count)),
            *experts(f"{at}.experts", sparse, count=count, hidden=w.hidden, intermediate=inner),
            *(
                gated_mlp(f"{at}.shared_experts", sparse, hidden=w.hidden, intermediate=shared, bias=bias)
                if shared
                else ()
            ),
        )
        if sparse
        else ()
    )
    layers = (
        *attention_layers(w, Block(qkv_bias=bias, out_bias=bias), w.stack),
        *(gated_mlp(at, dense, hidden=w.hidden, intermediate=w.intermediate, bias=bias) if dense else ()),
        *routed,
    )
    whole = Whole(
        model_type="ernie4_5_moe",
        class_name="Ernie4_5_MoeForCausalLM",
        tied=config.flag("tie_word_embeddings", default=True),
        head_bias=bias,
    )
    per_token = config.count("moe_k", "num_experts_per_tok", default=6)
    told = Experts(len(sparse), count, per_token, inner, shared) if sparse else None
    return decoder(config, w, whole, layers, (w.full_cache,), experts=told)


def _hunyuan(config: Config) -> Architecture:
    """Hunyuan's dense models and its mixture, whose inner width is the same for experts and the shared MLP."""
    family = config.text("model_type")
    w = widths(config.with_values(head_dim=config.maybe("head_dim", "attention_head_dim")), _HUNYUAN)
    bias = config.flag("attention_bias")
    block = Block(qkv_bias=bias, out_bias=bias, qk_norm="head", qk_names=("query_layernorm", "key_layernorm"))
    sparse = family == "hunyuan_v1_moe"
    whole = Whole(
        model_type=family,
        class_name="HunYuanMoEV1ForCausalLM" if sparse else "HunYuanDenseV1ForCausalLM",
        tied=config.flag("tie_word_embeddings"),
    )
    if not sparse:
        return decoder(config, w, whole, dense_layers(w, block, w.stack), (w.full_cache,))
    count, per_token = _same_everywhere(config, "num_experts", 1), _same_everywhere(config, "moe_topk", 1)
    at = f"{_AT}.mlp"
    layers = (
        *attention_layers(w, block, w.stack),
        *linear(f"{at}.gate.wg", count, w.hidden, Split.REPLICATED, w.stack),
        *experts(f"{at}.experts", w.stack, count=count, hidden=w.hidden, intermediate=w.intermediate),
        *gated_mlp(f"{at}.shared_mlp", w.stack, hidden=w.hidden, intermediate=w.intermediate),
    )
    told = Experts(w.layers, count, per_token, w.intermediate, w.intermediate)
    return decoder(config, w, whole, layers, (w.full_cache,), experts=told)


def _same_everywhere(config: Config, key: str, usual: int) -> int:
    """A number, or a list that repeats it for each layer."""
    value = config.values.get(key)
    if not isinstance(value, (list, tuple)):
        return config.count(key, default=usual)
    found = set(config.counts(key, 1) or ())
    if len(found) != 1:
        raise UnreadableInputError(f"{config.where}: gpufit has no shape rules for {key} that differs between layers")
    return found.pop()
