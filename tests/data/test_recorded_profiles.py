"""Profiles of real runs, kept as they were written: each loads, adds up, and foretells the cells it held out."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from gpufit.memory.fit import fit_memory_model
from gpufit.memory.predict import predict
from gpufit.memory.terms import Knees, Shape
from gpufit.profile.record import Measured, Profile
from gpufit.profile.store import load_profile

FILES = sorted((Path(__file__).resolve().parent.parent / "facts" / "profiles").glob("*.json"))


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def profile(request: pytest.FixtureRequest) -> Profile:
    return load_profile(request.param)


def test_there_are_recorded_profiles() -> None:
    assert len(FILES) >= 2


def test_a_recorded_run_is_whole_and_adds_up(profile: Profile) -> None:
    assert profile.complete
    assert len(profile.measured_cells) == len(profile.cells) >= 6
    for cell in profile.measured_cells:
        assert isinstance(cell.outcome, Measured)
        for peak in cell.outcome.phases:
            assert peak.parts.total_bytes == peak.allocated_bytes
            assert peak.parts.unexplained_bytes == 0


def test_its_model_is_the_one_that_its_cells_give(profile: Profile) -> None:
    model = profile.memory_model
    assert model is not None
    again = fit_memory_model(profile.cells, profile.engine.attention, Knees.of(profile))
    assert again is not None
    for stored, now in zip(model.phases, again.phases, strict=True):
        assert now.worst_miss_bytes == pytest.approx(stored.worst_miss_bytes, rel=0.01, abs=64)


def test_every_measured_cell_lies_within_its_predicted_interval(profile: Profile) -> None:
    for cell in profile.measured_cells:
        assert isinstance(cell.outcome, Measured)
        shape = Shape(cell.context_tokens, cell.new_tokens, cell.concurrency)
        predicted = {one.phase: one for one in predict(profile, shape)}
        for peak in cell.outcome.phases:
            one = predicted[peak.phase]
            assert one.lower_bytes <= peak.allocated_bytes <= one.upper_bytes


def test_held_out_cells_are_foretold_within_half_a_percent(profile: Profile) -> None:
    assert profile.memory_model is not None
    for phase in profile.memory_model.phases:
        assert phase.held_out_cells == 2
        assert phase.worst_held_out_error is not None
        assert phase.worst_held_out_error <= 0.005


BEYOND = sorted(path for path in (FILES[0].parent / "beyond").glob("*.json") if not path.stem.endswith("-4096"))
"""Small models of five architectures, random weights, measured up to 1,024 tokens and four sequences; beside each the
same model at 4,096 tokens, which no fit has seen."""


@pytest.mark.parametrize("path", BEYOND, ids=lambda path: path.stem)
def test_the_interval_holds_what_was_later_measured_four_times_beyond(path: Path) -> None:
    small, large = load_profile(path), load_profile(path.with_stem(f"{path.stem}-4096"))
    model = fit_memory_model(small.cells, small.engine.attention, Knees.of(small))
    profile = msgspec.structs.replace(small, memory_model=model)
    assert large.model.fingerprint == small.model.fingerprint
    for cell in large.measured_cells:
        assert isinstance(cell.outcome, Measured)
        predicted = {one.phase: one for one in predict(profile, Shape(4096, cell.new_tokens, cell.concurrency))}
        for peak in cell.outcome.phases:
            one = predicted[peak.phase]
            assert one.lower_bytes <= peak.allocated_bytes <= one.upper_bytes, (cell.concurrency, peak.phase)


def test_five_architectures_were_measured_beyond() -> None:
    assert len(BEYOND) == 5
