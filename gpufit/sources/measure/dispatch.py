"""The feeder that needs no device: a dispatch mode sees every storage that an operation returns, real or fake.

It follows storages by weak reference, so a free is an event when it happens. It does not see memory that a kernel
takes and gives back inside one operation: the CPU's and the cards' own feeders do.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch._guards import active_fake_mode
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

from gpufit.memory.replay import Event
from gpufit.profile.peaks import DeviceReading
from gpufit.sources.measure.recording import Recording
from gpufit.sources.measure.storages import address_of, plain_tensors, unfolds

_MAKES_ITS_ARGUMENT_KNOWN = frozenset({"aten::lift", "aten::lift_fresh", "aten::lift_fresh_copy"})
"""How `torch.tensor` brings what it has made, out of sight, before a dispatch mode."""


class DispatchRecorder:
    """Records through a `TorchDispatchMode`; the thread that starts it is the one it sees.

    Start it inside the `FakeTensorMode` of a fake run, if there is one: operations under a fake mode entered later
    are a library's way of working out shapes, and take no memory.
    """

    def __init__(self, device_type: str = "cpu") -> None:
        """`device_type`: the device whose storages are followed, `cpu` or `cuda`; a fake tensor counts as its own."""
        self._events: list[Event] = []
        self._positions: list[int] = []
        self._followed: dict[int, _Followed] = {}
        self._mode = _Operations(self, device_type)
        self._resizes = contextlib.ExitStack()

    def start(self) -> None:
        """Begin to record."""
        self._resizes.enter_context(_watching_resizes(self._mode.resizing))
        self._mode.__enter__()

    def mark(self) -> int:
        """Name this moment by the events so far."""
        self._positions.append(len(self._events))
        return len(self._positions) - 1

    def begin_phase(self) -> None:
        """Nothing to reset: there is no counter beside the events."""

    def end_phase(self) -> tuple[DeviceReading, ...]:
        """No reading: there is no counter beside the events."""
        return ()

    def stop(self) -> Recording:
        """End the recording and hand it over."""
        self.abandon()
        return Recording(events=self._events, positions=self._positions)

    def abandon(self) -> None:
        """End the recording."""
        self._mode.__exit__(None, None, None)
        self._resizes.close()
        self._followed.clear()

    def met(self, storage: torch.UntypedStorage, made: bool) -> None:
        """An operation takes or returns this storage; `made`: it did not exist before, so it is an allocation.

        A storage from before the recording is no event, but its end will be one.
        """
        followed = self._followed.get(id(storage))
        address, size_bytes = address_of(storage), storage.nbytes()
        if followed is not None:
            self._moved(followed, address, size_bytes)
        elif size_bytes:
            self._follow(storage, address, size_bytes)
            if made:
                self.happened(Event(address, size_bytes))

    def _follow(self, storage: torch.UntypedStorage, address: int, size_bytes: int) -> None:
        key = id(storage)
        self._followed[key] = _Followed(weakref.ref(storage, lambda _: self._ended(key)), address, size_bytes)

    def _moved(self, followed: _Followed, address: int, size_bytes: int) -> None:
        """Bytes that grew or shrank in place are a free and an allocation, wherever they lie now."""
        if (address, size_bytes) == (followed.address, followed.size_bytes):
            return
        if followed.size_bytes:
            self.happened(Event(followed.address, 0))
        followed.address, followed.size_bytes = address, size_bytes
        if size_bytes:
            self.happened(Event(address, size_bytes))

    def _ended(self, key: int) -> None:
        followed = self._followed.pop(key)
        if followed.size_bytes:
            self.happened(Event(followed.address, 0))

    def happened(self, event: Event) -> None:
        """Take down one event."""
        self._events.append(event)


@dataclass
class _Followed:
    """A storage that lives, without keeping it alive."""

    reference: weakref.ref[torch.UntypedStorage]
    address: int
    size_bytes: int


class _Operations(TorchDispatchMode):  # type: ignore[misc]
    """Shows the recorder the storages that each operation takes, before it runs, and those that it returns."""

    def __init__(self, recorder: DispatchRecorder, device_type: str) -> None:
        super().__init__()
        self._recorder = recorder
        self._device_type = device_type
        self._run_mode: Any = None

    def __enter__(self) -> _Operations:
        self._run_mode = active_fake_mode()
        super().__enter__()
        return self

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if unfolds(types):
            return NotImplemented
        kwargs = kwargs or {}
        if active_fake_mode() is not self._run_mode:
            return func(*args, **kwargs)
        made_unseen = func._schema.name in _MAKES_ITS_ARGUMENT_KNOWN
        for storage in self._storages((*args, *kwargs.values())):
            self._recorder.met(storage, made_unseen)
        result = func(*args, **kwargs)
        for storage in self._storages((result,)):
            self._recorder.met(storage, made=True)
        return result

    @contextlib.contextmanager
    def resizing(self, storage: torch.UntypedStorage) -> Iterator[None]:
        """A storage itself is resized while the block runs."""
        follows = storage.device.type in (self._device_type, "meta")
        if follows:
            self._recorder.met(storage, made=False)
        yield
        if follows:
            self._recorder.met(storage, made=True)

    def _storages(self, values: Iterable[Any]) -> Iterator[torch.UntypedStorage]:
        for value in values:
            if isinstance(value, torch.Tensor):
                for tensor in plain_tensors(value):
                    if self._is_followed(tensor):
                        yield tensor.untyped_storage()
            elif isinstance(value, list | tuple):
                yield from self._storages(value)

    def _is_followed(self, tensor: torch.Tensor) -> bool:
        """A tensor of this device; in a fake run a fake one: what `torch.tensor` made for real is only its source."""
        return (
            tensor.device.type == self._device_type
            and tensor.layout is torch.strided
            and (self._run_mode is None or isinstance(tensor, FakeTensor))
        )


@contextlib.contextmanager
def _watching_resizes(
    resizing: Callable[[torch.UntypedStorage], contextlib.AbstractContextManager[None]],
) -> Iterator[None]:
    """Hold `resizing` around each `resize_` of a storage itself, which is no operation that a mode would see."""

    def resize_(storage: torch.UntypedStorage, size: int) -> Any:
        with resizing(storage):
            return torch._C.StorageBase.resize_(storage, size)

    torch.UntypedStorage.resize_ = resize_
    try:
        yield
    finally:
        del torch.UntypedStorage.resize_
