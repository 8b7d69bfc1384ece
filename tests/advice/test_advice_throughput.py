"""Rates and costs: every figure by hand from the cell's own wall time."""

from __future__ import annotations

import msgspec
import pytest
from builders import make_card, make_cell, make_profile
from hypothesis import given
from hypothesis import strategies as st

from gpufit.advice.throughput import (
    NoThroughput,
    Throughput,
    cost_per_million_tokens,
    cost_per_thousand_inputs,
    throughput_on,
)
from gpufit.catalog.card_parts import CardMemory
from gpufit.memory.terms import Shape
from gpufit.profile.cells import Cell, Skipped
from gpufit.profile.environment import DeviceInfo
from gpufit.profile.evidence import Evidence
from gpufit.profile.record import Profile

GIB = 2**30
CARD = make_card("x1-80gb", device_names=("MAKER X1",), pci_ids=("10de:1111",))
OTHER = make_card("x2-80gb", device_names=("MAKER X2",), pci_ids=("10de:2222",))


def timed_cell(context: int, new_tokens: int, concurrency: int, wall_seconds: float) -> Cell:
    cell = make_cell(context, concurrency, new_tokens)
    outcome = msgspec.structs.replace(cell.outcome, wall_seconds=wall_seconds)
    return msgspec.structs.replace(cell, outcome=outcome)


CELLS = (timed_cell(512, 128, 8, 4.0), timed_cell(1024, 128, 4, 4.0), timed_cell(1024, 128, 8, 6.4))


def card_profile(
    cells: tuple[Cell, ...] = CELLS, pci_id: str | None = "10de:1111", size: int = 80 * GIB, **changes: object
) -> Profile:
    profile = make_profile(cells=cells, **changes)
    device = DeviceInfo(kind="cuda", name="MAKER X1", total_bytes=size, pci_id=pci_id)
    environment = msgspec.structs.replace(profile.environment, device=device)
    return msgspec.structs.replace(profile, environment=environment)


def rate(profile: Profile, shape: Shape) -> Throughput:
    found = throughput_on(profile, CARD, shape)
    assert isinstance(found, Throughput), found
    return found


def refusal(profile: Profile, shape: Shape | None = None) -> str:
    found = throughput_on(profile, CARD, shape or Shape(1024, 128, 8))
    assert isinstance(found, NoThroughput), found
    return found.why


def test_the_rate_of_a_measured_cell_is_what_it_completed_over_its_whole_wall_time() -> None:
    found = rate(card_profile(), Shape(1024, 128, 8))
    assert found.evidence is Evidence.MEASURED
    assert found.inputs_per_second == pytest.approx(8 / 6.4)
    assert found.generated_tokens_per_second == pytest.approx(8 * 128 / 6.4)
    assert found.prompt_tokens_per_second == pytest.approx(8 * 1024 / 6.4)
    assert found.how == (
        "8 inputs x 128 new tokens in 6.40 s, prompts included: the cell of context 1k, 128 new tokens, 8 at once"
    )


def test_a_shape_that_was_not_measured_takes_the_best_cell_that_is_no_easier() -> None:
    """For 800 tokens and 12 at once, 512 is too short a prompt; 4 in 4.0 s is 1.00 a second, 8 in 6.4 s is 1.25."""
    found = rate(card_profile(), Shape(800, 100, 12))
    assert found.cell == Shape(1024, 128, 8)
    assert found.evidence is Evidence.SCALED
    assert found.inputs_per_second == pytest.approx(1.25)
    # The tokens are those that were asked for, not the cell's.
    assert found.generated_tokens_per_second == pytest.approx(1.25 * 100)
    assert found.prompt_tokens_per_second == pytest.approx(1.25 * 800)
    assert found.how == (
        "8 inputs in 6.40 s, prompts included: the cell of context 1k, 128 new tokens, 8 at once, no easier an input "
        "than these of 100 new tokens"
    )


def test_a_measured_cell_comes_before_a_faster_harder_one() -> None:
    cells = (timed_cell(512, 16, 4, 8.0), timed_cell(1024, 16, 4, 2.0))
    assert rate(card_profile(cells), Shape(512, 16, 4)).wall_seconds == 8.0


@pytest.mark.parametrize("shape", [Shape(1025, 128, 8), Shape(1024, 129, 8), Shape(1024, 128, 3)])
def test_no_cell_that_is_easier_than_what_is_asked_is_used(shape: Shape) -> None:
    assert "no timed cell" in refusal(card_profile(), shape)


def test_cells_that_did_not_run_or_were_not_timed_have_no_rate() -> None:
    untimed = timed_cell(1024, 128, 8, 1.0)
    untimed = msgspec.structs.replace(untimed, outcome=msgspec.structs.replace(untimed.outcome, wall_seconds=None))
    skipped = msgspec.structs.replace(untimed, outcome=Skipped(why="no need"))
    assert "no timed cell" in refusal(card_profile((untimed, skipped)))


def test_speed_is_never_carried_to_another_card() -> None:
    found = throughput_on(card_profile(), OTHER, Shape(1024, 128, 8))
    assert found == NoThroughput("no throughput: measured on MAKER X1, and speed is never carried to another card")


def test_a_slice_of_a_card_is_not_the_card() -> None:
    """40 GiB under the PCI id of a card of 80 GiB is a MIG or vGPU slice."""
    assert "MIG or vGPU slice" in refusal(card_profile(size=40 * GIB))
    sized = make_card("x1-80gb", device_names=("MAKER X1",), pci_ids=("10de:1111",), memory=CardMemory(nominal_gb=80))
    found = throughput_on(card_profile(), sized, Shape(1024, 128, 8))
    assert isinstance(found, NoThroughput)
    assert "were not checked" in found.why


def test_only_what_ran_on_a_card_has_a_rate() -> None:
    assert "measured on a CPU (AMD EPYC)" in refusal(make_profile())
    for evidence in (Evidence.SIMULATED, Evidence.COMPUTED, Evidence.IMPORTED):
        assert f"the profile is {evidence}, not measured" in refusal(card_profile(evidence=evidence))


def test_an_encoder_generates_nothing_and_is_priced_by_its_prompt_tokens() -> None:
    found = rate(card_profile((timed_cell(256, 0, 32, 0.5),)), Shape(256, 0, 32))
    assert found.generated_tokens_per_second is None
    assert found.inputs_per_second == 64
    assert (found.priced_tokens, found.priced_tokens_per_second) == ("prompt", 64 * 256)
    assert found.how == "32 inputs x 256 prompt tokens in 0.500 s: the cell of context 256, 32 at once"


def test_copies_add_up_and_are_no_longer_measured() -> None:
    one = rate(card_profile(), Shape(1024, 128, 8))
    three = one.of_copies(3)
    assert three.inputs_per_second == pytest.approx(3 * 8 / 6.4)
    assert three.evidence is Evidence.SCALED
    assert three.how.startswith("3 copies x 8 inputs x 128 new tokens")


def test_costs_by_hand() -> None:
    """1.25 inputs a second are 756,000 in 7 days (604,800 s), and 128 tokens each 96,768,000: for 378.00, a thousand
    inputs cost 378 / 756 = 0.50, and a million tokens 378 / 96.768 = 3.90625."""
    found = rate(card_profile(), Shape(1024, 128, 8))
    assert cost_per_thousand_inputs(378.0, 7, found) == pytest.approx(0.5)
    assert cost_per_million_tokens(378.0, 7, found) == pytest.approx(3.90625)


prices = st.floats(0.01, 1e6)


@given(prices, prices, st.sampled_from([3, 7, 30]), st.integers(1, 64))
def test_cost_follows_price_and_two_copies_at_twice_the_price_cost_the_same(
    cheap: float, dear: float, term: int, copies: int
) -> None:
    found = rate(card_profile(), Shape(1024, 128, 8))
    one = cost_per_million_tokens(cheap, term, found)
    assert cost_per_million_tokens(copies * cheap, term, found.of_copies(copies)) == pytest.approx(one)
    assert (cost_per_million_tokens(dear, term, found) > one) == (dear > cheap) or dear == pytest.approx(cheap)
