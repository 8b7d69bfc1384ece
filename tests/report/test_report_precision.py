"""The precision document: the columns as found and as switched, and what each position comes to."""

from __future__ import annotations

from builders import make_layout, make_offers, make_profile

from gpufit import flows
from gpufit.catalog.record import Catalog
from gpufit.flows_curve import precision
from gpufit.memory.held import Held, Weights
from gpufit.memory.terms import Shape
from gpufit.profile.evidence import Evidence
from gpufit.profile.peaks import Phase
from gpufit.report.precision import PrecisionDocument

PREFILL = 257_004_000 + 4 * 100_000 + 2048 * 25_016
"""Of the default profile at 512 x 4."""


def make_precision(held: Held | None = None) -> PrecisionDocument:
    profile = make_profile(layout=make_layout())
    answer = flows.judge_cards(profile, "p.json", Shape(512, 4, 4), Catalog(cards=()), make_offers(), (), held)
    return precision(profile, answer, held)


def test_each_position_has_the_peak_it_comes_to_or_the_reason_it_does_not_apply() -> None:
    found = {(one.switch, one.value): one for one in make_precision().choices}
    assert len(found) == 4 + 3 + 3
    as_is = found["weights", "as profiled"]
    assert (as_is.allocated_bytes, as_is.phase, as_is.evidence) == (PREFILL, Phase.PREFILL, Evidence.MEASURED)
    fp8 = found["weights", "FP8"]
    assert fp8.allocated_bytes == PREFILL - 200_000_000 + 100_025_000
    assert fp8.evidence is Evidence.SCALED
    assert found["kv_cache", "FP8"].allocated_bytes == PREFILL - 2048 * 10_000
    wide = found["weights", "16-bit"]
    assert (wide.allocated_bytes, wide.evidence, wide.why_not) == (None, None, "no weight is held in float32")
    assert [one.value for one in found.values() if one.chosen] == ["as profiled"] * 3


def test_others_are_worked_out_with_what_is_switched_already() -> None:
    document = make_precision(Held(weights=Weights.FP8))
    found = {(one.switch, one.value): one for one in document.choices}
    assert found["kv_cache", "FP8"].allocated_bytes == PREFILL - 200_000_000 + 100_025_000 - 2048 * 10_000
    assert found["weights", "FP8"].chosen
    assert document.as_profiled.resident[0].dtype == "float16"
    assert document.now.resident[0].dtype == "float8_e4m3fn"
    assert document.rules[0].startswith("weights in FP8")
    assert make_precision().rules == ()
    assert make_precision().now == make_precision().as_profiled
