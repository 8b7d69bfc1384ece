"""Knowing what lives at an address while a run goes on: labels from module outputs, caches, inputs and outputs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Protocol

import torch
from torch.nn.modules import module as torch_module

from gpufit.memory.replay import Category, Label
from gpufit.sources.measure.storages import storages_within


class Marker(Protocol):
    """A recorder's clock: each call names one moment of its stream of events."""

    def mark(self) -> int:
        """The number of this moment; the recorder tells, once stopped, how many events had happened by then."""
        ...


class Observer:
    """Collects labels during a run. Moments become positions once the recorder has stopped."""

    def __init__(self, marker: Marker) -> None:
        self._marker = marker
        self._seen: list[tuple[int, int, Category, bool]] = []

    def moment(self) -> int:
        """Mark now."""
        return self._marker.mark()

    def label(self, thing: Any, category: Category) -> None:
        """Say what every storage within `thing` is: all its life, but for a cache, which adopts it only now.

        While a cache grows by concatenation the new copy is thus a temporary until it replaces the old one.
        """
        moment = self._marker.mark()
        for address in storages_within(thing):
            self._seen.append((moment, address, category, category != "kv_cache"))

    def labels(self, positions: list[int]) -> list[Label]:
        """The labels with their positions in the stream."""
        return [Label(address, category, positions[moment], born) for moment, address, category, born in self._seen]

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Label what modules return and what caches store, while the block runs."""
        hook = torch_module.register_module_forward_hook(self._module_returned)
        try:
            with self._watching_caches():
                yield
        finally:
            hook.remove()

    def _module_returned(self, module: torch.nn.Module, args: Any, output: Any) -> None:
        tensors = [value for value in _shallow(output) if isinstance(value, torch.Tensor)]
        if tensors:
            self.label(tensors, "activations")

    @contextlib.contextmanager
    def _watching_caches(self) -> Iterator[None]:
        """Wrap the methods of transformers' cache layers that store: what a layer holds afterwards is KV cache."""
        replaced = []
        for owner, name, original in _cache_update_methods():
            setattr(owner, name, self._labelling(original))
            replaced.append((owner, name, original))
        try:
            yield
        finally:
            for owner, name, original in replaced:
                setattr(owner, name, original)

    def _labelling(self, original: Any) -> Any:
        def update(cache_layer: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(cache_layer, *args, **kwargs)
            self.label(cache_layer, "kv_cache")
            return result

        return update


def _cache_update_methods() -> list[tuple[type, str, Any]]:
    from transformers import cache_utils

    return [
        (owner, name, method)
        for owner in vars(cache_utils).values()
        if isinstance(owner, type) and "Layer" in owner.__name__
        for name, method in list(vars(owner).items())
        if name.startswith(("update", "prefetch")) and callable(method)
    ]


def _shallow(output: Any) -> Iterator[Any]:
    """The values of a module's output one level down: caches among them are left to their own watch."""
    if isinstance(output, torch.Tensor):
        yield output
    elif isinstance(output, dict):
        yield from output.values()
    elif isinstance(output, list | tuple):
        yield from output
