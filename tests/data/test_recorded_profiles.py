"""Profiles of real runs, kept as they were written: each loads, adds up, and foretells cells that its fit has not seen.

`tests/facts/profiles` has the two real models; `compared` in it one of them, run in float32 and with eager attention;
`architectures` the small models of tests/architectures.py, each with NAME.unseen.json beside it: cells inside and
beyond the domain that no fit has seen, peaks alone.
`benchmarks/architectures.py --keep` records them.
"""

from __future__ import annotations

import statistics
from pathlib import Path

import msgspec
import pytest

from gpufit.memory.fit import fit_memory_model
from gpufit.memory.growth import cache_growth
from gpufit.memory.predict import predict
from gpufit.memory.terms import Knees, Shape
from gpufit.profile.cells import Measured
from gpufit.profile.memory_model import MemoryModel
from gpufit.profile.peaks import END_OF_PHASE, PhasePeak
from gpufit.profile.record import Profile
from gpufit.profile.store import load_profile

FOLDER = Path(__file__).resolve().parent.parent / "facts" / "profiles"
REAL = sorted(FOLDER.glob("*.json"))
UNSEEN = sorted((FOLDER / "architectures").glob("*.unseen.json"))
COMPARED = sorted((FOLDER / "compared").glob("*.json"))
SMALL = [path.with_name(path.name.replace(".unseen", "")) for path in UNSEEN]


@pytest.fixture(params=[*REAL, *COMPARED, *SMALL], ids=lambda path: path.stem)
def profile(request: pytest.FixtureRequest) -> Profile:
    return load_profile(request.param)


def modelled(profile: Profile) -> MemoryModel:
    assert profile.memory_model is not None
    return profile.memory_model


def test_both_real_models_and_every_architecture_are_recorded() -> None:
    from architectures import ARCHITECTURES

    assert [path.stem for path in REAL] == ["SmolLM2-135M-Instruct.Q4_1", "all-MiniLM-L6-v2"]
    assert {path.stem for path in SMALL} == set(ARCHITECTURES)


def test_a_recorded_run_is_whole_and_adds_up(profile: Profile) -> None:
    assert profile.complete
    assert len(profile.measured_cells) >= 8
    for cell in profile.measured_cells:
        assert isinstance(cell.outcome, Measured)
        for peak in cell.outcome.phases:
            assert peak.parts.total_bytes == peak.allocated_bytes
            assert peak.parts.unexplained_bytes == 0
            moments = {moment.site: moment.parts for moment in peak.moments}
            assert moments[peak.site] == peak.parts
            assert max(parts.total_bytes for parts in moments.values()) == peak.allocated_bytes
            assert END_OF_PHASE in moments


def test_its_model_is_the_one_that_its_cells_give(profile: Profile) -> None:
    again = fit_memory_model(profile.cells, profile.engine.attention, Knees.of(profile))
    assert again is not None
    refitted = msgspec.structs.replace(profile, memory_model=again)
    reach = modelled(profile).max_cached_tokens
    # Which terms of nearly equal worth are taken may hang on a solver's last digits; what they say inside may not, and
    # far beyond no more than the least error that an interval allows for.
    for shape, close in ((Shape(reach // 2, 8, 3), 1e-3), (Shape(reach, 8, 4), 1e-3), (Shape(4 * reach, 8, 16), 1e-2)):
        for stored, now in zip(predict(profile, shape), predict(refitted, shape), strict=True):
            assert now.phase is stored.phase
            assert now.allocated_bytes == pytest.approx(stored.allocated_bytes, rel=close)
            assert now.upper_bytes == pytest.approx(stored.upper_bytes, rel=close)
    for stored, now in zip(modelled(profile).phases, again.phases, strict=True):
        # scipy 1.11 meets gpt_oss closer than later releases; none may meet a model worse than it was recorded with.
        assert now.worst_miss_bytes <= stored.worst_miss_bytes * 1.01 + 64


def test_every_measured_cell_lies_within_its_predicted_interval(profile: Profile) -> None:
    for cell in profile.measured_cells:
        assert isinstance(cell.outcome, Measured)
        assert_held(profile, Shape(*cell.key), cell.outcome.phases)


def assert_held(profile: Profile, shape: Shape, peaks: tuple[PhasePeak, ...]) -> None:
    predicted = {one.phase: one for one in predict(profile, shape)}
    for peak in peaks:
        one = predicted[peak.phase]
        assert one.lower_bytes <= peak.allocated_bytes <= one.upper_bytes, (shape, peak.phase)


def errors(profile: Profile, unseen: Profile) -> list[float]:
    """|predicted - measured| / measured of `allocated`, for every phase of every unseen cell."""
    found = []
    for cell in unseen.measured_cells:
        assert isinstance(cell.outcome, Measured)
        predicted = {one.phase: one.allocated_bytes for one in predict(profile, Shape(*cell.key))}
        found += [abs(predicted[one.phase] / one.allocated_bytes - 1) for one in cell.outcome.phases]
    return found


def test_held_out_cells_are_foretold_within_two_percent(profile: Profile) -> None:
    for phase in modelled(profile).phases:
        assert phase.held_out_cells == 2
        assert phase.worst_held_out_error is not None
        assert phase.worst_held_out_error <= 0.02


def test_held_out_cells_are_foretold_within_half_a_percent_by_the_median() -> None:
    worst = [phase.worst_held_out_error for path in [*REAL, *SMALL] for phase in modelled(load_profile(path)).phases]
    assert statistics.median(error for error in worst if error is not None) <= 0.005


@pytest.mark.parametrize("path", UNSEEN, ids=lambda path: path.name.partition(".")[0])
def test_the_interval_holds_cells_that_no_fit_has_seen_and_the_point_is_close(path: Path) -> None:
    profile, unseen = load_profile(path.with_name(path.name.replace(".unseen", ""))), load_profile(path)
    assert unseen.model.fingerprint == profile.model.fingerprint
    assert not {cell.key for cell in unseen.measured_cells} & {cell.key for cell in profile.measured_cells}
    for cell in unseen.measured_cells:
        assert isinstance(cell.outcome, Measured)
        assert_held(profile, Shape(*cell.key), cell.outcome.phases)
    assert statistics.median(errors(profile, unseen)) <= 0.005
    assert max(errors(profile, unseen)) <= 0.02


def test_the_caches_grow_as_arithmetic_says() -> None:
    def growth(name: str) -> tuple[int, int, int | None, int]:
        found = cache_growth(load_profile(FOLDER / "architectures" / f"{name}.json"))
        assert found is not None
        return (
            found.state_bytes_per_sequence,
            found.bytes_per_token,
            found.knee_tokens,
            found.bytes_per_token_within_knee,
        )

    # Layers x (key, value) x KV heads x head size x two bytes; windows of 384 tokens.
    assert growth("llama") == (0, 2 * 2 * 2 * 16 * 2, None, 0)
    assert growth("gpt2") == (0, 2 * 2 * 4 * 16 * 2, None, 0)
    assert growth("mistral") == (0, 0, 384, 2 * 2 * 2 * 16 * 2)
    assert growth("gemma3") == (0, 1 * 2 * 2 * 32 * 2, 384, 5 * 2 * 2 * 32 * 2)
    # Latent attention: 16 latent and 8 rotary numbers a layer.
    assert growth("deepseek_v3") == (0, 2 * (16 + 8) * 2, None, 0)
    # States in float32, and four tokens of what the convolution reads in bfloat16: 8 x 16 + 2 x 16 channels in Mamba 2,
    # 2 x 64 in Mamba, 2 x 2 x 16 + 4 x 16 in the gated delta net. Then the layer of attention among three others.
    assert growth("mamba2") == (2 * (8 * 16 * 16 * 4 + 160 * 4 * 2), 0, None, 0)
    assert growth("jamba") == (3 * (128 * 8 * 4 + 128 * 4 * 2), 2 * 2 * 16 * 2, None, 0)
    assert growth("qwen3_next") == (3 * (4 * 16 * 16 * 4 + 128 * 4 * 2), 2 * 2 * 32 * 2, None, 0)
    # 1,500 positions of what was heard in the cross-attention cache; 3 decoder layers, 4 heads of 16.
    assert growth("whisper") == (1500 * 3 * 2 * 4 * 16 * 2, 3 * 2 * 4 * 16 * 2, None, 0)
    assert growth("gpt_oss") == (0, 1 * 2 * 2 * 32 * 2, 384, 1 * 2 * 2 * 32 * 2)
