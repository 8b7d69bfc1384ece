"""Finding every storage that a model or a cache keeps alive, by walking objects rather than trusting counters.

`get_memory_footprint()` multiplies elements by the dtype a tensor claims, which is wrong for wrapper tensors
(torchao, DTensor) and leaves out quantisation state; a storage's own size is right in all cases.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass
from torch.utils.weak import WeakIdKeyDictionary

from gpufit.memory.replay import Category, Given

_LEAVES = (str, bytes, int, float, bool, type(None), torch.dtype, torch.device, type, torch.nn.Module)


@dataclass(frozen=True)
class Storage:
    """One block of memory that tensors look into."""

    address: int
    size_bytes: int
    dtype: str
    device: str


_made_up: WeakIdKeyDictionary = WeakIdKeyDictionary()
_numbers = itertools.count(1)


def address_of(storage: torch.UntypedStorage) -> int:
    """Where a storage's bytes begin.

    A fake tensor's storage lies nowhere: it gets a number of its own, kept while it lives and never given twice.
    Such numbers are names, not places: storages with neighbouring numbers are not neighbours.
    """
    if storage.device.type != "meta":
        place: int = storage.data_ptr()
        return place
    address: int | None = _made_up.get(storage)
    if address is None:
        address = _made_up[storage] = next(_numbers)
    return address


def unfolds(types: Iterable[type]) -> bool:
    """Whether an operation on tensors of these types is carried out by a wrapper tensor, on the plain ones inside it.

    A dispatch mode leaves such an operation alone (NotImplemented) and is asked again for each plain one.
    """
    return any(hasattr(kind, "__tensor_flatten__") for kind in types)


def plain_tensors(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """The plain tensors inside a wrapper tensor (a quantised or sharded one), or the tensor itself."""
    if not is_traceable_wrapper_subclass(tensor):
        yield tensor
        return
    names, _ = tensor.__tensor_flatten__()
    for name in names:
        inner = getattr(tensor, name)
        if isinstance(inner, torch.Tensor):
            yield from plain_tensors(inner)


def tensors_within(thing: Any, seen: set[int] | None = None) -> Iterator[torch.Tensor]:
    """Every tensor reachable through attributes, lists, tuples and dicts; modules are not entered.

    Works for every cache class alike, whatever its layers call their states.
    """
    seen = set() if seen is None else seen
    if isinstance(thing, torch.Tensor):
        yield from plain_tensors(thing)
        return
    if isinstance(thing, _LEAVES) or id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, dict):
        children: Any = thing.values()
    elif isinstance(thing, list | tuple | set):
        children = thing
    else:
        children = getattr(thing, "__dict__", {}).values()
    for child in list(children):
        yield from tensors_within(child, seen)


def storage_of(tensor: torch.Tensor) -> Storage | None:
    """The storage behind a plain tensor; None for tensors without memory (meta, sparse, empty)."""
    if tensor.device.type == "meta" or tensor.layout is not torch.strided:
        return None
    storage = tensor.untyped_storage()
    if storage.nbytes() == 0:
        return None
    return Storage(address_of(storage), storage.nbytes(), dtype_name(tensor.dtype), tensor.device.type)


def storages_within(thing: Any) -> dict[int, Storage]:
    """The storages of every tensor within, each once, by address."""
    found: dict[int, Storage] = {}
    for tensor in tensors_within(thing):
        storage = storage_of(tensor)
        if storage is not None:
            found.setdefault(storage.address, storage)
    return found


def dtype_name(dtype: torch.dtype) -> str:
    """`bfloat16` for `torch.bfloat16`."""
    return str(dtype).removeprefix("torch.")


@dataclass(frozen=True)
class ResidentModel:
    """What the model itself holds on its device."""

    weights: dict[int, Storage]
    """Parameter storages by address, tied ones once."""
    buffers: dict[int, Storage]
    """Registered buffers, and any other tensor that a module or parameter keeps."""

    @property
    def given(self) -> tuple[Given, ...]:
        """The same as blocks for the replay."""
        categories: tuple[tuple[Category, dict[int, Storage]], ...] = (
            ("weights", self.weights),
            ("buffers", self.buffers),
        )
        return tuple(
            Given(storage.address, storage.size_bytes, category)
            for category, storages in categories
            for storage in storages.values()
        )


def resident_model(model: torch.nn.Module, device_type: str) -> ResidentModel:
    """Walk a model for every storage it keeps on a device type; what was offloaded elsewhere is not counted."""
    weights: dict[int, Storage] = {}
    others: dict[int, Storage] = {}
    for parameter in model.parameters():
        for tensor in plain_tensors(parameter.data):
            storage = storage_of(tensor)
            if storage is not None:
                weights.setdefault(storage.address, storage)
        others |= storages_within(vars(parameter))
    for module in model.modules():
        kept = [value for name, value in vars(module).items() if name not in ("_parameters", "_modules")]
        others |= storages_within(kept)
    return ResidentModel(
        weights={a: s for a, s in weights.items() if s.device == device_type},
        buffers={a: s for a, s in others.items() if s.device == device_type and a not in weights},
    )
