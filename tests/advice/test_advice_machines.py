"""How many of a card stand in one machine, and which copies reach over several."""

from __future__ import annotations

import pytest
from builders import make_card
from hypothesis import given
from hypothesis import strategies as st

from gpufit.advice.machines import ASSUMED_CARDS, devices_in_one, machine_words, machines_for, spanning_words, spans
from gpufit.advice.tried import no_plan_words
from gpufit.advice.verdict import Devices
from gpufit.catalog.card_parts import Machine
from gpufit.catalog.store import load_catalog

CARDS = {one.id: one for one in load_catalog().cards}


@pytest.mark.parametrize(
    ("card", "devices"),
    [
        ("h100-sxm-80gb", 8),  # HGX H100 8-GPU
        ("b200-sxm-180gb", 8),
        ("mi300x-192gb", 8),  # a universal baseboard
        ("mi250x-128gb", 8),  # four modules of two devices
        ("gb200-186gb", 4),  # a compute tray
        ("gh200-96gb", 1),  # a superchip
        ("l40s-48gb", 8),
    ],
)
def test_the_catalog_says_how_many_stand_in_one(card: str, devices: int) -> None:
    assert devices_in_one(CARDS[card]) == devices


def test_what_is_assumed_says_so() -> None:
    assert machine_words(CARDS["h100-sxm-80gb"]) == "a machine holds at most 8 cards by the catalog"
    assert machine_words(CARDS["l40s-48gb"]) == "a machine holds at most 8 cards (assumed)"
    nobody_said = make_card()
    assert machine_words(nobody_said) == f"a machine holds at most {ASSUMED_CARDS} cards (assumed)"
    assert machine_words(make_card(machine=Machine(cards=1))) == "a machine holds at most 1 card by the catalog"


def test_devices_that_share_a_layer_stand_in_one() -> None:
    board = make_card(machine=Machine(cards=8))
    assert [spans(board, Devices(tensor, stages)) for tensor, stages in ((8, 1), (8, 2), (16, 1))] == [
        *(False, False),
        True,
    ]
    assert spanning_words(board, Devices(16)).startswith("spans machines: 16 devices share every layer")
    # Two stages of eight fill two machines; six of four go by two into three; sixteen that share a layer take two.
    assert [machines_for(board, over, copies) for over, copies in ((Devices(8, 2), 1), (Devices(4, 3), 2))] == [2, 3]
    assert machines_for(board, Devices(16), 2) == 4
    assert machines_for(make_card(machine=Machine(cards=4), devices_per_card=2), Devices(8), 3) == 3


@given(st.integers(1, 16), st.integers(1, 8), st.integers(1, 20), st.sampled_from([1, 4, 8]), st.sampled_from([1, 2]))
def test_machines_hold_all_devices(tensor: int, stages: int, copies: int, cards: int, devices: int) -> None:
    card = make_card(machine=Machine(cards=cards), devices_per_card=devices)
    over = Devices(tensor, stages)
    machines = machines_for(card, over, copies)
    assert machines * devices_in_one(card) >= copies * over.count
    if not spans(card, over):
        # No machine fewer holds as many groups of devices that share a layer.
        assert (machines - 1) * (devices_in_one(card) // tensor) < copies * stages


def test_why_no_number_is_named_tells_what_was_tried() -> None:
    board, superchip = make_card(machine=Machine(cards=8)), make_card(machine=Machine(cards=1))
    tried = [Devices(), Devices(2), Devices(8), Devices(stages=6), Devices(2, 2), Devices(8, 6)]
    assert no_plan_words(board, True, tried, []) == (
        "none of the plans tried serves it: whole copies, tensor parallel over up to 8 devices of one machine, a "
        "pipeline of up to 6 stages, both together over up to 48"
    )
    assert no_plan_words(superchip, True, tried, []) == (
        "none of the plans tried serves it: whole copies, a pipeline of up to 6 stages (no tensor parallel: a machine "
        "holds at most 1 card by the catalog)"
    )
    assert no_plan_words(board, True, [Devices(16)], ["why"]) == (
        "none of the plans tried serves it: copies over 16 devices each (why)"
    )
    assert "nobody has reported" in no_plan_words(make_card(capacity_gib=None), False, tried, [])
    assert "nothing is promised" in no_plan_words(board, False, tried, [])
