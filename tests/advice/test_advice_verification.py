"""Predicted against measured: inside or not, within which memory, with what else differs. Figures by hand."""

from __future__ import annotations

import msgspec
import pytest
from builders import make_card, make_cell, make_parts, make_peak, make_profile, prefill_parts

from gpufit.advice.verdict import Verdict
from gpufit.advice.verification import (
    CardCeiling,
    Ending,
    Repeat,
    ceiling_of,
    predictions,
    verify,
    what_differs,
)
from gpufit.errors import UsageError
from gpufit.memory.carry import carrier_to
from gpufit.memory.terms import Shape
from gpufit.profile.cells import Measured, OutOfMemory
from gpufit.profile.environment import DeviceInfo
from gpufit.profile.evidence import Evidence
from gpufit.profile.peaks import DeviceReading, Phase, PhasePeak
from gpufit.profile.record import Profile

CELL = Shape(512, 4, 4)
PROFILE = make_profile()
CPU = PROFILE.environment.device
MARGIN = 1_052_656
"""Twice one hundredth of the 52,632,768 bytes that grew at most in prefill, in whole bytes."""
DECODE_MARGIN = 877_780
"""The same of 43,888,960."""
LOADED = 256_504_000
"""Weights 256,000,000, buffers 4,000, temporaries 500,000."""


def peaks(added: int = 0) -> tuple[PhasePeak, ...]:
    """The largest cell again, with so much more (or less) for temporaries of prefill."""
    outcome = make_cell(512, 4).outcome
    assert isinstance(outcome, Measured)
    _, decode = outcome.phases
    parts = prefill_parts(CELL)
    parts = msgspec.structs.replace(parts, temporaries_bytes=parts.temporaries_bytes + added)
    return (PROFILE.load, make_peak(Phase.PREFILL, parts, 512), decode)


def repeated(added: int = 0, device: DeviceInfo = CPU) -> Repeat:
    return Repeat(device, peaks(added))


def test_a_run_that_takes_what_was_predicted_is_inside() -> None:
    found = verify(PROFILE, CELL, repeated(), None)
    assert found.ending is Ending.INSIDE
    assert [one.phase for one in found.phases] == [Phase.LOAD, Phase.PREFILL, Phase.DECODE]
    load, prefill, decode = found.phases
    # 256,004,000 + 2,048 tokens x (20,000 + 16 + 3,000 + 2,000) + 4 x 100,000 + 1,000,000
    assert prefill.predicted_bytes == prefill.measured_bytes == 256_004_000 + 2048 * 25_016 + 400_000 + 1_000_000
    assert (prefill.predicted_lower_bytes, prefill.predicted_upper_bytes) == (
        prefill.predicted_bytes - MARGIN,
        prefill.predicted_bytes + MARGIN,
    )
    # 2,060 tokens cached x (20,000 + 16 + 600), 4 sequences x (100,000 + 5,000)
    assert decode.predicted_bytes == 256_004_000 + 2060 * 20_616 + 420_000 + 1_000_000
    assert decode.predicted_upper_bytes - decode.predicted_bytes == DECODE_MARGIN
    assert load.predicted_bytes == LOADED
    assert load.predicted_upper_bytes - LOADED == LOADED * 2 // 100
    assert {one.evidence for one in found.phases} == {Evidence.MEASURED}
    assert all(part.difference_bytes == 0 for one in found.phases for part in one.parts)


@pytest.mark.parametrize(
    ("added", "inside"), [(MARGIN, True), (MARGIN + 1, False), (-MARGIN, True), (-MARGIN - 1, False)]
)
def test_the_interval_decides_to_the_byte(added: int, inside: bool) -> None:
    found = verify(PROFILE, CELL, repeated(added), None)
    prefill = found.phases[1]
    assert (prefill.inside, prefill.difference_bytes) == (inside, added)
    assert {part.part: part.difference_bytes for part in prefill.parts if part.difference_bytes} == {
        "temporaries_bytes": added
    }
    assert found.ending is (Ending.INSIDE if inside else Ending.OUTSIDE)


def test_a_figure_of_another_device_is_scaled_to_this_one() -> None:
    found = verify(PROFILE, CELL, repeated(device=msgspec.structs.replace(CPU, name="Xeon")), None)
    assert {one.evidence for one in found.phases} == {Evidence.SCALED}


PREFILL_UPPER = 256_004_000 + 2048 * 25_016 + 1_400_000 + MARGIN
PREFILL_LOWER = PREFILL_UPPER - 2 * MARGIN


@pytest.mark.parametrize(
    ("room", "expected"),
    [
        (PREFILL_UPPER, Verdict.FITS),
        (PREFILL_UPPER - 1, Verdict.TOO_CLOSE),
        (PREFILL_LOWER, Verdict.TOO_CLOSE),
        (PREFILL_LOWER - 1, Verdict.DOES_NOT_FIT),
    ],
)
def test_out_of_memory_is_told_beside_what_was_expected_of_that_memory(room: int, expected: Verdict) -> None:
    ended = OutOfMemory(phase=Phase.PREFILL, message="no", limit_bytes=room)
    found = verify(PROFILE, CELL, Repeat(CPU, (PROFILE.load,), ended), room)
    assert (found.ending, found.expected, found.room_bytes) == (Ending.OUT_OF_MEMORY, expected, room)
    assert [one.inside for one in found.phases] == [True, None, None]
    assert found.phases[1].measured_bytes is None


def test_a_model_that_could_not_be_loaded_is_held_against_the_limit_or_nothing() -> None:
    ended = OutOfMemory(phase=Phase.LOAD, message="no")
    found = verify(PROFILE, CELL, Repeat(None, (), ended), 100)
    assert (found.expected, found.room_bytes) == (Verdict.DOES_NOT_FIT, 100)
    found = verify(PROFILE, CELL, Repeat(None, (), ended), None)
    assert (found.expected, found.room_bytes) == (Verdict.UNKNOWN, None)


def test_without_a_limit_the_room_is_what_others_and_the_context_leave() -> None:
    device = msgspec.structs.replace(CPU, total_bytes=1000, used_before_bytes=300, context_bytes=50)
    assert verify(PROFILE, CELL, repeated(device=device), None).room_bytes == 650


def test_no_decoding_is_expected_where_no_second_token_is_made() -> None:
    assert [one.phase for one in predictions(PROFILE, Shape(512, 1, 4))] == [Phase.LOAD, Phase.PREFILL]
    assert [one.phase for one in predictions(PROFILE, CELL)] == [Phase.LOAD, Phase.PREFILL, Phase.DECODE]


def with_reserved(profile: Profile, size: int) -> Profile:
    reading = DeviceReading(source="torch.cuda.memory_stats", quantity="reserved", size_bytes=size)
    cells = []
    for cell in profile.cells:
        assert isinstance(cell.outcome, Measured)
        phases = tuple(msgspec.structs.replace(peak, readings=(reading,)) for peak in cell.outcome.phases)
        cells.append(msgspec.structs.replace(cell, outcome=msgspec.structs.replace(cell.outcome, phases=phases)))
    return msgspec.structs.replace(profile, cells=tuple(cells))


H100 = DeviceInfo(kind="cuda", name="H100", total_bytes=80 * 2**30, compute_capability="9.0", context_bytes=500_000_000)


def on_h100(profile: Profile) -> Profile:
    return msgspec.structs.replace(profile, environment=msgspec.structs.replace(profile.environment, device=H100))


def test_reserved_stands_beside_allocated_on_a_card_where_the_cell_was_run() -> None:
    profile = with_reserved(on_h100(PROFILE), 400_000_000)
    found = verify(profile, CELL, repeated(device=H100), None)
    assert [one.reserved_predicted_bytes for one in found.phases] == [None, 400_000_000, 400_000_000]
    assert [one.reserved_measured_bytes for one in found.phases] == [None, None, None]
    other = verify(profile, Shape(300, 4, 4), repeated(device=H100), None)
    assert [one.reserved_predicted_bytes for one in other.phases] == [None, None, None]
    on_cpu = verify(profile, CELL, repeated(), None)
    assert [one.reserved_predicted_bytes for one in on_cpu.phases] == [None, None, None]


@pytest.mark.parametrize(
    ("measured", "inside"), [(536_870_912 + 166_000_000, True), (536_870_912 + 166_000_001, False)]
)
def test_the_driver_context_may_be_no_more_than_the_highest_known(measured: int, inside: bool) -> None:
    # A card of 500 MiB of context, 512 MiB at most; 99 MB of kernels, 166 MB at most.
    carrier = carrier_to(make_card(), PROFILE, same_card=False)
    device = msgspec.structs.replace(H100, context_bytes=measured)
    found = verify(on_h100(PROFILE), CELL, repeated(device=device), None, carrier)
    assert found.context is not None
    assert found.context.predicted_bytes == 524_288_000 + 99_000_000
    assert (found.context.measured_bytes, found.context.inside) == (measured, inside)
    assert found.ending is (Ending.INSIDE if inside else Ending.OUTSIDE)


def test_a_cards_ceiling_is_its_capacity_less_context_and_kernels() -> None:
    context = 524_288_000 + 99_000_000
    assert ceiling_of(make_card(), PROFILE, same_card=False) == CardCeiling(
        card="x1-80gb", capacity_bytes=80 * 2**30, context_bytes=context, limit_bytes=80 * 2**30 - context
    )
    # Measured on the very card: its own context.
    assert ceiling_of(make_card(), on_h100(PROFILE), same_card=True).context_bytes == 500_000_000


def test_a_card_of_unknown_memory_has_no_ceiling() -> None:
    with pytest.raises(UsageError, match="nobody has reported what software sees on x1-80gb"):
        ceiling_of(make_card(capacity_gib=None), PROFILE, same_card=False)


def test_what_differs_bears_on_memory_and_is_not_that_one_cell_was_asked_for() -> None:
    workload = msgspec.structs.replace(PROFILE.workload, contexts_tokens=(512,), concurrencies=(4,))
    assert what_differs(PROFILE, make_profile(workload=workload, created_at="2027-01-01T00:00:00Z")) == ()
    engine = msgspec.structs.replace(PROFILE.engine, version="5.26.0")
    other = msgspec.structs.replace(PROFILE.environment, device=msgspec.structs.replace(CPU, name="Xeon"))
    found = what_differs(PROFILE, make_profile(engine=engine, environment=other))
    assert [(one.what, one.a, one.b) for one in found] == [
        ("transformers release", "5.24.0", "5.26.0"),
        ("device", "AMD EPYC (cpu)", "Xeon (cpu)"),
    ]


def test_a_device_is_no_difference_from_a_profile_of_none() -> None:
    nowhere = DeviceInfo(kind="none", name="no device", total_bytes=0)
    profile = make_profile(environment=msgspec.structs.replace(PROFILE.environment, device=nowhere))
    assert what_differs(profile, PROFILE) == ()


def test_a_cell_without_a_model_or_a_figure_cannot_be_verified() -> None:
    with pytest.raises(UsageError, match="too few measured cells"):
        verify(make_profile(memory_model=None), Shape(300, 4, 4), repeated(), None)


def test_parts_that_moved_within_the_interval_are_shown_and_no_failure() -> None:
    moved = make_parts(temporaries_bytes=400_000, buffers_bytes=104_000)
    repeat = Repeat(CPU, (make_peak(Phase.LOAD, moved), *peaks()[1:]))
    found = verify(PROFILE, CELL, repeat, None)
    assert found.ending is Ending.INSIDE
    assert {part.part: part.difference_bytes for part in found.phases[0].parts if part.difference_bytes} == {
        "buffers_bytes": 100_000,
        "temporaries_bytes": -100_000,
    }
