"""A profile held or computed in something else: by arithmetic over tests/builders, and against two real runs."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from builders import KV_PER_TOKEN, WEIGHTS, make_card, make_layout, make_memory_model, make_profile
from hypothesis import given, settings
from hypothesis import strategies as st
from model_files import REPOSITORY

from gpufit.advice.throughput import NoThroughput, throughput_on
from gpufit.advice.verdict import Verdict, judge
from gpufit.catalog.card_parts import Peaks
from gpufit.errors import UsageError
from gpufit.flows import load_named_profile
from gpufit.memory.adapt import Change, Changed, on_ranks
from gpufit.memory.carry import carrier_to
from gpufit.memory.choices import Choice, choices
from gpufit.memory.growth import cache_growth
from gpufit.memory.held import Cache, Compute, Held, Weights
from gpufit.memory.otherwise import Otherwise, predictor_of
from gpufit.memory.predict import PhasePrediction, Predictor
from gpufit.memory.terms import Shape
from gpufit.profile.cells import Cell, Measured, OutOfMemory
from gpufit.profile.environment import DeviceInfo
from gpufit.profile.evidence import Evidence
from gpufit.profile.layout import Shard
from gpufit.profile.peaks import Phase
from gpufit.profile.precision import ComputeDtype, DtypeShare, Precision
from gpufit.profile.record import Profile

SHAPE = Shape(256, 4, 2)
TOKENS = 512
FACTS = REPOSITORY / "tests" / "facts" / "profiles"
NAME = "SmolLM2-135M-Instruct.Q4_1"


def half(**changes: object) -> Profile:
    """Weights, compute and cache in float16, 200,000,000 B of the weights in linear layers."""
    return make_profile(**({"layout": make_layout()} | changes))


def whole() -> Profile:
    """The same in float32: 128,000,000 B of weights in 32,000,000 linear elements, and a cache twice as large."""
    precision = Precision(
        stored=(),
        resident=(DtypeShare(dtype="float32", size_bytes=WEIGHTS, tensors=200),),
        compute=(ComputeDtype(family="matmul", dtypes=("float32",), calls=211),),
        kv=(DtypeShare(dtype="float32", size_bytes=4_000, tensors=60),),
    )
    return make_profile(layout=make_layout(linear_bytes=128_000_000, linear_elements=32_000_000), precision=precision)


def prefill(profile: Profile, held: Held, shape: Shape = SHAPE) -> tuple[PhasePrediction, PhasePrediction]:
    """(as profiled, held so)"""
    found = [
        next(one for one in predictor.at(shape) if one.phase is Phase.PREFILL)
        for predictor in (Predictor(profile), predictor_of(profile, held))
    ]
    return found[0], found[1]


class TestWeights:
    @pytest.mark.parametrize(
        ("value", "size", "dtype"),
        [(Weights.FP8, 100_025_000, "float8_e4m3fn"), (Weights.BITS_4, 52_000_000, "int4")],
    )
    def test_linear_layers_take_their_bits(self, value: Weights, size: int, dtype: str) -> None:
        """100,000,000 elements x 8.002 / 8 and x 4.16 / 8 in place of 200,000,000 B."""
        before, after = prefill(half(), Held(weights=value))
        assert after.parts.weights_bytes == WEIGHTS - 200_000_000 + size
        assert before.allocated_bytes - after.allocated_bytes == 200_000_000 - size
        # One matrix of 4,000,000 elements may stand dequantised in two bytes each.
        assert before.upper_bytes - after.upper_bytes == 200_000_000 - size - 8_000_000
        assert before.lower_bytes - after.lower_bytes == 200_000_000 - size
        resident = Otherwise(Predictor(half()), Held(weights=value)).profile.precision.resident
        assert [(share.dtype, share.size_bytes) for share in resident] == [(dtype, size), ("float16", 56_000_000)]

    def test_float32_weights_are_half_in_16_bits(self) -> None:
        before, after = prefill(whole(), Held(weights=Weights.BITS_16))
        assert after.parts.weights_bytes == WEIGHTS // 2
        # Products stay in float32: a matrix of 4,000,000 elements may stand in four bytes each.
        assert before.upper_bytes - after.upper_bytes == WEIGHTS // 2 - 16_000_000

    def test_with_compute_in_16_bits_too_no_matrix_is_held_twice(self) -> None:
        both = Held(weights=Weights.BITS_16, compute=Compute.BITS_16)
        before, after = prefill(whole(), both)
        assert before.upper_bytes - after.upper_bytes == WEIGHTS // 2

    def test_the_layout_of_quantised_weights_is_in_their_bits(self) -> None:
        """A layer of 20,000,000 B has 9,000,000 linear elements in 16 bits; a rank has half of everything."""
        rank = make_layout(linear_bytes=100_000_000, linear_elements=50_000_000, shards=())
        layout = make_layout(
            largest_layer_rest_bytes=2_000_000,
            largest_layer_linear_elements=9_000_000,
            shards=(Shard(ranks=2, weights_bytes=WEIGHTS // 2, kv_share=0.5, layout=rank),),
        )
        found = Otherwise(Predictor(half(layout=layout)), Held(weights=Weights.BITS_4)).profile.layout
        assert found is not None
        assert found.largest_layer_bytes == 2_000_000 + 9_000_000 * 4160 // 8000
        assert found.shards[0].weights_bytes == WEIGHTS // 2 - 100_000_000 + 26_000_000
        assert (found.linear_bytes, found.linear_elements) == (0, 0)

    def test_all_of_a_float32_layout_is_half_in_16_bits(self) -> None:
        layout = Otherwise(Predictor(whole()), Held(weights=Weights.BITS_16)).profile.layout
        assert layout is not None
        assert (layout.largest_layer_bytes, layout.first_bytes, layout.last_bytes) == (
            10_000_000,
            14_000_000,
            14_000_000,
        )
        assert layout.shards[0].weights_bytes == WEIGHTS // 4
        assert layout.linear_bytes == 32_000_000 * 2


class TestCache:
    def test_fp8_is_half_of_16_bits_and_grows_so(self) -> None:
        before, after = prefill(half(), Held(kv_cache=Cache.FP8))
        assert before.parts.kv_cache_bytes == KV_PER_TOKEN * TOKENS == 2 * after.parts.kv_cache_bytes
        profile = half()
        assert profile.memory_model is not None
        ended = tuple(
            msgspec.structs.replace(
                phase, moments=(*phase.moments, msgspec.structs.replace(phase.moments[0], site="end of phase"))
            )
            for phase in profile.memory_model.phases
        )
        profile = msgspec.structs.replace(profile, memory_model=make_memory_model(phases=ended))
        growth = cache_growth(Otherwise(Predictor(profile), Held(kv_cache=Cache.FP8)).profile)
        assert growth is not None
        assert (growth.bytes_per_token, growth.evidence) == (KV_PER_TOKEN // 2, Evidence.SCALED)

    def test_float32_is_half_in_16_bits_and_a_quarter_in_fp8(self) -> None:
        for value, share in ((Cache.BITS_16, 2), (Cache.FP8, 4)):
            before, after = prefill(whole(), Held(kv_cache=value))
            assert before.parts.kv_cache_bytes == share * after.parts.kv_cache_bytes

    def test_counters_of_sliding_layers_stay(self) -> None:
        kv = (
            DtypeShare(dtype="float16", size_bytes=2_000, tensors=4),
            DtypeShare(dtype="int64", size_bytes=16, tensors=2),
        )
        profile = half()
        profile = msgspec.structs.replace(profile, precision=msgspec.structs.replace(profile.precision, kv=kv))
        found = Otherwise(Predictor(profile), Held(kv_cache=Cache.FP8)).profile.precision.kv
        assert [(share.dtype, share.size_bytes) for share in found] == [("float8_e4m3fn", 1_000), ("int64", 16)]


class TestCompute:
    SCRATCH = 1_000_000 + 2_000 * TOKENS + 3_000 * TOKENS + 100_000 * 2
    """Temporaries, activations and logits."""

    def test_float32_takes_twice_as_much_scratch_and_at_least_as_much(self) -> None:
        before, after = prefill(half(), Held(compute=Compute.FLOAT32))
        assert after.allocated_bytes - before.allocated_bytes == self.SCRATCH
        assert after.lower_bytes == before.lower_bytes
        margin = before.upper_bytes - before.allocated_bytes
        # Float16 weights meet float32 activations: one matrix of 4,000,000 elements in four bytes each.
        assert after.upper_bytes == before.upper_bytes + 16_000_000 + self.SCRATCH + margin

    def test_16_bits_take_half_and_at_most_as_much(self) -> None:
        before, after = prefill(whole(), Held(compute=Compute.BITS_16, weights=Weights.BITS_16))
        assert before.allocated_bytes - after.allocated_bytes == WEIGHTS // 2 + self.SCRATCH // 2
        assert before.upper_bytes - after.upper_bytes == WEIGHTS // 2
        assert before.lower_bytes - after.lower_bytes == WEIGHTS // 2 + self.SCRATCH // 2

    def test_loading_is_as_it_was(self) -> None:
        profile = half()
        loads = [one.at(SHAPE)[0] for one in (Predictor(profile), predictor_of(profile, Held(compute=Compute.FLOAT32)))]
        assert loads[0].phase is Phase.LOAD
        assert loads[0].parts == loads[1].parts


def test_a_float32_run_worked_out_in_16_bits_is_what_the_bfloat16_run_took() -> None:
    """Two runs of one model on one CPU: weights, cache and scratch of the float32 one at half their size, against every
    cell of the bfloat16 one that both ran. The interval holds each of its peaks, and the point is within 1 %."""
    run, other = (load_named_profile(FACTS / path) for path in (f"compared/{NAME}.float32.json", f"{NAME}.json"))
    predictor = Predictor(run)
    size = sum(share.size_bytes for share in run.precision.resident)
    changes = (Change(weights_bytes=size // 2), Change(kv_share=0.5), Change(scratch_factor=0.5))
    held = predictor
    for change in changes:
        held = Changed(held, change)  # type: ignore[assignment]
    common = {cell.key for cell in run.measured_cells}
    seen = 0
    for cell in other.measured_cells:
        if cell.key not in common or not isinstance(cell.outcome, Measured):
            continue
        found = {one.phase: one for one in held.at(Shape(*cell.key))}
        for peak in cell.outcome.phases:
            one = found[peak.phase]
            assert one.lower_bytes <= peak.allocated_bytes <= one.upper_bytes
            assert one.allocated_bytes == pytest.approx(peak.allocated_bytes, rel=0.01)
            seen += 1
    assert seen >= 10


class TestEvidence:
    def test_is_never_measured(self) -> None:
        for held in (Held(weights=Weights.FP8), Held(compute=Compute.FLOAT32), Held(kv_cache=Cache.FP8)):
            predictor = predictor_of(half(), held)
            assert predictor.profile.evidence is Evidence.SCALED
            assert {one.evidence for one in predictor.at(SHAPE)} == {Evidence.SCALED}

    def test_what_nobody_measured_stays_as_it_was(self) -> None:
        profile = half(evidence=Evidence.COMPUTED, memory_model=make_memory_model(untested=True))
        load = msgspec.structs.replace(profile.load, evidence=Evidence.COMPUTED)
        predictor = predictor_of(msgspec.structs.replace(profile, load=load), Held(kv_cache=Cache.FP8))
        assert {one.evidence for one in predictor.at(SHAPE)} == {Evidence.COMPUTED}

    def test_as_profiled_is_the_profile_itself(self) -> None:
        profile = half()
        assert isinstance(predictor_of(profile, Held()), Predictor)
        assert predictor_of(profile).profile is profile


class TestOnACard:
    CARD = make_card(
        "a100-like",
        2.0,
        compute_capability="8.0",
        device_names=("Old",),
        peak_tflops=Peaks(unsupported=("fp8", "bf16")),
    )

    def on_the_card(self, *cells: Cell) -> Profile:
        device = DeviceInfo(
            kind="cuda",
            name="Old",
            total_bytes=2 * 2**30,
            compute_capability="8.0",
            context_bytes=500_000_000,
        )
        profile = half()
        environment = msgspec.structs.replace(profile.environment, device=device)
        return msgspec.structs.replace(profile, environment=environment, cells=(*profile.cells, *cells))

    def test_fp8_weights_are_counted_at_two_bytes_where_the_card_has_no_fp8(self) -> None:
        held = predictor_of(half(), Held(weights=Weights.FP8))
        for same_card in (False, True):
            profile = predictor_of(self.on_the_card(), Held(weights=Weights.FP8)).profile if same_card else held.profile
            carrier = carrier_to(self.CARD, profile, same_card)
            assert carrier.dequantised_bytes == 100_025_000
            assert any("FP8 weights are counted at two bytes each" in remark for remark in carrier.remarks)
        assert carrier_to(make_card(), held.profile, same_card=False).dequantised_bytes == 0

    def test_one_of_two_cards_dequantises_no_more_than_it_holds(self) -> None:
        """60,000,000 B of weights on a rank, at most all of them FP8: so many more, not the 100,025,000 of all."""
        held = predictor_of(half(), Held(weights=Weights.FP8))
        rank = Changed(held, on_ranks(Shard(ranks=2, weights_bytes=60_000_000, kv_share=0.5)))
        carrier = carrier_to(self.CARD, held.profile, same_card=False, ranks=2)
        load = rank.at(SHAPE)[0]
        assert carrier.need(load).parts.weights_bytes == 120_000_000
        whole_load = held.at(SHAPE)[0]
        assert carrier.need(whole_load).parts.weights_bytes == 156_025_000 + 100_025_000

    def test_products_in_16_bits_are_missing_on_no_card(self) -> None:
        profile = predictor_of(whole(), Held(compute=Compute.BITS_16)).profile
        assert carrier_to(self.CARD, profile, same_card=False).unpromised is None

    def test_what_ran_out_of_memory_there_says_nothing_of_it_in_fp8(self) -> None:
        out = Cell(context_tokens=256, new_tokens=4, concurrency=2, outcome=OutOfMemory(phase=None, message="killed"))
        profile = self.on_the_card(out)
        assert judge(Predictor(profile), self.CARD, SHAPE, 1, same_card=True).verdict is Verdict.DOES_NOT_FIT
        smaller = predictor_of(profile, Held(kv_cache=Cache.FP8))
        assert judge(smaller, self.CARD, SHAPE, 1, same_card=True).verdict is Verdict.FITS

    def test_no_speed_is_known_of_it(self) -> None:
        profile = self.on_the_card()
        assert not isinstance(throughput_on(profile, self.CARD, Shape(512, 4, 4)), NoThroughput)
        held = predictor_of(profile, Held(kv_cache=Cache.FP8)).profile
        assert isinstance(throughput_on(held, self.CARD, Shape(512, 4, 4)), NoThroughput)


def open_of(found: tuple[Choice, ...]) -> list[str]:
    return [one.value for one in found if not one.why_not]


class TestChoices:
    def test_of_a_float16_and_of_a_float32_profile(self) -> None:
        found = choices(half())
        assert open_of(found.weights) == ["as profiled", "FP8", "4-bit"]
        assert open_of(found.compute) == ["as profiled", "float32"]
        assert open_of(found.kv_cache) == ["as profiled", "FP8"]
        found = choices(whole())
        assert open_of(found.weights) == ["as profiled", "16-bit", "FP8", "4-bit"]
        assert open_of(found.compute) == ["as profiled", "16-bit"]
        assert open_of(found.kv_cache) == ["as profiled", "16-bit", "FP8"]

    def test_each_that_does_not_apply_has_its_reason(self) -> None:
        found = choices(half())
        assert found.weights[1].why_not == "no weight is held in float32"
        assert found.compute[2].why_not == "it computed in float16 already"
        assert found.kv_cache[1].why_not == "it is held in float16, which is no more"
        assert "does not tell its linear layers" in choices(make_profile()).weights[2].why_not
        assert "too few measured cells" in choices(half(memory_model=None)).kv_cache[2].why_not
        precision = half().precision
        bare = choices(half(precision=msgspec.structs.replace(precision, kv=(), compute=())))
        assert bare.kv_cache[2].why_not == "the model keeps no KV cache"
        assert "not observed" in bare.compute[1].why_not
        mixed = msgspec.structs.replace(precision.compute[0], dtypes=("float32", "bfloat16"))
        found = choices(half(precision=msgspec.structs.replace(precision, compute=(mixed,))))
        assert found.compute[1].why_not.startswith("it computed in float32 and bfloat16")
        small = half(layout=make_layout(linear_bytes=100_000_000))
        assert choices(small).weights[2].why_not == "its linear layers take no more than that"

    def test_asking_for_one_of_them_says_so(self) -> None:
        with pytest.raises(UsageError, match="compute cannot be 16-bit: it computed in float16 already"):
            predictor_of(half(), Held(compute=Compute.BITS_16))


HELD = st.builds(
    Held, st.sampled_from([Weights.AS_PROFILED, Weights.BITS_16, Weights.FP8, Weights.BITS_4]),
    st.sampled_from([Compute.AS_PROFILED, Compute.BITS_16]),
    st.sampled_from(Cache),
)  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(HELD, st.integers(1, 4096), st.integers(1, 64))
def test_fewer_bytes_never_need_more_at_the_point_and_bounds_stay_around_it(
    held: Held, context: int, at_once: int
) -> None:
    profile, shape = whole(), Shape(context, 4, at_once)
    for before, after in zip(Predictor(profile).at(shape), predictor_of(profile, held).at(shape), strict=True):
        assert after.allocated_bytes <= before.allocated_bytes
        assert after.lower_bytes <= after.allocated_bytes <= after.upper_bytes


@given(HELD)
def test_the_precision_adds_up_to_the_weights(held: Held) -> None:
    predictor = predictor_of(whole(), held)
    resident = sum(share.size_bytes for share in predictor.profile.precision.resident)
    assert {one.parts.weights_bytes for one in predictor.at(replace(SHAPE))} == {resident}
