"""Llama Nemotron found by architecture search (DeciLM): each layer has its own attention and MLP, or none.

Code and defaults: https://huggingface.co/nvidia/Llama-3_3-Nemotron-Super-49B-v1 (`modeling_decilm.py`). The inner width
is 2/3 of `ffn_mult` x hidden, rounded up to a multiple of 256. A block without attention or MLP has no norm for it
either; one may be replaced by a single linear layer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace

from gpufit.architecture.blocks import Layers, Weights, attention, gated_mlp, linear, norm
from gpufit.architecture.config import Config
from gpufit.architecture.decoder import Usual, Whole, decoder, widths
from gpufit.architecture.record import Architecture, AttentionCache, Split
from gpufit.errors import UnreadableInputError

_USUAL = Usual(layers=80, heads=64, hidden=8192, vocabulary=128256, positions=131072)
_AT = "model.layers.{layer}"
_MULTIPLE = 256


@dataclass(frozen=True, slots=True)
class _Block:
    kv_heads: int
    """0 without attention."""
    straight_attention: bool
    """Whether one linear layer stands for attention."""
    intermediate: int
    """0 without an MLP."""
    straight_mlp: bool


def build(config: Config) -> Architecture:
    """The shapes of a DeciLM."""
    hidden, heads = config.width("hidden_size", usual=8192), config.width("num_attention_heads", usual=64)
    blocks = _blocks(config, hidden, heads)
    widest = max((one.intermediate for one in blocks), default=0)
    w = widths(
        config.with_values(num_hidden_layers=len(blocks), intermediate_size=max(widest, 1), num_key_value_heads=None),
        _USUAL,
    )
    bias, mlp_bias = config.flag("attention_bias"), config.flag("mlp_bias")
    seeing = _by(blocks, lambda one: one.kv_heads)
    thinking = _by(blocks, lambda one: one.intermediate)
    straight = _where(blocks, lambda one: one.straight_attention)
    straight_mlp = _where(blocks, lambda one: one.straight_mlp)
    layers: list[Weights] = [
        norm(f"{_AT}.input_layernorm", w.hidden, _where(blocks, lambda one: one.kv_heads or one.straight_attention)),
        norm(
            f"{_AT}.post_attention_layernorm",
            w.hidden,
            _where(blocks, lambda one: one.intermediate or one.straight_mlp),
        ),
    ]
    layers += [
        attention(
            f"{_AT}.self_attn",
            where,
            hidden=hidden,
            heads=heads,
            kv_heads=kv,
            head_dim=w.head_dim,
            bias=bias,
            out_bias=bias,
        )
        for kv, where in seeing.items()
    ]
    layers += [
        gated_mlp(f"{_AT}.mlp", where, hidden=hidden, intermediate=inner, bias=mlp_bias)
        for inner, where in thinking.items()
    ]
    if straight:
        layers.append(linear(f"{_AT}.self_attn.linear_attn", hidden, hidden, Split.COLUMN, straight))
    if straight_mlp:
        layers.append(linear(f"{_AT}.mlp.linear_mlp", hidden, hidden, Split.COLUMN, straight_mlp))
    caches = tuple(AttentionCache(len(where), kv, w.head_dim, w.head_dim) for kv, where in seeing.items())
    whole = Whole(model_type="nemotron-nas", class_name="DeciLMForCausalLM", tied=config.flag("tie_word_embeddings"))
    return replace(
        decoder(config, w, whole, tuple(one for part in layers for one in part), caches), intermediate=widest
    )


def _blocks(config: Config, hidden: int, heads: int) -> tuple[_Block, ...]:
    found = config.items("block_configs")
    if not found:
        raise UnreadableInputError(f"{config.where}: no block_configs, without which its layers are unknown")
    made = []
    for number, values in enumerate(found):
        if not isinstance(values, dict):
            raise config.wrong("block_configs", "a list of objects")
        here = Config(values, f"{config.where}: block_configs[{number}]", nested=True)
        made.append(_block(here.part("attention"), here.part("ffn"), hidden, heads))
    return tuple(made)


def _block(seen: Config, ffn: Config, hidden: int, heads: int) -> _Block:
    straight, straight_mlp = seen.flag("replace_with_linear"), ffn.flag("replace_with_linear")
    without = seen.flag("no_op") or straight
    inner = 0
    if not (ffn.flag("no_op") or straight_mlp):
        wide = int(2 * ffn.number("ffn_mult", 1.0) * hidden / 3)
        inner = ffn.maybe("intermediate_size") or -(-wide // _MULTIPLE) * _MULTIPLE
    return _Block(
        0 if without else seen.share(heads, seen.count("n_heads_in_group"), "query heads"),
        straight and not seen.flag("no_op"),
        inner,
        straight_mlp and not ffn.flag("no_op"),
    )


def _where(blocks: tuple[_Block, ...], holds: Callable[[_Block], object]) -> Layers:
    return tuple(number for number, one in enumerate(blocks) if holds(one))


def _by(blocks: tuple[_Block, ...], size: Callable[[_Block], int]) -> dict[int, Layers]:
    """The layers of each size but 0."""
    found: dict[int, list[int]] = defaultdict(list)
    for number, one in enumerate(blocks):
        if size(one):
            found[size(one)].append(number)
    return {key: tuple(where) for key, where in found.items()}
