from __future__ import annotations

import itertools

import msgspec
import pytest
from builders import make_cell, make_profile
from hypothesis import given
from hypothesis import strategies as st

from gpufit.profile.cells import Cell, Failed, Measured
from gpufit.profile.evidence import Evidence, weakest
from gpufit.profile.peaks import Parts

# The order of DESIGN: a reading of this device first, a bare default last.
STRONGEST_FIRST = ["measured", "imported", "simulated", "computed", "scaled", "assumed"]


@pytest.mark.parametrize(("stronger", "weaker"), list(itertools.combinations(STRONGEST_FIRST, 2)))
def test_a_total_takes_the_weaker_of_two_kinds_of_evidence(stronger: str, weaker: str) -> None:
    assert weakest([Evidence(stronger), Evidence(weaker)]) == weaker
    assert weakest([Evidence(weaker), Evidence(stronger)]) == weaker


@given(st.lists(st.sampled_from(Evidence), min_size=1))
def test_the_evidence_of_a_total_is_that_of_one_of_its_parts_and_none_is_weaker(parts: list[Evidence]) -> None:
    total = weakest(parts)
    assert total in parts
    assert all(STRONGEST_FIRST.index(one) <= STRONGEST_FIRST.index(total) for one in parts)


def test_nothing_has_no_evidence() -> None:
    with pytest.raises(ValueError, match="empty"):
        weakest([])


def test_the_parts_are_those_of_the_accounting_identity_and_add_up() -> None:
    assert Parts.NAMES == (
        "weights_bytes",
        "buffers_bytes",
        "kv_cache_bytes",
        "inputs_bytes",
        "outputs_bytes",
        "activations_bytes",
        "temporaries_bytes",
        "rounding_bytes",
        "unexplained_bytes",
    )
    # A different power of two each: the sum is 2**9 - 1 only when every part is counted once.
    assert Parts(**{name: 2**index for index, name in enumerate(Parts.NAMES)}).total_bytes == 511


def test_only_cells_that_ran_to_their_end_count_as_measured() -> None:
    failed = Cell(context_tokens=1, new_tokens=0, concurrency=1, outcome=Failed(error="no"))
    profile = make_profile(cells=(failed, make_cell(128, 2)))
    assert [cell.key for cell in profile.measured_cells] == [(128, 4, 2)]


def test_records_are_frozen() -> None:
    outcome = make_cell().outcome
    assert isinstance(outcome, Measured)
    with pytest.raises(AttributeError):
        outcome.inputs_completed = 2  # type: ignore[misc]
    assert msgspec.structs.replace(outcome, inputs_completed=2) != outcome
