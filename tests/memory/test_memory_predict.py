from __future__ import annotations

import msgspec
import pytest
from builders import (
    BUFFERS,
    WEIGHTS,
    decode_parts,
    make_cell,
    make_memory_model,
    make_moment,
    make_parts,
    make_profile,
    prefill_parts,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from gpufit.errors import UsageError
from gpufit.memory.predict import Predictor, distance_outside, least_growth_bytes, margin_bytes, observed, predict
from gpufit.memory.terms import TERMS, Shape
from gpufit.profile.evidence import Evidence
from gpufit.profile.memory_model import Coefficient, MemoryModel, MomentModel, PartModel, PhaseModel, TermName
from gpufit.profile.peaks import Parts, Phase
from gpufit.profile.record import Profile


def make_phase(**changes: object) -> PhaseModel:
    return msgspec.structs.replace(make_memory_model().phases[0], **changes)


def test_a_profile_with_a_model_answers_load_then_every_phase() -> None:
    assert [one.phase for one in predict(make_profile(), Shape(300, 4, 3))] == [
        Phase.LOAD,
        Phase.PREFILL,
        Phase.DECODE,
    ]


def test_load_is_what_was_measured_whatever_the_shape() -> None:
    for shape in (Shape(1, 1, 1), Shape(30_000, 4, 64)):
        load = predict(make_profile(), shape)[0]
        # Weights, buffers and half a megabyte of scratch, as tests/builders says.
        assert load.allocated_bytes == load.lower_bytes == load.upper_bytes == 256_000_000 + 4_000 + 500_000
        assert load.evidence is Evidence.MEASURED


def test_the_point_at_300_tokens_and_3_sequences_is_the_sum_of_the_terms() -> None:
    _, prefill, decode = predict(make_profile(), Shape(300, 4, 3))
    # 900 tokens: cache 18,000,000; inputs 14,400; outputs 300,000; activations 2,700,000; temporaries 2,800,000.
    assert prefill.allocated_bytes == 256_004_000 + 18_000_000 + 14_400 + 300_000 + 2_700_000 + 2_800_000
    # 303 tokens x 3 = 909: cache 18,180,000; inputs 14,544; outputs 300,000; activations 15,000; temporaries 1,545,400.
    assert decode.allocated_bytes == 256_004_000 + 18_180_000 + 14_544 + 300_000 + 15_000 + 1_545_400


@pytest.mark.parametrize(
    ("shape", "distance"),
    [
        (Shape(512, 4, 4), 1.0),  # 515 cached tokens, 4 sequences, 2060 in all: the very edge
        (Shape(1, 1, 1), 1.0),
        (Shape(1027, 4, 1), 2.0),  # 1030 / 515
        (Shape(128, 4, 8), 2.0),  # 8 / 4
        (Shape(512, 4, 8), 2.0),  # 8 / 4 and 4120 / 2060
        (Shape(1027, 4, 8), 4.0),  # 8240 / 2060
    ],
)
def test_the_distance_is_the_largest_ratio_to_what_was_measured(shape: Shape, distance: float) -> None:
    assert distance_outside(make_memory_model(), shape) == distance
    expected = Evidence.MEASURED if distance == 1 else Evidence.SCALED
    assert [one.evidence for one in predict(make_profile(), shape)[1:]] == [expected] * 2


def test_beyond_the_domain_evidence_is_never_strengthened() -> None:
    profile = make_profile(evidence=Evidence.ASSUMED)
    assert predict(profile, Shape(4000, 4, 4))[1].evidence is Evidence.ASSUMED


def test_the_margin_is_twice_the_worst_miss_and_grows_with_growth_and_distance() -> None:
    seen = make_phase(worst_miss_bytes=1_000_000, largest_growth_bytes=50_000_000)
    assert margin_bytes(seen, 10_000_000, 1.0) == 2_000_000
    assert margin_bytes(seen, 50_000_000, 1.0) == 2_000_000
    assert margin_bytes(seen, 100_000_000, 1.0) == 4_000_000  # twice what was seen to grow
    assert margin_bytes(seen, 50_000_000, 2.0) == 4_000_000  # one doubling
    assert margin_bytes(seen, 100_000_000, 8.0) == 16_000_000  # 2 x (1 + 3 doublings) x 2,000,000


def test_the_lower_bound_is_a_margin_below_inside_the_domain_and_a_ratio_below_beyond_it() -> None:
    assert least_growth_bytes(10_000_000, 2_000_000, 1.0) == 8_000_000
    assert least_growth_bytes(10_000_000, 20_000_000, 1.0) == 0
    # The point times 10 / 12, as the upper bound is the point times 12 / 10.
    assert least_growth_bytes(10_000_000, 2_000_000, 2.0) == 8_333_333
    assert least_growth_bytes(10_000_000, 30_000_000, 64.0) == 2_500_000
    assert least_growth_bytes(0, 0, 64.0) == least_growth_bytes(0, 0, 1.0) == 0


@settings(max_examples=200)
@given(st.floats(0, 1), st.integers(128, 2**20), st.integers(1, 5_000))
def test_twice_as_many_sequences_never_surely_need_less_however_bad_the_fit(
    miss: float, context: int, concurrency: int
) -> None:
    model = make_memory_model()
    phases = tuple(
        msgspec.structs.replace(one, worst_miss_bytes=round(miss * one.largest_growth_bytes)) for one in model.phases
    )
    profile = make_profile(memory_model=msgspec.structs.replace(model, phases=phases))
    one, two = (predict(profile, Shape(context, 4, concurrency * times)) for times in (1, 2))
    for less, more in zip(one, two, strict=True):
        assert more.lower_bytes >= less.lower_bytes


def test_a_perfect_fit_is_still_not_trusted_beyond_a_percent_of_what_grew() -> None:
    # 2 x 1 % of 50,000,000.
    assert margin_bytes(make_phase(worst_miss_bytes=0, largest_growth_bytes=50_000_000), 1, 1.0) == 1_000_000


def test_a_phase_in_which_nothing_grew_has_no_margin_for_nothing() -> None:
    assert margin_bytes(make_phase(worst_miss_bytes=0, largest_growth_bytes=0), 0, 1.0) == 0


coefficients = st.dictionaries(st.sampled_from(sorted(TERMS)), st.floats(0, 1e6))

GROWING = Parts.NAMES[2:]
"""Weights and buffers are those of the whole model at every moment; the rest differs from moment to moment."""


@st.composite
def moments(draw: st.DrawFn, resident: tuple[PartModel, ...]) -> MomentModel:
    names = draw(st.lists(st.sampled_from(GROWING), unique=True, max_size=4))
    growing = [PartModel(part=name, coefficients=drawn_coefficients(draw)) for name in names]
    return make_moment([*resident, *growing], draw(st.sampled_from(["attention", "mlp", "lm_head"])))


def drawn_coefficients(draw: st.DrawFn) -> tuple[Coefficient, ...]:
    return tuple(Coefficient(term=term, bytes_per_unit=size) for term, size in draw(coefficients).items())


@st.composite
def models(draw: st.DrawFn) -> MemoryModel:
    resident = tuple(
        PartModel(part=name, coefficients=(Coefficient(term="constant", bytes_per_unit=float(size)),))
        for name, size in (
            ("weights_bytes", draw(st.integers(0, 10**12))),
            ("buffers_bytes", draw(st.integers(0, 10**6))),
        )
    )

    def phase(name: Phase) -> PhaseModel:
        return PhaseModel(
            phase=name,
            moments=tuple(draw(st.lists(moments(resident), min_size=1, max_size=3))),
            fitted_cells=4,
            held_out_cells=0,
            worst_fitted_error=0.0,
            worst_held_out_error=None,
            worst_miss_bytes=draw(st.integers(0, 10**9)),
            largest_growth_bytes=draw(st.integers(0, 10**12)),
        )

    return MemoryModel(
        phases=(phase(Phase.PREFILL), phase(Phase.DECODE)),
        max_cached_tokens=draw(st.integers(1, 10**5)),
        max_concurrency=draw(st.integers(1, 100)),
        max_total_tokens=draw(st.integers(1, 10**6)),
    )


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    base = make_profile(memory_model=draw(models()))
    knees = st.none() | st.integers(1, 10_000)
    model = msgspec.structs.replace(base.model, sliding_window=draw(knees), chunk_tokens=draw(knees))
    return msgspec.structs.replace(base, model=model)


lengths = st.integers(1, 2**21)
numbers = st.integers(1, 5_000)


@settings(max_examples=200)
@given(profiles(), lengths, lengths, numbers, numbers)
def test_more_sequences_or_longer_ones_never_need_less(
    profile: Profile, context: int, more_context: int, concurrency: int, more_sequences: int
) -> None:
    base = predict(profile, Shape(context, 4, concurrency))
    for larger in (
        Shape(context + more_context, 4, concurrency),
        Shape(context, 4, concurrency + more_sequences),
        Shape(context, 4 + more_context, concurrency),
    ):
        for less, more in zip(base, predict(profile, larger), strict=True):
            assert more.allocated_bytes >= less.allocated_bytes
            assert more.upper_bytes >= less.upper_bytes


@settings(max_examples=200)
@given(profiles(), lengths, numbers)
def test_the_bounds_enclose_the_point_and_the_lower_one_never_loses_the_weights(
    profile: Profile, context: int, concurrency: int
) -> None:
    for one in predict(profile, Shape(context, 4, concurrency)):
        assert 0 <= one.lower_bytes <= one.allocated_bytes <= one.upper_bytes
        assert one.allocated_bytes == one.parts.total_bytes
        assert one.lower_bytes >= one.parts.weights_bytes + one.parts.buffers_bytes


@settings(max_examples=200)
@given(profiles(), lengths, numbers)
def test_twice_as_far_from_what_was_measured_the_interval_is_no_narrower(
    profile: Profile, context: int, concurrency: int
) -> None:
    near, far = (predict(profile, Shape(context * n, 1, concurrency)) for n in (1, 2))
    for one, other in zip(near, far, strict=True):
        assert other.upper_bytes - other.allocated_bytes >= one.upper_bytes - one.allocated_bytes


def test_a_profile_without_a_model_answers_exactly_the_cells_it_measured() -> None:
    profile = make_profile(cells=(make_cell(128, 1), make_cell(512, 2)), memory_model=None)
    _, prefill, decode = predict(profile, Shape(512, 4, 2))
    assert (prefill.parts, decode.parts) == (prefill_parts(Shape(512, 4, 2)), decode_parts(Shape(512, 4, 2)))
    assert prefill.lower_bytes == prefill.allocated_bytes == prefill.upper_bytes
    assert prefill.evidence is Evidence.MEASURED


@pytest.mark.parametrize("shape", [Shape(512, 4, 1), Shape(128, 4, 2), Shape(512, 5, 2), Shape(127, 4, 1)])
def test_a_profile_without_a_model_refuses_every_other_shape_and_says_what_to_do(shape: Shape) -> None:
    profile = make_profile(cells=(make_cell(128, 1), make_cell(512, 2)), memory_model=None)
    with pytest.raises(UsageError, match=r"too few measured cells \(2\).*--resume"):
        predict(profile, shape)


def test_a_cell_that_ran_is_observed_as_it_was_whether_there_is_a_model_or_not() -> None:
    shape = Shape(512, 4, 2)
    for profile in (make_profile(), make_profile(memory_model=None)):
        seen = observed(profile, shape)
        assert seen is not None
        load, prefill, decode = seen
        assert load.parts == profile.load.parts
        assert (prefill.parts, decode.parts) == (prefill_parts(shape), decode_parts(shape))
        assert all(one.lower_bytes == one.allocated_bytes == one.upper_bytes for one in seen)
        assert observed(profile, Shape(512, 3, 2)) is None


def test_a_generating_profile_that_never_decoded_does_not_answer_for_new_tokens() -> None:
    model = make_memory_model()
    profile = make_profile(memory_model=msgspec.structs.replace(model, phases=model.phases[:1]))
    assert [one.phase for one in predict(profile, Shape(512, 1, 4))] == [Phase.LOAD, Phase.PREFILL]
    with pytest.raises(UsageError, match="saw no decoding"):
        predict(profile, Shape(512, 2, 4))


def test_a_part_is_rounded_to_the_nearest_byte_not_cut() -> None:
    part = PartModel(part="inputs_bytes", coefficients=(Coefficient(term="per_token", bytes_per_unit=0.6),))
    profile = make_profile(
        memory_model=make_memory_model(
            phases=(make_phase(moments=(make_moment((part,)),)), make_phase(phase=Phase.DECODE, moments=()))
        )
    )
    assert predict(profile, Shape(1, 1, 1))[1].parts == Parts(inputs_bytes=1)


def test_a_model_without_growth_needs_its_weights_at_any_shape() -> None:
    parts = tuple(
        PartModel(part=name, coefficients=(Coefficient(term="constant", bytes_per_unit=float(size)),))
        for name, size in (("weights_bytes", WEIGHTS), ("buffers_bytes", BUFFERS))
    )
    phases = tuple(
        make_phase(phase=phase, moments=(make_moment(parts),), largest_growth_bytes=0)
        for phase in (Phase.PREFILL, Phase.DECODE)
    )
    for one in predict(make_profile(memory_model=make_memory_model(phases=phases)), Shape(2**24, 4, 2**24))[1:]:
        assert one.parts == make_parts()
        assert one.upper_bytes == one.lower_bytes == 256_004_000


@pytest.mark.parametrize("shape", [Shape(2**40, 4, 2**40), Shape(2**40, 2**40, 1)])
def test_the_largest_question_gives_whole_numbers_not_an_overflow(shape: Shape) -> None:
    for one in predict(make_profile(), shape):
        assert isinstance(one.upper_bytes, int)
        assert one.upper_bytes >= one.allocated_bytes


def test_a_predictor_computes_each_shape_once_and_says_the_same() -> None:
    predictor = Predictor(make_profile())
    first = predictor.at(Shape(300, 4, 3))
    assert predictor.at(Shape(300, 4, 3)) is first
    assert first == predict(make_profile(), Shape(300, 4, 3))
    with pytest.raises(UsageError):
        Predictor(make_profile(memory_model=None)).at(Shape(1, 1, 1))


def part(name: str, term: TermName, size: float) -> PartModel:
    return PartModel(part=name, coefficients=(Coefficient(term=term, bytes_per_unit=size),))


def test_the_moment_that_needs_most_at_a_shape_is_the_peak_there() -> None:
    # Logits: 1,000,000 B a sequence. A cache that grows: 10,000 B a token. They are equal at 100 tokens.
    logits = make_moment([part("outputs_bytes", "per_sequence", 1_000_000)], "lm_head")
    growing = make_moment([part("kv_cache_bytes", "per_token", 10_000)], "layers.0-1.self_attn, cache update")
    phase = make_phase(moments=(logits, growing), worst_miss_bytes=0, largest_growth_bytes=0)
    profile = make_profile(memory_model=make_memory_model(phases=(phase, make_phase(phase=Phase.DECODE, moments=()))))
    for context, site, parts in (
        (50, "lm_head", Parts(outputs_bytes=3_000_000)),
        (200, "layers.0-1.self_attn, cache update", Parts(kv_cache_bytes=6_000_000)),
    ):
        prefill = predict(profile, Shape(context, 1, 3))[1]
        assert (prefill.site, prefill.parts) == (site, parts)


def test_a_curve_that_two_contexts_do_not_rule_out_raises_the_upper_bound_alone() -> None:
    line = make_moment([part("temporaries_bytes", "per_token", 1_000)])
    phase = make_phase(
        moments=(line,),
        alternatives=((part("temporaries_bytes", "mask", 2),),),
        worst_miss_bytes=0,
        largest_growth_bytes=0,
    )
    profile = make_profile(memory_model=make_memory_model(phases=(phase, make_phase(phase=Phase.DECODE, moments=()))))
    prefill = predict(profile, Shape(1_000, 1, 1))[1]
    assert prefill.allocated_bytes == 1_000_000
    assert prefill.upper_bytes == 2_000_000
