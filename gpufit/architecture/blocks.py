"""The weights of the blocks that many families share, as (out, in) shapes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gpufit.architecture.record import Component, Kind, Split, Weight

Layers = tuple[int, ...]
Weights = tuple[Weight, ...]


def linear(
    name: str, out: int, into: int, split: Split, layers: Layers = (), *, bias: bool = False, fused: str = ""
) -> Weights:
    """A linear layer `name`; its bias is divided with its outputs, or whole on every rank where inputs are divided."""
    found = [Weight(f"{name}.weight", (out, into), Kind.LINEAR, split, layers=layers, fused=fused)]
    if bias:
        of_bias = Split.REPLICATED if split is Split.ROW else split
        found.append(Weight(f"{name}.bias", (out,), Kind.BIAS, of_bias, layers=layers, fused=fused))
    return tuple(found)


def norm(name: str, width: int, layers: Layers = (), *, bias: bool = False) -> Weights:
    """A norm of one width."""
    found = [Weight(f"{name}.weight", (width,), Kind.NORM, Split.REPLICATED, layers=layers)]
    if bias:
        found.append(Weight(f"{name}.bias", (width,), Kind.BIAS, Split.REPLICATED, layers=layers))
    return tuple(found)


def scalars(name: str, shape: tuple[int, ...], layers: Layers = (), split: Split = Split.COLUMN) -> Weight:
    """Small parameters of a head or a channel; divided with them, unless told otherwise."""
    return Weight(name, shape, Kind.STATE, split, layers=layers)


def convolution(
    name: str,
    shape: tuple[int, ...],
    layers: Layers = (),
    *,
    bias: bool = False,
    split: Split = Split.REPLICATED,
) -> Weights:
    """A convolution's kernel, and its bias a channel."""
    found = [Weight(f"{name}.weight", shape, Kind.CONVOLUTION, split, layers=layers)]
    if bias:
        found.append(Weight(f"{name}.bias", (shape[0],), Kind.BIAS, split, layers=layers))
    return tuple(found)


def attention(
    prefix: str,
    layers: Layers,
    *,
    hidden: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    value_dim: int | None = None,
    bias: bool = False,
    out_bias: bool = False,
    out_name: str = "o_proj",
) -> Weights:
    """Query, key, value and output projections; `bias` is that of the first three."""
    value = head_dim if value_dim is None else value_dim
    return (
        *linear(f"{prefix}.q_proj", heads * head_dim, hidden, Split.COLUMN, layers, bias=bias, fused="qkv_proj"),
        *linear(f"{prefix}.k_proj", kv_heads * head_dim, hidden, Split.KV_HEADS, layers, bias=bias, fused="qkv_proj"),
        *linear(f"{prefix}.v_proj", kv_heads * value, hidden, Split.KV_HEADS, layers, bias=bias, fused="qkv_proj"),
        *linear(f"{prefix}.{out_name}", hidden, heads * value, Split.ROW, layers, bias=out_bias),
    )


def gated_mlp(
    prefix: str,
    layers: Layers,
    *,
    hidden: int,
    intermediate: int,
    bias: bool = False,
    names: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj"),
) -> Weights:
    """Gate, up and down projections."""
    gate, up, down = names
    return (
        *linear(f"{prefix}.{gate}", intermediate, hidden, Split.COLUMN, layers, bias=bias, fused="gate_up_proj"),
        *linear(f"{prefix}.{up}", intermediate, hidden, Split.COLUMN, layers, bias=bias, fused="gate_up_proj"),
        *linear(f"{prefix}.{down}", hidden, intermediate, Split.ROW, layers, bias=bias),
    )


def plain_mlp(
    prefix: str, layers: Layers, *, hidden: int, intermediate: int, names: tuple[str, str], bias: bool = True
) -> Weights:
    """Up and down projections without a gate."""
    return (
        *linear(f"{prefix}{names[0]}", intermediate, hidden, Split.COLUMN, layers, bias=bias),
        *linear(f"{prefix}{names[1]}", hidden, intermediate, Split.ROW, layers, bias=bias),
    )


def experts(
    prefix: str,
    layers: Layers,
    *,
    count: int,
    hidden: int,
    intermediate: int,
    names: tuple[str, ...] = ("gate_proj", "up_proj", "down_proj"),
) -> Weights:
    """Routed experts, each with its own tensors; the last name is the one that goes back to the hidden width."""
    at = f"{prefix}.{{expert}}"
    found = [
        Weight(
            f"{at}.{name}.weight",
            (intermediate, hidden),
            Kind.EXPERT,
            Split.COLUMN,
            layers=layers,
            experts=count,
            fused="gate_up_proj" if len(names) == 3 else "",
        )
        for name in names[:-1]
    ]
    down = f"{at}.{names[-1]}.weight"
    found.append(Weight(down, (hidden, intermediate), Kind.EXPERT, Split.ROW, layers=layers, experts=count))
    return tuple(found)


def stacked(name: str, shape: tuple[int, ...], layers: Layers, split: Split) -> Weight:
    """One tensor that stacks a weight of all experts of a layer."""
    return Weight(name, shape, Kind.EXPERT, split, layers=layers)


def router(name: str, count: int, hidden: int, layers: Layers, *, bias: bool = False, upcast: bool = False) -> Weights:
    """The projection to one score an expert, whole on each rank."""
    shapes = [(f"{name}.weight", (count, hidden)), *([(f"{name}.bias", (count,))] if bias else [])]
    return tuple(
        Weight(one, shape, Kind.ROUTER, Split.REPLICATED, layers=layers, upcast=upcast) for one, shape in shapes
    )


def correction(name: str, count: int, layers: Layers, *, shape: tuple[int, ...] | None = None) -> Weight:
    """What is added to the scores to choose experts, kept in float32 in file and memory."""
    return Weight(name, shape or (count,), Kind.ROUTER, Split.REPLICATED, layers=layers, dtype="F32")


def embedding(name: str, rows: int, width: int) -> Weight:
    """A table of token embeddings."""
    return Weight(f"{name}.weight", (rows, width), Kind.EMBEDDING, Split.VOCABULARY)


def positions(name: str, rows: int, width: int) -> Weight:
    """A learned table of positions, or of token types, whole on each rank."""
    return Weight(f"{name}.weight", (rows, width), Kind.EMBEDDING, Split.REPLICATED)


def head(name: str, rows: int, width: int, *, bias: bool = False) -> Weights:
    """The projection to the vocabulary."""
    found = [Weight(f"{name}.weight", (rows, width), Kind.HEAD, Split.VOCABULARY)]
    if bias:
        found.append(Weight(f"{name}.bias", (rows,), Kind.BIAS, Split.VOCABULARY))
    return tuple(found)


def renamed(weights: Iterable[Weight], *changes: tuple[str, str]) -> Weights:
    """The same weights where the first prefix that a name begins with is exchanged."""
    return tuple(replace(one, name=_with_prefix(one.name, changes)) for one in weights)


def belonging(weights: Iterable[Weight], component: Component) -> Weights:
    """The same weights as parts of another component."""
    return tuple(replace(one, component=component) for one in weights)


def replicated(weights: Iterable[Weight]) -> Weights:
    """The same weights whole on each rank."""
    return tuple(replace(one, split=Split.REPLICATED) for one in weights)


def _with_prefix(name: str, changes: tuple[tuple[str, str], ...]) -> str:
    for old, new in changes:
        if name.startswith(old):
            return new + name[len(old) :]
    return name
