from __future__ import annotations

import pytest
from catalog_builders import make_book, make_card, make_catalog, make_memory

from gpufit.catalog.card_parts import ContextFigure, DriverTotal, Peaks
from gpufit.catalog.offers import Offer
from gpufit.catalog.record import catalog_order
from gpufit.errors import UsageError


def test_capacity_is_the_planning_total_in_bytes_and_never_the_label() -> None:
    card = make_card(memory=make_memory(nominal_gb=48, planning_torch_gib=44.42, driver_total_mib=46068))
    assert card.capacity_bytes == 47_695_611_822


def test_capacity_is_unknown_without_a_torch_total() -> None:
    assert make_card(memory=make_memory(nominal_gb=64, driver_total_mib=65520)).capacity_bytes is None


def test_context_figure_and_its_upper_range() -> None:
    card = make_card(context=ContextFigure(mib=426, range_mib=(107, 426)))
    assert (card.context_bytes, card.context_upper_bytes) == (446_693_376, 446_693_376)
    ranged = make_card(context=ContextFigure(range_mib=(107, 426)))
    assert (ranged.context_bytes, ranged.context_upper_bytes) == (None, 446_693_376)
    single = make_card(context=ContextFigure(mib=100))
    assert (single.context_bytes, single.context_upper_bytes) == (104_857_600, 104_857_600)
    assert make_card().context_upper_bytes is None


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("fp4", False),
        ("nvfp4", False),
        ("torch.float4_e2m1fn_x2", False),
        ("bf16", True),
        ("torch.bfloat16", True),
        ("FLOAT16", True),
        ("float8_e4m3fn", True),
        ("fp8_e5m2", True),
        ("int8", None),
        ("complex64", None),
        ("", None),
    ],
)
def test_supports_reads_the_unsupported_list_then_the_peaks(dtype: str, expected: bool | None) -> None:
    card = make_card(peak_tflops=Peaks(bf16=181, fp16=181, fp8=362, unsupported=("fp4",)))
    assert card.supports(dtype) is expected


@pytest.mark.parametrize(
    ("capability", "dtype", "expected"),
    [
        ("8.9", "fp8", True),
        ("8.6", "fp8", None),
        ("10.0", "fp4", True),
        ("9.0", "fp4", None),
        ("7.5", "bf16", None),
        ("8.0", "bf16", True),
        ("12.0", "tf32", True),
        (None, "bf16", None),
    ],
)
def test_supports_falls_back_on_the_compute_capability(capability: str | None, dtype: str, expected: object) -> None:
    assert make_card(compute_capability=capability).supports(dtype) is expected


def test_an_explicit_refusal_beats_peak_and_compute_capability() -> None:
    card = make_card(compute_capability="9.0", peak_tflops=Peaks(fp8=1979, unsupported=("fp8",)))
    assert card.supports("fp8") is False


def test_known_totals_gather_driver_and_torch_figures() -> None:
    memory = make_memory(
        driver_total_mib=49140,
        driver_totals_other=(DriverTotal(mib=46068, when="ECC on"),),
        torch_totals_gib=(47.0,),
        planning_torch_gib=47.0,
    )
    assert memory.known_totals_bytes == (48_305_799_168, 50_465_865_728, 51_527_024_640)
    assert make_memory().known_totals_bytes == ()


def test_an_offer_names_only_the_prices_it_has() -> None:
    offer = Offer(card="x1-48gb", lot_size=2, price_7_days=100.5)
    assert offer.prices == {7: 100.5}
    assert (offer.price(7), offer.price(3), offer.price(30)) == (100.5, None, None)
    assert offer.terms == (3, 7, 30)


def test_a_card_outside_the_book_is_one_a_lot_and_unpriced() -> None:
    book = make_book("seller", Offer(card="x1-48gb", lot_size=2), currency="EUR")
    assert book.lot_size("x1-48gb") == 2
    other = book.offer("x2-24gb")
    assert (other.lot_size, other.prices, other.currency) == (1, {}, "EUR")


def test_completing_a_book_brings_lot_sizes_and_never_prices() -> None:
    lots = make_book(
        "blank",
        Offer(card="x1-48gb", lot_size=2, price_3_days=9, currency="USD"),
        Offer(card="x2-24gb", lot_size=4),
    )
    book = make_book("seller", Offer(card="x2-24gb", lot_size=1, price_3_days=5), currency="EUR").completed_by(lots)
    assert book.lot_size("x1-48gb") == 2
    assert book.offer("x1-48gb").prices == {}
    assert book.offer("x1-48gb").currency == "EUR"
    assert book.lot_size("x2-24gb") == 1
    assert book.offer("x2-24gb").prices == {3: 5}


def test_catalog_looks_up_exact_ids_only() -> None:
    catalog = make_catalog(make_card("x1-48gb"))
    assert catalog.card("x1-48gb") is catalog.cards[0]
    with pytest.raises(UsageError, match="no card 'x1' in the catalog"):
        catalog.card("x1")


def test_catalog_order_is_by_usable_memory_then_id() -> None:
    cards = [
        make_card("c", memory=make_memory(nominal_gb=80, planning_torch_gib=79.1)),
        make_card("b", memory=make_memory(nominal_gb=48)),
        make_card("a", memory=make_memory(nominal_gb=48)),
        make_card("d", memory=make_memory(nominal_gb=48, planning_torch_gib=44.4)),
    ]
    assert [card.id for card in sorted(cards, key=catalog_order)] == ["d", "a", "b", "c"]
