"""Gemma 4: full layers with wider heads, layers that share keys and values, embeddings a layer, experts, towers.

Shapes and defaults: https://github.com/huggingface/transformers/tree/main/src/transformers/models/gemma4
The last `num_kv_shared_layers` layers cache nothing: they read what the last layer of their kind before them cached.
With `attention_k_eq_v` a full layer has no value projection, but caches keys and values apart, as they are normalised
apart. Published checkpoints also hold key and value projections for the sharing layers, which no engine needs; they are
left out. In the linear layers of the smaller models' towers four clip bounds are stored as buffers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpufit.architecture.blocks import (
    Layers,
    Weights,
    belonging,
    convolution,
    embedding,
    gated_mlp,
    linear,
    norm,
    replicated,
    router,
    scalars,
    stacked,
)
from gpufit.architecture.config import Config
from gpufit.architecture.decoder import Usual, Whole, Widths, chosen, decoder, every, kinds, of_kind, widths
from gpufit.architecture.families.towers import as_tower, depth
from gpufit.architecture.joined import INNER_NAMES, joined, text_part
from gpufit.architecture.record import Architecture, AttentionCache, Component, Experts, Kind, Split, Weight

_USUAL = Usual(
    hidden=2304, layers=30, heads=8, kv_heads=4, head_dim=256, intermediate=9216, vocabulary=262144, positions=131072
)
_AT = "model.layers.{layer}"
_NORMS = (
    "input_layernorm",
    "post_attention_layernorm",
    "pre_feedforward_layernorm",
    "post_feedforward_layernorm",
)


@dataclass(frozen=True, slots=True)
class _Kind:
    """The layers of one kind of attention."""

    layers: Layers
    own: Layers
    """Those that have keys and values of their own."""
    kv_heads: int
    head_dim: int
    values: bool
    """Whether they have a value projection."""
    window: int | None


def build(config: Config) -> Architecture:
    """The shapes of a Gemma 4, with its towers or of the text model alone."""
    return _text(config) if config.text("model_type") == "gemma4_text" else _whole(config)


def _text(config: Config) -> Architecture:
    w = widths(config, _USUAL)
    shared = min(config.count("num_kv_shared_layers", default=0, least=0), w.layers)
    both = _kinds(config, w, shared)
    sharing = w.stack[w.layers - shared :]
    wide = sharing if config.flag("use_double_wide_mlp") else ()
    bias = config.flag("attention_bias")
    mixture, moe = _mixture(config, w)
    layers = (
        *(one for kind in both if kind.layers for one in _attention(w, kind, bias=bias)),
        *(one for name in _NORMS for one in norm(f"{_AT}.{name}", w.hidden, w.stack)),
        scalars(f"{_AT}.layer_scalar", (1,), w.stack, Split.REPLICATED),
        *_mlp(w, chosen(w.stack, wide), w.intermediate),
        *_mlp(w, wide, 2 * w.intermediate),
        *moe,
        *_embeddings_a_layer(config, w),
    )
    caches = tuple(
        AttentionCache(len(kind.own), kind.kv_heads, kind.head_dim, kind.head_dim, kind.window)
        for kind in both
        if kind.own
    )
    whole = Whole(
        model_type="gemma4_text",
        class_name="Gemma4ForCausalLM",
        tied=config.flag("tie_word_embeddings", default=True),
    )
    notes = ("key and value projections that sharing layers do not use are left out",) if shared else ()
    built = decoder(config, w, whole, layers, caches, experts=mixture, notes=notes)
    return replace(built, head_dim=max(kind.head_dim for kind in both if kind.layers))


def _kinds(config: Config, w: Widths, shared: int) -> tuple[_Kind, _Kind]:
    usual = every(w.layers, 6, one="full_attention", others="sliding_attention")
    named = kinds(config, w.layers, usual)
    types = (*named[:-1], "full_attention")
    full, sliding = of_kind(types, "full_attention"), of_kind(types, "sliding_attention")
    first_sharing = w.layers - shared if shared < w.layers else w.layers
    same = config.flag("attention_k_eq_v")
    saved = _saved(config)
    of_full = saved.maybe("num_key_value_heads") or (config.maybe("num_global_key_value_heads") if same else None)
    window = config.count("sliding_window", default=512)
    return (
        _Kind(sliding, _before(sliding, first_sharing), w.kv_heads, w.head_dim, True, window),
        _Kind(
            full,
            _before(full, first_sharing),
            of_full or w.kv_heads,
            saved.maybe("head_dim") or config.count("global_head_dim", default=512),
            not same,
            None,
        ),
    )


def _saved(config: Config) -> Config:
    """What transformers 5 writes of the full layers: an object for each, all alike, under `per_layer_config`."""
    layers = config.section("per_layer_config")
    return config.part("per_layer_config") if layers is None else layers.part(*list(layers.values)[:1] or ["none"])


def _before(layers: Layers, first: int) -> Layers:
    return tuple(one for one in layers if one < first)


def _attention(w: Widths, kind: _Kind, *, bias: bool) -> Weights:
    at = f"{_AT}.self_attn"
    kv = kind.kv_heads * kind.head_dim
    own = (
        *linear(f"{at}.k_proj", kv, w.hidden, Split.KV_HEADS, kind.own, bias=bias, fused="qkv_proj"),
        *(
            linear(f"{at}.v_proj", kv, w.hidden, Split.KV_HEADS, kind.own, bias=bias, fused="qkv_proj")
            if kind.values
            else ()
        ),
        *norm(f"{at}.k_norm", kind.head_dim, kind.own),
    )
    query = w.heads * kind.head_dim
    return (
        *linear(f"{at}.q_proj", query, w.hidden, Split.COLUMN, kind.layers, bias=bias, fused="qkv_proj"),
        *norm(f"{at}.q_norm", kind.head_dim, kind.layers),
        *(own if kind.own else ()),
        *linear(f"{at}.o_proj", w.hidden, query, Split.ROW, kind.layers, bias=bias),
    )


def _mlp(w: Widths, layers: Layers, intermediate: int) -> Weights:
    return gated_mlp(f"{_AT}.mlp", layers, hidden=w.hidden, intermediate=intermediate) if layers else ()


def _mixture(config: Config, w: Widths) -> tuple[Experts | None, Weights]:
    if not config.flag("enable_moe_block"):
        return None, ()
    count, inner = config.count("num_experts"), config.count("moe_intermediate_size", "expert_intermediate_size")
    more = ("post_feedforward_layernorm_1", "post_feedforward_layernorm_2", "pre_feedforward_layernorm_2")
    weights = (
        *router(f"{_AT}.router.proj", count, w.hidden, w.stack),
        scalars(f"{_AT}.router.scale", (w.hidden,), w.stack, Split.REPLICATED),
        scalars(f"{_AT}.router.per_expert_scale", (count,), w.stack, Split.REPLICATED),
        stacked(f"{_AT}.experts.gate_up_proj", (count, 2 * inner, w.hidden), w.stack, Split.COLUMN),
        stacked(f"{_AT}.experts.down_proj", (count, w.hidden, inner), w.stack, Split.ROW),
        *(one for name in more for one in norm(f"{_AT}.{name}", w.hidden, w.stack)),
    )
    per_token = config.count("top_k_experts", "num_experts_per_tok", default=8)
    return Experts(w.layers, count, per_token, inner, w.intermediate), weights


def _embeddings_a_layer(config: Config, w: Widths) -> Weights:
    each = config.count("hidden_size_per_layer_input", default=256, least=0)
    if not each:
        return ()
    rows = config.count("vocab_size_per_layer_input", default=262144)
    return (
        embedding("model.embed_tokens_per_layer", rows, w.layers * each),
        *linear("model.per_layer_model_projection", w.layers * each, w.hidden, Split.REPLICATED),
        *norm("model.per_layer_projection_norm", each),
        *linear(f"{_AT}.per_layer_input_gate", each, w.hidden, Split.REPLICATED, w.stack),
        *linear(f"{_AT}.per_layer_projection", w.hidden, each, Split.REPLICATED, w.stack),
        *norm(f"{_AT}.post_per_layer_input_norm", w.hidden, w.stack),
    )


def _whole(config: Config) -> Architecture:
    text = text_part(config, "gemma4_text", tied=True)
    vision, audio = config.section("vision_config"), config.section("audio_config")
    towers: Weights = ()
    if vision is not None:
        towers = (
            *towers,
            *_vision(vision),
            *_into("embed_vision", text.hidden, vision.count("hidden_size", default=768)),
        )
    if audio is not None:
        width = audio.count("output_proj_dims", default=1536)
        towers = (*towers, *_audio(audio), *_into("embed_audio", text.hidden, width))
    return joined(config, text, class_name="Gemma4ForConditionalGeneration", text_names=INNER_NAMES, towers=towers)


def _into(name: str, out: int, into: int) -> Weights:
    return belonging(linear(f"model.{name}.embedding_projection", out, into, Split.REPLICATED), Component.PROJECTOR)


def _clipped(name: str, out: int, into: int, layers: Layers, *, clip: bool) -> Weights:
    """A linear layer of a tower, with the bounds its inputs and outputs are clipped to."""
    bounds = tuple(
        Weight(f"{name}.{bound}", (), Kind.STATE, Split.REPLICATED, layers=layers, parameter=False)
        for bound in ("input_min", "input_max", "output_min", "output_max")
    )
    return (*linear(f"{name}.linear", out, into, Split.REPLICATED, layers), *(bounds if clip else ()))


def _vision(config: Config) -> Weights:
    hidden, inner = config.count("hidden_size", default=768), config.count("intermediate_size", default=3072)
    head_dim, heads = config.count("head_dim", default=64), config.count("num_attention_heads", default=12)
    kv_heads = config.count("num_key_value_heads", default=12)
    stack = depth(config, "num_hidden_layers", usual=16)
    clip = config.flag("use_clipped_linears")
    at = "encoder.layers.{layer}"
    shapes = {
        "self_attn.q_proj": (heads * head_dim, hidden),
        "self_attn.k_proj": (kv_heads * head_dim, hidden),
        "self_attn.v_proj": (kv_heads * head_dim, hidden),
        "self_attn.o_proj": (hidden, heads * head_dim),
        "mlp.gate_proj": (inner, hidden),
        "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner),
    }
    patch = config.count("patch_size", default=16)
    table = (2, config.count("position_embedding_size", default=10240), hidden)
    found = (
        *(one for name, (out, into) in shapes.items() for one in _clipped(f"{at}.{name}", out, into, stack, clip=clip)),
        *norm(f"{at}.self_attn.q_norm", head_dim, stack),
        *norm(f"{at}.self_attn.k_norm", head_dim, stack),
        *(one for name in _NORMS for one in norm(f"{at}.{name}", hidden, stack)),
        scalars("patch_embedder.position_embedding_table", table),
        *linear("patch_embedder.input_proj", hidden, 3 * patch * patch, Split.REPLICATED),
    )
    if config.flag("standardize"):
        bounds = ("std_bias", "std_scale")
        found = (
            *found,
            *(Weight(name, (hidden,), Kind.STATE, Split.REPLICATED, parameter=False) for name in bounds),
        )
    return as_tower(found, "model.vision_tower.")


def _audio(config: Config) -> Weights:
    """A conformer: two feed-forward halves around attention and a short convolution."""
    hidden = config.count("hidden_size", default=1024)
    heads = config.count("num_attention_heads", default=8)
    stack = depth(config, "num_hidden_layers", usual=12)
    clip = config.flag("use_clipped_linears", default=True)
    kernel = config.count("conv_kernel_size", default=5)
    first, second = (*(config.counts("subsampling_conv_channels", 4) or (128, 32)), 4, 4)[:2]
    at = "layers.{layer}"
    shapes = {
        **{
            f"{half}.{name}": shape
            for half in ("feed_forward1", "feed_forward2")
            for name, shape in (("ffw_layer_1", (4 * hidden, hidden)), ("ffw_layer_2", (hidden, 4 * hidden)))
        },
        **{f"self_attn.{name}": (hidden, hidden) for name in ("q_proj", "k_proj", "v_proj", "post")},
        "lconv1d.linear_start": (2 * hidden, hidden),
        "lconv1d.linear_end": (hidden, hidden),
    }
    norms = (
        *(
            f"{half}.{name}"
            for half in ("feed_forward1", "feed_forward2")
            for name in ("pre_layer_norm", "post_layer_norm")
        ),
        "lconv1d.pre_layer_norm",
        "lconv1d.conv_norm",
        "norm_pre_attn",
        "norm_post_attn",
        "norm_out",
    )
    out = config.count("output_proj_dims", default=1536)
    sub = "subsample_conv_projection"
    found = (
        *convolution(f"{sub}.layer0.conv", (first, 1, 3, 3)),
        *norm(f"{sub}.layer0.norm", first),
        *convolution(f"{sub}.layer1.conv", (second, first, 3, 3)),
        *norm(f"{sub}.layer1.norm", second),
        *linear(f"{sub}.input_proj_linear", hidden, first // 4 * second, Split.REPLICATED),
        *(one for name, (o, i) in shapes.items() for one in _clipped(f"{at}.{name}", o, i, stack, clip=clip)),
        *(one for name in norms for one in norm(f"{at}.{name}", hidden, stack)),
        scalars(f"{at}.self_attn.per_dim_scale", (config.share(hidden, heads, "hidden width"),), stack),
        *linear(f"{at}.self_attn.relative_k_proj", hidden, hidden, Split.REPLICATED, stack),
        *convolution(f"{at}.lconv1d.depthwise_conv1d", (hidden, 1, kernel), stack),
        *linear("output_proj", out, hidden, Split.REPLICATED, bias=True),
    )
    return replicated(as_tower(found, "model.audio_tower.", Component.AUDIO))
