"""What two profiles record differently, in the order to look at it: the device comes last. Pure.

A buyer who sees two figures for one model blames the card first. Most often another checkpoint, another precision or
another release made the difference, so those are named before it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping

from gpufit.profile.base import Record
from gpufit.profile.environment import DeviceInfo
from gpufit.profile.evidence import Evidence
from gpufit.profile.peaks import Parts
from gpufit.profile.precision import ComputeDtype, DtypeShare, Precision
from gpufit.profile.record import Profile
from gpufit.units import format_size


class Topic(enum.StrEnum):
    """What a difference is about, in the order to look."""

    MODEL = "model"
    PRECISION = "precision"
    WORKLOAD = "workload"
    ENGINE = "engine"
    EVIDENCE = "evidence"
    ENVIRONMENT = "environment"
    DEVICE = "device"


class Difference(Record, frozen=True, kw_only=True):
    """One thing that two profiles record differently."""

    topic: Topic
    what: str
    a: str
    b: str
    bears_on: tuple[str, ...]
    """Parts (fields of Parts) that it can change; empty where it changes none by itself."""

    @property
    def words(self) -> str:
        """`attention: sdpa against eager`."""
        return f"{self.what}: {self.a} against {self.b}"


FLAGGED = "flagged"
"""The difference between the flags of two runs, which are sentences."""

ABSENT = "none"
"""What stands for a value that a profile does not have."""

_EVERYTHING = Parts.NAMES
_SCRATCH = ("activations_bytes", "temporaries_bytes")
_GROWING = ("kv_cache_bytes", "inputs_bytes", "outputs_bytes", *_SCRATCH)
_WEIGHTS = ("weights_bytes", "buffers_bytes")
_HELD = (*_WEIGHTS, "temporaries_bytes", "rounding_bytes")
"""What weights of another dtype take themselves, and as they are widened or rounded up."""
_ALLOCATOR = ("temporaries_bytes", "rounding_bytes", "unexplained_bytes")


def differences(a: Profile, b: Profile) -> tuple[Difference, ...]:
    """Every recorded difference that could bear on memory, and what tells one run from another, ordered by topic."""
    found = (one for compare in _COMPARED for one in compare(a, b))
    order = list(Topic)
    return tuple(sorted(found, key=lambda one: order.index(one.topic)))


def _unequal(topic: Topic, what: str, a: object, b: object, bears_on: tuple[str, ...] = ()) -> Iterator[Difference]:
    if a != b:
        yield Difference(topic=topic, what=what, a=_said(a), b=_said(b), bears_on=bears_on)


def _said(value: object) -> str:
    if value is None or value == "":
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return " x ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


_PACKED = ("uint8", "int32", "float4_e2m1fn_x2")
"""Dtypes whose elements hold several numbers each: 4-bit weights by bitsandbytes, GPTQ, AWQ, MXFP4 and NVFP4."""


def counted_alike(a: Profile, b: Profile) -> bool:
    """Whether the parameters of both are counted in the same way: where weights are packed in memory, an element stands
    for several numbers."""
    if not (_packed(a) or _packed(b)):
        return True
    return (_method(a.precision), a.workload.quantization) == (_method(b.precision), b.workload.quantization)


def _packed(profile: Profile) -> bool:
    return any(share.dtype in _PACKED for share in profile.precision.resident)


def _model(a: Profile, b: Profile) -> Iterator[Difference]:
    one, other = a.model, b.model
    yield from _unequal(Topic.MODEL, "architecture", one.architecture, other.architecture, _EVERYTHING)
    if counted_alike(a, b):
        yield from _unequal(Topic.MODEL, "parameters", one.parameters, other.parameters, _EVERYTHING)
    for what, key, bears_on in (
        ("revision", "revision", _EVERYTHING),
        ("sliding window", "sliding_window", ("kv_cache_bytes", *_SCRATCH)),
        ("tokens of a chunk", "chunk_tokens", _SCRATCH),
        ("position limit", "position_limit", ()),
    ):
        yield from _unequal(Topic.MODEL, what, getattr(one, key), getattr(other, key), bears_on)
    # A measured run hashes the files, arithmetic the headers it read: only like with like can differ.
    if a.evidence is b.evidence and (one.architecture, one.parameters) == (other.architecture, other.parameters):
        hashes = (one.fingerprint[:12], other.fingerprint[:12])
        yield from _unequal(Topic.MODEL, "hash of the files", *hashes, _EVERYTHING)
    yield from _unequal(Topic.MODEL, "name", one.name, other.name)


def _precision(a: Profile, b: Profile) -> Iterator[Difference]:
    one, other = a.precision, b.precision
    if one.stored and other.stored:
        yield from _unequal(Topic.PRECISION, "stored", _shares(one.stored), _shares(other.stored))
    yield from _unequal(Topic.PRECISION, "resident", _shares(one.resident), _shares(other.resident), _HELD)
    yield from _computed(one.compute, other.compute)
    yield from _unequal(Topic.PRECISION, "KV cache", _dtypes(one.kv), _dtypes(other.kv), ("kv_cache_bytes", *_SCRATCH))
    # Arithmetic names no method for GGUF, so what is known to be the same files never differs in it; a config without
    # weight files names no stored dtype.
    if one.stored != other.stored or not one.stored:
        methods = (_method(one), _method(other))
        yield from _unequal(Topic.PRECISION, "quantised in the files", *methods, (*_WEIGHTS, *_SCRATCH))
    for what, key, bears_on in (
        ("--dtype asked for", "dtype_requested", ()),
        ("--quantization asked for", "quantization", (*_WEIGHTS, *_SCRATCH)),
        ("autocast (--compute-dtype)", "compute_dtype", _SCRATCH),
        ("--kv-cache-dtype asked for", "kv_cache_dtype", ("kv_cache_bytes", *_SCRATCH)),
    ):
        yield from _unequal(Topic.PRECISION, what, getattr(a.workload, key), getattr(b.workload, key), bears_on)


def _method(precision: Precision) -> str | None:
    return None if precision.quantization is None else precision.quantization.method


def _computed(a: Iterable[ComputeDtype], b: Iterable[ComputeDtype]) -> Iterator[Difference]:
    """Families of operations that both saw, those of one difference together."""
    seen, others = _by_family(a), _by_family(b)
    together: dict[tuple[str, str], list[str]] = {}
    for family in seen:
        if family in others and seen[family] != others[family]:
            together.setdefault((seen[family], others[family]), []).append(family)
    for (one, other), families in together.items():
        what = f"computed ({', '.join(families)})"
        bears_on = ("outputs_bytes", *_SCRATCH) if families != [_MIXED] else ()
        yield from _unequal(Topic.PRECISION, what, one, other, bears_on)


_MIXED = "other"
"""The family of all remaining operations: it changes with what runs, an attention of its own for one, not by itself."""


def _by_family(seen: Iterable[ComputeDtype]) -> dict[str, str]:
    return {one.family: "/".join(one.dtypes) for one in seen}


def _shares(shares: Iterable[DtypeShare]) -> str:
    """Dtypes by their share of the bytes, which tells precisions apart whatever a model's size: `bfloat16 98%`."""
    sizes = {share.dtype: share.size_bytes for share in shares}
    total = sum(sizes.values())
    if not total:
        return _dtypes(shares)
    parts = [(dtype, round(100 * size / total)) for dtype, size in sorted(sizes.items(), key=lambda item: -item[1])]
    return ", ".join(dtype if percent == 100 else f"{dtype} {percent}%" for dtype, percent in parts if percent)


def _dtypes(shares: Iterable[DtypeShare]) -> str:
    return "/".join(dict.fromkeys(share.dtype for share in shares)) or ABSENT


def _workload(a: Profile, b: Profile) -> Iterator[Difference]:
    for what, key, bears_on in (
        ("logits kept", "logits_kept", ("outputs_bytes", *_SCRATCH)),
        ("cache implementation", "cache_implementation", ("kv_cache_bytes", *_SCRATCH)),
        ("images in a sequence", "images", _GROWING),
        ("image size", "image_size", _GROWING),
        ("tokens of a context that images take", "image_tokens", _GROWING),
        ("cards that share the model", "tensor_parallel_size", _EVERYTHING),
        ("experts spread whole", "expert_parallel", _EVERYTHING),
        ("seed", "seed", ()),
    ):
        yield from _unequal(Topic.WORKLOAD, what, getattr(a.workload, key), getattr(b.workload, key), bears_on)
    one, other = _size(a.workload.memory_limit_bytes), _size(b.workload.memory_limit_bytes)
    yield from _unequal(Topic.WORKLOAD, "memory limit of the run", one, other)


def _engine(a: Profile, b: Profile) -> Iterator[Difference]:
    yield from _unequal(Topic.ENGINE, "engine", a.engine.name, b.engine.name, _EVERYTHING)
    release = ("buffers_bytes", *_GROWING)
    if a.engine.name == b.engine.name:
        yield from _unequal(Topic.ENGINE, f"{a.engine.name} release", a.engine.version, b.engine.version, release)
    yield from _unequal(Topic.ENGINE, "attention", a.engine.attention, b.engine.attention, ("inputs_bytes", *_SCRATCH))


def _evidence(a: Profile, b: Profile) -> Iterator[Difference]:
    yield from _unequal(Topic.EVIDENCE, "evidence", str(a.evidence), str(b.evidence), (*_SCRATCH, *_ALLOCATOR[1:]))
    yield from _unequal(Topic.EVIDENCE, "run finished", a.complete, b.complete)
    yield from _unequal(
        Topic.EVIDENCE, "written by gpufit", a.gpufit_version, b.gpufit_version, (*_SCRATCH, "inputs_bytes")
    )


def _environment(a: Profile, b: Profile) -> Iterator[Difference]:
    if Evidence.COMPUTED in (a.evidence, b.evidence):
        return  # nothing ran on one side, so it has no environment
    one, other = a.environment, b.environment
    known = {a.engine.name} & {b.engine.name}  # said as the engine's release
    yield from _of_mappings("version of ", one.versions, other.versions, known, (*_SCRATCH, *_ALLOCATOR[1:]))
    yield from _of_mappings("", one.settings, other.settings, set(), _ALLOCATOR)
    for what, key in (("CUDA or HIP of torch", "runtime"), ("driver", "driver")):
        yield from _unequal(Topic.ENVIRONMENT, what, getattr(one.device, key), getattr(other.device, key), _ALLOCATOR)
    yield from _unequal(Topic.ENVIRONMENT, "host", one.host, other.host, _SCRATCH if "cpu" in _kinds(a, b) else ())


def _of_mappings(
    prefix: str, a: Mapping[str, str], b: Mapping[str, str], left_out: set[str], bears_on: tuple[str, ...]
) -> Iterator[Difference]:
    for name in sorted({*a, *b} - left_out):
        bears = () if name == "python" else bears_on
        yield from _unequal(Topic.ENVIRONMENT, f"{prefix}{name}", a.get(name), b.get(name), bears)


def _device(a: Profile, b: Profile) -> Iterator[Difference]:
    one, other = a.environment.device, b.environment.device
    kernels = ("inputs_bytes", *_SCRATCH, *_ALLOCATOR[1:])
    yield from _unequal(Topic.DEVICE, "device", _named(one), _named(other), kernels)
    if _kinds(a, b) <= {"cuda", "rocm"}:
        capability = (one.compute_capability, other.compute_capability)
        yield from _unequal(Topic.DEVICE, "compute capability", *capability, kernels)
        for what, key in (
            ("memory that torch sees", "total_bytes"),
            ("used by others before the run", "used_before_bytes"),
            ("driver context and kernels", "context_bytes"),
        ):
            yield from _unequal(Topic.DEVICE, what, _size(getattr(one, key)), _size(getattr(other, key)))
    yield from _unequal(
        Topic.DEVICE, FLAGGED, "; ".join(a.environment.flags), "; ".join(b.environment.flags), _ALLOCATOR
    )


def _named(device: DeviceInfo) -> str:
    return device.name if device.kind == "none" else f"{device.name} ({device.kind})"


def _size(size_bytes: int | None) -> str | None:
    return format_size(size_bytes) if size_bytes else None


def _kinds(a: Profile, b: Profile) -> set[str]:
    return {a.environment.device.kind, b.environment.device.kind}


_COMPARED: tuple[Callable[[Profile, Profile], Iterator[Difference]], ...] = (
    _model, _precision, _workload, _engine, _evidence, _environment, _device,
)  # fmt: skip
