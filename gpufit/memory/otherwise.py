"""The rules by which a profile answers for its model held or computed in something else. Pure.

Weights and cache follow from bytes an element. What compute takes as scratch does not follow so exactly: kernels keep
some of it in float32 in either dtype, so that the interval reaches from as it was to the whole of the change. (At the
peaks of the recorded SmolLM2-135M runs in bfloat16 and float32 on one CPU the ratio is 0.5 in prefill, and in decode
0.5 or between 0.29 and 0.56 where another moment of it is the peak.)
"""

from __future__ import annotations

from collections.abc import Iterator

from gpufit.errors import UsageError
from gpufit.memory.adapt import FOUR_BITS, FP8_BITS, Change, Changed, Predicts, with_kv_bytes, with_weight_bits
from gpufit.memory.choices import BITS, CACHE_BYTES, COMPUTE_BYTES, ITEM_BYTES, chosen, product_dtypes
from gpufit.memory.held import Cache, Compute, Held, Weights
from gpufit.memory.held_profile import profile_held, weights_in_16_bits
from gpufit.memory.predict import PhasePrediction, Predictor
from gpufit.memory.terms import Shape
from gpufit.profile.record import Profile


class Otherwise:
    """A predictor's answers for its model held in something else: worked out by the rules above, never measured."""

    def __init__(self, predictor: Predicts, held: Held) -> None:
        """Raises UsageError for a choice that does not apply, with the reason."""
        origin = predictor.profile
        for title, value, why_not in chosen(origin, held):
            if why_not:
                raise UsageError(f"{title} cannot be {value}: {why_not}")
        self.origin, self.held = origin, held
        self.profile = profile_held(origin, held)
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


def _rules(profile: Profile, held: Held) -> Iterator[Change]:
    """The changes to what is predicted, one after another; what compute does to scratch first, before a matrix is added
    to it."""
    layout = profile.layout
    if held.compute is not Compute.AS_PROFILED:
        yield Change(scratch_factor=2.0 if held.compute is Compute.FLOAT32 else 0.5)
    if layout is not None and held.weights in BITS:
        change = with_weight_bits(profile, layout, BITS[held.weights])
        if change is not None:
            yield change
    elif held.weights is Weights.BITS_16:
        yield Change(weights_bytes=sum(share.size_bytes for share in weights_in_16_bits(profile.precision.resident)))
    if layout is not None and (size := _product_bytes(profile, held)):
        yield Change(scratch_upper_bytes=layout.largest_linear_elements * size)
    if held.kv_cache is not Cache.AS_PROFILED:
        change = with_kv_bytes(profile, CACHE_BYTES[held.kv_cache])
        if change is not None:
            yield change


def _product_bytes(profile: Profile, held: Held) -> int:
    """Bytes of a matrix element beside its weight, where products are in another dtype than weights and either was
    switched; 0 where they agree. Of quantised weights `with_weight_bits` has those of the dtype they were in."""
    if (held.weights, held.compute) == (Weights.AS_PROFILED, Compute.AS_PROFILED):
        return 0
    seen = [ITEM_BYTES.get(dtype, 0) for dtype in product_dtypes(profile)]
    products = COMPUTE_BYTES.get(held.compute) or max(seen, default=4)
    found = {ITEM_BYTES.get(share.dtype, 0) for share in profile.precision.resident}
    if held.weights in BITS:
        return max(products - max(found), 0)
    return 0 if (found if held.weights is Weights.AS_PROFILED else {2}) == {products} else products
