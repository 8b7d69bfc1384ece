from __future__ import annotations

import random

import pytest
from catalog_builders import make_card, make_catalog, make_memory
from hypothesis import given
from hypothesis import strategies as st

from gpufit.catalog.query import find_card, names_of
from gpufit.catalog.record import Catalog
from gpufit.catalog.store import load_folders
from gpufit.datadir import shipped_catalog_dir
from gpufit.errors import UsageError

CATALOG = make_catalog(
    make_card("x9-pcie-80gb", name="Maker X9 PCIe 80GB", device_names=("MAKER X9 PCIe",)),
    make_card("x9-sxm-80gb", name="Maker X9 SXM5 80GB", aliases=("X9 SXM",), device_names=("MAKER X9 80GB",)),
    make_card("x9-sxm-64gb", name="Maker X9 SXM 64GB", memory=make_memory(nominal_gb=64)),
    make_card("x7s-48gb", name="Maker X7S 48GB"),
    make_card("x7-48gb", name="Maker X7 48GB"),
)
REAL = load_folders([shipped_catalog_dir()])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x9-pcie-80gb", "x9-pcie-80gb"),
        ("X9 PCIe", "x9-pcie-80gb"),
        ("x9pcie80gb", "x9-pcie-80gb"),
        ("pcie x9", "x9-pcie-80gb"),
        ("  maker_x9 / pcie ", "x9-pcie-80gb"),
        ("x9-sxm", "x9-sxm-80gb"),
        ("X9 SXM5", "x9-sxm-80gb"),
        ("x9 sxm 64", "x9-sxm-64gb"),
        ("x9 64 GiB", "x9-sxm-64gb"),
        ("MAKER X9 80GB", "x9-sxm-80gb"),
        ("x7", "x7-48gb"),
        ("x7s", "x7s-48gb"),
    ],
)
def test_finds_the_one_card_that_is_meant(text: str, expected: str) -> None:
    assert find_card(CATALOG, text).id == expected


def _refusal(catalog: Catalog, text: str) -> str:
    with pytest.raises(UsageError) as caught:
        find_card(catalog, text)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_several_cards_are_listed_and_none_is_picked() -> None:
    said = _refusal(CATALOG, "x9")
    assert said == "'x9' could be several cards; say which: x9-pcie-80gb, x9-sxm-80gb, x9-sxm-64gb"


def test_a_long_list_is_cut_short() -> None:
    many = make_catalog(*(make_card(f"x{n}-48gb", name=f"Maker X{n}") for n in range(11)))
    said = _refusal(many, "maker")
    assert said.endswith("x7-48gb and 3 more")
    assert "x8-48gb" not in said


def test_an_unknown_card_gets_the_nearest_names() -> None:
    said = _refusal(CATALOG, "x7s-49gb")
    assert said.startswith("no card 'x7s-49gb' in the catalog; did you mean x7s-48gb")
    assert "pcie" not in said


@pytest.mark.parametrize("text", ["", "  ", "-/-", "zzzzzzzz"])
def test_nothing_alike_points_to_the_list(text: str) -> None:
    assert "gpufit catalog list" in _refusal(CATALOG, text)


def test_two_cards_of_one_name_are_both_offered() -> None:
    twins = make_catalog(make_card("a-48gb", aliases=("Twin",)), make_card("b-48gb", aliases=("twin",)))
    assert "a-48gb, b-48gb" in _refusal(twins, "TWIN")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("b200", "b200-sxm-180gb"),
        ("l40s", "l40s-48gb"),
        ("L40", "l40-48gb"),
        ("H100 PCIe", "h100-pcie-80gb"),
        ("h100-pcie", "h100-pcie-80gb"),
        ("h100-sxm", "h100-sxm-80gb"),
        ("H100 80GB HBM3", "h100-sxm-80gb"),
        ("h100 nvl", "h100-nvl-94gb"),
        ("H200 SXM", "h200-sxm-141gb"),
        ("NVIDIA H200", "h200-sxm-141gb"),
        ("h200-nvl", "h200-nvl-141gb"),
        ("rtx 4090", "rtx-4090-24gb"),
        ("RTX4090", "rtx-4090-24gb"),
        ("GeForce RTX 3090", "rtx-3090-24gb"),
        ("mi300x", "mi300x-192gb"),
        ("a10", "a10-24gb"),
        ("a10g", "a10g-24gb"),
        ("Tesla T4", "t4-16gb"),
        ("A100 80GB PCIe", "a100-pcie-80gb"),
        ("a6000", "rtx-a6000-48gb"),
        ("RTX 6000 Ada", "rtx-6000-ada-48gb"),
    ],
)
def test_what_people_type_for_shipped_cards(text: str, expected: str) -> None:
    assert find_card(REAL, text).id == expected


@pytest.mark.parametrize(
    ("text", "candidates"),
    [
        ("h100", {"h100-pcie-80gb", "h100-sxm-80gb", "h100-nvl-94gb", "h100-sxm-64gb", "h100-sxm-96gb"}),
        ("H100", {"h100-pcie-80gb", "h100-sxm-80gb", "h100-nvl-94gb", "h100-sxm-64gb", "h100-sxm-96gb"}),
        ("nvidia h100", {"h100-pcie-80gb", "h100-sxm-80gb", "h100-nvl-94gb", "h100-sxm-64gb", "h100-sxm-96gb"}),
        ("h100 80gb", {"h100-pcie-80gb", "h100-sxm-80gb"}),
        ("h200", {"h200-sxm-141gb", "h200-nvl-141gb"}),
        ("a100", {"a100-sxm-40gb", "a100-pcie-40gb", "a100-sxm-80gb", "a100-pcie-80gb"}),
        ("a100-80gb", {"a100-sxm-80gb", "a100-pcie-80gb"}),
        ("a100-sxm", {"a100-sxm-40gb", "a100-sxm-80gb"}),
        ("v100", {"v100-sxm2-16gb", "v100-pcie-16gb", "v100-sxm2-32gb", "v100-pcie-32gb"}),
        ("gh200", {"gh200-96gb", "gh200-144gb"}),
        (
            "rtx pro 6000",
            {"rtx-pro-6000-server-96gb", "rtx-pro-6000-workstation-96gb", "rtx-pro-6000-maxq-96gb"},
        ),
    ],
)
def test_what_is_ambiguous_is_asked(text: str, candidates: set[str]) -> None:
    said = _refusal(REAL, text)
    assert said.startswith(f"{text!r} could be several cards; say which: ")
    assert set(said.split("which: ")[1].split(", ")) == candidates


@pytest.mark.parametrize("text", ["quadro rtx 6000", "h20", "h800", "l40s-24q", "mi250"])
def test_a_card_that_is_not_in_the_catalog_is_not_taken_for_another(text: str) -> None:
    assert "no card" in _refusal(REAL, text)


@pytest.mark.parametrize(
    ("card_id", "name"), [(card.id, name) for card in REAL.cards for name in names_of(card)], ids=str
)
def test_every_name_finds_its_card(card_id: str, name: str) -> None:
    assert find_card(REAL, name).id == card_id


@given(
    st.sampled_from([(card.id, name) for card in REAL.cards for name in names_of(card)]),
    st.sampled_from(["", " ", "-", "_", " / ", "."]),
    st.integers(0, 2**32),
)
def test_case_and_punctuation_do_not_matter(named: tuple[str, str], separator: str, seed: int) -> None:
    card_id, name = named
    pick = random.Random(seed)
    respelt = "".join(separator if not c.isalnum() else pick.choice((c.upper(), c.lower())) for c in name)
    assert find_card(REAL, respelt).id == card_id
