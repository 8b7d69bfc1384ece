"""What docs/ordering.md shows is real output, its defaults are the code's, and its options exist."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from model_files import REPOSITORY

from gpufit.advice.pieces import PIECE_INPUTS
from gpufit.advice.terms import BUSY_SHARE, CHECKS_HOURS, EXPORT_HOURS, PURPOSES, SETUP_HOURS
from gpufit.cli.main import build_parser

PAGE = (REPOSITORY / "docs" / "ordering.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"````console\n\$ (gpufit order [^\n]+)\n(.*?)\n````", PAGE, re.DOTALL)

EXCERPTS = re.findall(r"(?<!`)```console\n\$ (gpufit order [^\n]+)\n(.*?)\n```(?!`)", PAGE, re.DOTALL)


def test_there_is_an_example() -> None:
    assert EXAMPLES
    assert EXCERPTS


@pytest.mark.parametrize(("command", "shown"), EXCERPTS)
def test_an_excerpt_is_out_of_what_the_command_prints(
    command: str, shown: str, run_shown: Callable[[str], tuple[int, str]]
) -> None:
    status, printed = run_shown(command)
    assert status == 1, "not ready"
    parts = [part for line in shown.split("…") if (part := line.strip("\n"))]
    assert parts
    for part in parts:
        _, found, printed = printed.partition(part)
        assert found, f"{part!r}, behind what stands above it"


@pytest.mark.parametrize(("command", "shown"), EXAMPLES)
def test_an_example_is_what_the_command_prints(
    command: str, shown: str, run_shown: Callable[[str], tuple[int, str]]
) -> None:
    assert run_shown(command) == (0, shown + "\n")


def test_the_defaults_are_those_of_the_command_and_of_the_code() -> None:
    asked = build_parser().parse_args(["order", "p.json", "--card", "l40s"])
    rows = re.findall(r"\| ([\d.]+)(?: h)? \| `--([a-z-]+)` \|", PAGE)
    shown = {option.replace("-", "_"): float(value) for value, option in rows}
    assert shown == {name: getattr(asked, name) for name in shown}
    assert shown == {
        "setup_hours": SETUP_HOURS,
        "checks_hours": CHECKS_HOURS,
        "export_hours": EXPORT_HOURS,
        "busy_share": BUSY_SHARE,
        "piece_inputs": PIECE_INPUTS,
    }


def test_the_terms_are_for_what_the_code_says() -> None:
    for days, purpose in PURPOSES.items():
        assert f"| {days} days | {purpose} |" in PAGE
