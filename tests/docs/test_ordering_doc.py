"""What docs/ordering.md shows is real output, its defaults are the code's, and its options exist."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from model_files import REPOSITORY

from gpufit.advice.pieces import PIECE_INPUTS
from gpufit.advice.terms import BUSY_SHARE, CHECKS_HOURS, EXPORT_HOURS, PURPOSES, SETUP_HOURS
from gpufit.cli.main import build_parser, main

PAGE = (REPOSITORY / "docs" / "ordering.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"````console\n\$ (gpufit order [^\n]+)\n(.*?)\n````", PAGE, re.DOTALL)

EXCERPTS = re.findall(r"(?<!`)```console\n\$ (gpufit order [^\n]+)\n(.*?)\n```(?!`)", PAGE, re.DOTALL)


def test_there_is_an_example() -> None:
    assert EXAMPLES
    assert EXCERPTS


@pytest.mark.parametrize(("command", "shown"), EXCERPTS)
def test_an_excerpt_is_out_of_what_the_command_prints(
    command: str,
    shown: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    shutil.copytree(REPOSITORY / "tests" / "facts" / "profiles", tmp_path / "profiles")
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command)[1:]) == 1  # not ready
    printed = capsysbinary.readouterr().out.decode()
    for part in shown.split("…\n"):
        assert part.rstrip("…\n") in printed


@pytest.mark.parametrize(("command", "shown"), EXAMPLES)
def test_an_example_is_what_the_command_prints(
    command: str,
    shown: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    shutil.copytree(REPOSITORY / "tests" / "facts" / "profiles", tmp_path / "profiles")
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command)[1:]) == 0
    assert capsysbinary.readouterr().out.decode() == shown + "\n"


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
