"""Invariants of the shipped `catalog/`: every figure sourced and sane, every id and name unique, no price of 0."""

from __future__ import annotations

import datetime
import tomllib
from collections import Counter
from decimal import Decimal

import pytest

from gpufit.catalog.codec import card_to_table, parse_offer_book
from gpufit.catalog.detect import detect_card
from gpufit.catalog.dtypes import implied_by
from gpufit.catalog.query import names_of, squash
from gpufit.catalog.record import Card
from gpufit.catalog.store import load_folders
from gpufit.datadir import shipped_catalog_dir

CATALOG = load_folders([shipped_catalog_dir()])
CARD_FILES = sorted(shipped_catalog_dir().glob("*.toml"))
UNSIZED = {"h100-sxm-64gb", "h100-sxm-96gb"}
"""Cards whose total no software report is known for."""
LOWEST_IS_ANOTHER_ECC_MODE = {"rtx-6000-ada-48gb"}
"""Sized with ECC off, as it ships; the lowest total seen is with ECC on, and the row says so."""

every_card = pytest.mark.parametrize("card", CATALOG.cards, ids=lambda card: card.id)


def test_there_are_41_cards_each_in_one_place() -> None:
    ids = [
        key
        for path in CARD_FILES
        for key, value in tomllib.loads(path.read_text(encoding="utf-8")).items()
        if isinstance(value, dict)
    ]
    assert len(ids) == 41
    assert len(set(ids)) == 41
    assert set(ids) == {card.id for card in CATALOG.cards}


def _repeated(values: list[str]) -> list[str]:
    return [value for value, times in Counter(values).items() if times > 1]


def test_device_names_and_pci_ids_belong_to_one_card() -> None:
    assert _repeated([name for card in CATALOG.cards for name in card.device_names]) == []
    assert _repeated([pci_id for card in CATALOG.cards for pci_id in card.pci_ids]) == []


def test_every_name_and_alias_means_one_card() -> None:
    owners: dict[str, set[str]] = {}
    for card in CATALOG.cards:
        for name in names_of(card):
            owners.setdefault(squash(name), set()).add(card.id)
    assert {name: cards for name, cards in owners.items() if len(cards) > 1} == {}


@every_card
def test_a_running_card_maps_to_its_row_by_either_identity(card: Card) -> None:
    for pci_id in card.pci_ids:
        assert detect_card(CATALOG, None, pci_id, card.capacity_bytes).card is card
    for name in card.device_names:
        found = detect_card(CATALOG, name, None, card.capacity_bytes)
        assert (found.card, found.warnings) == (card, ())
    assert card.device_names or card.id in UNSIZED


@every_card
def test_every_figure_has_a_source(card: Card) -> None:
    memory, link = card.memory, card.peer_link
    peaks = card_to_table(card).get("peak_tflops", {})
    figures = {
        "device_names": card.device_names,
        "pci_ids": card.pci_ids,
        "form_factor": card.form_factor,
        "architecture": card.architecture,
        "compute_capability": card.compute_capability or card.gfx,
        "nominal": memory.nominal_gb,
        "driver_total": memory.driver_total_mib or memory.driver_totals_other,
        "torch_total": memory.planning_torch_gib or memory.torch_totals_gib or memory.torch_totals_mib,
        "bandwidth": memory.bandwidth_gb_s,
        "peak_tflops": set(peaks) - {"measured_bf16"},
        "measured_bf16": card.peak_tflops.measured_bf16,
        "host_link": card.host_link,
        "peer_link": link and link.gb_s,
        "machine": card.machine,
        "tdp": card.tdp_w,
        "mig": card.mig,
        "ecc": card.ecc,
        "software": card.software.arch,
    }
    assert set(figures) == set(card.sources.__struct_fields__)
    unsourced = [group for group, figure in figures.items() if figure and not getattr(card.sources, group)]
    assert unsourced == []
    idle = {group for group, figure in figures.items() if not figure and getattr(card.sources, group)}
    assert idle <= {"peer_link"}  # a source may say that there is no link, or leave its speed out
    assert card.context.source or (card.context.mib, card.context.range_mib) == (None, None)
    assert link is not None
    assert link.gb_s is None or link.gb_s > 0 or link.note or card.sources.peer_link


@every_card
def test_no_source_or_note_carries_a_price_or_a_local_path(card: Card) -> None:
    said = repr(card_to_table(card))
    for word in ("$", "USD", "EUR", "/home/", "/tmp/", "/root/", "file:"):
        assert word not in said


@every_card
def test_the_planning_total_is_the_lowest_seen(card: Card) -> None:
    memory = card.memory
    seen = [*memory.torch_totals_gib, *(mib / 1024 for mib in memory.torch_totals_mib)]
    if card.id in UNSIZED:
        assert (memory.planning_torch_gib, seen) == (None, [])
    elif card.id in LOWEST_IS_ANOTHER_ECC_MODE:
        assert memory.planning_torch_gib in seen
        assert f"{min(seen)} GiB" in (memory.planning_note or "")
    elif not seen:
        assert memory.planning_note is not None
    else:
        assert memory.planning_torch_gib in memory.torch_totals_gib
        assert memory.planning_torch_gib == pytest.approx(min(seen), abs=0.005)


@every_card
def test_totals_agree_with_each_other(card: Card) -> None:
    memory = card.memory
    planning = memory.planning_torch_gib
    if planning is None:
        return
    assert list(memory.torch_totals_gib) == sorted(memory.torch_totals_gib)
    assert list(memory.torch_totals_mib) == sorted(memory.torch_totals_mib)
    per_device = memory.nominal_gb / card.devices_per_card
    assert 0.90 <= planning / per_device <= 1.0
    if memory.driver_total_mib is None:
        return
    driver_gib = memory.driver_total_mib / 1024
    assert 0.90 <= driver_gib / per_device <= 1.025
    largest = max([driver_gib, *(other.mib / 1024 for other in memory.driver_totals_other)])
    assert max(memory.torch_totals_gib, default=planning) <= largest + 0.005
    assert 0 <= driver_gib - planning <= 0.045 * driver_gib + 0.01


@every_card
def test_figures_are_in_sane_ranges(card: Card) -> None:
    memory, peaks = card.memory, card.peak_tflops
    assert 16 <= memory.nominal_gb <= 288
    assert memory.bandwidth_gb_s is not None
    assert 300 <= memory.bandwidth_gb_s <= 8000
    assert card.tdp_w is None or 70 <= card.tdp_w <= 1400
    assert 1 <= card.devices_per_card <= 2
    assert peaks.fp32 is not None
    assert 8 <= peaks.fp32 <= 170
    for wide, narrow in ((peaks.bf16, peaks.fp8), (peaks.fp8, peaks.fp4), (peaks.tf32, peaks.bf16)):
        assert wide is None or narrow is None or 1.9 <= narrow / wide <= 3.4
    assert peaks.measured_bf16 is None or (peaks.bf16 is not None and 0.4 <= peaks.measured_bf16 / peaks.bf16 <= 0.9)
    context = card.context
    assert context.mib is None or 100 <= context.mib <= 700
    if context.range_mib is not None:
        low, high = context.range_mib
        assert 100 <= low <= (context.mib or low) <= high <= 1000
    assert card.host_link is not None
    assert card.host_link.gb_s is not None
    assert 32 <= card.host_link.gb_s <= 900


@every_card
def test_pcie_speed_follows_from_generation_and_lanes(card: Card) -> None:
    link = card.host_link
    assert link is not None
    if link.kind == "PCIe":
        assert link.gen is not None
        assert (link.lanes, link.gb_s) == (16, 4 * 2**link.gen)
    else:
        assert (link.gen, link.lanes, link.gb_s) == (None, None, 900)


@every_card
def test_a_format_is_either_lacking_or_has_a_peak(card: Card) -> None:
    for lacking in card.peak_tflops.unsupported:
        assert getattr(card.peak_tflops, lacking) is None
        assert not implied_by(card.compute_capability, lacking)
    for family in ("bf16", "tf32", "fp8", "fp4"):
        if card.vendor == "NVIDIA":
            assert card.supports(family) is (family not in card.peak_tflops.unsupported)


@every_card
def test_vendor_compute_capability_and_build_target_agree(card: Card) -> None:
    if card.vendor == "NVIDIA":
        assert card.compute_capability is not None
        assert card.software.arch == "sm_" + card.compute_capability.replace(".", "")
        assert all(pci_id.startswith("10de:") for pci_id in card.pci_ids)
    else:
        assert card.vendor == "AMD"
        assert card.software.arch == card.gfx
        assert all(pci_id.startswith("1002:") for pci_id in card.pci_ids)


@every_card
def test_mig_is_consistent(card: Card) -> None:
    if card.mig is None:
        assert card.id == "h100-sxm-64gb"
        return
    assert card.mig.supported == bool(card.mig.profiles) == (card.mig.max_instances in (4, 7))


def test_one_mi250x_is_two_devices_and_its_totals_are_per_device() -> None:
    card = CATALOG.card("mi250x-128gb")
    assert card.devices_per_card == 2
    assert card.capacity_bytes == int(63.98 * 2**30)
    assert [other.id for other in CATALOG.cards if other.devices_per_card != 1] == ["mi250x-128gb"]


def test_cards_without_a_known_total_have_no_capacity() -> None:
    assert {card.id for card in CATALOG.cards if card.capacity_bytes is None} == UNSIZED


def test_no_price_anywhere_is_zero_and_the_blank_book_has_none() -> None:
    assert "blank" in {book.name for book in CATALOG.offer_books}
    for book in CATALOG.offer_books:
        for offer in book.offers:
            assert all(price > 0 for price in offer.prices.values())
            assert book.name != "blank" or offer.prices == {}


def test_every_card_has_a_lot_of_one_but_b200_comes_in_twos() -> None:
    book = CATALOG.offer_book("blank")
    assert sorted(offer.card for offer in book.offers) == sorted(card.id for card in CATALOG.cards)
    assert {offer.card: offer.lot_size for offer in book.offers if offer.lot_size != 1} == {"b200-sxm-180gb": 2}
    assert book.offer("b200-sxm-180gb").source


def test_the_blank_book_offers_every_term_of_every_card_to_fill_in() -> None:
    text = (shipped_catalog_dir() / "offers" / "blank.toml").read_text(encoding="utf-8")
    for days in (3, 7, 30):
        assert text.count(f"\n# price_{days}_days =") == 41


def test_a_filled_in_copy_of_the_blank_book_is_read() -> None:
    text = (shipped_catalog_dir() / "offers" / "blank.toml").read_text(encoding="utf-8")
    for key in ("seller", "currency", "date"):
        text = text.replace(f"\n# {key} = ", f"\n{key} = ")
    text = text.replace("# price_7_days =", "price_7_days = 1234.50")
    book = parse_offer_book(text, "copy.toml", "copy")
    assert (book.seller, book.currency) == ("Example Cloud", "EUR")
    assert {offer.card: offer.prices for offer in book.offers} == {card.id: {7: 1234.5} for card in CATALOG.cards}


# What a card and hour was listed at, USD: the median, lowest and highest of the dated on-demand offers of 2026-05-24 in
# https://github.com/tardellirs/gpu-pricing/blob/8f09a68030967f5c269c304493abf0911dd19858/src/data/offerings.json
PUBLIC_HOURLY = [
    ("l40s-48gb", 8, "0.55", "0.915", "1.95"),
    ("h100-pcie-80gb", 6, "1.74", "2.19", "4.25"),
    ("h100-sxm-80gb", 12, "1.92", "2.69", "4.76"),
    ("h200-sxm-141gb", 11, "2.49", "3.5", "4.55"),
    ("b200-sxm-180gb", 8, "3.99", "5.76", "6.99"),
]


def test_the_public_book_is_dated_marked_and_off_unless_named() -> None:
    book = CATALOG.offer_book("public-indicative")
    assert (book.indicative, book.currency, book.date) == (True, "USD", datetime.date(2026, 5, 24))
    assert book.note is not None
    assert "nobody offers" in book.note
    assert [one.name for one in CATALOG.default_books] == ["blank"]


@pytest.mark.parametrize(("card_id", "offers", "lowest", "median", "highest"), PUBLIC_HOURLY)
def test_public_figures_of_the_main_cards(card_id: str, offers: int, lowest: str, median: str, highest: str) -> None:
    offer = CATALOG.offer_book("public-indicative").offer(card_id)
    assert (offer.note or "").startswith(
        f"{median} USD a card and hour (median of {offers} offers, {lowest} to {highest}): "
    )


def test_every_public_price_is_hours_times_the_figure_that_its_note_states() -> None:
    book = CATALOG.offer_book("public-indicative")
    priced = [offer for offer in book.offers if offer.prices]
    assert len(priced) == 28
    for offer in priced:
        hourly = Decimal((offer.note or "").split(" USD a card and hour (")[0])
        expected = {days: float(hourly * 24 * days * offer.lot_size) for days in (3, 7, 30)}
        assert offer.prices == expected, offer.card
        assert offer.source is not None
        assert offer.source.startswith("https://")
    assert {offer.card: offer.lot_size for offer in priced if offer.lot_size > 1} == {"b200-sxm-180gb": 2}


# Figures of the five main cards, typed from the source at the end of each row; each source is also in the card's file.
ML_ENGINEERING = "github stas00/ml-engineering compute/accelerator/README.md @744d01e1"
L40S_SHEET = "https://www.mullet.se/product.html?product_id=355414"
H100_SHEET = "https://archive-lib.hpctech.co.jp/gpuproduct/nvidia-h100.html"
PLANNER = "github ai-dynamo/aiconfigurator aic-core/src/aiconfigurator_core/systems/"
TOTALS = "https://github.com/modal-labs/modal-client/pull/2797"
GLOSSARY = "github modal-labs/gpu-glossary gpu-glossary/host-software/nvidia-smi.md @ec7919a4"
NOT_KEPT = "public code, repository not recorded"


def _is_cited(sources: tuple[str, ...], expected: str) -> bool:
    return any(expected in source for source in sources)


@pytest.mark.parametrize(
    ("card_id", "nominal_gb", "driver_mib", "source"),
    [
        ("l40s-48gb", 48, 46068, TOTALS),
        ("h100-pcie-80gb", 80, 81559, TOTALS),
        ("h100-sxm-80gb", 80, 81559, TOTALS),
        ("h200-sxm-141gb", 141, 143771, NOT_KEPT),
        ("b200-sxm-180gb", 180, 183359, GLOSSARY),
    ],
)
def test_nominal_size_and_driver_total(card_id: str, nominal_gb: int, driver_mib: int, source: str) -> None:
    card = CATALOG.card(card_id)
    assert (card.memory.nominal_gb, card.memory.driver_total_mib) == (nominal_gb, driver_mib)
    assert _is_cited(card.sources.driver_total, source)


@pytest.mark.parametrize(
    ("card_id", "seen_gib", "planning_gib", "capacity_bytes", "source"),
    [
        ("l40s-48gb", (44.42, 44.52), 44.42, 47_695_611_822, "https://github.com/stepfun-ai/Step-Video-T2V/issues/8"),
        ("h100-pcie-80gb", (79.11, 79.18), 79.11, 84_943_715_696, "github sghowell/wolfgang docs/benchmarks"),
        (
            *("h100-sxm-80gb", (79.1, 79.11, 79.18, 79.19), 79.1, 84_932_978_278),
            "https://github.com/vllm-project/vllm/issues/27508",
        ),
        ("h200-sxm-141gb", (139.72, 139.8), 139.72, 150_023_207_649, "github stas00/ml-engineering debug/pytorch.md"),
        (
            *("b200-sxm-180gb", (178.34, 178.35, 178.36), 178.34, 191_491_116_892),
            "https://github.com/unslothai/unsloth/pull/8669",
        ),
    ],
)
def test_totals_that_torch_sees(
    card_id: str, seen_gib: tuple[float, ...], planning_gib: float, capacity_bytes: int, source: str
) -> None:
    card = CATALOG.card(card_id)
    assert (card.memory.torch_totals_gib, card.memory.planning_torch_gib) == (seen_gib, planning_gib)
    assert card.capacity_bytes == capacity_bytes
    assert _is_cited(card.sources.torch_total, source)


@pytest.mark.parametrize(
    ("card_id", "kind", "bandwidth", "source"),
    [
        ("l40s-48gb", "GDDR6", 864, L40S_SHEET),
        ("h100-pcie-80gb", "HBM2e", 2000, H100_SHEET),
        ("h100-sxm-80gb", "HBM3", 3350, H100_SHEET),
        ("h200-sxm-141gb", "HBM3e", 4800, ML_ENGINEERING),
        ("b200-sxm-180gb", "HBM3e", 8000, ML_ENGINEERING),
    ],
)
def test_memory_kind_and_bandwidth(card_id: str, kind: str, bandwidth: int, source: str) -> None:
    card = CATALOG.card(card_id)
    assert (card.memory.kind, card.memory.bandwidth_gb_s) == (kind, bandwidth)
    assert _is_cited(card.sources.bandwidth, source)


@pytest.mark.parametrize(
    ("card_id", "fp32", "tf32", "bf16", "fp8", "int8", "fp4", "source"),
    [
        ("l40s-48gb", 91.6, 183, 362.05, 733, 733, None, L40S_SHEET),
        ("h100-pcie-80gb", 51, 378, 756.5, 1513, 1513, None, H100_SHEET),
        ("h100-sxm-80gb", 67, 494.5, 989, 1979, 1979, None, ML_ENGINEERING),
        ("h200-sxm-141gb", 67, 494.5, 989, 1979, 1979, None, ML_ENGINEERING),
        ("b200-sxm-180gb", 80, 1125, 2250, 4500, 4500, 9000, ML_ENGINEERING),
    ],
)
def test_dense_peaks(
    card_id: str, fp32: float, tf32: float, bf16: float, fp8: float, int8: float, fp4: float | None, source: str
) -> None:
    card = CATALOG.card(card_id)
    peaks = card.peak_tflops
    assert (peaks.fp32, peaks.tf32, peaks.bf16, peaks.fp16) == (fp32, tf32, bf16, bf16)
    assert (peaks.fp8, peaks.int8, peaks.fp4) == (fp8, int8, fp4)
    assert _is_cited(card.sources.peak_tflops, source)


@pytest.mark.parametrize(
    ("card_id", "device_name", "pci_id", "tdp_w", "peer_gb_s", "optional", "source"),
    [
        ("l40s-48gb", "NVIDIA L40S", "10de:26b9", 350, 0, False, f"{PLANNER}l40s.yaml"),
        ("h100-pcie-80gb", "NVIDIA H100 PCIe", "10de:2331", 350, 600, True, "https://manuals.plus/m/56b0c3ef7d0a1c"),
        ("h100-sxm-80gb", "NVIDIA H100 80GB HBM3", "10de:2330", 700, 900, False, H100_SHEET),
        ("h200-sxm-141gb", "NVIDIA H200", "10de:2335", 700, 900, False, f"{PLANNER}h200_sxm.yaml"),
        ("b200-sxm-180gb", "NVIDIA B200", "10de:2901", 1000, 1800, False, GLOSSARY),
    ],
)
def test_identity_power_and_peer_link(
    card_id: str, device_name: str, pci_id: str, tdp_w: int, peer_gb_s: int, optional: bool, source: str
) -> None:
    card = CATALOG.card(card_id)
    assert (card.device_names, card.pci_ids, card.tdp_w) == ((device_name,), (pci_id,), tdp_w)
    assert card.peer_link is not None
    assert (card.peer_link.gb_s, card.peer_link.optional) == (peer_gb_s, optional)
    assert _is_cited(card.sources.tdp, source)


@pytest.mark.parametrize(
    ("card_id", "compute_capability", "min_cuda", "context_mib", "range_mib", "source"),
    [
        ("l40s-48gb", "8.9", "11.8", 426, (107, 426), "https://github.com/unslothai/unsloth-zoo/pull/1053"),
        ("h100-pcie-80gb", "9.0", "11.8", 527, (514, 530), NOT_KEPT),
        ("h100-sxm-80gb", "9.0", "11.8", 527, (514, 530), NOT_KEPT),
        ("h200-sxm-141gb", "9.0", "11.8", 530, (514, 530), "github stas00/ml-engineering debug/pytorch.md"),
        ("b200-sxm-180gb", "10.0", "12.8", 612, (612, 712), "https://github.com/unslothai/unsloth/pull/8669"),
    ],
)
def test_software_floor_and_context(
    card_id: str, compute_capability: str, min_cuda: str, context_mib: int, range_mib: tuple[int, int], source: str
) -> None:
    card = CATALOG.card(card_id)
    assert (card.compute_capability, card.software.min_cuda) == (compute_capability, min_cuda)
    assert (card.context.mib, card.context.range_mib) == (context_mib, range_mib)
    assert _is_cited(card.context.source[:1], source)


def test_h100_pcie_and_sxm_are_two_cards_of_one_size() -> None:
    pcie, sxm = CATALOG.card("h100-pcie-80gb"), CATALOG.card("h100-sxm-80gb")
    assert pcie.memory.driver_total_mib == sxm.memory.driver_total_mib == 81559
    assert (pcie.memory.bandwidth_gb_s, sxm.memory.bandwidth_gb_s) == (2000, 3350)
    assert (pcie.peak_tflops.bf16, sxm.peak_tflops.bf16) == (756.5, 989)
    assert (pcie.peak_tflops.fp32, sxm.peak_tflops.fp32) == (51, 67)
    assert (pcie.tdp_w, sxm.tdp_w) == (350, 700)
    assert set(pcie.device_names).isdisjoint(sxm.device_names)
    assert set(pcie.pci_ids).isdisjoint(sxm.pci_ids)


@pytest.mark.parametrize(
    ("card_id", "dtype", "expected"),
    [
        ("l40s-48gb", "fp8", True),
        ("h100-nvl-94gb", "bf16", True),
        ("a100-sxm-80gb", "fp8", False),
        ("v100-pcie-16gb", "bf16", False),
        ("b200-sxm-180gb", "fp4", True),
        ("h200-sxm-141gb", "fp4", False),
        ("rtx-5090-32gb", "fp8", True),
        ("mi300x-192gb", "fp8", True),
        ("mi250x-128gb", "fp8", False),
        ("mi355x-288gb", "tf32", None),
        ("v100-sxm2-32gb", "int8", None),
    ],
)
def test_what_a_card_supports(card_id: str, dtype: str, expected: bool | None) -> None:
    assert CATALOG.card(card_id).supports(dtype) is expected
