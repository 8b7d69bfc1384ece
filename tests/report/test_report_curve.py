"""The curve document of a profile whose bytes are arithmetic, and its words."""

from __future__ import annotations

import json

import msgspec
from builders import TODAY, make_card, make_cell, make_memory_model, make_offers, make_profile

from gpufit import flows
from gpufit.advice.curve import Axis
from gpufit.advice.limits import CEILING
from gpufit.catalog.record import Catalog
from gpufit.flows_curve import curve
from gpufit.memory.terms import Shape
from gpufit.profile.cells import Cell, OutOfMemory
from gpufit.profile.evidence import Evidence
from gpufit.profile.peaks import Phase
from gpufit.profile.record import Profile
from gpufit.report.curve import CurveDocument
from gpufit.report.curve_text import (
    CROSSING_HEADERS,
    crossing_cells,
    crossing_sentence,
    distinct_ceilings,
    domain_sentence,
    place_text,
)

CATALOG = Catalog(
    cards=(
        make_card("small-2gb", 2.0),
        make_card("twin-2gb", 2.0),
        make_card("large-80gb", 80.0),
        make_card("tiny-1gb", 0.5),
        make_card("unknown", None),
    )
)
SHAPE = Shape(512, 4, 4)


def make_curve(axis: Axis = Axis.CONTEXT, shape: Shape = SHAPE, profile: Profile | None = None) -> CurveDocument:
    profile = profile or make_profile()
    answer = flows.fit(profile, "p.json", shape, CATALOG, make_offers(today=TODAY))
    return curve(profile, answer, axis, CATALOG)


def card_of(document: CurveDocument, name: str) -> int:
    return [card.card for card in document.cards].index(name)


def test_each_phase_has_a_line_through_the_scenario_with_its_own_bytes() -> None:
    document = make_curve()
    assert [line.phase for line in document.lines] == [Phase.LOAD, Phase.PREFILL, Phase.DECODE]
    prefill = next(line for line in document.lines if line.phase is Phase.PREFILL)
    at = {point.at: point for point in prefill.points}
    # weights, buffers, fixed temporaries, 4 logits, 4 x 512 tokens of 25,016 B
    assert at[512].allocated_bytes == 256_004_000 + 1_000_000 + 400_000 + 2048 * 25_016
    assert at[512].evidence is Evidence.MEASURED
    assert prefill.points[-1].evidence is Evidence.SCALED
    assert document.evidence is Evidence.SCALED
    assert [point.at for point in prefill.points] == sorted(at)


def test_the_axis_reaches_from_what_was_run_to_twice_the_farthest_crossing_or_the_limit() -> None:
    profile = make_profile(memory_model=make_memory_model(min_context_tokens=128))
    along, across = make_curve(profile=profile), make_curve(Axis.CONCURRENCY, profile=profile)
    assert along.lines[1].points[0].at == 128
    assert along.lines[1].points[-1].at == along.limit == 32_765
    assert across.limit is None
    farthest = max(card.possibly_up_to or 0 for card in across.cards)
    assert across.lines[1].points[-1].at == 2 * farthest
    assert (across.at, along.at) == (4, 512)


def test_what_surely_fits_is_the_answers_own_figure() -> None:
    answer = flows.fit(make_profile(), "p.json", SHAPE, CATALOG, make_offers())
    for axis, key in ((Axis.CONTEXT, "max_context_tokens"), (Axis.CONCURRENCY, "max_concurrency")):
        for card, row in zip(make_curve(axis).cards, answer.cards, strict=True):
            assert (card.card, card.surely_up_to) == (row.card, getattr(row, key))


def test_cells_on_the_curve_are_named_and_others_are_not() -> None:
    out = Cell(context_tokens=2048, new_tokens=4, concurrency=4, outcome=OutOfMemory(phase=None, message="killed"))
    profile = make_profile()
    document = make_curve(profile=msgspec.structs.replace(profile, cells=(*profile.cells, out)))
    assert [(cell.at, cell.outcome) for cell in document.cells] == [
        (128, "measured"), (512, "measured"), (2048, "out_of_memory"),
    ]  # fmt: skip
    assert document.cells[1].allocated_bytes == 256_004_000 + 1_000_000 + 400_000 + 2048 * 25_016
    assert document.cells[2].allocated_bytes is None


def test_a_profile_without_a_model_has_its_cells_alone() -> None:
    profile = make_profile(memory_model=None, cells=(make_cell(128, 4), make_cell(512, 4)))
    document = make_curve(profile=profile)
    assert [point.at for point in document.lines[1].points] == [128, 512]
    large = document.cards[card_of(document, "large-80gb")]
    assert large.estimate_up_to is None
    assert crossing_sentence(document, large).endswith(
        "the profile answers only for the cells it ran, so no crossing is known"
    )


def test_the_document_is_plain_json() -> None:
    found = json.loads(msgspec.json.encode(make_curve()))
    assert found["axis"] == "context"
    assert found["cards"][4]["ceiling_bytes"] is None


class TestWords:
    def test_a_card_that_is_crossed(self) -> None:
        document = make_curve()
        card = document.cards[0]
        assert crossing_sentence(document, card) == (
            f"small-2gb: tokens of context surely up to {card.surely_up_to}, by the estimate up to 12324, surely not "
            f"beyond {card.possibly_up_to}"
        )
        cells = dict(zip(CROSSING_HEADERS, crossing_cells(document, card), strict=True))
        assert (cells["ceiling"], cells["estimate"]) == ("1.39 GiB", "12324")  # 1,490,641,216 B

    def test_a_card_that_holds_all_and_one_that_holds_none(self) -> None:
        document = make_curve()
        assert crossing_sentence(document, document.cards[2]) == (
            "large-80gb: surely holds all 32765 tokens of context that the model's own positions allow"
        )
        assert "does not hold even 1 " in crossing_sentence(document, document.cards[3])
        assert "nobody has reported its memory" in crossing_sentence(document, document.cards[4])

    def test_a_place(self) -> None:
        document = make_curve()
        assert [place_text(document, one) for one in (None, 0, 8192, 32_765, CEILING)] == [
            "not known", "none", "8k", "32765 (limit)", "no end",
        ]  # fmt: skip
        assert place_text(make_curve(Axis.CONCURRENCY), 1536) == "1,536"

    def test_the_domain(self) -> None:
        assert domain_sentence(make_curve()) == "measured from 1 to 512 (solid), scaled beyond (dotted)"
        assert (
            domain_sentence(make_curve(shape=Shape(512, 4, 64)))
            == "the whole curve is scaled: no cell was run along it"
        )
        computed = make_profile(evidence=Evidence.COMPUTED, memory_model=make_memory_model(untested=True))
        assert domain_sentence(make_curve(profile=computed)).startswith("the whole curve is ")

    def test_cards_of_one_ceiling_stand_together(self) -> None:
        found = [[card.card for card in cards] for _, cards in distinct_ceilings(make_curve().cards)]
        assert found == [["tiny-1gb"], ["small-2gb", "twin-2gb"], ["large-80gb"]]
