"""Details, header and pages as text."""

from __future__ import annotations

import datetime
from dataclasses import replace

import msgspec
import pytest
from builders import make_profile
from tui_builders import CATALOG, GB, make_document, make_loaded, make_row, plain

from gpufit import flows
from gpufit.advice.verdict import Verdict
from gpufit.memory.terms import Shape
from gpufit.profile.evidence import Evidence
from gpufit.profile.peaks import Parts
from gpufit.report.cells import PART_TITLES
from gpufit.report.document import CardRow, FitDocument
from gpufit.report.prices import Price, ThroughputFigures
from gpufit.report.summary import headline
from gpufit.tui.keys import EVERYWHERE, OF_VIEWS, OVER_VIEWS, QUESTION
from gpufit.tui.listing import Filter
from gpufit.tui.renderables.details import facts, notes, parts_table
from gpufit.tui.renderables.header import header, no_answer, nothing_listed, problem_lines
from gpufit.tui.renderables.pages import empty_page, help_keys, help_words
from gpufit.tui.state import View, ViewState, initial_state, look_at, show, start_of

DOCUMENT = make_document()
DAY = datetime.date(2026, 11, 30)


def row_of(document: FitDocument, card: str) -> CardRow:
    return next(row for row in document.cards if row.card == card)


def make_state() -> ViewState:
    loaded = make_loaded()
    state = initial_state([start_of(loaded.profile, loaded.start)])
    return show(state, [row.card for row in DOCUMENT.cards])


class TestFacts:
    def test_say_everything_about_a_card(self) -> None:
        row = make_row(80 * GB, 90 * GB, 4 * GB, lots=1, lot_size=2, cards_needed=1, idle_cards=1)
        text = plain(facts(DOCUMENT, row), 80)
        for line in (
            "✗ does not fit: even the lower bound",
            "capacity         74.51 GiB",
            "need             83.82 GiB ↗",
            "  lower .. upper 80.09 .. 87.54 GiB",
            "headroom         -9.31 GiB ↗",
            "  lower .. upper -13.04 .. -5.59 GiB",
            "binds            weights in prefill, likely short by 9.31 GiB",
            "max concurrency  4 sequences",
            "max context      4k tokens",
            "lots             1 x 2 (1 idle)",
            "evidence         ↗ scaled",
        ):
            assert line in text

    def test_name_the_model_limit(self) -> None:
        row = make_row(max_context_tokens=32_765, max_context_is_position_limit=True)
        assert "max context      32765 tokens (limit)" in plain(facts(DOCUMENT, row))

    def test_one_sequence_is_one(self) -> None:
        assert "max concurrency  1 sequence\n" in "\n".join(
            line.rstrip() for line in plain(facts(DOCUMENT, make_row(max_concurrency=1))).splitlines()
        )

    def test_claim_nothing_for_an_unknown_capacity(self) -> None:
        row = make_row(None, max_concurrency=None, max_context_tokens=None, cards_needed=None, lots=None)
        text = plain(facts(DOCUMENT, row))
        assert "capacity         not known" in text
        assert "max concurrency  not known" in text
        assert "headroom" not in text

    def test_say_when_nothing_fits_at_all(self) -> None:
        row = make_row(20 * GB, max_concurrency=0, max_context_tokens=0, cards_needed=None, lots=None)
        text = plain(facts(DOCUMENT, row))
        assert "max concurrency  none fits" in text
        assert "none of the plans tried serves it" in text

    def test_show_a_price_only_where_there_is_one(self) -> None:
        priced = Price(term_days=3, currency="EUR", price_per_lot=900.0, total_price=900.0)
        blank = [Price(term_days=days, currency="EUR", price_per_lot=None, total_price=None) for days in (7, 30)]
        text = plain(facts(DOCUMENT, make_row(prices=(priced, *blank))))
        assert "3 days           900.00 EUR" in text
        assert "7 days" not in text

    def test_an_old_price_says_that_it_is(self) -> None:
        """An offer book of 2026-05-24 is 190 days old on the day that the tests ask."""
        document = flows.fit(
            make_profile(), "p.json", flows.default_shape(make_profile()), CATALOG,
            flows.choose_offers(CATALOG, ["public-indicative"], DAY),
        )  # fmt: skip
        row = next(row for row in document.cards if row.card == "l4-24gb")
        assert row.prices
        assert "USD (public listings, stale)" in plain(facts(document, row))

    def test_name_each_seller_beside_its_price_and_the_speed_with_its_evidence(self) -> None:
        asked = [
            Price(term_days=7, currency=currency, price_per_lot=price, total_price=price, book=seller, seller=seller)
            for seller, price, currency in (("Acme", 420.0, "EUR"), ("Other", 1500.5, "USD"))
        ]
        speed = ThroughputFigures(
            inputs_per_second=1.25,
            generated_tokens_per_second=160.0,
            prompt_tokens_per_second=1280.0,
            copies=1,
            cell_context_tokens=1024,
            cell_new_tokens=128,
            cell_concurrency=8,
            cell_inputs_completed=8,
            cell_wall_seconds=6.4,
            lower_bound=False,
            how="",
            evidence=Evidence.MEASURED,
        )
        text = plain(facts(DOCUMENT, make_row(prices=tuple(asked), throughput=speed)))
        assert "7 days           420.00 EUR (Acme)" in text
        assert "7 days           1,500.50 USD (Other)" in text
        assert "throughput       160.0 generated tokens/s, 1.25 inputs/s (measured)" in text


class TestParts:
    def test_every_part_of_every_phase_stands_there(self) -> None:
        row = row_of(DOCUMENT, "l40s-48gb")
        lines = plain(parts_table(DOCUMENT, row)).splitlines()
        assert lines[0].split() == ["at", "the", "peak", "of", "load", "prefill", "decode", "prefill*", "in", "bytes*"]
        for name in Parts.NAMES:
            line = next(line for line in lines if line.startswith(PART_TITLES[name]))
            assert line.endswith(f" {getattr(row.parts, name):,}")

    def test_the_last_column_adds_up_to_the_need(self) -> None:
        row = row_of(DOCUMENT, "l40s-48gb")
        lines = plain(parts_table(DOCUMENT, row)).splitlines()
        sizes = {line[:14].strip(): int(line.split()[-1].replace(",", "")) for line in lines[1:-2]}
        parts = sum(sizes[PART_TITLES[name]] for name in Parts.NAMES)
        assert parts == sizes["allocated"]
        assert parts + sizes["driver context"] + sizes["other"] == sizes["need"] == row.need_bytes

    def test_every_phase_has_its_evidence(self) -> None:
        lines = plain(parts_table(DOCUMENT, DOCUMENT.cards[0])).splitlines()
        assert lines[-2].split() == ["evidence", *("●", "measured") * 3, "↗", "scaled"]

    def test_it_fits_eighty_columns_with_large_figures(self) -> None:
        row = make_row(180 * GB, 170 * GB)
        assert all(len(line) <= 76 for line in plain(parts_table(DOCUMENT, row)).splitlines())


def test_notes_hold_every_assumption_and_note() -> None:
    document = make_document(Shape(4096, 4, 4))
    text = " ".join(plain(notes(document), 60).replace("·", " ").split())
    assert document.notes
    for said in (*document.assumptions, *document.notes):
        assert " ".join(said.split()) in text
    assert "profile profiles/tiny.json" in text
    assert "resident float16" in text


class TestHeader:
    def test_is_the_headline_and_what_is_listed(self) -> None:
        text = header(make_loaded(), make_state(), DOCUMENT).plain
        assert text == f"{headline(DOCUMENT)}\nshowing all cards · in catalog order"

    @pytest.mark.parametrize("view", [View.GROWTH, View.PRECISION, View.TIME])
    def test_says_nothing_of_a_list_where_there_is_none(self, view: View) -> None:
        state = look_at(make_state(), view)
        assert header(make_loaded(), state, DOCUMENT).plain == headline(DOCUMENT)

    def test_without_an_answer_names_the_question(self) -> None:
        text = header(make_loaded(), make_state(), None).plain
        assert "tiny-llama · transformers 5.24.0 · profile of AMD EPYC" in text
        assert "context 512 + 4 new x 4 at once: no answer" in text

    def test_problems_are_a_line_each_and_counted_past_three(self) -> None:
        assert problem_lines(["a", "b"]).plain == "! a\n! b"
        assert problem_lines(list("abcde")).plain == "! a\n! b\n! c\n! and 2 more that cannot be read"

    def test_no_answer_says_how_to_go_on(self) -> None:
        assert "p: the next profile" in no_answer("why", several=True).plain
        assert "p:" not in no_answer("why", several=False).plain

    def test_nothing_listed_says_what_would_be(self) -> None:
        """Of three cards one serves it with several, and none by itself."""
        document = make_document()
        rows = [make_row(verdict=Verdict.DOES_NOT_FIT, cards_needed=needed) for needed in (None, 2, None)]
        document = msgspec.structs.replace(document, cards=tuple(rows))
        state = make_state()
        fits = replace(state, listing=replace(state.listing, filter=Filter.FITS))
        said = nothing_listed(fits, document).plain
        assert said.startswith("no card to list: showing only what fits leaves none at this scenario\n")
        assert "1 card serves it, several together where one is not enough: f lists them" in said
        assert "a: all cards again" in said
        assert "on Cards (2)" not in said
        elsewhere = replace(fits, view=View.ORDER, listing=replace(fits.listing, filter=Filter.ALL, vendor="AMD"))
        said = nothing_listed(elsewhere, document).plain
        assert "showing AMD leaves none" in said
        assert "on Cards (2): f: other verdicts" in said
        assert "serves it" not in said


NAMES = {
    "minus": "-",
    "plus": "+",
    "equals_sign": "=",
    "question_mark": "?",
    "slash": "/",
    "pageup": "page up",
    "pagedown": "page down",
}
"""Textual's names of keys, as the help writes them."""


class TestPages:
    def test_the_help_names_every_key(self) -> None:
        keys = (*EVERYWHERE, *QUESTION, *(key for some in (*OF_VIEWS.values(), *OVER_VIEWS.values()) for key in some))
        named = {key for one in keys for part in one.shown.split(" or ") for key in part.split(", ")}
        bound = {key for one in keys for key in one.keys.split(",")}
        assert {NAMES.get(key, key) for key in bound} - {"escape"} <= named
        text = plain(help_keys(tuple(View)))
        assert all(one.words[:40] in text for one in keys)

    @pytest.mark.parametrize("width", [70, 94])
    def test_the_help_explains_words_and_signs(self, width: int) -> None:
        text = plain(help_words(), width)
        for word in ("≈ too close", "does not fit", "headroom", "lots", "measured", "scaled", "░░░", "driver context"):
            assert word in text
        assert all(len(line) <= width for line in text.splitlines())

    def test_the_empty_page_says_how_to_make_a_profile(self) -> None:
        text = empty_page("profiles/", []).plain
        assert "No profile yet" in text
        assert "gpufit profile MODEL" in text
        assert "1 and then i: type a model's name or a profile's file" in text
        assert "8: the form" in text
        assert empty_page("profiles/", [], here_imports=True).plain.splitlines()[4].startswith("i: type")

    def test_the_empty_page_says_what_could_not_be_read(self) -> None:
        text = empty_page("profiles/", ["x.json: not a profile"]).plain
        assert "! x.json: not a profile" in text
        assert "gpufit profile MODEL" in text
