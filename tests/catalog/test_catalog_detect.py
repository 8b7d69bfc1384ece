from __future__ import annotations

import pytest
from catalog_builders import make_card, make_catalog, make_memory

from gpufit.catalog.card_parts import DriverTotal
from gpufit.catalog.detect import detect_card, normal_pci_id

MIB = 2**20
PCIE = make_card(
    "x9-pcie-80gb",
    device_names=("MAKER X9 PCIe",),
    smi_table_name="MAKER X9...",
    pci_ids=("10de:2331",),
    memory=make_memory(
        nominal_gb=80,
        driver_total_mib=81559,
        driver_totals_other=(DriverTotal(mib=76460, when="ECC on"),),
        torch_totals_mib=(81008,),
        planning_torch_gib=79.11,
    ),
)
SXM = make_card("x9-sxm-80gb", device_names=("MAKER X9",), pci_ids=("10de:2330",), memory=PCIE.memory)
UNSIZED = make_card("x9-sxm-64gb", device_names=("MAKER X9 64GB",), memory=make_memory(nominal_gb=64))
CATALOG = make_catalog(PCIE, SXM, UNSIZED)


def test_the_pci_id_decides() -> None:
    found = detect_card(CATALOG, "MAKER X9 PCIe", "10de:2331", 81559 * MIB)
    assert (found.card, found.matched_by, found.warnings) == (PCIE, "pci_id", ())
    assert found.reason == "PCI id 10de:2331 is x9-pcie-80gb"


def test_the_pci_id_beats_the_name_and_says_so() -> None:
    found = detect_card(CATALOG, "MAKER X9 PCIe", "10de:2330", None)
    assert found.card is SXM
    (warning,) = found.warnings
    assert "'MAKER X9 PCIe'" in warning


def test_the_exact_name_decides_where_there_is_no_pci_id() -> None:
    found = detect_card(CATALOG, " MAKER X9 ", None, 81008 * MIB)
    assert (found.card, found.matched_by, found.warnings) == (SXM, "name", ())


def test_a_name_with_a_strange_pci_id_may_be_a_sibling() -> None:
    found = detect_card(CATALOG, "MAKER X9", "10de:2339", None)
    assert (found.card, found.matched_by) == (SXM, "name")
    (warning,) = found.warnings
    assert "10de:2339" in warning
    assert "10de:2330" in warning


@pytest.mark.parametrize(
    ("name", "pci_id", "total", "said"),
    [
        ("maker x9 pcie", None, None, "name 'maker x9 pcie'"),
        ("MAKER X9...", None, 81559 * MIB, "name 'MAKER X9...'"),
        ("Other", "10de:ffff", 81559 * MIB, "PCI id 10de:ffff or name 'Other'"),
        (None, "nonsense", None, "PCI id nonsense"),
        (None, None, 81559 * MIB, "a size alone is never trusted"),
    ],
)
def test_no_match_says_why(name: str | None, pci_id: str | None, total: int | None, said: str) -> None:
    found = detect_card(CATALOG, name, pci_id, total)
    assert (found.card, found.matched_by) == (None, None)
    assert said in found.reason


@pytest.mark.parametrize("mib", [81559, 81008, 76460, 79200, 83990])
def test_a_total_near_any_known_one_is_fine(mib: int) -> None:
    assert detect_card(CATALOG, None, "10de:2331", mib * MIB).warnings == ()


@pytest.mark.parametrize(("mib", "said"), [(40448, "47% below"), (73000, "5% below"), (163118, "100% above")])
def test_a_total_more_than_3_percent_off_is_a_warning(mib: int, said: str) -> None:
    (warning,) = detect_card(CATALOG, None, "10de:2331", mib * MIB).warnings
    assert said in warning
    for cause in ("MIG", "vGPU", "ECC", "modded", "wrong row"):
        assert cause in warning


def test_a_row_without_totals_says_that_nothing_was_checked() -> None:
    (warning,) = detect_card(CATALOG, "MAKER X9 64GB", None, 64000 * MIB).warnings
    assert "not checked" in warning
    assert detect_card(CATALOG, "MAKER X9 64GB", None, None).warnings == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10de:26b9", "10de:26b9"),
        ("10DE:26B9", "10de:26b9"),
        ("0x10DE:0x26B9", "10de:26b9"),
        ("10de:26b9:10de:1851", "10de:26b9"),
        ("0x26B910DE", "10de:26b9"),
        (" 1002:74a1 ", "1002:74a1"),
        ("26b9", None),
        ("0000:65:00.0", None),
        ("", None),
    ],
)
def test_pci_ids_in_every_usual_spelling(text: str, expected: str | None) -> None:
    assert normal_pci_id(text) == expected
