"""A profile asked what it would need otherwise: divided over cards, or held in fewer bytes. Pure.

Weights and cache are replaced by arithmetic over the model's layout. What kernels take as scratch is known for the run
as it was; on a rank of several it is at least its share and at most the whole of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import msgspec

from gpufit.memory.predict import MomentPrediction, PhasePrediction, untested_margin_share
from gpufit.memory.terms import Shape
from gpufit.profile.record import Evidence, Layout, Parts, Phase, Profile, Shard, weakest


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
        layer = min(layer, rest + math.ceil(layout.largest_layer_linear_elements * bits / 8))
    return msgspec.structs.replace(
        layout,
        largest_layer_bytes=layer,
        linear_bytes=min(layout.linear_bytes, math.ceil(layout.linear_elements * bits / 8)),
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
    wide = [share for share in profile.precision.kv if share.dtype in _ITEM_BYTES]
    if not held or not wide or sum(share.size_bytes for share in wide) < held:
        return None
    elements = sum(share.size_bytes // _ITEM_BYTES[share.dtype] for share in wide)
    share = elements * element_bytes / held
    return Change(kv_share=share) if share < 1 else None


def with_weight_bits(profile: Profile, layout: Layout, bits: float) -> Change | None:
    """Linear layers and experts in so many bits an element, scales included, all other weights as they are; None where
    that is no less. Kernels that lack a fused product dequantise one matrix at a time."""
    weights = sum(share.size_bytes for share in profile.precision.resident)
    less = layout.linear_bytes - math.ceil(layout.linear_elements * bits / 8)
    if less <= 0:
        return None
    matrix = layout.largest_linear_elements * layout.linear_bytes / layout.linear_elements
    if profile.memory_model is not None and profile.memory_model.untested:
        # As wide as the interval of the temporaries that it joins.
        matrix *= 1 + untested_margin_share()
    return Change(weights_bytes=weights - less, scratch_upper_bytes=math.ceil(matrix))


_ITEM_BYTES = {"float16": 2, "bfloat16": 2, "float32": 4}
"""Dtypes of a cache that is not quantised, in bytes an element."""


def _changed(prediction: PhasePrediction, change: Change) -> PhasePrediction:
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
        evidence=prediction.evidence
        if prediction.evidence in (Evidence.SIMULATED, Evidence.COMPUTED)
        else weakest([prediction.evidence, Evidence.SCALED]),
    )


def _parts(parts: Parts, change: Change, kv_share: float) -> Parts:
    weights = parts.weights_bytes if change.weights_bytes is None else change.weights_bytes
    # Blocks are rounded up mostly where weights are, one for one.
    rounding = parts.rounding_bytes * weights // max(parts.weights_bytes, 1)
    return msgspec.structs.replace(
        parts,
        weights_bytes=weights,
        kv_cache_bytes=math.ceil(parts.kv_cache_bytes * kv_share),
        rounding_bytes=min(rounding, parts.rounding_bytes),
    )


def _lower(parts: Parts, lower: int, change: Change) -> int:
    scratch = parts.temporaries_bytes + parts.activations_bytes + parts.outputs_bytes
    spared = parts.total_bytes - _parts(parts, change, change.kv_share).total_bytes
    return max(lower - spared - math.floor(scratch * (1 - change.scratch_share)), 0)


def _upper(parts: Parts, upper: int, change: Change, phase: Phase) -> int:
    share = change.kv_share if change.kv_share_upper is None else change.kv_share_upper
    spared = parts.total_bytes - _parts(parts, change, share).total_bytes
    return upper - spared + (0 if phase is Phase.LOAD else change.scratch_upper_bytes)
