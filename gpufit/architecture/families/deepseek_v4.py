"""DeepSeek V4: one head that is key and value at once, compressed entries for distant tokens, residual streams.

Shapes and defaults: https://github.com/huggingface/transformers/tree/main/src/transformers/models/deepseek_v4 ; names
are those of the published checkpoint. Every layer slides over `sliding_window` tokens; where `compress_ratios` is 4 or
128 it also keeps one entry for so many tokens, and at 4 an indexer's entry beside it. The window's tensor is key and
value at once, so its `value_dim` is 0. The first `num_hash_layers` choose experts by token, from a table. The layer for
multi-token prediction slides only; its shapes follow DeepSeek's own `inference/model.py` in
https://huggingface.co/deepseek-ai/DeepSeek-V4-Flash and were not checked against a checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpufit.architecture.blocks import (
    Layers,
    Weights,
    belonging,
    correction,
    experts,
    gated_mlp,
    linear,
    norm,
    renamed,
    router,
)
from gpufit.architecture.config import Config
from gpufit.architecture.decoder import Usual, Whole, Widths, decoder, kinds, of_kind, widths
from gpufit.architecture.record import (
    Architecture,
    AttentionCache,
    Cache,
    Component,
    CompressedCache,
    Experts,
    Kind,
    Split,
    Weight,
)

_USUAL = Usual(layers=43, heads=64, kv_heads=1, head_dim=512, intermediate=2048, vocabulary=129280, positions=1048576)
_AT = "layers.{layer}"
_SPARSE, _HEAVY, _SLIDING = "compressed_sparse_attention", "heavily_compressed_attention", "sliding_attention"
_KINDS = {0: _SLIDING, 4: _SPARSE, 128: _HEAVY}
_NAMES = ("w1", "w3", "w2")


@dataclass(frozen=True, slots=True)
class _Inner:
    """Widths beside the usual ones."""

    q_rank: int
    o_groups: int
    o_rank: int
    streams: int
    index_heads: int
    index_dim: int
    sparse_every: int
    heavy_every: int


def build(config: Config) -> Architecture:
    """The shapes of a DeepSeek V4."""
    inner_width = config.count("moe_intermediate_size", "intermediate_size", default=2048)
    w = widths(config.with_values(intermediate_size=inner_width), _USUAL)
    it = _inner(config)
    types = _types(config, w)
    hashed = min(config.count("num_hash_layers", default=3, least=0), w.layers)
    layers = (
        *_attention(w, it, w.stack),
        *_compressors(w, it, types),
        *_streams(w, it, w.stack),
        *_mixture(config, w, w.stack, hashed),
        *norm(f"{_AT}.attn_norm", w.hidden, w.stack),
        *norm(f"{_AT}.ffn_norm", w.hidden, w.stack),
    )
    whole = Whole(
        model_type="deepseek_v4",
        class_name="DeepseekV4ForCausalLM",
        tied=config.flag("tie_word_embeddings"),
        embed="embed",
        final="norm",
        lm_head="head",
        rotary_dim=config.count("qk_rope_head_dim", default=64),
    )
    return decoder(
        config,
        w,
        whole,
        layers,
        _caches(config, w, it, types),
        experts=Experts(
            w.layers,
            config.count("n_routed_experts", default=256),
            config.count("num_experts_per_tok", default=6),
            w.intermediate,
            w.intermediate * config.count("n_shared_experts", default=1),
        ),
        extra=(*_ends(w, it, ""), *_predictor(config, w, it)),
    )


def _inner(config: Config) -> _Inner:
    rates = config.part("compress_rates")
    return _Inner(
        config.count("q_lora_rank", default=1024),
        config.count("o_groups", default=8),
        config.count("o_lora_rank", default=1024),
        config.count("hc_mult", default=4),
        config.count("index_n_heads", default=64),
        config.count("index_head_dim", default=128),
        rates.count(_SPARSE, default=4),
        rates.count(_HEAVY, default=128),
    )


def _types(config: Config, w: Widths) -> tuple[str, ...]:
    ratios = config.counts("compress_ratios")
    if ratios is not None and not config.has("layer_types"):
        unknown = [one for one in ratios if one not in _KINDS]
        if unknown or len(ratios) < w.layers:
            raise config.wrong("compress_ratios", "0, 4 or 128 for each layer")
        return tuple(_KINDS[one] for one in ratios[: w.layers])
    usual = tuple(_SPARSE if number >= 2 and number % 2 else _HEAVY for number in w.stack)
    return kinds(config, w.layers, usual)


def _attention(w: Widths, it: _Inner, layers: Layers) -> Weights:
    at = f"{_AT}.attn"
    wide = w.heads * w.head_dim
    return (
        *linear(f"{at}.wq_a", it.q_rank, w.hidden, Split.REPLICATED, layers),
        *norm(f"{at}.q_norm", it.q_rank, layers),
        *linear(f"{at}.wq_b", wide, it.q_rank, Split.COLUMN, layers),
        *linear(f"{at}.wkv", w.head_dim, w.hidden, Split.REPLICATED, layers),
        *norm(f"{at}.kv_norm", w.head_dim, layers),
        *linear(f"{at}.wo_a", it.o_groups * it.o_rank, max(wide // it.o_groups, 1), Split.COLUMN, layers),
        *linear(f"{at}.wo_b", w.hidden, it.o_groups * it.o_rank, Split.ROW, layers),
        Weight(f"{at}.attn_sink", (w.heads,), Kind.STATE, Split.COLUMN, layers=layers, dtype="F32"),
    )


def _compressors(w: Widths, it: _Inner, types: tuple[str, ...]) -> Weights:
    sparse, heavy = of_kind(types, _SPARSE), of_kind(types, _HEAVY)
    at = f"{_AT}.attn"
    found: Weights = ()
    if heavy:
        found = _compressor(f"{at}.compressor", w, heavy, it.heavy_every, w.head_dim, w.head_dim)
    if not sparse:
        return found
    return (
        *found,
        *_compressor(f"{at}.compressor", w, sparse, it.sparse_every, 2 * w.head_dim, w.head_dim),
        *_compressor(f"{at}.indexer.compressor", w, sparse, it.sparse_every, 2 * it.index_dim, it.index_dim),
        *linear(f"{at}.indexer.wq_b", it.index_heads * it.index_dim, it.q_rank, Split.REPLICATED, sparse),
        *linear(f"{at}.indexer.weights_proj", it.index_heads, w.hidden, Split.REPLICATED, sparse),
    )


def _compressor(at: str, w: Widths, layers: Layers, every: int, out: int, normed: int) -> Weights:
    return (
        *linear(f"{at}.wkv", out, w.hidden, Split.REPLICATED, layers),
        *linear(f"{at}.wgate", out, w.hidden, Split.REPLICATED, layers),
        Weight(f"{at}.ape", (every, out), Kind.STATE, Split.REPLICATED, layers=layers, dtype="F32"),
        *norm(f"{at}.norm", normed, layers),
    )


def _streams(w: Widths, it: _Inner, layers: Layers) -> Weights:
    """The mixing of residual streams (hyper-connections), in float32."""
    mixes = it.streams * (2 + it.streams)
    shapes = {"fn": (mixes, it.streams * w.hidden), "base": (mixes,), "scale": (3,)}
    return tuple(
        Weight(f"{_AT}.hc_{block}_{name}", shape, Kind.STATE, Split.REPLICATED, layers=layers, dtype="F32")
        for block in ("attn", "ffn")
        for name, shape in shapes.items()
    )


def _ends(w: Widths, it: _Inner, lead: str) -> Weights:
    """What joins the streams before the head."""
    shapes = {"fn": (it.streams, it.streams * w.hidden), "base": (it.streams,), "scale": (1,)}
    return tuple(
        Weight(f"{lead}hc_head_{name}", shape, Kind.STATE, Split.REPLICATED, dtype="F32")
        for name, shape in shapes.items()
    )


def _mixture(config: Config, w: Widths, layers: Layers, hashed: int) -> Weights:
    count = config.count("n_routed_experts", default=256)
    shared = w.intermediate * config.count("n_shared_experts", default=1)
    by_table, scored = layers[:hashed], layers[hashed:]
    at = f"{_AT}.ffn"
    table = (w.vocabulary, config.count("num_experts_per_tok", default=6))
    return (
        *router(f"{at}.gate", count, w.hidden, layers),
        *((correction(f"{at}.gate.bias", count, scored),) if scored else ()),
        *(
            (
                Weight(
                    f"{at}.gate.tid2eid",
                    table,
                    Kind.ROUTER,
                    Split.REPLICATED,
                    layers=by_table,
                    dtype="I64",
                    parameter=False,
                ),
            )
            if by_table
            else ()
        ),
        *experts(f"{at}.experts", layers, count=count, hidden=w.hidden, intermediate=w.intermediate, names=_NAMES),
        *gated_mlp(f"{at}.shared_experts", layers, hidden=w.hidden, intermediate=shared, names=("w1", "w3", "w2")),
    )


def _predictor(config: Config, w: Widths, it: _Inner) -> Weights:
    count = config.count("num_nextn_predict_layers", default=1, least=0, most=64)
    if not count:
        return ()
    layers = tuple(range(count))
    found = (
        *_attention(w, it, layers),
        *_streams(w, it, layers),
        *_mixture(config, w, layers, 0),
        *norm(f"{_AT}.attn_norm", w.hidden, layers),
        *norm(f"{_AT}.ffn_norm", w.hidden, layers),
        *(one for name in ("enorm", "hnorm", "norm") for one in norm(f"{_AT}.{name}", w.hidden, layers)),
        *linear(f"{_AT}.e_proj", w.hidden, w.hidden, Split.REPLICATED, layers),
        *linear(f"{_AT}.h_proj", w.hidden, w.hidden, Split.REPLICATED, layers),
    )
    ends = tuple(one for layer in layers for one in _ends(w, it, f"mtp.{layer}."))
    return belonging((*renamed(found, ("layers.", "mtp.")), *ends), Component.PREDICTOR)


def _caches(config: Config, w: Widths, it: _Inner, types: tuple[str, ...]) -> tuple[Cache, ...]:
    window = config.count("sliding_window", default=128)
    sparse, heavy = len(of_kind(types, _SPARSE)), len(of_kind(types, _HEAVY))
    found: list[Cache] = [AttentionCache(w.layers, 1, w.head_dim, 0, window)]
    if sparse:
        found.append(CompressedCache(sparse, it.sparse_every, w.head_dim, it.index_dim))
    if heavy:
        found.append(CompressedCache(heavy, it.heavy_every, w.head_dim))
    return tuple(found)
