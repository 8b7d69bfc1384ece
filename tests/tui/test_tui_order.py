"""The order screen and the order file over it: the figures of the command line, and every key."""

from __future__ import annotations

import datetime
import json
import threading
from pathlib import Path

import msgspec
import pytest
from builders import make_layout, make_profile
from tui_builders import CATALOG, make_loaded, named, plain, screen_lines, screen_text

from gpufit import flows
from gpufit.advice.plan import Ask
from gpufit.catalog.offers import Offers
from gpufit.cli.main import main
from gpufit.memory.terms import Shape
from gpufit.profile.store import save_profile
from gpufit.report.order_registry import load_order_format
from gpufit.report.plans import arrangement_words
from gpufit.report.price_text import money, price_rows
from gpufit.tui.app import GpufitApp
from gpufit.tui.loaded import LoadedProfile
from gpufit.tui.ordering import Ordering, OrderSort, order_lines
from gpufit.tui.renderables import listed, order
from gpufit.tui.renderables.cards import POINTER
from gpufit.tui.screens.export import ExportScreen
from gpufit.tui.screens.order import OrderScreen
from gpufit.tui.screens.order_file import OrderFileScreen
from gpufit.tui.session import Session
from gpufit.tui.state import Event, View, look_at, press, select
from gpufit.tui.widgets.line_list import LineList

SMALL, WIDE, ALL = (80, 24), (160, 48), (200, 100)
BOOKS = Path(__file__).parents[2] / "docs" / "examples" / "offers" / "nowhere.toml"
HEAVY = Shape(30_000, 4, 64)
"""A scenario at which one card of some serves, several of others, and no number of a few."""


DAY = datetime.date(2026, 11, 30)
"""That of the example book's prices."""


@pytest.fixture
def offers() -> Offers:
    """A seller of some cards, and public figures of more."""
    return flows.choose_offers(CATALOG, [str(BOOKS), "public-indicative"], DAY)


def order_app(offers: Offers, *profiles: LoadedProfile) -> GpufitApp:
    session = Session(profiles or (make_loaded(),), CATALOG, offers)
    session.go(look_at(session.state, View.ORDER))
    return GpufitApp(session)


def order_screen(app: GpufitApp) -> OrderScreen:
    assert isinstance(app.screen, OrderScreen)
    return app.screen


def file_screen(app: GpufitApp) -> OrderFileScreen:
    assert isinstance(app.screen, OrderFileScreen)
    return app.screen


def selected_line(app: GpufitApp) -> str:
    return next(line for line in screen_lines(app) if line.startswith(f" {POINTER}"))


class TestFigures:
    def test_the_list_has_every_total_of_the_command_lines_price_table(self, offers: Offers) -> None:
        document = flows.fit(make_profile(), "p.json", HEAVY, CATALOG, offers)
        lines = order_lines(document, document.cards, Ordering())
        columns = order.columns(lines, Ordering())
        shown = [listed.line(listed.place(columns, lines, 300), line, selected=False).plain for line in lines]
        table = price_rows(document)
        assert len(table) > 5
        for card, seller, _, *totals, currency, _ in table:
            same = [line for line in shown if line.split()[0] == card and seller in line]
            assert same, (card, seller)
            assert all(total in same[0] for total in totals)
            assert currency in same[0]

    @pytest.mark.parametrize("ordering", [Ordering(), Ordering(term_days=30, sort=OrderSort.TOTAL)])
    def test_what_the_list_shows_is_one_line_of_eighty_columns(self, offers: Offers, ordering: Ordering) -> None:
        document = flows.fit(make_profile(), "p.json", HEAVY, CATALOG, offers)
        first = order.summary(document, order_lines(document, document.cards, ordering), ordering).plain.split("\n")[0]
        assert first.endswith(f"[{ordering.term_days} days] · {ordering.sort}")
        assert len(first) <= 78

    @pytest.mark.parametrize("start", [Shape(512, 4, 4), HEAVY])
    def test_an_orders_price_is_that_of_its_line(self, offers: Offers, start: Shape) -> None:
        profile = make_profile(layout=make_layout())
        session = Session((LoadedProfile(profile, "profiles/tiny.json", start),), CATALOG, offers)
        assert session.document is not None
        lines = order_lines(session.document, session.rows, Ordering())
        served = [(line, line.plan) for line in lines if line.plan is not None]
        assert len(served) > 10
        for line, plan in served:
            made = session.order(line.row.card, line.book, Ask(term_days=7), plan.arrangement)
            assert made.cost.total_price == line.total(7), line.row.card
            assert (made.card.cards_needed, made.card.lots) == (line.row.cards_needed, line.row.lots)
            assert (made.card.arrangement, len(made.workers)) == (plan.arrangement, plan.copies)
            assert made.margin.need_upper_bytes == plan.need_upper_bytes

    def test_several_sellers_of_one_card_need_no_flag_here(self, offers: Offers) -> None:
        session = Session((make_loaded(),), CATALOG, offers)
        assert session.document is not None
        sold = [line for line in order_lines(session.document, session.rows, Ordering()) if line.row.card == "l4-24gb"]
        assert [line.book.name for line in sold if line.book] == ["nowhere", "public-indicative"]
        made = [session.order("l4-24gb", line.book, Ask(term_days=7)).cost.book for line in sold]
        assert made == ["nowhere", "public-indicative"]

    def test_details_say_what_the_line_has_no_room_for(self, offers: Offers) -> None:
        document = flows.fit(make_profile(), "p.json", Shape(512, 4, 4), CATALOG, offers)
        lines = order_lines(document, document.cards, Ordering())
        line = next(one for one in lines if one.row.card == "l4-24gb" and one.book and one.book.name == "nowhere")
        text = plain(order.details(document, line), 120)
        for part in ("Nowhere GPU, fictitious", f"{DAY} (0 days ago)", "total, EUR", "35.00", "75.00", "290.00"):
            assert part in text
        assert "✓ fits: one card serves all" in text

    def test_the_file_on_screen_is_the_command_lines(
        self, offers: Offers, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
    ) -> None:
        where = tmp_path / "p.json"
        save_profile(make_profile(), where)
        argv = ["order", str(where), "--card", "l4-24gb", "--term", "7", "--offers", str(BOOKS), "--json"]
        main(argv)
        printed = json.loads(capsysbinary.readouterr().out)
        session = Session((make_loaded(make_profile(), str(where)),), CATALOG, offers)
        assert session.document is not None
        lines = order_lines(session.document, session.rows, Ordering())
        line = next(one for one in lines if one.row.card == "l4-24gb" and one.book and one.book.name == "nowhere")
        made = session.order("l4-24gb", line.book, Ask(term_days=7))
        shown = msgspec.to_builtins(made)
        for key in ("card", "margin", "workers", "work", "ready", "blockers", "scenario", "checks"):
            assert json.loads(json.dumps(shown[key])) == printed[key]
        assert printed["cost"]["total_price"] == made.cost.total_price == 75.0

    @pytest.mark.parametrize("arrangement", ["replicas", "sharded", "pipeline"])
    def test_with_switches_and_an_arrangement_it_is_the_command_lines_too(
        self,
        arrangement: str,
        offers: Offers,
        tmp_path: Path,
        capsysbinary: pytest.CaptureFixture[bytes],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """KV cache and weights in FP8 by the keys v and w, by two of `--if`, and each way to take an L4."""
        monkeypatch.setattr("gpufit.cli.offers.today", lambda: DAY)
        where = tmp_path / "p.json"
        save_profile(make_profile(layout=make_layout()), where)
        scenario = ["--context", "30000", "--new-tokens", "4", "--concurrency", "96"]
        chosen = ["--if", "weights=fp8", "--if", "kv=fp8", "--arrangement", arrangement]
        asked = ["--card", "l4-24gb", "--term", "7", "--offers", str(BOOKS), "--json"]
        assert main(["order", str(where), *scenario, *chosen, *asked]) == 1  # not ready
        printed = json.loads(capsysbinary.readouterr().out)
        loaded = LoadedProfile(make_profile(layout=make_layout()), str(where), Shape(30_000, 4, 96))
        session = Session((loaded,), CATALOG, offers)
        for key in (Event.WEIGHTS, Event.KV_CACHE):
            session.go(press(session.state, key))
        assert session.document is not None
        lines = order_lines(session.document, session.rows, Ordering())
        (line,) = [
            one
            for one in lines
            if one.row.card == "l4-24gb" and one.book and one.book.name == "nowhere"
            if one.plan is not None and one.plan.arrangement == arrangement
        ]
        made = session.order("l4-24gb", line.book, Ask(term_days=7), arrangement)
        shown = json.loads(load_order_format("json").render_order(made))
        assert printed["scenario"]["weights"] == printed["scenario"]["kv_cache"] == "FP8"
        assert printed["card"]["arrangement"] == arrangement
        assert printed["cost"]["total_price"] == line.total(7) == 75.0 * printed["card"]["lots"]
        assert shown == printed


class TestList:
    @pytest.mark.parametrize("size", [SMALL, WIDE, (60, 20), (120, 40), (200, 60)])
    async def test_card_lots_term_total_and_evidence_at_any_size(self, offers: Offers, size: tuple[int, int]) -> None:
        app = order_app(offers)
        async with app.run_test(size=size):
            lines = screen_lines(app)
            assert {len(line) for line in lines} == {size[0]}
            heading = next(line for line in lines if "[3 days]" in line and "lots" in line)
            assert "card" in heading
            assert "evidence" in heading or size[0] < 80
            assert "↗ scaled" in selected_line(app) or size[0] < 80

    async def test_of_several_sellers_each_line_says_whose_it_is(self, offers: Offers) -> None:
        app = order_app(offers)
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.press("home")
            lines = [line for line in screen_lines(app) if line[3:].startswith("l4-24gb ")]
            assert ["Nowhere GPU" in line for line in lines] == [True, False]
            assert ["public listings" in line for line in lines] == [False, True]

    async def test_its_cursor_is_on_the_card_of_the_other_screens(self, offers: Offers) -> None:
        app = order_app(offers)
        async with app.run_test(size=WIDE) as pilot:
            assert str(app.session.state.selected_card) in selected_line(app)
            for key in ("down", "j", "up", "k", "end", "home", "pagedown", "pageup"):
                await pilot.press(key)
                assert str(app.session.state.selected_card) in selected_line(app)
            await pilot.press("2", "end", "7")
            assert CATALOG.cards[-1].id in selected_line(app)

    async def test_term_marks_its_column_and_stays_on_the_line(self, offers: Offers) -> None:
        app = order_app(offers)
        async with app.run_test(size=ALL) as pilot:
            await pilot.press("end", "home", "down", "down")
            card = selected_line(app).split()[1]
            for days in (7, 30, 3):
                await pilot.press("t")
                assert f"[{days} days]" in screen_text(app)
                assert selected_line(app).split()[1] == card

    async def test_sort_by_total_begins_at_the_lowest(self, offers: Offers) -> None:
        app = order_app(offers)
        async with app.run_test(size=ALL) as pilot:
            await pilot.press("t", "s")
            assert "lowest total first" in screen_text(app)
            # Nobody's EUR before the public USD: the cheapest of the seller's own six cards is the first line.
            screen = order_screen(app)
            document = app.session.document
            assert document is not None
            totals = [line.total(7) for line in screen._lines if line.book is not None and line.book.name == "nowhere"]
            known = [total for total in totals if total is not None]
            assert known == sorted(known)
            assert money(known[0]) in selected_line(app)
            await pilot.press("s")
            assert "as the cards are listed" in screen_text(app)

    async def test_a_question_moves_the_figures(self, offers: Offers) -> None:
        app = order_app(offers)
        async with app.run_test(size=ALL) as pilot:
            before = screen_text(app)
            await pilot.press(*["right"] * 6, *["plus"] * 6)
            after = screen_text(app)
            assert ", none for " in after
            assert before != after
            await pilot.press("r")
            assert screen_text(app) == before

    async def test_without_any_price_it_says_so(self) -> None:
        app = order_app(flows.choose_offers(CATALOG, [], DAY))
        async with app.run_test(size=WIDE):
            text = screen_text(app)
            assert "no price in offer book blank; gpufit tui --offers public-indicative" in text
            assert "gpufit catalog offers --template" in text

    async def test_a_click_selects_and_a_second_one_opens(self, offers: Offers) -> None:
        app = order_app(offers)
        async with app.run_test(size=WIDE) as pilot:
            await pilot.press("home")
            await pilot.click(LineList, offset=(10, 3))
            assert order_screen(app)._ordering.cursor == 3
            await pilot.click(LineList, offset=(10, 3))
            assert file_screen(app)

    async def test_where_the_answer_ends_no_line_is_left_to_move_over(self, offers: Offers) -> None:
        app = order_app(offers)
        async with app.run_test(size=SMALL) as pilot:
            await pilot.press("end", "2", "slash", *"nothing", "enter", "7")
            assert "no card to list" in screen_text(app)
            await pilot.press("down", "home", "t", "s", "enter", "up")
            assert order_screen(app)._lines == ()
            await pilot.press("2", "slash", "escape", "7", "home")
            assert CATALOG.cards[0].id in selected_line(app)

    async def test_where_the_answer_ends_a_list_that_is_drawn_once_more_holds(self, offers: Offers) -> None:
        app = order_app(offers)
        async with app.run_test(size=SMALL):
            screen = order_screen(app)
            first = screen.query_one(LineList).render_line(0).text
            app.session.rows = ()
            screen.draw()
            assert screen.query_one(LineList).render_line(0).text == first

    async def test_nothing_to_list_and_no_profile(self, offers: Offers) -> None:
        for app in (GpufitApp(Session((), CATALOG, offers)), order_app(offers, named("short", position_limit=2))):
            async with app.run_test(size=SMALL) as pilot:
                await pilot.press("7", "down", "t", "s", "enter", "end")
                assert order_screen(app)


async def settled(app: GpufitApp, pilot: object) -> None:
    await app.workers.wait_for_complete()
    await pilot.pause()  # type: ignore[attr-defined]


class TestFile:
    async def opened(self, app: GpufitApp, pilot: object, *keys: str) -> None:
        await pilot.press("home", *keys, "enter")  # type: ignore[attr-defined]
        await settled(app, pilot)

    @pytest.mark.parametrize("size", [SMALL, WIDE, (120, 40), (200, 60)])
    async def test_shows_the_file_with_its_evidence(self, offers: Offers, size: tuple[int, int]) -> None:
        app = order_app(offers)
        async with app.run_test(size=size) as pilot:
            await self.opened(app, pilot)
            made = file_screen(app).document
            assert made is not None
            assert made.card.card == CATALOG.cards[0].id
            text = screen_text(app)
            assert "Order: 1 card of NVIDIA T4 16GB for 3 days" in text
            assert "↗ scaled" in text
            assert {len(line) for line in screen_lines(app)} == {size[0]}

    async def test_a_field_that_changes_is_answered(self, offers: Offers) -> None:
        app = order_app(offers)
        async with app.run_test(size=WIDE) as pilot:
            await self.opened(app, pilot)
            await pilot.press("tab", "3")
            await settled(app, pilot)
            made = file_screen(app).document
            assert made is not None
            assert made.work.inputs == 3
            await pilot.press("tab", "tab", "2")
            await settled(app, pilot)
            made = file_screen(app).document
            assert made is not None
            assert len(made.workers) == 2

    async def test_what_cannot_be_read_is_said_and_can_be_mended(self, offers: Offers) -> None:
        app = order_app(offers)
        async with app.run_test(size=WIDE) as pilot:
            await self.opened(app, pilot)
            await pilot.press("tab", "x")
            await settled(app, pilot)
            assert "! inputs must be a whole number of at least 1" in screen_text(app)
            assert file_screen(app).document is None
            await pilot.press("backspace", "5")
            await settled(app, pilot)
            assert "inputs must be" not in screen_text(app)
            assert file_screen(app).document is not None

    async def test_a_refused_order_is_not_written_and_the_field_to_mend_is_pointed_at(self, offers: Offers) -> None:
        """30,000 tokens x 64 on L4: several copies are needed, and one worker is asked for."""
        loaded = LoadedProfile(make_profile(layout=make_layout()), "p.json", HEAVY)
        session = Session((loaded,), CATALOG, offers)
        place = next(place for place, card in enumerate(CATALOG.cards) if card.id == "l4-24gb")
        session.go(select(look_at(session.state, View.ORDER), place))
        app = GpufitApp(session)
        async with app.run_test(size=WIDE) as pilot:
            await settled(app, pilot)
            await pilot.press("enter")
            await settled(app, pilot)
            await pilot.press("tab", "tab", "tab", "1", "tab")
            await settled(app, pilot)
            text = screen_text(app)
            assert "! 'workers' 1: " in text
            assert "lower 'at once', or leave 'workers' out" in " ".join(text.split())
            assert "--" not in text
            assert "! workers " in text
            assert app.focused is not None
            assert app.focused.id == "piece-inputs"
            await pilot.press("ctrl+s")
            assert file_screen(app), "nothing to write, so no dialogue opens"
            assert app.focused.id == "workers"
            (said,) = [one.message for one in app._notifications]
            assert said.startswith("no order to write: 'workers' 1: ")
            app.screen.query_one("#file").focus()
            await pilot.press("e")
            assert file_screen(app), "nor by the key of other screens"
            assert app.focused.id == "workers"
            await pilot.press("backspace")
            await settled(app, pilot)
            assert file_screen(app).document is not None
            assert "! workers" not in screen_text(app)
            await pilot.press("ctrl+s")
            assert isinstance(app.screen, ExportScreen)

    async def test_what_is_written_is_what_stands_in_the_form(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Asked for while the form is still being planned, the order of it is written, and none that comes late."""
        gates = {3: threading.Event(), 7: threading.Event()}

        def slowly(session: Session, card: str, book: object, ask: Ask, arrangement: str | None = None) -> object:
            if ask.term_days in gates:
                gates[ask.term_days].wait(60)
            return real(session, card, book, ask, arrangement)  # type: ignore[arg-type]

        real = Session.order
        monkeypatch.setattr(Session, "order", slowly)
        app = GpufitApp(Session((make_loaded(),), CATALOG, CATALOG.offers(DAY)))
        app.session.go(look_at(app.session.state, View.ORDER))
        async with app.run_test(size=WIDE) as pilot:
            await pilot.press("7", "enter", "ctrl+a", "ctrl+k", "7", "ctrl+s")
            await pilot.pause()
            assert file_screen(app).document is None
            gates[7].set()
            for _ in range(1000):
                if isinstance(app.screen, ExportScreen):
                    break
                await pilot.pause(0.01)
            assert isinstance(app.screen, ExportScreen)
            gates[3].set()
            await app.workers.wait_for_complete()
            await pilot.press("escape")
            await pilot.pause()
            document = file_screen(app).document
            assert document is not None
            assert document.term_days == 7

    @pytest.mark.parametrize("width", [76, 73])
    def test_an_amount_stays_beside_its_currency(self, width: int) -> None:
        """14,990.40 USD is 13 wide, and the words of the other columns can give way."""
        rows = (
            ("term", "for", "holds the work", "workers", "lots", "cards", "price"),
            (":---",) * 7,
            (
                "3 days",
                "install, prove the pipeline, first usable result",
                "not known",
                "12",
                "52",
                "52",
                "14,990.40 USD",
            ),
            ("30 days", "a campaign or a service", "not known", "12", "52", "52", "440,524.80 USD"),
        )
        page = order.OrderPage("\n".join(f"| {' | '.join(row)} |" for row in rows))
        assert [one in plain(page, width) for one in ("14,990.40 USD", "440,524.80 USD")] == [True, True]

    async def test_without_a_term_it_says_why_none_follows(self, offers: Offers) -> None:
        app = order_app(offers)
        async with app.run_test(size=WIDE) as pilot:
            await self.opened(app, pilot)
            await pilot.press("end", "backspace")
            await settled(app, pilot)
            assert "no term follows" in screen_text(app)

    async def test_what_does_not_fit_is_no_order_and_says_so_on_top(self, offers: Offers) -> None:
        profile = make_loaded()
        app = order_app(offers, LoadedProfile(profile.profile, profile.where, Shape(32_000, 4, 65_536)))
        async with app.run_test(size=WIDE) as pilot:
            await pilot.press("end", "enter")
            await settled(app, pilot)
            made = file_screen(app).document
            assert made is not None
            assert not made.ready
            assert "Not ready to order" in screen_lines(app)[1]
            assert screen_lines(app)[2].strip().startswith(f"! {made.card.card}")

    async def test_the_file_is_of_the_line_that_was_opened(self, offers: Offers) -> None:
        app = order_app(offers, LoadedProfile(make_profile(layout=make_layout()), "profiles/tiny.json", HEAVY))
        async with app.run_test(size=ALL) as pilot:
            screen = order_screen(app)
            at = next(
                place
                for place, line in enumerate(screen._lines)
                if line.plan is not None and line.plan.arrangement == "sharded"
            )
            line = screen._lines[at]
            await pilot.press("home", *["down"] * at, "enter")
            await settled(app, pilot)
            made = file_screen(app).document
            assert made is not None
            assert (made.card.arrangement, made.card.lots) == ("sharded", line.row.lots)
            assert line.plan is not None
            assert screen_lines(app)[0].strip().endswith(arrangement_words(line.plan))

    async def test_with_a_switch_set_the_file_says_what_to_measure_first(self, offers: Offers) -> None:
        app = order_app(offers, make_loaded(make_profile(layout=make_layout())))
        async with app.run_test(size=WIDE) as pilot:
            await pilot.press("v")
            await self.opened(app, pilot)
            made = file_screen(app).document
            assert made is not None
            assert made.scenario.kv_cache == "FP8"
            assert "Not ready to order. ↗ scaled" in screen_lines(app)[1]
            assert screen_lines(app)[2].strip().startswith("! nothing was run with KV cache FP8")
            assert "gpufit profile takes --kv-cache-dtype fp8" in screen_text(app)

    async def test_enter_goes_on_and_escape_goes_back(self, offers: Offers) -> None:
        app = order_app(offers)
        async with app.run_test(size=WIDE) as pilot:
            await self.opened(app, pilot)
            assert app.focused is not None
            assert app.focused.id == "term"
            await pilot.press("enter")
            assert app.focused.id == "inputs"
            await pilot.press("shift+tab")
            assert app.focused.id == "term"
            await pilot.press("escape")
            assert order_screen(app)
