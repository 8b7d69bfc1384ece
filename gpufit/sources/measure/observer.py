"""Knowing what lives at an address while a run goes on, and where in the model it is: labels and sites.

Labels come from module outputs, caches, inputs and outputs; sites from modules being entered and left.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import torch
from torch.nn.modules import module as torch_module

from gpufit.memory.replay import Category, Label
from gpufit.profile.peaks import FIRST_STEP
from gpufit.sources.measure.storages import address_of, storages_within

OUTSIDE = "between forwards"
"""The site of what the caller does: preparing a step's inputs, choosing the next token."""
PREPARING = "between steps"
"""The site of what the caller does before a decode step: a mask with one column more. Apart from what follows the step
before, whose growth is another."""
CACHE_UPDATE = "cache update"
"""What a cache does while it takes in new keys and values."""


FIRST_DECODE_FORWARD = 2
"""The forward of the whole model that is the first decode step; the one before it is prefill."""


class Marker(Protocol):
    """A recorder's clock: each call names one moment of its stream of events."""

    def mark(self) -> int:
        """The number of this moment; the recorder tells, once stopped, how many events had happened by then."""
        ...


class Observer:
    """Collects labels during a run. Moments become positions once the recorder has stopped."""

    def __init__(self, marker: Marker, sites: Mapping[torch.nn.Module, str] | None = None) -> None:
        """`sites`: the name of every module's place, the whole model's first; a module without one belongs to the place
        around it."""
        self._marker = marker
        self._sites = sites or {}
        self._model = next(iter(self._sites), None)
        self._seen: list[tuple[int, int, Category, bool]] = []
        self._path: list[str] = [OUTSIDE]
        self._forwards = 0
        """Forwards of the whole model that have begun: the second is the first decode step."""
        self.stretches: list[tuple[int, str]] = []
        """(moment, site that the run is in from then on)."""

    def moment(self) -> int:
        """Mark now."""
        return self._marker.mark()

    def step_began(self) -> int:
        """Mark the beginning of a decode step: the caller prepares it."""
        moment = self._marker.mark()
        first = self._forwards < FIRST_DECODE_FORWARD
        self.stretches.append((moment, f"{FIRST_STEP if first else ''}{PREPARING}"))
        return moment

    def label(self, thing: Any, category: Category) -> None:
        """Say what every storage within `thing` is: all its life, but for a cache, which adopts it only now.

        While a cache grows by concatenation the new copy is thus a temporary until it replaces the old one.
        """
        self._label_at(self._marker.mark(), thing, category)

    def _label_at(self, moment: int, thing: Any, category: Category) -> None:
        for address in storages_within(thing):
            self._seen.append((moment, address, category, category != "kv_cache"))

    def labels(self, positions: list[int], before: int | None = None) -> list[Label]:
        """The labels with their positions in the stream; only those known before a moment, where one is named."""
        return [
            Label(address, category, positions[moment], born)
            for moment, address, category, born in self._seen
            if before is None or moment < before
        ]

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Label what modules return and what caches store, while the block runs."""
        hooks = [
            torch_module.register_module_forward_pre_hook(self._module_called),
            torch_module.register_module_forward_hook(self._module_returned, always_call=True),
        ]
        self._enter(OUTSIDE)
        try:
            with self._watching_caches():
                yield
        finally:
            for hook in hooks:
                hook.remove()

    def _module_called(self, module: torch.nn.Module, args: Any) -> None:
        site = self._sites.get(module)
        self._forwards += module is self._model
        self._path.append(self._path[-1] if site is None else site)
        if site is not None:
            self._enter(site)

    def _module_returned(self, module: torch.nn.Module, args: Any, output: Any) -> None:
        moment = self._marker.mark()
        if (
            type(output) is torch.Tensor and output.layout is torch.strided
        ):  # as nearly always, thousands of times a step
            self._seen.append((moment, address_of(output.untyped_storage()), "activations", True))
        else:
            tensors = [value for value in _shallow(output) if isinstance(value, torch.Tensor)]
            self._label_at(moment, tensors, "activations")
        left = self._path.pop()
        if left != self._path[-1]:
            self._enter(_after(self._path[-1], left), moment)

    def _enter(self, site: str, moment: int | None = None) -> None:
        step = FIRST_STEP if self._forwards == FIRST_DECODE_FORWARD else ""
        self.stretches.append((self._marker.mark() if moment is None else moment, step + site))

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
            self._enter(f"{self._path[-1]}, {CACHE_UPDATE}")
            result = original(cache_layer, *args, **kwargs)
            moment = self._marker.mark()
            self._label_at(moment, cache_layer, "kv_cache")
            self._enter(f"{self._path[-1]}, after {CACHE_UPDATE}", moment)
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


@functools.cache
def _after(site: str, left: str) -> str:
    """The stretch of a module's own work that follows something within it: `layers.0-1.mlp, after up_proj`."""
    return f"{site}, after {left.removeprefix(f'{site}.')}"
