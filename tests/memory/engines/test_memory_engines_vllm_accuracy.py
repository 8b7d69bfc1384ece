"""The targets, figure by figure, against what cards printed: tests/facts/vllm."""

from __future__ import annotations

import pytest

from benchmarks import accuracy_vllm


@pytest.fixture(scope="module")
def report():
    return accuracy_vllm.compare()


def test_weights_in_16_bit_agree_to_a_thousandth(report) -> None:
    assert len(report.of("weights")) >= 20
    assert report.median_error("weights") <= 0.001
    assert all(one.why for one in report.of("weights") if abs(one.error) > 0.001)


def test_quantised_weights_agree_to_two_hundredths(report) -> None:
    assert report.median_error("weights_quantised") <= 0.02
    assert all(one.why for one in report.of("weights_quantised") if abs(one.error) > 0.02)


def test_kv_bytes_a_token_are_exact_within_the_printed_pools_rounding(report) -> None:
    rates = report.of("kv_rate")
    assert len(rates) >= 12
    assert len(report.of("kv_bytes", "sequence")) >= 5
    assert all(one.inside for one in report.of("kv_bytes", "sequence"))
    assert all(one.inside or one.why for one in rates)


def test_pools_of_several_kinds_of_layers_are_counted_as_the_log_counts_them(report) -> None:
    grouped = report.of("kv_rate_grouped")
    assert grouped
    assert all(one.inside or one.why for one in grouped)
    assert all(one.inside or one.why for one in report.of("concurrency"))


def test_the_activation_peak_of_a_known_batch_is_near(report) -> None:
    peaks = report.of("activation")
    assert report.median_error("activation") <= 0.01
    assert all(one.why for one in peaks if abs(one.error) > 0.05)


def test_kv_tokens_follow_from_the_rules_alone(report) -> None:
    assert len(report.of("kv_tokens")) >= 13
    assert report.median_error("kv_tokens") <= 0.03
    assert all(one.why for one in report.of("kv_tokens", "kv_pool") if abs(one.error) > 0.03)


def test_intervals_hold_what_was_printed(report) -> None:
    figures = ("weights", "weights_quantised", "activation", "non_torch", "kv_pool", "kv_tokens")
    explained = [one for one in report.of(*figures) if one.inside or one.why]
    assert explained == report.of(*figures)
    assert report.coverage(*figures) >= 0.95
    assert report.coverage("weights", "weights_quantised") == 1
    assert [one.row for one in report.comparisons if one.broken] == []


def test_no_start_that_failed_is_promised_and_none_that_ran_is_refused(report) -> None:
    assert sum(not one.started for one in report.verdicts) >= 6
    assert [one.start for one in report.verdicts if one.false_promise] == []
    assert report.false_refusals == []


def test_the_worst_rows_come_first_with_their_reasons(report) -> None:
    worst = report.worst(3, "weights", "weights_quantised")
    assert worst[0].row == "A016"
    assert "AWQ kernel and layout of its own" in worst[0].why
    assert abs(worst[0].error) >= abs(worst[1].error) >= abs(worst[2].error)
    assert all(line.unexplained == 0 for line in report.summary())


def test_every_start_of_the_data_can_be_worked_out(report) -> None:
    assert report.refused == {}
