"""A scenario that no cell ran is told apart from one that did, wherever the word for its evidence stands."""

from __future__ import annotations

import datetime
from collections.abc import Callable

import pytest
from builders import make_card
from model_files import REPOSITORY
from msgspec import structs

from gpufit import flows, flows_order
from gpufit.advice.plan import Ask
from gpufit.catalog.offers import Offer, OfferBook, Offers
from gpufit.catalog.record import Catalog
from gpufit.memory.terms import Shape
from gpufit.profile.evidence import Evidence
from gpufit.profile.store import load_profile
from gpufit.report.basis import evidence_text, held_out_error, not_run_note, phase_evidence_text, scenario_ran
from gpufit.report.document import FitDocument
from gpufit.report.order_registry import load_order_format
from gpufit.report.registry import load_format

PROFILE = load_profile(REPOSITORY / "tests" / "facts" / "profiles" / "SmolLM2-135M-Instruct.Q4_1.json")
CELL = PROFILE.measured_cells[-1]
RAN = Shape(CELL.context_tokens, CELL.new_tokens, CELL.concurrency)
BETWEEN = Shape(CELL.context_tokens - 1, CELL.new_tokens, CELL.concurrency)
"""One token less than a cell that ran: inside all that was measured, and no cell of it."""
CARD = make_card("x1-80gb", 79.1)
CATALOG = Catalog(cards=(CARD,))
OFFERS = Offers((OfferBook(name="one", offers=(Offer(card="x1-80gb", lot_size=1),)),), datetime.date(2026, 11, 30))
WORDS = "by a model (this shape was not run)"


def judged(shape: Shape) -> FitDocument:
    return flows.judge_cards(PROFILE, "p.json", shape, CATALOG, OFFERS, (CARD,))


def test_a_cell_ran_and_what_lies_beside_it_did_not() -> None:
    assert (scenario_ran(PROFILE, RAN), scenario_ran(PROFILE, BETWEEN)) == (True, False)
    assert (judged(RAN).scenario_ran, judged(BETWEEN).scenario_ran) == (True, False)


@pytest.mark.parametrize("form", ["table", "markdown", "html"])
def test_every_text_says_so_beside_the_evidence(form: str) -> None:
    render: Callable[[FitDocument], bytes] = load_format(form).render_fit
    ran, between = (" ".join(render(judged(shape)).decode().split()) for shape in (RAN, BETWEEN))
    assert f"evidence: {judged(BETWEEN).evidence}, {WORDS}" in between
    cells, error = len(PROFILE.measured_cells), held_out_error(PROFILE)
    assert error is not None
    assert f"the model fitted to {cells} measured cells (it missed held-out cells by " in between
    assert WORDS not in ran
    assert "no cell of the profile ran" not in ran


def test_an_order_says_so_of_its_figures_of_memory() -> None:
    said = []
    for shape in (RAN, BETWEEN):
        document = flows_order.order(PROFILE, "p.json", shape, CATALOG, OFFERS, CARD, Ask(term_days=7))
        said.append(load_order_format("markdown").render_order(document).decode())
        assert document.scenario_ran == (shape == RAN)
    assert f"Figures of memory: {judged(BETWEEN).evidence}, {WORDS}, made on " in said[1]
    assert "The checks on arrival measure them on the card itself" in said[1]
    assert "no cell of the profile ran this very scenario" in said[1]
    assert WORDS not in said[0]


def test_rules_run_nothing() -> None:
    assert evidence_text(Evidence.COMPUTED, None) == "computed"
    assert evidence_text(Evidence.MEASURED, ran=True) == "measured"


def test_what_loading_took_was_seen_whatever_runs_then() -> None:
    assert phase_evidence_text("load", Evidence.MEASURED, ran=False) == "measured"
    assert phase_evidence_text("decode", Evidence.MEASURED, ran=False) == "measured, by a model"


def test_a_miss_too_small_for_two_digits_is_no_zero() -> None:
    note = not_run_note(PROFILE)
    assert "0.00%" not in note
    untested = structs.replace(PROFILE, memory_model=None)
    assert not_run_note(untested).endswith("(no cell was held out to test it)")
