"""The tensors of a model, told from its config and its method of quantisation alone."""

from __future__ import annotations

from collections.abc import Iterable

from gpufit.architecture.quantization.method import Method
from gpufit.architecture.record import Architecture, Kind, Weight
from gpufit.architecture.tensors import LoadedTensor, StoredAs, as_it_is, module_of

_MATRICES = (Kind.LINEAR, Kind.EXPERT, Kind.HEAD, Kind.EMBEDDING, Kind.ROUTER)


def tensors_of_config(
    architecture: Architecture, method: Method | None, dtype: str | None = None, *, experts: bool = True
) -> tuple[LoadedTensor, ...]:
    """The tensors that a checkpoint of this model holds, by the rules of its method alone.

    `dtype` (the model's own by default) is that of everything that is not quantised; `experts` says whether the method
    reaches routed experts, which not every library's does.
    """
    found: list[LoadedTensor] = []
    for weight in architecture.weights:
        plain = (as_it_is(weight, weight.dtype or dtype or architecture.dtype),)
        reached = method is not None and weight.kind in _MATRICES and (experts or weight.kind is not Kind.EXPERT)
        if method is None or not reached:
            found += _tensors(weight, plain, weight.layers)
            continue
        # Methods may leave single layers alone, so each is asked for by itself.
        by_layout: dict[tuple[StoredAs, ...], list[int]] = {}
        for layer in weight.layers or (-1,):
            module = module_of(weight.name).replace("{layer}", str(layer)).replace("{expert}", "0")
            by_layout.setdefault(method.stands_for(weight, module) or plain, []).append(layer)
        for layout, layers in by_layout.items():
            found += _tensors(weight, layout, tuple(layers) if weight.layers else ())
    return tuple(found)


def _tensors(weight: Weight, layout: Iterable[StoredAs], layers: tuple[int, ...]) -> list[LoadedTensor]:
    module = module_of(weight.name)
    return [
        LoadedTensor(
            name=module + one.suffix,
            dtype=one.dtype,
            shape=one.shape,
            size_bytes=one.size_bytes,
            layers=layers,
            experts=weight.experts,
            weight=weight,
            axes=one.axes,
        )
        for one in layout
    ]
