"""The four precisions of a run: stored, resident, compute and KV cache, each as found."""

from __future__ import annotations

import msgspec

from gpufit.profile.base import Record, Size


class DtypeShare(Record, frozen=True, kw_only=True):
    """How many bytes stand in one dtype."""

    dtype: str
    size_bytes: Size
    tensors: Size


class ComputeDtype(Record, frozen=True, kw_only=True):
    """The dtypes that one family of operations really ran in."""

    family: str
    """`matmul`, `attention`, `norm`, `softmax`, `rotary`, `embedding`, `logits`, `other`."""
    dtypes: tuple[str, ...]
    """Result dtypes seen, most frequent first."""
    calls: Size
    inputs: tuple[str, ...] = ()
    """Dtypes of the numbers that went in, most frequent first; indices and masks are not among them."""


class Quantization(Record, frozen=True, kw_only=True):
    """The quantisation method named by the model's own files, with its parameters as text."""

    method: str
    parameters: dict[str, str] = msgspec.field(default_factory=dict)


class Precision(Record, frozen=True, kw_only=True):
    """The four precisions, each as found."""

    stored: tuple[DtypeShare, ...]
    """Dtypes in the model's files."""
    resident: tuple[DtypeShare, ...]
    """Dtypes of the weights in memory after load."""
    compute: tuple[ComputeDtype, ...]
    """Dtypes of the operations, observed while they ran."""
    kv: tuple[DtypeShare, ...]
    """Dtypes of the cache; empty for a model without one."""
    quantization: Quantization | None = None
    findings: tuple[str, ...] = ()
    """What differs between the columns, in words."""
