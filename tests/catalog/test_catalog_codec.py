from __future__ import annotations

import datetime
import math

import pytest
from catalog_builders import MINIMAL, make_card
from hypothesis import given
from hypothesis import strategies as st

from gpufit.catalog.card_parts import (
    CardMemory,
    ContextFigure,
    DriverTotal,
    Estimate,
    HostLink,
    Mig,
    Peaks,
    PeerLink,
    Software,
    Sources,
)
from gpufit.catalog.codec import card_from_table, card_to_table, parse_cards, parse_offer_book
from gpufit.catalog.record import Card
from gpufit.errors import UnreadableInputError

BOOK = """
schema_version = 1
seller = "Example Cloud"
currency = "EUR"
date = 2026-01-31

[x1-48gb]
lot_size = 2
price_3_days = 100
price_30_days = 812.5

[x2-24gb]
lot_size = 1
"""

words = st.text(min_size=1, max_size=20)
texts = st.lists(words, max_size=3).map(tuple)
counts = st.integers(1, 10**9)
rates = st.floats(0.001, 1e6, allow_nan=False, allow_infinity=False)
families = st.sampled_from(["fp32", "tf32", "bf16", "fp16", "fp8", "fp4", "int8"])


def maybe(strategy: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.none() | strategy


memories = st.builds(
    CardMemory,
    kind=maybe(words),
    nominal_gb=counts,
    bandwidth_gb_s=maybe(rates),
    driver_total_mib=maybe(counts),
    driver_totals_other=st.lists(st.builds(DriverTotal, mib=counts, when=words), max_size=2).map(tuple),
    torch_totals_mib=st.lists(counts, max_size=3).map(tuple),
    torch_totals_gib=st.lists(rates, max_size=3).map(tuple),
    planning_torch_gib=maybe(rates),
)
cards = st.builds(
    Card,
    id=st.from_regex(r"[a-z0-9]{1,5}(-[a-z0-9]{1,5}){0,2}", fullmatch=True),
    vendor=words,
    name=words,
    aliases=texts,
    device_names=texts,
    pci_ids=st.lists(st.from_regex(r"[0-9a-f]{4}:[0-9a-f]{4}", fullmatch=True), max_size=2).map(tuple),
    compute_capability=maybe(st.sampled_from(["7.0", "8.9", "10.3"])),
    devices_per_card=st.integers(1, 4),
    tdp_w=maybe(counts),
    memory=memories,
    peak_tflops=st.builds(Peaks, fp32=maybe(rates), int8=maybe(rates), unsupported=st.lists(families).map(tuple)),
    estimates=st.dictionaries(st.sampled_from(["bf16", "int8"]), st.builds(Estimate, value=rates, how=words)),
    context=st.builds(ContextFigure, mib=maybe(counts), range_mib=maybe(st.tuples(counts, counts)), source=texts),
    host_link=maybe(st.builds(HostLink, kind=words, gen=maybe(counts), gb_s=maybe(rates))),
    peer_link=maybe(st.builds(PeerLink, kind=words, gb_s=maybe(st.just(0.0) | rates), optional=st.booleans())),
    mig=maybe(st.builds(Mig, supported=st.booleans(), max_instances=maybe(st.integers(0, 7)), profiles=texts)),
    software=st.builds(Software, arch=maybe(words)),
    sources=st.builds(Sources, bandwidth=texts, tdp=texts),
)


@given(cards)
def test_a_card_survives_the_round_trip(card: Card) -> None:
    assert card_from_table(card.id, card_to_table(card), "file") == card


def _values(table: object) -> list[object]:
    if isinstance(table, dict):
        return [inner for value in table.values() for inner in _values(value)]
    return [table]


@given(cards)
def test_an_unknown_figure_is_left_out_of_the_table(card: Card) -> None:
    assert None not in _values(card_to_table(card))


def test_the_smallest_card_file() -> None:
    (card,) = parse_cards(MINIMAL, "mine.toml")
    assert card == make_card("x1-48gb", name="Card X1")
    assert card.memory.bandwidth_gb_s is None


def _refusal(text: str) -> str:
    with pytest.raises(UnreadableInputError) as caught:
        parse_cards(text, "mine.toml")
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("added", "said"),
    [
        ("speed = 3", "mine.toml: card x1-48gb: memory.speed: unknown key"),
        ("driver_total_mib = 'big'", "mine.toml: card x1-48gb: memory.driver_total_mib: expected int, got str"),
        ("driver_total_mib = true", "mine.toml: card x1-48gb: memory.driver_total_mib: expected int, got bool"),
        ("driver_total_mib = 0", "mine.toml: card x1-48gb: memory.driver_total_mib: expected int >= 1"),
        ("bandwidth_gb_s = 0.0", "mine.toml: card x1-48gb: memory.bandwidth_gb_s: expected float > 0.0"),
        ("bandwidth_gb_s = nan", "mine.toml: x1-48gb.memory.bandwidth_gb_s: nan is not a figure"),
        ("torch_totals_gib = [inf]", "mine.toml: x1-48gb.memory.torch_totals_gib: inf is not a figure"),
        ("kind = ''", "mine.toml: card x1-48gb: memory.kind: expected str of length >= 1"),
        ("torch_totals_mib = 5", "mine.toml: card x1-48gb: memory.torch_totals_mib: expected array, got int"),
        ("torch_totals_mib = [5, '6']", "mine.toml: card x1-48gb: memory.torch_totals_mib[1]: expected int, got str"),
        ("[x1-48gb.memmory]\nkind = 'HBM3'", "mine.toml: card x1-48gb: memmory: unknown key"),
        ("[x1-48gb.peak_tflops]\nunsupported = ['fp5']", "mine.toml: card x1-48gb: peak_tflops.unsupported[0]: "),
        ("[x1-48gb.estimates.fp5]\nvalue = 1\nhow = 'x'", "mine.toml: card x1-48gb: estimates"),
        ("[x1-48gb.sources]\ntdp = 'a link'", "mine.toml: card x1-48gb: sources.tdp: expected array, got str"),
        ("[x1-48gb.sources]\nprice = ['a']", "mine.toml: card x1-48gb: sources.price: unknown key"),
        ("[x1-48gb.mig]\nprofiles = []", "mine.toml: card x1-48gb: mig.supported: missing"),
    ],
)
def test_what_is_wrong_in_a_card_is_named(added: str, said: str) -> None:
    assert _refusal(f"{MINIMAL}\n{added}\n").startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = ", "mine.toml: not valid TOML"),
        ("", "mine.toml: schema_version is missing"),
        ("schema_version = '1'", "mine.toml: schema_version is missing or not a whole number"),
        ("schema_version = true", "mine.toml: schema_version is missing or not a whole number"),
        ("schema_version = 0", "mine.toml: schema_version is missing or not a whole number"),
        ("schema_version = 2", "mine.toml: schema_version 2 is newer than this gpufit reads (1); upgrade"),
        ("schema_version = 1\nseller = 'x'", "mine.toml: seller: unknown key"),
        ("schema_version = 1\n[X1]\nname = 'x'", "mine.toml: card 'X1': an id is lower-case"),
        ("schema_version = 1\n[x1]\nid = 'x2'", "mine.toml: card x1: id: unknown key"),
        ("schema_version = 1\n[x1]\nvendor = 'V'\nname = 'N'", "mine.toml: card x1: memory: missing"),
        (MINIMAL.replace("48\n", "48.5\n"), "mine.toml: card x1-48gb: memory.nominal_gb: expected int, got float"),
        (MINIMAL.replace("[x1-48gb]", "[x1-48gb]\npci_ids = ['10DE:26B9']"), "mine.toml: card x1-48gb: pci_ids[0]:"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(text: str, said: str) -> None:
    assert _refusal(text).startswith(said)


def test_an_offer_book() -> None:
    book = parse_offer_book(BOOK, "offers/example.toml", "example")
    assert (book.name, book.seller, book.currency) == ("example", "Example Cloud", "EUR")
    assert book.date == datetime.date(2026, 1, 31)
    assert book.offer("x1-48gb").lot_size == 2
    assert book.offer("x1-48gb").prices == {3: 100, 30: 812.5}
    assert book.offer("x1-48gb").currency == "EUR"
    assert book.offer("x2-24gb").prices == {}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("price_3_days = 100", "price_3_days = 0", "b.toml: card x1-48gb: price_3_days: expected float > 0.0"),
        ("price_3_days = 100", "price_3_days = 1e13", "b.toml: card x1-48gb: price_3_days: expected float <= 1"),
        ("price_3_days = 100", "price_3_days = -1", "b.toml: card x1-48gb: price_3_days: expected float > 0.0"),
        ("price_3_days = 100", "price_3_days = ''", "b.toml: card x1-48gb: price_3_days: expected float"),
        (
            "price_3_days = 100",
            "price_30_day = 9",
            "b.toml: card x1-48gb: price_30_day: unknown key; did you mean price_30_days?",
        ),
        (
            "price_3_days = 100",
            "per_hour = 9",
            "b.toml: card x1-48gb: per_hour: unknown key; remove it or correct its spelling",
        ),
        ('"EUR"', '"€"', "b.toml: currency: '€' is not a code of three capital letters (ISO 4217)"),
        ('"EUR"', '"eur"', "b.toml: currency: 'eur' is not a code of three capital letters (ISO 4217)"),
        ("lot_size = 2", "", "b.toml: card x1-48gb: lot_size: missing"),
        ("lot_size = 2", "lot_size = 0", "b.toml: card x1-48gb: lot_size: expected int >= 1"),
        ("lot_size = 2", "lot_size = 2\ncurrency = 'USD'", "b.toml: card x1-48gb: currency: unknown key"),
        ("lot_size = 2", "lot_size = 2\ncard = 'y'", "b.toml: card x1-48gb: card: unknown key"),
        ("seller =", "vendor =", "b.toml: vendor: unknown key"),
        ("seller =", "name =", "b.toml: name: unknown key"),
        ('seller = "Example Cloud"', "", "b.toml: seller is missing; a book with prices must say it"),
        ('currency = "EUR"', "", "b.toml: currency is missing; a book with prices must say it"),
        ("date = 2026-01-31", "", "b.toml: date is missing; a book with prices must say it"),
        ("date = 2026-01-31", "date = 'soon'", "b.toml: date: "),
    ],
)
def test_what_is_wrong_in_an_offer_book_is_named(old: str, new: str, said: str) -> None:
    assert old in BOOK
    with pytest.raises(UnreadableInputError) as caught:
        parse_offer_book(BOOK.replace(old, new), "b.toml", "b")
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


def test_a_blank_book_needs_no_seller_currency_or_date() -> None:
    book = parse_offer_book("schema_version = 1\n[x1-48gb]\nlot_size = 2\n", "b.toml", "b")
    assert (book.seller, book.currency, book.date) == (None, None, None)
    assert book.offer("x1-48gb").price(3) is None


@given(st.floats(min_value=0.01, max_value=1e9))
def test_a_price_is_kept_as_written(price: float) -> None:
    text = BOOK.replace("price_3_days = 100", f"price_3_days = {price!r}")
    found = parse_offer_book(text, "b.toml", "b").offer("x1-48gb").price(3)
    assert found is not None
    assert math.isclose(found, price, rel_tol=0)
