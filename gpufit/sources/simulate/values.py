"""Known values on fake tensors: what steers a model's code (masks, positions, image grids) is small, so it is computed.

A fake tensor has a shape and no values, and code that asks for one (`mask.all()`, `grid.tolist()`) fails. What follows
from the caller's own inputs alone, and from no weight, is worked out beside the fake run on small real tensors that
nobody counts. Everything that takes memory stays fake.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    unset_fake_temporarily,
)
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map_only
from torch.utils.weak import WeakIdKeyDictionary

from gpufit.sources.measure.storages import unfolds

MOST_VALUES = 2**21
"""Elements up to which a tensor's values are kept: a 2-D mask of 16 sequences of 128k tokens; no 4-D mask of a long
prompt, which nothing asks the values of (assumed)."""

_READS_A_VALUE = frozenset({"aten::_local_scalar_dense", "aten::is_nonzero", "aten::equal"})
_HAS_NO_VALUES = frozenset({
    "aten::empty", "aten::empty_like", "aten::empty_strided", "aten::new_empty", "aten::new_empty_strided",
})  # fmt: skip


class KnownValues(TorchDispatchMode):  # type: ignore[misc]
    """Keeps the values of small tensors beside their fake ones, and answers when code asks for one.

    What is not known raises as torch itself does, naming the operation.

    Enter it inside the `FakeTensorMode` of the run and outside of its recorder.
    """

    def __init__(self) -> None:
        super().__init__()
        self._values: WeakIdKeyDictionary = WeakIdKeyDictionary()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if unfolds(types):
            return NotImplemented
        kwargs = kwargs or {}
        name = func._schema.name
        leaves, _ = tree_flatten((args, kwargs))
        taken = [one for one in leaves if isinstance(one, torch.Tensor)]
        known = all(one in self._values or not isinstance(one, FakeTensor) for one in taken)
        if name in _READS_A_VALUE:
            return self._read(func, taken, known, args, kwargs)
        try:
            result = func(*args, **kwargs)
        except DynamicOutputShapeException:
            if not known:
                raise
            return self._shaped_by_values(func, args, kwargs)
        if known and name not in _HAS_NO_VALUES:
            self._work_out(func, args, kwargs, result)
        elif func._schema.is_mutable:
            self._forget(taken)
        return result

    def _read(self, func: Any, taken: list[torch.Tensor], known: bool, args: Any, kwargs: Any) -> Any:
        if not any(isinstance(one, FakeTensor) for one in taken):
            return func(*args, **kwargs)
        if not known:
            raise DataDependentOutputException(func)
        with unset_fake_temporarily():
            return func(*self._real(args), **self._real(kwargs))

    def _shaped_by_values(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The result of an operation whose shape only values tell (`nonzero`), as fake tensors of that shape."""
        with unset_fake_temporarily():
            values = func(*self._real(args), **self._real(kwargs))
        result = tree_map_only(torch.Tensor, _fake_of, values)
        self._keep(result, values)
        return result

    def _keep(self, result: Any, values: Any) -> None:
        pairs = zip(
            *([one for one in tree_flatten(tree)[0] if isinstance(one, torch.Tensor)] for tree in (result, values)),
            strict=True,
        )
        for fake, value in pairs:
            self._values[fake] = value

    def _work_out(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Run the operation on the values too, where what it gives is small."""
        made = [one for one in tree_flatten(result)[0] if isinstance(one, torch.Tensor)]
        if not made or not all(_is_small(one) for one in made):
            return
        with unset_fake_temporarily():
            values = func(*self._real(args), **self._real(kwargs))
        self._keep(result, values)

    def _real(self, thing: Any) -> Any:
        return tree_map_only(FakeTensor, self._values.__getitem__, thing)

    def _forget(self, taken: Iterable[torch.Tensor]) -> None:
        """Something unknown was written into one of these: neither it nor what shares its memory is known any more."""
        written = {_place(self._values[one]) for one in taken if one in self._values}
        if written:
            for fake in [fake for fake, value in self._values.items() if _place(value) in written]:
                del self._values[fake]


def _place(value: torch.Tensor) -> int:
    place: int = value.untyped_storage().data_ptr()
    return place


def _fake_of(value: torch.Tensor) -> torch.Tensor:
    """A fake tensor like a real one, in a storage as large: some operations keep more room than they fill."""
    whole = torch.empty(value.untyped_storage().nbytes() // value.element_size(), dtype=value.dtype)
    return whole.as_strided(value.shape, value.stride(), value.storage_offset())


def _is_small(tensor: torch.Tensor) -> bool:
    return isinstance(tensor, FakeTensor) and tensor.numel() <= MOST_VALUES


class _TensorsOfTensors(TorchFunctionMode):  # type: ignore[misc]
    """`torch.tensor([a, b])` reads its parts past any dispatch mode: fake ones are asked for their value before it."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.tensor and args and not isinstance(args[0], torch.Tensor):
            args = (tree_map_only(FakeTensor, lambda one: one.tolist(), args[0]), *args[1:])
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def asking_for_values() -> Iterator[None]:
    """Known values while the block runs, and transformers asks for those of fake tensors as it does for real ones.

    By itself it leaves such questions out where it sees fake tensors (`is_tracing`), and keeps masks that mask nothing.
    https://github.com/huggingface/transformers/blob/main/src/transformers/utils/import_utils.py
    """
    from transformers.utils import import_utils

    before = getattr(import_utils, "is_fake_tensor", None)
    if before is not None:  # earlier releases of transformers 5 ask whatever tensor it is
        import_utils.is_fake_tensor = lambda tensor: False
    try:
        with KnownValues(), _TensorsOfTensors():
            yield
    finally:
        if before is not None:
            import_utils.is_fake_tensor = before
