"""The rules by which a profile answers for its model held or computed in something else. Pure.

Weights and cache follow from bytes an element. What compute takes as scratch does not follow so exactly: kernels keep
some of it in float32 in either dtype, so that the interval reaches from as it was to the whole of the change. (At the
peaks of the recorded SmolLM2-135M runs in bfloat16 and float32 on one CPU the ratio is 0.5 in prefill, and in decode
0.5 or between 0.29 and 0.56 where another moment of it is the peak.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from gpufit.errors import UsageError
from gpufit.memory.adapt import (
    FOUR_BITS,
    FP8,
    FP8_BITS,
    SIXTEEN_BITS,
    Change,
    Changed,
    Predicts,
    in_bits,
    kv_shares,
    quantised_bytes,
    with_kv_bytes,
    with_weight_bits,
    worked_out,
)
from gpufit.memory.held import Cache, Compute, Held, Weights
from gpufit.memory.predict import PhasePrediction, Predictor
from gpufit.memory.terms import Shape
from gpufit.profile.cells import OutOfMemory
from gpufit.profile.layout import Layout
from gpufit.profile.memory_model import MemoryModel, PartModel
from gpufit.profile.precision import ComputeDtype, DtypeShare
from gpufit.profile.record import Profile

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


class Otherwise:
    """A predictor's answers for its model held in something else: worked out by the rules above, never measured."""

    def __init__(self, predictor: Predicts, held: Held) -> None:
        """Raises UsageError for a choice that does not apply, with the reason."""
        origin = predictor.profile
        for title, value, why_not in _chosen(origin, held):
            if why_not:
                raise UsageError(f"{title} cannot be {value}: {why_not}")
        self.origin, self.held = origin, held
        self.profile = _profile(origin, held)
        """As it would be: its precision, and what follows from that."""
        self._predictor = predictor
        for change in _rules(origin, held):
            self._predictor = Changed(self._predictor, change)

    def at(self, shape: Shape) -> tuple[PhasePrediction, ...]:
        """Every phase at a shape. Raises UsageError where the profile cannot answer."""
        return self._predictor.at(shape)

    @property
    def note(self) -> str:
        """What a reader must know before any figure."""
        return f"worked out, not run: as if with {self.held.words}; what else is noted is of the run as it was"

    @property
    def words(self) -> tuple[str, ...]:
        """The rules that were followed, a sentence each."""
        said = {
            Weights.BITS_16: "weights in 16-bit: every float32 weight at half its size",
            Weights.FP8: f"weights in FP8: linear layers and experts at {FP8_BITS} bits an element, scales included, "
            "all other weights as they were",
            Weights.BITS_4: f"weights in 4-bit: linear layers and experts at {FOUR_BITS} bits an element, scales "
            "included, all other weights as they were",
        }
        words = [said[self.held.weights]] if self.held.weights in said else []
        if _product_bytes(self.origin, self.held):
            words.append(
                "weights and products in different dtypes: one matrix at a time may stand in the other, in the upper "
                "bound"
            )
        if self.held.compute is Compute.FLOAT32:
            words.append(
                "compute in float32: temporaries, activations and outputs twice as large, at the least as they were, "
                "since some are in float32 either way"
            )
        if self.held.compute is Compute.BITS_16:
            words.append(
                "compute in 16-bit: temporaries, activations and outputs half as large, at the most as they were, "
                "since kernels keep some in float32"
            )
        if self.held.kv_cache is not Cache.AS_PROFILED:
            size = "one byte" if self.held.kv_cache is Cache.FP8 else "two bytes"
            words.append(f"KV cache in {self.held.kv_cache}: {size} an element, scales left out, counters as they were")
        return tuple(words)


def predictor_of(profile: Profile, held: Held | None = None) -> Predicts:
    """What answers for a profile, as it is or held otherwise. Raises UsageError for a choice that does not apply."""
    predictor = Predictor(profile)
    return predictor if held is None or held.as_profiled else Otherwise(predictor, held)


def _chosen(profile: Profile, held: Held) -> Iterator[tuple[str, str, str]]:
    """(switch, what it is set to, why that does not apply) of the three."""
    yield "weights", held.weights, _why_not_weights(profile, held.weights)
    yield "compute", held.compute, _why_not_compute(profile, held.compute)
    yield "the KV cache", held.kv_cache, _why_not_cache(profile, held.kv_cache)


_NO_MODEL = "the profile has too few measured cells for a memory model, and answers only for what it ran"
_NO_LAYOUT = (
    "the profile does not tell its linear layers from other weights (an older one, or a model that no shape rule "
    "knows); measure or estimate it again"
)


def _why_not_weights(profile: Profile, value: Weights) -> str:
    if value is Weights.AS_PROFILED:
        return ""
    if profile.memory_model is None:
        return _NO_MODEL
    if profile.layout is None:
        return _NO_LAYOUT
    if value is Weights.BITS_16:
        return "" if _float32_bytes(profile) else "no weight is held in float32"
    return "" if with_weight_bits(profile, profile.layout, _BITS[value]) else "its linear layers take no more than that"


def _why_not_compute(profile: Profile, value: Compute) -> str:
    if value is Compute.AS_PROFILED:
        return ""
    if profile.memory_model is None:
        return _NO_MODEL
    if profile.layout is None:
        return _NO_LAYOUT
    dtypes = _product_dtypes(profile)
    if not dtypes:
        return "in which dtype it computed was not observed"
    sizes = {_ITEM_BYTES.get(dtype) for dtype in dtypes}
    if len(sizes) > 1 or None in sizes:
        return f"it computed in {' and '.join(dtypes)}, and nothing tells which bytes are which"
    return f"it computed in {dtypes[0]} already" if sizes == {_COMPUTE_BYTES[value]} else ""


def _why_not_cache(profile: Profile, value: Cache) -> str:
    if value is Cache.AS_PROFILED:
        return ""
    if profile.memory_model is None:
        return _NO_MODEL
    if not any(share.size_bytes for share in profile.precision.kv):
        return "the model keeps no KV cache"
    found = "/".join(share.dtype for share in profile.precision.kv)
    return "" if with_kv_bytes(profile, _CACHE_BYTES[value]) else f"it is held in {found}, which is no more"


_ITEM_BYTES = {"float16": 2, "bfloat16": 2, "float32": 4}
_BITS = {Weights.FP8: FP8_BITS, Weights.BITS_4: FOUR_BITS}
_COMPUTE_BYTES = {Compute.FLOAT32: 4, Compute.BITS_16: 2}
_CACHE_BYTES = {Cache.BITS_16: 2, Cache.FP8: 1}
_WEIGHT_DTYPES = {Weights.FP8: FP8, Weights.BITS_4: "int4"}


def _float32_bytes(profile: Profile) -> int:
    return sum(share.size_bytes for share in profile.precision.resident if share.dtype == "float32")


def _product_dtypes(profile: Profile) -> tuple[str, ...]:
    """The dtypes of matrix products, most frequent first; empty where nobody saw them."""
    return next((one.dtypes for one in profile.precision.compute if one.family == "matmul"), ())


def _rules(profile: Profile, held: Held) -> Iterator[Change]:
    """The changes to what is predicted, one after another; what compute does to scratch first, before a matrix is added
    to it."""
    layout = profile.layout
    if held.compute is not Compute.AS_PROFILED:
        yield Change(scratch_factor=2.0 if held.compute is Compute.FLOAT32 else 0.5)
    if layout is not None and held.weights in _BITS:
        change = with_weight_bits(profile, layout, _BITS[held.weights])
        if change is not None:
            yield change
    elif held.weights is Weights.BITS_16:
        yield Change(weights_bytes=sum(share.size_bytes for share in _weights_in_16_bits(profile.precision.resident)))
    if layout is not None and (size := _product_bytes(profile, held)):
        yield Change(scratch_upper_bytes=layout.largest_linear_elements * size)
    if held.kv_cache is not Cache.AS_PROFILED:
        change = with_kv_bytes(profile, _CACHE_BYTES[held.kv_cache])
        if change is not None:
            yield change


def _product_bytes(profile: Profile, held: Held) -> int:
    """Bytes of a matrix element beside its weight, where products are in another dtype than weights and either was
    switched; 0 where they agree. Of quantised weights `with_weight_bits` has those of the dtype they were in."""
    if (held.weights, held.compute) == (Weights.AS_PROFILED, Compute.AS_PROFILED):
        return 0
    seen = [_ITEM_BYTES.get(dtype, 0) for dtype in _product_dtypes(profile)]
    products = _COMPUTE_BYTES.get(held.compute) or max(seen, default=4)
    found = {_ITEM_BYTES.get(share.dtype, 0) for share in profile.precision.resident}
    if held.weights in _BITS:
        return max(products - max(found), 0)
    return 0 if (found if held.weights is Weights.AS_PROFILED else {2}) == {products} else products


def _weights_in_16_bits(resident: Sequence[DtypeShare]) -> tuple[DtypeShare, ...]:
    return tuple(
        msgspec.structs.replace(share, dtype=SIXTEEN_BITS, size_bytes=-(-share.size_bytes // 2))
        if share.dtype == "float32"
        else share
        for share in resident
    )


def _quantised(resident: Sequence[DtypeShare], layout: Layout, value: Weights) -> tuple[DtypeShare, ...]:
    """Shares whose linear layers are in fewer bits: they are taken off the wide dtypes, the most of one first."""
    left, kept = layout.linear_bytes, []
    for share in sorted(resident, key=lambda one: (one.dtype not in _ITEM_BYTES, -one.size_bytes)):
        taken = min(left, share.size_bytes) if share.dtype in _ITEM_BYTES else 0
        left -= taken
        if share.size_bytes > taken:
            kept.append(msgspec.structs.replace(share, size_bytes=share.size_bytes - taken))
    size = quantised_bytes(layout.linear_elements, _BITS[value])
    return (DtypeShare(dtype=_WEIGHT_DTYPES[value], size_bytes=size, tensors=0), *kept)


def _profile(origin: Profile, held: Held) -> Profile:
    """The profile as it would be. What ran out of memory did so held as it was, and says nothing of it otherwise."""
    precision, layout = origin.precision, origin.layout
    resident = precision.resident
    if held.weights is Weights.BITS_16:
        layout = None if layout is None else _in_16_bits(layout, {share.dtype for share in resident})
        resident = _weights_in_16_bits(resident)
    elif held.weights in _BITS and layout is not None:
        resident = _quantised(resident, layout, held.weights)
        # What is quantised already cannot be made smaller by the same rule again.
        layout = msgspec.structs.replace(in_bits(layout, _BITS[held.weights]), linear_bytes=0, linear_elements=0)
    kv, model = precision.kv, origin.memory_model
    change = None if held.kv_cache is Cache.AS_PROFILED else with_kv_bytes(origin, _CACHE_BYTES[held.kv_cache])
    if change is not None:
        kv = kv_shares(kv, _CACHE_BYTES[held.kv_cache])
        share = sum(_elements_bytes(kv)) / sum(_elements_bytes(precision.kv))
        model = None if model is None else _with_cache(model, share)
    return msgspec.structs.replace(
        origin,
        evidence=worked_out(origin.evidence),
        precision=msgspec.structs.replace(
            precision, resident=resident, compute=_compute(precision.compute, held.compute), kv=kv, findings=()
        ),
        layout=layout,
        memory_model=model,
        cells=tuple(cell for cell in origin.cells if not isinstance(cell.outcome, OutOfMemory)),
    )


def _elements_bytes(kv: Sequence[DtypeShare]) -> list[int]:
    """Sizes of a cache's keys and values, its counters left out."""
    return [share.size_bytes for share in kv if not share.dtype.startswith("int")]


def _compute(families: Sequence[ComputeDtype], value: Compute) -> tuple[ComputeDtype, ...]:
    """Products are in the new dtype, and whatever was in theirs."""
    if value is Compute.AS_PROFILED:
        return tuple(families)
    products = next((one.dtypes for one in families if one.family == "matmul"), ())
    dtype = "float32" if value is Compute.FLOAT32 else SIXTEEN_BITS
    return tuple(
        msgspec.structs.replace(
            one,
            dtypes=tuple(dict.fromkeys(dtype if old in products else old for old in one.dtypes)),
            inputs=tuple(dict.fromkeys(dtype if old in products else old for old in one.inputs)),
        )
        for one in families
    )


def _in_16_bits(layout: Layout, dtypes: AbstractSet[str]) -> Layout:
    """The layout of weights of these dtypes with every float32 one at half its size. Where not all are float32, layers
    and shards stay as they were: nothing tells what of them is."""
    linear = layout.linear_elements * 2
    if set(dtypes) != {"float32"}:
        return msgspec.structs.replace(layout, linear_bytes=linear)
    rest = layout.largest_layer_rest_bytes
    return msgspec.structs.replace(
        layout,
        largest_layer_bytes=-(-layout.largest_layer_bytes // 2),
        largest_layer_rest_bytes=None if rest is None else -(-rest // 2),
        first_bytes=-(-layout.first_bytes // 2),
        last_bytes=-(-layout.last_bytes // 2),
        linear_bytes=linear,
        shards=tuple(
            msgspec.structs.replace(
                shard,
                weights_bytes=-(-shard.weights_bytes // 2),
                layout=None if shard.layout is None else _in_16_bits(shard.layout, dtypes),
            )
            for shard in layout.shards
        ),
    )


def _with_cache(model: MemoryModel, share: float) -> MemoryModel:
    """The model with that share of what its cache grows by, so that what is said of its growth holds."""

    def part(one: PartModel) -> PartModel:
        if one.part != "kv_cache_bytes":
            return one
        return PartModel(
            part=one.part,
            coefficients=tuple(
                term
                if term.term == "constant"  # counters
                else msgspec.structs.replace(term, bytes_per_unit=term.bytes_per_unit * share)
                for term in one.coefficients
            ),
        )

    phases = tuple(
        msgspec.structs.replace(
            phase,
            moments=tuple(
                msgspec.structs.replace(moment, parts=tuple(map(part, moment.parts))) for moment in phase.moments
            ),
        )
        for phase in model.phases
    )
    return msgspec.structs.replace(model, phases=phases)
