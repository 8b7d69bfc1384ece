"""What decoder-only families have in common: the widths their configs name, kinds of layers, and the whole model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gpufit.architecture.blocks import Layers, Weights, attention, embedding, gated_mlp, head, linear, norm
from gpufit.architecture.config import MOST_LAYERS, Config
from gpufit.architecture.record import Architecture, AttentionCache, Cache, Experts, Rotary, Split, Weight
from gpufit.errors import UnreadableInputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Usual:
    """What transformers' config class of a family takes for keys that a config leaves out."""

    hidden: int = 4096
    layers: int = 32
    heads: int = 32
    kv_heads: int | None = None
    """None: as many as query heads."""
    head_dim: int | None = None
    """None: the hidden width over the heads."""
    intermediate: int = 11008
    vocabulary: int = 32000
    positions: int | None = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class Widths:
    """The widths of a decoder."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    positions: int | None

    @property
    def stack(self) -> Layers:
        """The numbers of all layers."""
        return tuple(range(self.layers))

    @property
    def full_cache(self) -> AttentionCache:
        """What all layers cache when each sees everything."""
        return AttentionCache(self.layers, self.kv_heads, self.head_dim, self.head_dim)


def widths(config: Config, usual: Usual) -> Widths:
    """The widths under the keys that most families use.

    Hidden width, layers, heads, inner width and vocabulary must be there, except in a nested object.
    """
    hidden = config.width("hidden_size", "n_embd", "d_model", usual=usual.hidden)
    heads = config.width("num_attention_heads", "n_head", "n_heads", usual=usual.heads)
    given = config.maybe("head_dim") or usual.head_dim
    grouped = config.maybe("num_key_value_heads")
    if grouped is not None and heads % grouped:
        raise config.wrong("num_key_value_heads", f"a divisor of the {heads} heads")
    # A key that is there and null means as many as query heads, one that is not there means the class's default.
    other = heads if "num_key_value_heads" in config.values or usual.kv_heads is None else usual.kv_heads
    return Widths(
        hidden=hidden,
        layers=config.width("num_hidden_layers", "n_layer", "num_layers", usual=usual.layers, most=MOST_LAYERS),
        heads=heads,
        kv_heads=config.count("num_key_value_heads", default=other),
        head_dim=given or config.share(hidden, heads, "hidden width"),
        intermediate=config.width("intermediate_size", "n_inner", usual=usual.intermediate),
        vocabulary=config.width("vocab_size", usual=usual.vocabulary),
        positions=config.maybe("max_position_embeddings", "n_positions") or usual.positions,
    )


def kinds(config: Config, layers: int, usual: tuple[str, ...], *keys: str) -> tuple[str, ...]:
    """The kind of each layer: a list under `layer_types` (or other keys), else the usual ones of the family."""
    for key in keys or ("layer_types",):
        found = config.texts(key)
        if found is not None:
            if len(found) < layers:
                raise UnreadableInputError(f"{config.where}: {key} names {len(found)} layers of {layers}")
            return found[:layers]
    return usual


def every(layers: int, period: int, *, one: str, others: str) -> tuple[str, ...]:
    """Kinds where each `period`-th layer is of one kind."""
    return tuple(others if (number + 1) % period else one for number in range(layers))


def of_kind(all_kinds: Iterable[str], *wanted: str) -> Layers:
    """The layers of some kinds."""
    return tuple(number for number, kind in enumerate(all_kinds) if kind in wanted)


def chosen(layers: Iterable[int], others: Iterable[int]) -> Layers:
    """The layers that are not among the others."""
    left_out = set(others)
    return tuple(one for one in layers if one not in left_out)


def windowed_caches(w: Widths, sliding: int, window: int | None) -> tuple[AttentionCache, ...]:
    """What is cached where some layers slide over a window and the others see everything."""
    if window is None or not sliding:
        return (w.full_cache,)
    parts = (
        AttentionCache(w.layers - sliding, w.kv_heads, w.head_dim, w.head_dim),
        AttentionCache(sliding, w.kv_heads, w.head_dim, w.head_dim, window),
    )
    return tuple(one for one in parts if one.layers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The switches by which layers of a Llama-like family differ."""

    at: str = "model.layers.{layer}"
    before: str = "input_layernorm"
    """The norm before (or after) attention; empty where there is none."""
    after: str = "post_attention_layernorm"
    more_norms: tuple[str, ...] = ()
    norm_bias: bool = False
    norms: bool = True
    qkv_bias: bool = False
    out_bias: bool = False
    mlp_bias: bool = False
    qk_norm: str = ""
    """`head`: one norm of a head's width for all heads; `all`: one over all heads together."""
    qk_names: tuple[str, str] = ("q_norm", "k_norm")
    out_name: str = "o_proj"


def head_norms(w: Widths, block: Block, layers: Layers) -> Weights:
    """The norms of queries and keys."""
    if not block.qk_norm:
        return ()
    at, (query, key) = f"{block.at}.self_attn", block.qk_names
    if block.qk_norm == "head":
        return (*norm(f"{at}.{query}", w.head_dim, layers), *norm(f"{at}.{key}", w.head_dim, layers))
    return (
        *norm(f"{at}.{query}", w.heads * w.head_dim, layers),
        *norm(f"{at}.{key}", w.kv_heads * w.head_dim, layers),
    )


def attention_layers(w: Widths, block: Block, layers: Layers) -> Weights:
    """Attention with its norms, and the other norms of the layers; all but the MLP."""
    names = (block.before, block.after, *block.more_norms) if block.norms else ()
    return (
        *(one for name in names if name for one in norm(f"{block.at}.{name}", w.hidden, layers, bias=block.norm_bias)),
        *attention(
            f"{block.at}.self_attn",
            layers,
            hidden=w.hidden,
            heads=w.heads,
            kv_heads=w.kv_heads,
            head_dim=w.head_dim,
            bias=block.qkv_bias,
            out_bias=block.out_bias,
            out_name=block.out_name,
        ),
        *head_norms(w, block, layers),
    )


def dense_layers(w: Widths, block: Block, layers: Layers) -> Weights:
    """Whole layers with a gated MLP."""
    return (
        *attention_layers(w, block, layers),
        *gated_mlp(f"{block.at}.mlp", layers, hidden=w.hidden, intermediate=w.intermediate, bias=block.mlp_bias),
    )


def packed_mlp(at: str, layers: Layers, *, hidden: int, intermediate: int) -> Weights:
    """A gated MLP whose gate and up projection are one tensor."""
    return (
        *linear(f"{at}.gate_up_proj", 2 * intermediate, hidden, Split.COLUMN, layers),
        *linear(f"{at}.down_proj", hidden, intermediate, Split.ROW, layers),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """What a decoder has around its layers."""

    model_type: str
    class_name: str
    tied: bool
    embed: str = "model.embed_tokens"
    final: str = "model.norm"
    """Empty where the last norm has no weights."""
    final_bias: bool = False
    lm_head: str = "lm_head"
    head_bias: bool = False
    gated: bool = True
    rotary_dim: int | None = None
    """0: positions are not rotated; None: the whole head is."""


def decoder(
    config: Config,
    w: Widths,
    whole: Whole,
    layers: Iterable[Weight],
    caches: tuple[Cache, ...],
    *,
    experts: Experts | None = None,
    extra: Iterable[Weight] = (),
    notes: tuple[str, ...] = (),
) -> Architecture:
    """A decoder-only model from its layers; `extra` are weights outside the layers, positions for example."""
    rotated = w.head_dim if whole.rotary_dim is None else whole.rotary_dim
    return Architecture(
        model_type=whole.model_type,
        class_name=whole.class_name,
        weights=(
            embedding(whole.embed, w.vocabulary, w.hidden),
            *layers,
            *(norm(whole.final, w.hidden, bias=whole.final_bias) if whole.final else ()),
            *_head(w, whole),
            *extra,
        ),
        caches=caches,
        layers=w.layers,
        hidden=w.hidden,
        intermediate=w.intermediate,
        gated=whole.gated,
        vocabulary=w.vocabulary,
        heads=w.heads,
        head_dim=w.head_dim,
        tied=whole.tied,
        generates=True,
        position_limit=scaled_positions(config, w.positions, whole.model_type),
        experts=experts,
        rotary=Rotary(rotated, original_positions(config)) if rotated else None,
        notes=notes,
    )


def _head(w: Widths, whole: Whole) -> Weights:
    """The head; where it is tied to the embeddings its bias is left."""
    both = head(whole.lm_head, w.vocabulary, w.hidden, bias=whole.head_bias)
    return both[1:] if whole.tied else both


def rotary_share(config: Config, head_dim: int, usual: float = 1.0, *keys: str) -> int:
    """Dimensions of a head that are rotated, where a config gives their share of it."""
    inner = config.section("rope_parameters")
    for key in keys or ("partial_rotary_factor",):
        if config.has(key):
            return int(head_dim * config.number(key, usual))
        if inner is not None and inner.has(key):
            return int(head_dim * inner.number(key, usual))
    return int(head_dim * usual)


def scaled_positions(config: Config, positions: int | None, model_type: str) -> int | None:
    """The longest sequence that rotary positions are scaled to.

    YaRN reaches its factor times the original length, linear and dynamic scaling their factor times the config's;
    Gemma 3's config counts that in already, and so do LongRoPE and Llama 3's. Source: `_get_and_verify_max_len` in
    https://github.com/vllm-project/vllm/blob/main/vllm/config/model.py
    """
    scaling = config.section("rope_scaling", "rope_parameters")
    factor = None if scaling is None else scaling.values.get("factor")
    if scaling is None or positions is None or isinstance(factor, bool) or not isinstance(factor, (int, float)):
        return positions
    if not 1 <= factor <= LARGEST_FACTOR:
        return positions
    kind = scaling.values.get("rope_type", scaling.values.get("type"))
    if kind == "yarn":
        return max(positions, int((original_positions(config) or positions) * factor))
    linear = kind in ("linear", "dynamic") and not model_type.startswith("gemma3")
    return int(positions * factor) if linear else positions


LARGEST_FACTOR = 1000
"""No model's positions are scaled further; beyond it a config is damaged."""


def original_positions(config: Config) -> int | None:
    """Positions before scaling, where a config names them."""
    key = "original_max_position_embeddings"
    for part in (config.section("rope_scaling"), config.section("rope_parameters"), config):
        if part is not None and part.has(key):
            return part.count(key)
    return None
