"""Two profiles part by part: bytes by arithmetic over small profiles, laws over recorded runs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from builders import BUFFERS, KV_PER_TOKEN, WEIGHTS, make_memory_model, make_profile
from model_files import REPOSITORY

from gpufit.advice.comparison import Comparison, PartDifference, PhaseDifference, compare
from gpufit.memory.terms import Shape
from gpufit.profile.cells import Cell, Measured
from gpufit.profile.evidence import Evidence
from gpufit.profile.memory_model import Coefficient, PartModel, PhaseModel
from gpufit.profile.peaks import Parts, Phase
from gpufit.profile.precision import DtypeShare
from gpufit.profile.record import Profile
from gpufit.profile.store import load_profile

RECORDED = REPOSITORY / "tests" / "facts" / "profiles"
SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1"
CELL = Shape(512, 4, 4)
"""Run by the default profile."""
INSIDE = Shape(300, 4, 2)
"""Within what it ran, and no cell of it: 600 tokens in prefill, 606 in decode."""


def recorded(name: str) -> Profile:
    return load_profile(RECORDED / f"{name}.json")


def phase_of(comparison: Comparison, phase: Phase) -> PhaseDifference:
    return next(one for one in comparison.phases if one.phase is phase)


def part_of(comparison: Comparison, phase: Phase, name: str) -> PartDifference:
    return next(one for one in phase_of(comparison, phase).parts if one.part == name)


def with_rate(part: str, bytes_per_token: float, **changes: Any) -> Profile:
    """The default profile, a part growing so much a token in its model and in the cells it measured."""

    def grown(phase: PhaseModel) -> PhaseModel:
        moments = []
        for moment in phase.moments:
            parts = tuple(
                msgspec.structs.replace(
                    one, coefficients=(Coefficient(term="per_token", bytes_per_unit=bytes_per_token),)
                )
                if one.part == part
                else one
                for one in moment.parts
            )
            moments.append(msgspec.structs.replace(moment, parts=parts))
        return msgspec.structs.replace(phase, moments=tuple(moments))

    model = make_memory_model()
    model = msgspec.structs.replace(model, phases=tuple(map(grown, model.phases)))
    cells = tuple(_with_part(cell, part, bytes_per_token) for cell in make_profile().cells)
    return make_profile(memory_model=model, cells=cells, **changes)


def _with_part(cell: Cell, part: str, bytes_per_token: float) -> Cell:
    """A cell whose part takes so much a token of each phase, its other parts as they were."""
    assert isinstance(cell.outcome, Measured)
    shape = Shape(cell.context_tokens, cell.new_tokens, cell.concurrency)
    tokens = {Phase.PREFILL: shape.context_tokens * shape.concurrency, Phase.DECODE: shape.total_tokens}
    phases = []
    for peak in cell.outcome.phases:
        parts = msgspec.structs.replace(peak.parts, **{part: round(bytes_per_token * tokens[peak.phase])})
        phases.append(msgspec.structs.replace(peak, parts=parts, allocated_bytes=parts.total_bytes))
    return msgspec.structs.replace(cell, outcome=msgspec.structs.replace(cell.outcome, phases=tuple(phases)))


def test_a_profile_beside_itself_is_the_same() -> None:
    found = compare(make_profile(), make_profile(), CELL)
    assert found.same
    assert found.differences == ()
    assert {phase.difference_bytes for phase in found.phases} == {0}
    assert not any(part.accounts or part.beyond_intervals for phase in found.phases for part in phase.parts)


def test_a_cell_that_was_run_is_compared_as_it_was() -> None:
    found = compare(make_profile(), make_profile(), CELL)
    side = phase_of(found, Phase.PREFILL).a
    tokens = 512 * 4
    allocated = WEIGHTS + BUFFERS + (KV_PER_TOKEN + 16 + 3_000 + 2_000) * tokens + 100_000 * 4 + 1_000_000
    assert side is not None
    assert (side.ran, side.evidence) == (True, Evidence.MEASURED)
    assert side.allocated_bytes == side.allocated_lower_bytes == side.allocated_upper_bytes == allocated


def test_half_the_width_of_a_cache_accounts_for_it() -> None:
    precision = make_profile().precision
    kv = (DtypeShare(dtype="float8_e4m3fn", size_bytes=1, tensors=1),)
    other = with_rate("kv_cache_bytes", KV_PER_TOKEN / 2, precision=msgspec.structs.replace(precision, kv=kv))
    part = part_of(compare(make_profile(), other, INSIDE), Phase.PREFILL, "kv_cache_bytes")
    assert (part.a_bytes, part.b_bytes, part.difference_bytes) == (20_000 * 600, 10_000 * 600, -10_000 * 600)
    (account,) = part.accounts
    assert account.words == "2 bytes an element against 1: float16 against float8_e4m3fn"
    assert account.accounted_bytes == -6_000_000
    (term,) = part.terms
    assert (term.term, term.a_bytes_per_unit, term.b_bytes_per_unit) == ("per_token", 20_000, 10_000)


def test_a_cache_of_another_slope_is_not_laid_at_its_dtype() -> None:
    precision = make_profile().precision
    kv = (DtypeShare(dtype="float8_e4m3fn", size_bytes=1, tensors=1),)
    other = with_rate("kv_cache_bytes", 2_000, precision=msgspec.structs.replace(precision, kv=kv))
    part = part_of(compare(make_profile(), other, INSIDE), Phase.PREFILL, "kv_cache_bytes")
    assert part.beyond_intervals
    assert [account.words for account in part.accounts] == ["what differs and bears on it: KV cache"]
    assert [account.accounted_bytes for account in part.accounts] == [None]


def test_weights_are_split_into_parameters_and_bytes_of_each() -> None:
    """256 MB of 128 million parameters are 2 bytes each; 540 MB of 135 million are 4: 7 million more of 2 bytes are
    14 MB, 2 bytes more for each of 135 million are 270 MB."""
    base = make_profile()
    weights = 540_000_000
    other = msgspec.structs.replace(
        base,
        model=msgspec.structs.replace(base.model, parameters=135_000_000),
        precision=msgspec.structs.replace(
            base.precision, resident=(DtypeShare(dtype="float32", size_bytes=weights, tensors=200),)
        ),
        load=msgspec.structs.replace(base.load, parts=Parts(weights_bytes=weights), allocated_bytes=weights),
    )
    part = part_of(compare(base, other, CELL), Phase.LOAD, "weights_bytes")
    assert part.difference_bytes == weights - WEIGHTS
    assert [account.accounted_bytes for account in part.accounts] == [14_000_000, 270_000_000]
    assert [account.words for account in part.accounts] == [
        "128,000,000 parameters against 135,000,000",
        "2 bytes a parameter against 4: float16 against float32",
    ]


def test_a_share_of_a_model_is_not_split_by_its_parameters() -> None:
    base = make_profile()
    half = msgspec.structs.replace(
        base,
        workload=msgspec.structs.replace(base.workload, tensor_parallel_size=2),
        load=msgspec.structs.replace(base.load, parts=Parts(weights_bytes=WEIGHTS // 2), allocated_bytes=WEIGHTS // 2),
    )
    part = part_of(compare(base, half, CELL), Phase.LOAD, "weights_bytes")
    assert [account.words for account in part.accounts] == ["what differs and bears on it: cards that share the model"]


def test_packed_weights_are_told_by_their_dtypes() -> None:
    base = make_profile()
    size = WEIGHTS // 4
    packed = msgspec.structs.replace(
        base,
        model=msgspec.structs.replace(base.model, parameters=40_000_000),
        workload=msgspec.structs.replace(base.workload, quantization="bitsandbytes-nf4"),
        precision=msgspec.structs.replace(
            base.precision, resident=(DtypeShare(dtype="uint8", size_bytes=size, tensors=200),)
        ),
        load=msgspec.structs.replace(base.load, parts=Parts(weights_bytes=size), allocated_bytes=size),
    )
    (account,) = part_of(compare(base, packed, CELL), Phase.LOAD, "weights_bytes").accounts
    # 256,000,000 B are 244.1 MiB, a quarter of them 61.0 MiB
    assert account.words == "float16 244.1 MiB against uint8 61.0 MiB"
    assert account.accounted_bytes == size - WEIGHTS


def test_a_difference_within_the_intervals_is_no_difference() -> None:
    """The default model missed no cell, so the interval of a phase is 2 % of what grew at the largest, 52,632,768 B:
    1,052,656 B either way. That of a part is 2 % of it at the largest: of activations 3,000 B x 2,048 tokens, 122,880 B
    either way. 600 tokens of 3,400 B are 240,000 B more, less than 122,880 + 139,264; of 7,000 B they are 2,400,000 B
    more, beyond both."""
    within = with_rate("activations_bytes", 3_400)
    found = compare(make_profile(), within, INSIDE)
    assert phase_of(found, Phase.PREFILL).difference_bytes == 240_000
    assert phase_of(found, Phase.PREFILL).beyond_intervals is False
    part = part_of(found, Phase.PREFILL, "activations_bytes")
    assert part.beyond_intervals is False
    assert [account.words for account in part.accounts] == ["no difference beyond the intervals"]
    beyond = compare(make_profile(), with_rate("activations_bytes", 7_000), INSIDE)
    assert phase_of(beyond, Phase.PREFILL).difference_bytes == 2_400_000
    assert phase_of(beyond, Phase.PREFILL).beyond_intervals is True
    assert [account.words for account in part_of(beyond, Phase.PREFILL, "activations_bytes").accounts] == [
        "nothing that the profiles record accounts for it"
    ]


def computed(kv: int, scratch: int) -> Profile:
    """A profile by arithmetic: so many bytes of cache and of temporaries a token."""
    profile = with_rate("kv_cache_bytes", kv)
    model = profile.memory_model
    assert model is not None
    (prefill, decode) = model.phases
    (moment,) = prefill.moments
    temporaries = PartModel(
        part="temporaries_bytes", coefficients=(Coefficient(term="per_token", bytes_per_unit=scratch),)
    )
    moment = msgspec.structs.replace(moment, parts=(*moment.parts[:-1], temporaries))
    prefill = msgspec.structs.replace(prefill, moments=(moment,))
    return msgspec.structs.replace(
        profile,
        evidence=Evidence.COMPUTED,
        cells=(),
        memory_model=msgspec.structs.replace(model, phases=(prefill, decode), untested=True),
    )


def test_the_uncertainty_of_one_part_does_not_hide_the_difference_of_another() -> None:
    """600 tokens: a cache of 20,000 B against 11,000 B a token, 12,000,000 B against 6,600,000 B, each within 2 %.
    The temporaries of B, 900,000 B a token, have an interval of 32 % of 540,000,000 B, far wider than this."""
    a, b = computed(20_000, 2_000), computed(11_000, 900_000)
    found = compare(a, b, INSIDE)
    part = part_of(found, Phase.PREFILL, "kv_cache_bytes")
    assert (part.a_bytes, part.b_bytes) == (12_000_000, 6_600_000)
    side = phase_of(found, Phase.PREFILL).b
    assert side is not None
    assert side.allocated_upper_bytes - side.allocated_bytes > 0.32 * 540_000_000
    assert part.beyond_intervals


@pytest.mark.parametrize(
    ("part", "at_most"),
    [("kv_cache_bytes", 1.02 / 0.98), ("temporaries_bytes", 1.32 / 0.68)],
)
def test_arithmetic_trusts_what_grows_to_2_percent_and_scratch_to_30_more(part: str, at_most: float) -> None:
    """Two sizes are told apart where 1 - share of the larger is above 1 + share of the smaller."""

    def told_apart(ratio: float) -> bool | None:
        kv, scratch = 20_000, 2_000
        more = (round(kv * ratio), scratch) if part == "kv_cache_bytes" else (kv, round(scratch * ratio))
        return part_of(compare(computed(kv, scratch), computed(*more), INSIDE), Phase.PREFILL, part).beyond_intervals

    assert not told_apart(at_most - 0.01)
    assert told_apart(at_most + 0.01)


def test_a_part_is_trusted_as_far_as_it_was_met_in_the_cells() -> None:
    """A model that says 3,000 B of activations a token where the cells had 4,000 B missed 2,048,000 B at the largest,
    8,192,000 B: twice that either way leaves 600 tokens of 7,000 B open, and says nothing of the cache beside them."""
    seen = with_rate("activations_bytes", 4_000)
    missed = make_profile(cells=seen.cells)
    found = compare(missed, with_rate("activations_bytes", 7_000), INSIDE)
    assert part_of(found, Phase.PREFILL, "activations_bytes").difference_bytes == 2_400_000
    assert part_of(found, Phase.PREFILL, "activations_bytes").beyond_intervals is False
    cache = compare(missed, with_rate("kv_cache_bytes", 15_000), INSIDE)
    # 3,000,000 B less; 2 % of 40,960,000 B and of 30,720,000 B at the largest are 1,433,600 B together
    assert part_of(cache, Phase.PREFILL, "kv_cache_bytes").beyond_intervals is True


def test_an_encoder_beside_a_decoder_shares_no_phase_but_loading() -> None:
    found = compare(recorded(SMOLLM2), recorded("all-MiniLM-L6-v2"), Shape(256, 8, 4))
    alone = {phase.phase: (phase.a is None, phase.b is None) for phase in found.phases}
    assert alone == {
        Phase.LOAD: (False, False),
        Phase.PREFILL: (False, True),
        Phase.DECODE: (False, True),
        Phase.FORWARD: (True, False),
    }
    prefill = phase_of(found, Phase.PREFILL)
    assert prefill.difference_bytes is prefill.beyond_intervals is None
    assert all(part.b_bytes is part.difference_bytes is None for part in prefill.parts)


PAIRS = [
    (SMOLLM2, f"compared/{SMOLLM2}.eager", Shape(1536, 8, 4)),
    (SMOLLM2, f"compared/{SMOLLM2}.float32", Shape(2048, 64, 8)),
    (f"compared/{SMOLLM2}.float32", f"compared/{SMOLLM2}.eager", Shape(700, 8, 3)),
    ("architectures/llama", "architectures/mistral", Shape(1536, 8, 4)),
    ("architectures/gemma3", "architectures/jamba", Shape(4096, 8, 2)),
    ("architectures/deepseek_v3", "architectures/qwen3_next", Shape(300, 2, 1)),
    ("architectures/t5", "architectures/bart", Shape(1024, 8, 2)),
    ("architectures/bert", "all-MiniLM-L6-v2", Shape(256, 0, 4)),
]


@pytest.mark.parametrize(("one", "other", "shape"), PAIRS)
def test_the_parts_add_up_and_the_order_only_turns_the_sign(one: str, other: str, shape: Shape) -> None:
    a, b = recorded(one), recorded(other)
    forward, backward = compare(a, b, shape), compare(b, a, shape)
    for phase, turned in zip(forward.phases, backward.phases, strict=True):
        assert phase.difference_bytes is not None
        assert sum(part.difference_bytes or 0 for part in phase.parts) == phase.difference_bytes
        assert (phase.a, phase.b) == (turned.b, turned.a)
        assert phase.difference_bytes == -(turned.difference_bytes or 0)
        assert phase.beyond_intervals == turned.beyond_intervals
        for part, back in zip(phase.parts, turned.parts, strict=True):
            assert part.beyond_intervals == back.beyond_intervals
            assert bool(part.accounts) == bool(part.difference_bytes)
    assert [(one.a, one.b) for one in forward.differences] == [(one.b, one.a) for one in backward.differences]


@pytest.mark.parametrize(("one", "other", "shape"), PAIRS)
def test_terms_tell_the_whole_of_a_part(one: str, other: str, shape: Shape) -> None:
    """Where the terms of a part are told they add up to its difference, but for those left out: each below 1 %, of
    sixteen at most."""
    told = 0
    for phase in compare(recorded(one), recorded(other), shape).phases:
        for part in phase.parts:
            if part.terms:
                told += 1
                by_terms = sum(term.b_bytes - term.a_bytes for term in part.terms)
                seen = max(part.a_bytes or 0, part.b_bytes or 0)
                assert abs(by_terms - (part.difference_bytes or 0)) <= 0.02 * seen + 0.16 * abs(by_terms) + 2
    assert told


def test_twice_the_width_is_twice_every_number_of_a_real_run() -> None:
    """SmolLM2 in float32 beside bfloat16: every number of weights, cache, activations and temporaries takes 4 bytes in
    place of 2. Token ids do not, nor do position ids, the 8 bytes a position among the temporaries."""
    found = compare(recorded(SMOLLM2), recorded(f"compared/{SMOLLM2}.float32"), Shape(1536, 8, 4))
    for phase, positions in ((Phase.PREFILL, 1536), (Phase.DECODE, 1)):
        for name in ("weights_bytes", "kv_cache_bytes", "activations_bytes", "temporaries_bytes"):
            part = part_of(found, phase, name)
            integers = 8 * positions if name == "temporaries_bytes" else 0
            assert part.b_bytes == 2 * ((part.a_bytes or 0) - integers) + integers
            accounted = sum(account.accounted_bytes or 0 for account in part.accounts)
            assert accounted == (part.difference_bytes or 0) + integers
        assert part_of(found, phase, "inputs_bytes").difference_bytes == 0


def test_eager_attention_is_found_by_its_scores() -> None:
    """Softmax in float32 over 4 sequences x 9 heads x 1536 x 1536 scores: 4 B each, 324 MiB."""
    found = compare(recorded(SMOLLM2), recorded(f"compared/{SMOLLM2}.eager"), Shape(1536, 8, 4))
    part = part_of(found, Phase.PREFILL, "temporaries_bytes")
    assert 4 * 9 * 1536**2 * 4 == 324 * 2**20
    words = [account.words for account in part.accounts]
    assert any("B's from aten::_softmax 324.0 MiB" in one for one in words)
    assert words[0] == "what differs and bears on it: attention"
    assert part.terms[0].term == "per_token_squared"
    assert part.terms[0].a_bytes_per_unit == 0
    sites = phase_of(found, Phase.PREFILL)
    assert sites.a is not None
    assert sites.b is not None
    assert sites.a.site != sites.b.site
    assert "the two peak at different places" in words
