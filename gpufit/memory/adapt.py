"""A profile asked what it would need otherwise: divided over cards, or held in fewer bytes. Pure.

Weights and cache are replaced by arithmetic over the model's layout. What kernels take as scratch is known for the run
as it was; on a rank of several it is at least its share and at most the whole of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import msgspec

from gpufit.memory.predict import MomentPrediction, PhasePrediction, untested_margin_share
from gpufit.memory.terms import Shape
from gpufit.profile.evidence import Evidence, weakest
from gpufit.profile.layout import Layout, Shard
from gpufit.profile.peaks import Parts, Phase
from gpufit.profile.precision import DtypeShare
from gpufit.profile.record import Profile


class Predicts(Protocol):
    """What answers for shapes: a profile as it is, or one changed."""

    @property
    def profile(self) -> Profile:
        """The profile that is asked."""
        ...

    def at(self, shape: Shape) -> tuple[PhasePrediction, ...]:
        """Every phase at a shape. Raises UsageError where the profile cannot answer."""
        ...


@dataclass(frozen=True)
class Change:
    """What becomes of the parts of every moment."""

    weights_bytes: int | None = None
    """In place of the profile's; None: as they are."""
    kv_share: float = 1.0
    """Of the KV cache, what is left."""
    kv_share_upper: float | None = None
    """At the most; None: the same."""
    scratch_share: float = 1.0
    """Of temporaries, activations and outputs, what is surely left; all of it may be."""
    scratch_factor: float = 1.0
    """What temporaries, activations and outputs are multiplied by outside loading, where they are held in another
    dtype. Kernels keep some of them in float32 either way, so that it lies anywhere between this and as it was."""
    scratch_upper_bytes: int = 0
    """What temporaries may grow by, outside loading."""


class Changed:
    """A predictor's answers with a change made to each, every shape worked out once."""

    def __init__(self, predictor: Predicts, change: Change) -> None:
        self._predictor, self._change = predictor, change
        self._known: dict[Shape, tuple[PhasePrediction, ...]] = {}

    @property
    def profile(self) -> Profile:
        """The profile that is asked."""
        return self._predictor.profile

    def at(self, shape: Shape) -> tuple[PhasePrediction, ...]:
        """Every phase at a shape, changed. Raises UsageError where the profile cannot answer."""
        found = self._known.get(shape)
        if found is None:
            found = self._known[shape] = tuple(_changed(one, self._change) for one in self._predictor.at(shape))
        return found


def on_ranks(shard: Shard) -> Change:
    """One of several cards that share every layer. Activations between the layers stay whole, those inside are
    divided, so scratch lies between its share and all of it."""
    return Change(weights_bytes=shard.weights_bytes, kv_share=shard.kv_share, scratch_share=1 / shard.ranks)


def on_stages(layout: Layout, stages: int, *, mixed: bool) -> Change:
    """The fullest of several cards that each hold some of the layers, one after the other (pipeline parallel); `mixed`:
    layers differ in what they cache, so that a stage may hold a layer's share more than its number of layers says."""
    each = math.ceil(layout.layers / stages)
    share = each / layout.layers
    return Change(
        weights_bytes=each * layout.largest_layer_bytes + max(layout.first_bytes, layout.last_bytes),
        kv_share=share,
        kv_share_upper=min((each + 1) / layout.layers, 1.0) if mixed else None,
        # The head's logits are made on the last stage alone, a layer's scratch on every one.
        scratch_share=0.0,
    )


def on_ranks_of_stages(shard: Shard, stages: int, *, mixed: bool) -> Change | None:
    """The fullest of the cards where each stage's layers are shared by several (tensor parallel times pipeline); None
    where the profile does not tell how a rank's weights lie over the layers."""
    if shard.layout is None:
        return None
    stage = on_stages(shard.layout, stages, mixed=mixed)
    upper = stage.kv_share_upper
    return replace(
        stage,
        kv_share=stage.kv_share * shard.kv_share,
        kv_share_upper=None if upper is None else upper * shard.kv_share,
    )


def in_bits(layout: Layout, bits: float) -> Layout:
    """The layout with linear layers and experts in so many bits an element, scales included, as `with_weight_bits` has
    them. In older profiles, which do not tell what of a layer is linear, layers stay as they are."""
    layer, rest = layout.largest_layer_bytes, layout.largest_layer_rest_bytes
    if rest is not None and layout.largest_layer_linear_elements is not None:
        layer = min(layer, rest + quantised_bytes(layout.largest_layer_linear_elements, bits))
    return msgspec.structs.replace(
        layout,
        largest_layer_bytes=layer,
        linear_bytes=min(layout.linear_bytes, quantised_bytes(layout.linear_elements, bits)),
        shards=tuple(_shard_in_bits(one, bits) for one in layout.shards),
    )


def _shard_in_bits(shard: Shard, bits: float) -> Shard:
    """The same for one of several cards; as it is where nothing tells what of it is linear."""
    if shard.layout is None:
        return shard
    smaller = in_bits(shard.layout, bits)
    spared = shard.layout.linear_bytes - smaller.linear_bytes
    return msgspec.structs.replace(shard, weights_bytes=shard.weights_bytes - spared, layout=smaller)


def with_kv_bytes(profile: Profile, element_bytes: int) -> Change | None:
    """The KV cache in elements of so many bytes, its scales left out; None where it is held so already, or nothing
    tells. A layer's worth may stand in the compute dtype beside it while attention reads it."""
    held = sum(share.size_bytes for share in profile.precision.kv)
    smaller = sum(share.size_bytes for share in kv_shares(profile.precision.kv, element_bytes))
    known = all(share.dtype in _ITEM_BYTES or share.dtype in _COUNTERS for share in profile.precision.kv)
    return Change(kv_share=smaller / held) if known and smaller < held else None


def kv_shares(kv: Sequence[DtypeShare], element_bytes: int) -> tuple[DtypeShare, ...]:
    """What a cache holds where every element that took more takes so many bytes."""
    wider = {dtype: size for dtype, size in _ITEM_BYTES.items() if size > element_bytes}
    moved = [share for share in kv if share.dtype in wider]
    size = sum(share.size_bytes // wider[share.dtype] * element_bytes for share in moved)
    kept = tuple(share for share in kv if share.dtype not in wider)
    if not moved:
        return kept
    tensors = sum(share.tensors for share in moved)
    return (DtypeShare(dtype=DTYPE_OF_BYTES[element_bytes], size_bytes=size, tensors=tensors), *kept)


def with_weight_bits(profile: Profile, layout: Layout, bits: float) -> Change | None:
    """Linear layers and experts in so many bits an element, scales included, all other weights as they are; None where
    that is no less. Kernels that lack a fused product dequantise one matrix at a time."""
    weights = sum(share.size_bytes for share in profile.precision.resident)
    less = layout.linear_bytes - quantised_bytes(layout.linear_elements, bits)
    if less <= 0:
        return None
    matrix = layout.largest_linear_elements * layout.linear_bytes / layout.linear_elements
    if profile.memory_model is not None and profile.memory_model.untested:
        # As wide as the interval of the temporaries that it joins.
        matrix *= 1 + untested_margin_share()
    return Change(weights_bytes=weights - less, scratch_upper_bytes=math.ceil(matrix))


def quantised_bytes(elements: int, bits: float) -> int:
    """Bytes of so many elements at a number of bits with up to three decimals, rounded up."""
    return -(-elements * round(bits * 1000) // 8000)


SIXTEEN_BITS = "16-bit"
"""A dtype that is worked out: float16 or bfloat16, of which a card takes the one that it has."""
FP8 = "float8_e4m3fn"
DTYPE_OF_BYTES = {1: FP8, 2: SIXTEEN_BITS}

FP8_BITS = 8.002
"""FP8 weights with a float32 scale for each block of 128 x 128: 8 + 32 / 16,384 bits
(https://huggingface.co/docs/transformers/quantization/finegrained_fp8)."""
FOUR_BITS = 4.16
"""GPTQ and AWQ in groups of 128: 4 bits, a 16-bit scale and a 4-bit zero point for each group, 4 + 20 / 128
(https://huggingface.co/docs/transformers/quantization/awq)."""

_ITEM_BYTES = {"float16": 2, "bfloat16": 2, SIXTEEN_BITS: 2, "float32": 4}
"""Dtypes of a cache that is not quantised, in bytes an element."""
_COUNTERS = ("int64", "int32")
"""Of positions, which a cache of sliding layers holds beside keys and values: they stay."""


def _changed(prediction: PhasePrediction, change: Change) -> PhasePrediction:
    if prediction.phase is Phase.LOAD and change.scratch_factor != 1:
        change = replace(change, scratch_factor=1.0)
    return replace(
        prediction,
        parts=_parts(prediction.parts, change, change.kv_share),
        lower_bytes=_lower(prediction.parts, prediction.lower_bytes, change),
        upper_bytes=_upper(prediction.parts, prediction.upper_bytes, change, prediction.phase),
        moments=tuple(
            MomentPrediction(
                _parts(one.parts, change, change.kv_share),
                _lower(one.parts, one.lower_bytes, change),
                _upper(one.parts, one.upper_bytes, change, prediction.phase),
            )
            for one in prediction.moments
        ),
        evidence=worked_out(prediction.evidence),
    )


def worked_out(evidence: Evidence) -> Evidence:
    """What a figure is after a change: what nobody measured stays as it was, all else is carried by a rule."""
    if evidence in (Evidence.SIMULATED, Evidence.COMPUTED):
        return evidence
    return weakest([evidence, Evidence.SCALED])


def _parts(parts: Parts, change: Change, kv_share: float) -> Parts:
    weights = parts.weights_bytes if change.weights_bytes is None else change.weights_bytes
    # Blocks are rounded up mostly where weights are, one for one.
    rounding = parts.rounding_bytes * weights // max(parts.weights_bytes, 1)
    return msgspec.structs.replace(
        parts,
        weights_bytes=weights,
        kv_cache_bytes=math.ceil(parts.kv_cache_bytes * kv_share),
        outputs_bytes=math.ceil(parts.outputs_bytes * change.scratch_factor),
        activations_bytes=math.ceil(parts.activations_bytes * change.scratch_factor),
        temporaries_bytes=math.ceil(parts.temporaries_bytes * change.scratch_factor),
        rounding_bytes=min(rounding, parts.rounding_bytes),
    )


def _scratch(parts: Parts) -> int:
    return parts.temporaries_bytes + parts.activations_bytes + parts.outputs_bytes


def _lower(parts: Parts, lower: int, change: Change) -> int:
    """Scratch that grows may all be as it was."""
    after = _parts(parts, change, change.kv_share)
    spared = parts.total_bytes - after.total_bytes
    grown = max(_scratch(after) - _scratch(parts), 0)
    return max(lower - spared - grown - math.floor(_scratch(parts) * (1 - change.scratch_share)), 0)


def _upper(parts: Parts, upper: int, change: Change, phase: Phase) -> int:
    """Scratch that shrinks may all be as it was; with one that grows, all that is uncertain of it grows."""
    after = _parts(parts, change, change.kv_share if change.kv_share_upper is None else change.kv_share_upper)
    spared = parts.total_bytes - after.total_bytes
    shrunk = max(_scratch(parts) - _scratch(after), 0)
    margin = math.ceil((upper - parts.total_bytes) * max(change.scratch_factor - 1, 0))
    return upper - spared + shrunk + max(margin, 0) + (0 if phase is Phase.LOAD else change.scratch_upper_bytes)
