"""How a model's weights lie over layers and ranks in transformers, from its shapes and the tensors in memory. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from gpufit.architecture.record import Architecture, Component, Kind
from gpufit.architecture.tensors import FLOATS, LoadedTensor, total_bytes
from gpufit.memory.engines.transformers.ranks import is_divided, kv_share, refusal
from gpufit.memory.engines.transformers.rules import Rules
from gpufit.profile.record import Layout, Shard

RANKS = (2, 4, 8)
"""Ranks that are told: as many as servers have cards."""

_LINEAR = (Kind.LINEAR, Kind.EXPERT)


def layout_of(model: Architecture, tensors: Sequence[LoadedTensor], rules: Rules) -> Layout:
    """The layout of a model whose tensors lie in memory as these do."""
    outside = [one for one in tensors if not one.layers or not _in_stack(one)]
    layers = [0] * model.layers
    for one in tensors:
        if one.layers and _in_stack(one):
            for layer in one.layers:
                if layer < model.layers:
                    layers[layer] += one.size_bytes * one.experts
    last = [one for one in outside if _kind(one) in (Kind.HEAD, Kind.NORM) and _in_stack(one)]
    first = [one for one in outside if one not in last]
    embeddings = [one for one in first if _kind(one) is Kind.EMBEDDING] if model.tied else []
    linear = [one for one in tensors if _kind(one) in _LINEAR and one.dtype in FLOATS]
    return Layout(
        layers=model.layers,
        largest_layer_bytes=max(layers),
        first_bytes=total_bytes(first),
        last_bytes=total_bytes(last) + total_bytes(embeddings),
        linear_bytes=total_bytes(linear),
        linear_elements=sum(_elements(one) * one.copies for one in linear),
        largest_linear_elements=max((_elements(one) for one in linear), default=0),
        shards=tuple(_shard(model, tensors, ranks, rules) for ranks in RANKS),
    )


def _shard(model: Architecture, tensors: Sequence[LoadedTensor], ranks: int, rules: Rules) -> Shard:
    why = refusal(model, ranks)
    if why:
        return Shard(ranks=ranks, refusal=why)
    size = sum(_on_a_rank(one, model, ranks) for one in tensors)
    return Shard(ranks=ranks, weights_bytes=size, kv_share=kv_share(model, ranks, latent_cache=rules.latent_cache))


def _on_a_rank(tensor: LoadedTensor, model: Architecture, ranks: int) -> int:
    if tensor.weight is None or not is_divided(tensor.weight, model):
        return tensor.total_bytes
    return -(-tensor.size_bytes // ranks) * tensor.copies


def _in_stack(tensor: LoadedTensor) -> bool:
    return tensor.weight is None or tensor.weight.component is Component.DECODER


def _kind(tensor: LoadedTensor) -> Kind | None:
    return None if tensor.weight is None else tensor.weight.kind


def _elements(tensor: LoadedTensor) -> int:
    return 0 if tensor.weight is None else tensor.weight.elements
