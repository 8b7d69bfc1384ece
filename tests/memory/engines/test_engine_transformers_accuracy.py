"""transformers' rules against what real cards printed (tests/facts/transformers), class by class."""

from __future__ import annotations

import pytest

from benchmarks import accuracy_transformers as accuracy
from benchmarks.accuracy_record import Comparison, summary

PLAIN = "Llama 4.3"


@pytest.fixture(scope="module")
def computed() -> list[Comparison]:
    return list(accuracy.comparisons())


@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_llama_2_in_16_bit(computed: list[Comparison], phase: str) -> None:
    found = summary([one for one in computed if one.figure.startswith(PLAIN) and one.figure.endswith(phase)])
    assert found.rows == 46
    assert found.mean <= 0.001
    assert found.worst <= 0.005
    assert found.inside == 46


def test_what_a_sequence_takes_under_quantised_weights() -> None:
    found = summary(list(accuracy.slopes()))
    assert found.rows == 10
    assert found.worst <= 0.005


def test_qwen_in_16_bit_on_one_card(computed: list[Comparison]) -> None:
    found = [one for one in computed if one.figure in ("Qwen2 4.38 peak", "Qwen2.5 4.46 peak", "Qwen3 4.51 decode")]
    assert len(found) == 64
    assert summary(found).median <= 0.001
    assert all(one.inside or one.why for one in found)


def test_quantised_qwen_on_one_card(computed: list[Comparison]) -> None:
    found = [one for one in computed if "," in one.figure]
    assert len(found) == 176
    assert summary(found).median <= 0.005
    assert all(one.inside or one.why for one in found)


def test_intervals_hold_and_bounds_are_kept(computed: list[Comparison]) -> None:
    everything = summary([*computed, *accuracy.slopes()])
    assert everything.inside >= 0.95 * everything.rows
    assert all(one.why for one in computed if one.broken)


def test_no_run_that_ended_out_of_memory_is_called_a_fit() -> None:
    refused = list(accuracy.refused())
    assert len(refused) == 4
    assert not any(fits for _, fits in refused)


def test_the_usual_formulas_are_further_off(computed: list[Comparison]) -> None:
    rows = [one for one in accuracy.readings() if one.plain and one.row.startswith("llm-perf")]
    ours = summary([one for one in computed if one.row.startswith("llm-perf")])
    for name in accuracy.FORMULAS:
        assert summary(list(accuracy.formula_comparisons(name, rows))).mean > 100 * ours.mean
