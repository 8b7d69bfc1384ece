"""A profile as it would be with its model held or computed in something else. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import msgspec

from gpufit.memory.adapt import FP8, SIXTEEN_BITS, in_bits, kv_shares, quantised_bytes, with_kv_bytes, worked_out
from gpufit.memory.choices import BITS, CACHE_BYTES, ITEM_BYTES
from gpufit.memory.held import Cache, Compute, Held, Weights
from gpufit.profile.cells import OutOfMemory
from gpufit.profile.layout import Layout
from gpufit.profile.memory_model import MemoryModel, PartModel
from gpufit.profile.precision import ComputeDtype, DtypeShare
from gpufit.profile.record import Profile

_WEIGHT_DTYPES = {Weights.FP8: FP8, Weights.BITS_4: "int4"}


def profile_held(origin: Profile, held: Held) -> Profile:
    """The profile as it would be. What ran out of memory did so held as it was, and says nothing of it otherwise."""
    precision, layout = origin.precision, origin.layout
    resident = precision.resident
    if held.weights is Weights.BITS_16:
        layout = None if layout is None else _in_16_bits(layout, {share.dtype for share in resident})
        resident = weights_in_16_bits(resident)
    elif held.weights in BITS and layout is not None:
        resident = _quantised(resident, layout, held.weights)
        # What is quantised already cannot be made smaller by the same rule again.
        layout = msgspec.structs.replace(in_bits(layout, BITS[held.weights]), linear_bytes=0, linear_elements=0)
    kv, model = precision.kv, origin.memory_model
    change = None if held.kv_cache is Cache.AS_PROFILED else with_kv_bytes(origin, CACHE_BYTES[held.kv_cache])
    if change is not None:
        kv = kv_shares(kv, CACHE_BYTES[held.kv_cache])
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


def weights_in_16_bits(resident: Sequence[DtypeShare]) -> tuple[DtypeShare, ...]:
    """Shares of weights with every float32 one at half its size."""
    return tuple(
        msgspec.structs.replace(share, dtype=SIXTEEN_BITS, size_bytes=-(-share.size_bytes // 2))
        if share.dtype == "float32"
        else share
        for share in resident
    )


def _quantised(resident: Sequence[DtypeShare], layout: Layout, value: Weights) -> tuple[DtypeShare, ...]:
    """Shares whose linear layers are in fewer bits: they are taken off the wide dtypes, the most of one first."""
    left, kept = layout.linear_bytes, []
    for share in sorted(resident, key=lambda one: (one.dtype not in ITEM_BYTES, -one.size_bytes)):
        taken = min(left, share.size_bytes) if share.dtype in ITEM_BYTES else 0
        left -= taken
        if share.size_bytes > taken:
            kept.append(msgspec.structs.replace(share, size_bytes=share.size_bytes - taken))
    size = quantised_bytes(layout.linear_elements, BITS[value])
    return (DtypeShare(dtype=_WEIGHT_DTYPES[value], size_bytes=size, tensors=0), *kept)


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
