"""The reports as others open them: LibreOffice computes the workbook's formulas, Chromium lays out the page.

Skipped, with the reason, where these programs are not installed; scripts/look_at_reports.py draws what they show.
"""

from __future__ import annotations

import http.server
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from builders import make_offers, make_profile
from model_files import REPOSITORY
from order_builders import hard_order
from public_models import CONFIGS
from report_builders import hard_document
from report_readers import BOOK, CATALOG, real_document, served_document
from tabular_builders import REPORTS

from gpufit import flows
from gpufit.catalog.offers import Offer, OfferBook
from gpufit.catalog.query import find_cards
from gpufit.memory.terms import Shape
from gpufit.report.document import FitDocument
from gpufit.report.fits_document import FitsDocument, build_fits_document, named
from gpufit.report.order_registry import load_order_format
from gpufit.report.registry import load_format, load_tabular_format
from gpufit.report.tabular import TabularReport
from gpufit.sources.estimate.vllm import VllmRequest
from scripts import look_at_reports as look


def has(name: str) -> pytest.MarkDecorator:
    """Skip without a program, saying where it is to be had."""
    try:
        look.find_program(name)
    except look.MissingProgramError as error:
        return pytest.mark.skipif(True, reason=str(error))
    return pytest.mark.skipif(False, reason=f"{name} is here")


def computed(path: Path, folder: Path) -> Any:
    """A workbook's values as LibreOffice computes them: openpyxl has dropped those that were stored."""
    return openpyxl.load_workbook(look.convert(path, "xlsx", folder), data_only=True)


def two_sellers_books() -> tuple[OfferBook, OfferBook]:
    """One sells an L4 in lots of four, the other B200s in lots of eight."""
    other = OfferBook(
        name="other",
        currency="EUR",
        offers=(
            Offer(card="l4-24gb", lot_size=4, price_7_days=99.5, currency="EUR"),
            Offer(card="b200-sxm-180gb", lot_size=8, price_7_days=5000.0, currency="EUR"),
        ),
    )
    return BOOK, other


def two_sellers() -> FitDocument:
    """A question whose cards both sell."""
    return flows.fit(make_profile(), "p.json", Shape(4096, 16, 40), CATALOG, make_offers(*two_sellers_books()))


@has("soffice")
def test_stored_values_of_formulas_are_those_that_libreoffice_computes(tmp_path: Path) -> None:
    for number, document in enumerate((hard_document(), real_document(BOOK), two_sellers())):
        folder = tmp_path / str(number)
        folder.mkdir()
        original = folder / "original.xlsx"
        original.write_bytes(load_format("xlsx").render_fit(document))
        formulas, stored = openpyxl.load_workbook(original), openpyxl.load_workbook(original, data_only=True)
        formulas.save(folder / "bare.xlsx")
        assert openpyxl.load_workbook(folder / "bare.xlsx", data_only=True)["prices"]["E5"].value is None
        (folder / "out").mkdir()
        found = computed(folder / "bare.xlsx", folder / "out")
        places = [
            (sheet.title, one.coordinate) for sheet in formulas for row in sheet for one in row if one.data_type == "f"
        ]
        assert len(places) > 6 * len(document.cards)
        for sheet, place in places:
            expected, value = stored[sheet][place].value, found[sheet][place].value
            blank = value in (None, "") and expected in (None, "")
            # LibreOffice writes 15 digits.
            assert blank or value == pytest.approx(expected, rel=1e-14), (sheet, place)


@has("soffice")
def test_a_changed_price_and_lot_size_change_the_totals_everywhere(tmp_path: Path) -> None:
    document = real_document(BOOK)
    path = tmp_path / "mine.xlsx"
    path.write_bytes(load_format("xlsx").render_fit(document))
    book = openpyxl.load_workbook(path)
    prices = {row[0].value: row for row in book["prices"].iter_rows(min_row=5)}
    titles = [head.value for head in book["prices"][4]]
    lot_size, asked = titles.index("lot size (cards)"), titles.index("price of a lot, 7 days")
    prices["l4-24gb"][asked].value = 99.5
    prices["b200-sxm-180gb"][lot_size].value = 4
    book.save(path)
    (tmp_path / "out").mkdir()
    found = computed(path, tmp_path / "out")
    rows = {row.card: row for row in document.cards}
    assert rows["l4-24gb"].lots is not None
    assert rows["b200-sxm-180gb"].cards_needed == 1
    for name, total in (("cards", "price, 7 days"), ("summary", "total, 7 days")):
        table = list(found[name].iter_rows(values_only=True))
        heads = next(row for row in table if total in row)
        at = {row[heads.index("card")]: row for row in table[table.index(heads) + 1 :]}
        assert at["l4-24gb"][heads.index(total)] == rows["l4-24gb"].lots * 99.5
        # One card of a lot of four: one lot, at the price that stood there for a lot.
        assert at["b200-sxm-180gb"][heads.index("lots")] == 1
        assert at["b200-sxm-180gb"][heads.index(total)] == 1500.25
    (idle,) = (row[5].value for row in found["prices"].iter_rows(min_row=5) if row[0].value == "b200-sxm-180gb")
    assert idle == 4 - 1


def two_questions() -> FitsDocument:
    """Sixteen sequences of 4k, and forty: `BOOK` and the other seller at both."""
    found = []
    for name, concurrency in (("few", 16), ("many", 40)):
        other = two_sellers_books()
        document = flows.fit(make_profile(), "p.json", Shape(4096, 16, concurrency), CATALOG, make_offers(*other))
        found.append(named(document, name))
    return build_fits_document(found)


@has("soffice")
def test_several_questions_follow_one_sheet_of_prices(tmp_path: Path) -> None:
    """Stored values are those that LibreOffice computes; then L40S, which nobody priced, at 10 a lot of 3 cards."""
    documents = two_questions()
    path = tmp_path / "mine.xlsx"
    path.write_bytes(load_format("xlsx").render_fits(documents))
    stored, book = openpyxl.load_workbook(path, data_only=True), openpyxl.load_workbook(path)
    book.save(tmp_path / "bare.xlsx")
    (tmp_path / "out").mkdir()
    found = computed(tmp_path / "bare.xlsx", tmp_path / "out")
    places = [(sheet.title, one.coordinate) for sheet in book for row in sheet for one in row if one.data_type == "f"]
    assert {sheet for sheet, _ in places} == {"summary", "cards"}
    for sheet, place in places:
        expected, value = stored[sheet][place].value, found[sheet][place].value
        assert (value or None) == (expected or None) or value == pytest.approx(expected, rel=1e-14), (sheet, place)
    titles = [head.value for head in book["prices"][4]]
    (mine,) = (row for row in book["prices"].iter_rows(min_row=5) if row[0].value == "l40s-48gb")
    mine[titles.index("lot size (cards)")].value = 3
    mine[titles.index("price of a lot, 7 days")].value = 10
    book.save(path)
    (tmp_path / "changed").mkdir()
    found = computed(path, tmp_path / "changed")
    for sheet, total in (("summary", "total, 7 days"), ("cards", "price, 7 days")):
        table = list(found[sheet].iter_rows(values_only=True))
        heads = next(row for row in table if total in row)
        rows = [row for row in table if row[heads.index("card")] == "l40s-48gb" and row != heads]
        priced = [row for row in rows if isinstance(row[heads.index("lots")], int | float)]
        assert priced
        for row in priced:
            cards = row[heads.index("cards")]
            if cards:
                lots = -(-cards // 3)
                assert [row[heads.index(one)] for one in ("lots", "idle cards", total)] == [
                    lots,
                    3 * lots - cards,
                    10 * lots,
                ]


@has("soffice")
def test_lots_of_arrangements_and_of_an_order_follow_the_cards_in_a_lot(tmp_path: Path) -> None:
    """Three cards in lots of two are two lots with one idle; in lots of three they are one with none."""
    path = tmp_path / "fit.xlsx"
    path.write_bytes(load_format("xlsx").render_fit(hard_document()))
    book = openpyxl.load_workbook(path)
    (row,) = (one for one in book["prices"].iter_rows(min_row=5) if one[0].value == "x3-24gb")
    row[[head.value for head in book["prices"][4]].index("lot size (cards)")].value = 3
    book.save(path)
    (tmp_path / "fit").mkdir()
    heads, first, *_ = computed(path, tmp_path / "fit")["arrangements"].iter_rows(values_only=True)
    assert [first[heads.index(one)] for one in ("card", "cards", "lots", "idle cards")] == ["x3-24gb", 3, 1, 0]

    path = tmp_path / "order.xlsx"
    path.write_bytes(load_order_format("xlsx").render_order(hard_order()))
    book = openpyxl.load_workbook(path)
    labels = {line[0].value: line[1] for line in book["order"].iter_rows()}
    assert (labels["cards needed"].value, labels["cards a lot"].value) == (3, 2)
    labels["cards a lot"].value = 3
    book.save(path)
    (tmp_path / "order").mkdir()
    found = computed(path, tmp_path / "order")
    shown = {line[0].value: line[1].value for line in found["order"].iter_rows()}
    assert [shown[one] for one in ("lots", "cards paid for", "idle cards", "price")] == [1, 3, 0, 100.25]
    terms = list(found["terms"].iter_rows(min_row=2, values_only=True))
    for _, _, _, _, workers, lots, cards, of_lot, total in terms:
        if workers and lots:
            needed = workers  # two ranks each, two devices a card
            assert (lots, cards) == (-(-needed // 3), 3 * -(-needed // 3))
            assert of_lot is None or total == pytest.approx(of_lot * lots)


@has("soffice")
def test_a_sorted_table_keeps_each_card_s_own_price(tmp_path: Path) -> None:
    path = tmp_path / "sorted.xlsx"
    path.write_bytes(load_format("xlsx").render_fit(real_document(BOOK)))
    book = openpyxl.load_workbook(path)
    sheet = book["prices"]
    heads = [head.value for head in sheet[4]]
    # What sorting does: the inputs of two rows change places, with their cards.
    first, second = (row for row in sheet.iter_rows(min_row=5) if row[0].value in ("h100-sxm-80gb", "b200-sxm-180gb"))
    for title in ("card", "verdict", "cards needed", "lot size (cards)", *(one for one in heads if "of a lot" in one)):
        at = heads.index(title)
        first[at].value, second[at].value = second[at].value, first[at].value
    book.save(path)
    (tmp_path / "out").mkdir()
    cards = computed(path, tmp_path / "out")["cards"]
    titles = [head.value for head in cards[1]]
    totals = {
        row[titles.index("card")]: row[titles.index("price, 7 days")]
        for row in cards.iter_rows(min_row=2, values_only=True)
    }
    assert totals["h100-sxm-80gb"] == 400.0
    assert totals["b200-sxm-180gb"] == 1500.25


@contextmanager
def served(pages: dict[str, bytes]) -> Iterator[tuple[int, list[str]]]:
    """A port that answers for every host name, and what was asked of it."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.headers['Host']}{self.path}")
            body = pages.get(self.path)
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            """Nothing on standard error."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port, asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def opened(page: bytes) -> tuple[list[str], list[str]]:
    """(what Chromium asked of any host, what it wrote to its console) while it showed a page."""
    with served({"/report.html": page}) as (port, asked):
        shown = look.run_chromium(
            f"--host-resolver-rules=MAP * 127.0.0.1:{port}",
            "--enable-logging=stderr",
            "--virtual-time-budget=3000",
            "--dump-dom",
            "http://report.test/report.html",
        )
    return asked, [line for line in shown.stderr.splitlines() if "CONSOLE" in line]


@has("chromium")
def test_a_page_that_loads_and_complains_is_seen_to_do_so() -> None:
    """The two observations of the next test can fail."""
    page = b"<!DOCTYPE html><img src='http://elsewhere.test/x.png'><script>console.error('seen')</script>"
    asked, console = opened(page)
    assert "elsewhere.test/x.png" in asked
    assert any("seen" in line for line in console)


@has("chromium")
def test_the_page_asks_for_nothing_and_complains_of_nothing(tmp_path: Path) -> None:
    for document in (hard_document(), served_document(tmp_path, "h100-sxm", "t4")):
        asked, console = opened(load_format("html").render_fit(document))
        assert asked == ["report.test/report.html"]
        assert console == []


@has("chromium")
@pytest.mark.parametrize("width", [look.PHONE, look.SCREEN])
def test_the_page_is_no_wider_than_its_window(width: int, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    for document in (hard_document(), real_document(BOOK), served_document(tmp_path, "h100-sxm")):
        path.write_bytes(load_format("html").render_fit(document))
        assert look.page_size(path, width)[0] == width
    path.write_text(f"<!DOCTYPE html><body style='margin:0'><div style='width:{width + 300}px'>wide</div></body>")
    assert look.page_size(path, width)[0] == width + 300


@has("chromium")
@pytest.mark.parametrize("make", REPORTS.values(), ids=REPORTS)
def test_a_page_of_tables_asks_for_nothing_and_is_no_wider_than_its_window(
    make: Callable[[], TabularReport], tmp_path: Path
) -> None:
    content = load_tabular_format("html").render_tables(make())
    asked, console = opened(content)
    assert (asked, console) == (["report.test/report.html"], [])
    path = tmp_path / "report.html"
    path.write_bytes(content)
    for width in (look.PHONE, look.SCREEN):
        assert look.page_size(path, width)[0] == width
    assert set(look.hidden_widths(path, look.SCREEN)) == {0}


def crowded(folder: Path) -> Iterator[FitDocument]:
    """Every card of the catalog, most of them several times, from sellers with long names and lots of several."""
    long = OfferBook(
        name="long",
        seller="Acme Cloud Computing International",
        currency="USD",
        offers=tuple(
            Offer(card=one.id, lot_size=8, price_3_days=11900.0, price_7_days=24420.0, price_30_days=91650.0)
            for one in CATALOG.cards
        ),
    )
    offers = make_offers(BOOK, long)
    yield flows.fit(make_profile(), "p.json", Shape(32000, 16, 4000), CATALOG, offers)
    model = folder / "gpt-oss-120b"
    model.mkdir(exist_ok=True)
    (model / "config.json").write_text(json.dumps(CONFIGS["openai/gpt-oss-120b"]))
    request = VllmRequest(model=str(model), max_model_len=32768, concurrency=1000)
    yield flows.start_vllm(request, CATALOG, offers)
    yield flows.start_vllm(request, CATALOG, offers, find_cards(CATALOG, ("h100-sxm", "l40s", "mi300x")))


@has("chromium")
def test_no_column_of_a_table_is_out_of_sight_on_a_laptop(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    for document in crowded(tmp_path):
        path.write_bytes(load_format("html").render_fit(document))
        for width in (1200, look.SCREEN, 1300):
            hidden = look.hidden_widths(path, width)
            assert hidden == [0] * len(hidden), (document.model.name, width)
            assert len(hidden) >= 3
    wide = "<div class='scroll' style='overflow-x:auto'><div style='width:1500px'>wide</div></div>"
    path.write_text(f"<!DOCTYPE html><body style='margin:0'>{wide}</body>")
    assert look.hidden_widths(path, 1200) == [300]


def test_the_script_says_which_program_is_missing(tmp_path: Path) -> None:
    script = REPOSITORY / "scripts" / "look_at_reports.py"
    done = subprocess.run(
        [sys.executable, script, "profile.json"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "look_at_reports: chromium or chromium-browser or google-chrome is not on PATH: apt-get install chromium\n"
    )


@has("chromium")
@has("soffice")
@has("pdftoppm")
def test_the_script_draws_page_and_workbook(tmp_path: Path) -> None:
    for name in ("html", "xlsx"):
        (tmp_path / f"report.{name}").write_bytes(load_format(name).render_fit(hard_document()))
    look.draw(tmp_path)
    drawn = {path.name: path.stat().st_size for path in tmp_path.glob("*.png")}
    assert {"page-light.png", "page-dark.png", "page-phone.png", "page-print-1.png"} <= set(drawn)
    assert sum(name.startswith("workbook-") for name in drawn) >= 7  # a sheet, a page
    assert min(drawn.values()) > 2000
    assert (tmp_path / "page-light.png").read_bytes() != (tmp_path / "page-dark.png").read_bytes()
