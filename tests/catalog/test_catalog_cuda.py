"""Which CUDA a wheel brings, what a card takes, and the oldest driver for both: NVIDIA's tables, PyPI's metadata."""

from __future__ import annotations

import pytest
from builders import make_card

from gpufit.catalog.card_parts import HostLink, Software
from gpufit.catalog.cuda import Cuda, least_driver, least_drivers, parse_cuda, takes, wheel_cuda
from gpufit.catalog.store import load_catalog

CATALOG = load_catalog(None)
HOPPER = make_card(software=Software(arch="sm_90", min_cuda="11.8"))
ARM = make_card(host_link=HostLink(kind="NVLink-C2C to Grace CPU"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12.8", Cuda(12, 8)),
        ("CUDA 12.8", Cuda(12, 8)),
        ("12.8.90", Cuda(12, 8)),
        ("12.x", Cuda(12, 0)),
        ("HIP 7.0.51831", None),
        ("none", None),
        (None, None),
    ],
)
def test_a_cuda_is_read_as_it_is_written(text: str | None, expected: Cuda | None) -> None:
    assert parse_cuda(text) == expected


@pytest.mark.parametrize(
    ("torch", "expected"),
    [
        ("2.6.0", Cuda(12, 4)),  # nvidia-cuda-runtime-cu12 (==12.4.127)
        ("2.9.1", Cuda(12, 8)),  # nvidia-cuda-runtime-cu12==12.8.90
        ("2.13.0", Cuda(13, 0)),  # cuda-toolkit[...]==13.0.3
        ("2.13.0+cpu", Cuda(13, 0)),  # what PyPI has in its place
        ("2.9.0+cu126", Cuda(12, 6)),
        ("2.11.0a0+git123", None),
        ("2.9.0+rocm6.4", None),
        ("2.99.0", None),
        ("1.13.1", None),
        ("nightly", None),
    ],
)
def test_a_wheel_brings_its_cuda(torch: str, expected: Cuda | None) -> None:
    assert wheel_cuda(torch, HOPPER) == expected


def test_pins_for_x86_say_nothing_of_an_arm_host() -> None:
    """Up to 2.10 the pin holds for `platform_machine == "x86_64"`, from 2.11 for all of Linux."""
    assert wheel_cuda("2.10.0", ARM) is None
    assert wheel_cuda("2.11.0", ARM) == Cuda(13, 0)
    assert {card.id for card in CATALOG.cards if wheel_cuda("2.9.0", card) is None} == {
        "gh200-96gb", "gh200-144gb", "gb200-186gb", "gb300-288gb",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("card", "taken", "refused"),
    [
        ("h100-sxm-80gb", ["11.8", "12.4", "13.0"], ["11.7"]),
        ("b200-sxm-180gb", ["12.8", "13.0"], ["12.6"]),
        ("b300-sxm-288gb", ["12.8", "12.9"], ["12.6"]),  # it runs the binary for sm_100
        ("v100-sxm2-32gb", ["11.8", "12.8"], ["13.0"]),
        ("t4-16gb", ["11.8", "13.0"], []),
    ],
)
def test_a_card_takes_the_cuda_that_its_row_names(card: str, taken: list[str], refused: list[str]) -> None:
    row = CATALOG.card(card)
    known = {text: parse_cuda(text) for text in (*taken, *refused)}
    assert {text: takes(row, cuda) for text, cuda in known.items() if cuda} == dict.fromkeys(
        taken, True
    ) | dict.fromkeys(refused, False)


@pytest.mark.parametrize(
    ("card", "cuda", "version"),
    [
        ("a100-sxm-80gb", Cuda(12, 8), "525.60.13"),
        ("a100-sxm-80gb", Cuda(11, 8), "450.80.02"),
        ("h100-sxm-80gb", Cuda(11, 8), "520.61.05"),  # the driver of CUDA 11.8, the first that targets it
        ("h100-sxm-80gb", Cuda(12, 4), "525.60.13"),
        ("b200-sxm-180gb", Cuda(12, 8), "570.26"),  # 525.60.13 is older than the card
        ("b200-sxm-180gb", Cuda(13, 0), "580.65.06"),
    ],
)
def test_the_driver_is_the_later_of_what_cuda_and_card_take(card: str, cuda: Cuda, version: str) -> None:
    least = least_driver(cuda, CATALOG.card(card))
    assert least is not None
    assert (least.version, least.source.startswith("https://docs.nvidia.com/")) == (version, True)


def test_where_the_cuda_is_not_known_each_that_the_card_takes_has_its_driver() -> None:
    def versions(card: str) -> dict[int, str]:
        return {major: one.version for major, one in least_drivers(CATALOG.card(card)).items()}

    assert versions("b200-sxm-180gb") == {12: "570.26", 13: "580.65.06"}
    assert versions("v100-sxm2-32gb") == {11: "450.80.02", 12: "525.60.13"}
    assert least_driver(None, make_card()) is None
