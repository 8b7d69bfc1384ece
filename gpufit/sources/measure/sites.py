"""Names for the places in a model where a peak can lie, the same at every shape and the same for every like layer.

A model's memory peak is the highest of many moments: in the last layer's attention, in its MLP, at the logits. Each
moment grows in its own way, and which one is highest changes with the shape. Told apart by place, every one of them
is a plain sum of terms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

_SIMPLE = (str, int, float, bool, type(None))

_OWN_NUMBER = ("idx", "index", "_id", "number")
"""How attributes end that hold a layer's own number."""


def site_names(model: torch.nn.Module) -> dict[torch.nn.Module, str]:
    """The place of every module: the model's class for the model itself, their path for those within.

    In a path the number of a layer is replaced by those of all layers like it.

    Layers are alike when they are made of the same classes, shapes and settings, their own number aside:
    `layers.0-29` names all thirty of a uniform stack, `layers.5,11,17` the full-attention layers among sliding ones.
    """
    names: dict[torch.nn.Module, str] = {}
    for path, module in _walk(model, ""):
        names.setdefault(module, path or type(model).__name__)
    return names


def _walk(module: torch.nn.Module, path: str) -> Iterator[tuple[str, torch.nn.Module]]:
    yield path, module
    if isinstance(module, torch.nn.ModuleList | torch.nn.Sequential):
        for place, child in zip(_places(module), module, strict=True):
            yield from _walk(child, _join(path, place))
        return
    for name, child in module.named_children():
        yield from _walk(child, _join(path, name))


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _places(stack: torch.nn.ModuleList | torch.nn.Sequential) -> list[str]:
    """For each layer of a stack the numbers of all layers like it."""
    alike: dict[str, list[int]] = {}
    signatures = kinds(stack)
    for number, signature in enumerate(signatures):
        alike.setdefault(signature, []).append(number)
    return [_numbers(alike[signature]) for signature in signatures]


def kinds(stack: Iterable[torch.nn.Module]) -> list[str]:
    """For each layer of a stack what it is, the same text for layers that are alike."""
    return [_signature(layer) for layer in stack]


def _numbers(numbers: list[int]) -> str:
    """`0-29` for a whole run, `5,11,17` for a few, `0,2,...,46` for many."""
    if len(numbers) > 1 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]}-{numbers[-1]}"
    if len(numbers) > 4:
        return f"{numbers[0]},{numbers[1]},...,{numbers[-1]}"
    return ",".join(str(number) for number in numbers)


def _signature(layer: torch.nn.Module) -> str:
    """What makes a layer the same as another: its modules as torch prints them, and their simple attributes.

    Attributes named for a number of their own (`layer_idx`) say where it stands, not what it is.
    """
    settings = [sorted(_settings(vars(module))) for module in layer.modules()]
    shapes = [(tuple(parameter.shape), parameter.dtype) for parameter in layer.parameters()]
    return f"{layer!r}{shapes}{settings}"


def _settings(attributes: Mapping[str, Any]) -> Iterator[str]:
    for name, value in attributes.items():
        if isinstance(value, _SIMPLE) and not (type(value) is int and name.endswith(_OWN_NUMBER)):
            yield f"{name}={value!r}"
