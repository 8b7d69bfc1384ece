"""What was found in a model's files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpufit.profile.precision import DtypeShare


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor as it stands in a file."""

    name: str
    dtype: str
    """As the file names it: `BF16`, `F32`, `Q4_1`."""
    shape: tuple[int, ...]
    size_bytes: int


@dataclass(frozen=True)
class ModelFiles:
    """A model on disk, checked: every file is there, whole, and of a kind that can be loaded safely."""

    path: Path
    """The directory, or the GGUF file."""
    name: str
    weight_files: tuple[Path, ...]
    tensors: tuple[StoredTensor, ...]
    config: dict[str, object]
    """`config.json` of a directory; empty for a GGUF file, whose own header takes its place."""
    fingerprint: str
    """SHA-256 over names, sizes and the first and last MiB of config and weight files."""
    revision: str | None = None
    """Commit on the hub, where the model came from there."""

    @property
    def is_gguf(self) -> bool:
        """Whether the model is one GGUF file."""
        return self.path.suffix == ".gguf"

    @property
    def stored(self) -> tuple[DtypeShare, ...]:
        """Bytes by stored dtype, largest first."""
        return dtype_shares((tensor.dtype, tensor.size_bytes) for tensor in self.tensors)


@dataclass(frozen=True)
class ModelHeaders:
    """What the headers of a model's files tell: everything an estimate needs, and none of the weights."""

    name: str
    config: Mapping[str, Any]
    """`config.json`; for a GGUF file its metadata under the names that transformers uses. Empty where there is none."""
    config_where: str
    """What errors about the config call it."""
    tensors: tuple[StoredTensor, ...]
    """Empty where there are no weight files, or only pickled ones."""
    format: str
    """`safetensors`, `gguf`, `pickled`, or `none` where there are no weight files."""
    pickled_bytes: int = 0
    """Size of pickled weight files, which are never opened."""
    revision: str | None = None
    """Commit on the hub, where the model came from there."""
    notes: tuple[str, ...] = ()
    """What the user should know of how this was read, in words."""

    @property
    def stored(self) -> tuple[DtypeShare, ...]:
        """Bytes by stored dtype, largest first."""
        return dtype_shares((tensor.dtype, tensor.size_bytes) for tensor in self.tensors)

    @property
    def weight_bytes(self) -> int:
        """Bytes of all weight files' tensors; the size of the files where they are pickled."""
        return sum(tensor.size_bytes for tensor in self.tensors) or self.pickled_bytes


def dtype_shares(sizes: Iterable[tuple[str, int]]) -> tuple[DtypeShare, ...]:
    """(dtype, bytes) of single tensors summed by dtype, largest first."""
    totals: dict[str, tuple[int, int]] = {}
    for dtype, size in sizes:
        total, count = totals.get(dtype, (0, 0))
        totals[dtype] = (total + size, count + 1)
    return tuple(
        DtypeShare(dtype=dtype, size_bytes=total, tensors=count)
        for dtype, (total, count) in sorted(totals.items(), key=lambda item: (-item[1][0], item[0]))
    )
