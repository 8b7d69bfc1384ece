"""Which positions of the switches say something of a profile; of those that do not, why. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from gpufit.memory.adapt import FOUR_BITS, FP8_BITS, with_kv_bytes, with_weight_bits
from gpufit.memory.held import Cache, Compute, Held, Weights
from gpufit.profile.record import Profile

ITEM_BYTES = {"float16": 2, "bfloat16": 2, "float32": 4}
"""Bytes of an element, by the dtypes that a switch starts from."""
BITS = {Weights.FP8: FP8_BITS, Weights.BITS_4: FOUR_BITS}
"""Bits of a quantised weight, its share of the scales included."""
COMPUTE_BYTES = {Compute.FLOAT32: 4, Compute.BITS_16: 2}
"""Bytes of an element of what is computed."""
CACHE_BYTES = {Cache.BITS_16: 2, Cache.FP8: 1}
"""Bytes of an element of the KV cache."""

_NO_MODEL = "the profile has too few measured cells for a memory model, and answers only for what it ran"
_NO_LAYOUT = (
    "the profile does not tell its linear layers from other weights (an older one, or a model that no shape rule "
    "knows); measure or estimate it again"
)

Position = TypeVar("Position", Weights, Compute, Cache)


@dataclass(frozen=True)
class Choice(Generic[Position]):
    """One position of a switch."""

    value: Position
    why_not: str = ""
    """Why it says nothing of this profile, in words; empty where it can be chosen."""


@dataclass(frozen=True)
class Choices:
    """Every position of the three switches, in their order."""

    weights: tuple[Choice[Weights], ...]
    compute: tuple[Choice[Compute], ...]
    kv_cache: tuple[Choice[Cache], ...]


def choices(profile: Profile) -> Choices:
    """What applies to a profile; of what does not, why."""
    return Choices(
        weights=tuple(Choice(one, _why_not_weights(profile, one)) for one in Weights),
        compute=tuple(Choice(one, _why_not_compute(profile, one)) for one in Compute),
        kv_cache=tuple(Choice(one, _why_not_cache(profile, one)) for one in Cache),
    )


def chosen(profile: Profile, held: Held) -> Iterator[tuple[str, str, str]]:
    """(switch, what it is set to, why that does not apply) of the three."""
    yield "weights", held.weights, _why_not_weights(profile, held.weights)
    yield "compute", held.compute, _why_not_compute(profile, held.compute)
    yield "the KV cache", held.kv_cache, _why_not_cache(profile, held.kv_cache)


def _why_not_weights(profile: Profile, value: Weights) -> str:
    if value is Weights.AS_PROFILED:
        return ""
    if profile.memory_model is None:
        return _NO_MODEL
    if profile.layout is None:
        return _NO_LAYOUT
    if value is Weights.BITS_16:
        return "" if _float32_bytes(profile) else "no weight is held in float32"
    return "" if with_weight_bits(profile, profile.layout, BITS[value]) else "its linear layers take no more than that"


def _why_not_compute(profile: Profile, value: Compute) -> str:
    if value is Compute.AS_PROFILED:
        return ""
    if profile.memory_model is None:
        return _NO_MODEL
    if profile.layout is None:
        return _NO_LAYOUT
    dtypes = product_dtypes(profile)
    if not dtypes:
        return "in which dtype it computed was not observed"
    sizes = {ITEM_BYTES.get(dtype) for dtype in dtypes}
    if len(sizes) > 1 or None in sizes:
        return f"it computed in {' and '.join(dtypes)}, and nothing tells which bytes are which"
    return f"it computed in {dtypes[0]} already" if sizes == {COMPUTE_BYTES[value]} else ""


def _why_not_cache(profile: Profile, value: Cache) -> str:
    if value is Cache.AS_PROFILED:
        return ""
    if profile.memory_model is None:
        return _NO_MODEL
    if not any(share.size_bytes for share in profile.precision.kv):
        return "the model keeps no KV cache"
    found = "/".join(share.dtype for share in profile.precision.kv)
    return "" if with_kv_bytes(profile, CACHE_BYTES[value]) else f"it is held in {found}, which is no more"


def _float32_bytes(profile: Profile) -> int:
    return sum(share.size_bytes for share in profile.precision.resident if share.dtype == "float32")


def product_dtypes(profile: Profile) -> tuple[str, ...]:
    """The dtypes of matrix products, most frequent first; empty where nobody saw them."""
    return next((one.dtypes for one in profile.precision.compute if one.family == "matmul"), ())
