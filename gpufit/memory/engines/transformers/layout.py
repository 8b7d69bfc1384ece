"""How a model's weights lie over layers and ranks in transformers, from its shapes and the tensors in memory. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msgspec import structs

from gpufit.architecture.record import Architecture, Component, Kind
from gpufit.architecture.tensors import FLOATS, LoadedTensor
from gpufit.memory.engines.transformers.ranks import is_divided, kv_share, refusal
from gpufit.memory.engines.transformers.rules import Rules
from gpufit.profile.layout import Layout, Shard

RANKS = (2, 4, 8)
"""Ranks that are told: as many as servers have cards."""

_LINEAR = (Kind.LINEAR, Kind.EXPERT)


@dataclass(frozen=True)
class _Held:
    """What a rank holds of a tensor."""

    tensor: LoadedTensor
    size_bytes: int
    """Of one copy."""
    elements: int
    """Of one copy; 0 where no shape rule knows it."""

    @property
    def is_linear(self) -> bool:
        """Whether it is a matrix that quantisation makes smaller."""
        return _kind(self.tensor) in _LINEAR and self.tensor.dtype in FLOATS

    @property
    def is_stacked(self) -> bool:
        """Whether it lies in the layers that generate."""
        return bool(self.tensor.layers) and _in_stack(self.tensor)


def layout_of(model: Architecture, tensors: Sequence[LoadedTensor], rules: Rules) -> Layout:
    """The layout of a model whose tensors lie in memory as these do."""
    shards = tuple(_shard(model, tensors, ranks, rules) for ranks in RANKS)
    return structs.replace(_on_a_rank(model, tensors, 1), shards=shards)


def _on_a_rank(model: Architecture, tensors: Sequence[LoadedTensor], ranks: int) -> Layout:
    """How what one of so many ranks holds lies over the layers."""
    held = [_held(one, model, ranks) for one in tensors]
    stacked = [one for one in held if one.is_stacked]
    outside = [one for one in held if not one.is_stacked]
    last = [one for one in outside if _kind(one.tensor) in (Kind.HEAD, Kind.NORM) and _in_stack(one.tensor)]
    first = [one for one in outside if one not in last]
    embeddings = [one for one in first if _kind(one.tensor) is Kind.EMBEDDING] if model.tied else []
    linear = [one for one in held if one.is_linear]
    rest = [one for one in stacked if not one.is_linear]
    return Layout(
        layers=model.layers,
        largest_layer_bytes=_most_in_a_layer(model, ((one.tensor, one.size_bytes) for one in stacked)),
        first_bytes=_total(first),
        last_bytes=_total(last) + _total(embeddings),
        linear_bytes=_total(linear),
        linear_elements=sum(one.elements * one.tensor.copies for one in linear),
        largest_linear_elements=max((one.elements for one in linear), default=0),
        largest_layer_rest_bytes=_most_in_a_layer(model, ((one.tensor, one.size_bytes) for one in rest)),
        largest_layer_linear_elements=_most_in_a_layer(
            model, ((one.tensor, one.elements) for one in linear if one.is_stacked)
        ),
    )


def _most_in_a_layer(model: Architecture, amounts: Iterable[tuple[LoadedTensor, int]]) -> int:
    """The largest sum over a layer, of an amount for each copy of some tensors."""
    layers = [0] * model.layers
    for tensor, amount in amounts:
        for layer in tensor.layers:
            if layer < model.layers:
                layers[layer] += amount * tensor.experts
    return max(layers)


def _total(held: Iterable[_Held]) -> int:
    return sum(one.size_bytes * one.tensor.copies for one in held)


def _shard(model: Architecture, tensors: Sequence[LoadedTensor], ranks: int, rules: Rules) -> Shard:
    why = refusal(model, ranks)
    if why:
        return Shard(ranks=ranks, refusal=why)
    return Shard(
        ranks=ranks,
        weights_bytes=_total(_held(one, model, ranks) for one in tensors),
        kv_share=kv_share(model, ranks, latent_cache=rules.latent_cache),
        layout=_on_a_rank(model, tensors, ranks),
    )


def _held(tensor: LoadedTensor, model: Architecture, ranks: int) -> _Held:
    elements = 0 if tensor.weight is None else tensor.weight.elements
    if ranks == 1 or tensor.weight is None or not is_divided(tensor.weight, model):
        return _Held(tensor, tensor.size_bytes, elements)
    return _Held(tensor, -(-tensor.size_bytes // ranks), -(-elements // ranks))


def _in_stack(tensor: LoadedTensor) -> bool:
    return tensor.weight is None or tensor.weight.component is Component.DECODER


def _kind(tensor: LoadedTensor) -> Kind | None:
    return None if tensor.weight is None else tensor.weight.kind
