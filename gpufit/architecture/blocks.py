"""The weights of the blocks that many families share, as (out, in) shapes."""

from __future__ import annotations

from gpufit.architecture.record import Kind, Split, Weight


def linear(
    name: str, out: int, into: int, split: Split, layers: tuple[int, ...] = (), *, bias: bool = False, fused: str = ""
) -> tuple[Weight, ...]:
    """A linear layer `name`; its bias is divided with its outputs, or whole on every rank where inputs are divided."""
    found = [Weight(f"{name}.weight", (out, into), Kind.LINEAR, split, layers=layers, fused=fused)]
    if bias:
        of_bias = Split.REPLICATED if split is Split.ROW else split
        found.append(Weight(f"{name}.bias", (out,), Kind.BIAS, of_bias, layers=layers, fused=fused))
    return tuple(found)


def norm(name: str, width: int, layers: tuple[int, ...] = (), *, bias: bool = False) -> tuple[Weight, ...]:
    """A norm of one width."""
    found = [Weight(f"{name}.weight", (width,), Kind.NORM, Split.REPLICATED, layers=layers)]
    if bias:
        found.append(Weight(f"{name}.bias", (width,), Kind.BIAS, Split.REPLICATED, layers=layers))
    return tuple(found)


def attention(
    prefix: str,
    layers: tuple[int, ...],
    *,
    hidden: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    bias: bool = False,
    out_bias: bool = False,
    out_name: str = "o_proj",
) -> tuple[Weight, ...]:
    """Query, key, value and output projections; `bias` is that of the first three."""
    return (
        *linear(f"{prefix}.q_proj", heads * head_dim, hidden, Split.COLUMN, layers, bias=bias, fused="qkv_proj"),
        *linear(f"{prefix}.k_proj", kv_heads * head_dim, hidden, Split.KV_HEADS, layers, bias=bias, fused="qkv_proj"),
        *linear(f"{prefix}.v_proj", kv_heads * head_dim, hidden, Split.KV_HEADS, layers, bias=bias, fused="qkv_proj"),
        *linear(f"{prefix}.{out_name}", hidden, heads * head_dim, Split.ROW, layers, bias=out_bias),
    )


def gated_mlp(
    prefix: str, layers: tuple[int, ...], *, hidden: int, intermediate: int, bias: bool = False
) -> tuple[Weight, ...]:
    """Gate, up and down projections."""
    return (
        *linear(f"{prefix}.gate_proj", intermediate, hidden, Split.COLUMN, layers, bias=bias, fused="gate_up_proj"),
        *linear(f"{prefix}.up_proj", intermediate, hidden, Split.COLUMN, layers, bias=bias, fused="gate_up_proj"),
        *linear(f"{prefix}.down_proj", hidden, intermediate, Split.ROW, layers, bias=bias),
    )


def embedding(name: str, rows: int, width: int) -> Weight:
    """A table of token embeddings."""
    return Weight(f"{name}.weight", (rows, width), Kind.EMBEDDING, Split.VOCABULARY)


def head(name: str, rows: int, width: int) -> Weight:
    """The projection to the vocabulary."""
    return Weight(f"{name}.weight", (rows, width), Kind.HEAD, Split.VOCABULARY)
