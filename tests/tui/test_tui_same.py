"""Both front ends print the same figures: what `gpufit fit` says of a real profile stands on the screen."""

from __future__ import annotations

import csv
import datetime
import io
import re
from pathlib import Path

import pytest
from model_files import REPOSITORY
from tui_builders import cards_screen, screen_lines

from gpufit.cli.main import main
from gpufit.tui.app import GpufitApp
from gpufit.tui.run import load_session

PROFILE = REPOSITORY / "tests" / "facts" / "profiles" / "SmolLM2-135M-Instruct.Q4_1.json"
QUESTION = ("--context", "2048", "--concurrency", "32", "--new-tokens", "8")


def printed(capsysbinary: pytest.CaptureFixture[bytes], form: str) -> str:
    assert main(["fit", str(PROFILE), *QUESTION, "--format", form]) == 0
    return capsysbinary.readouterr().out.decode()


def cells_of(table: list[str]) -> list[dict[str, str]]:
    """The cells of the table's lines, under their titles."""
    rule = next(place for place, line in enumerate(table) if line.startswith("----"))
    spans = [match.span() for match in re.finditer("-+", table[rule])]
    titles, *lines = ([line[begin:end].strip() for begin, end in spans] for line in table[rule - 1 : rule + 42])
    return [dict(zip(titles, cells, strict=True)) for cells in lines[1:]]


async def test_the_screen_says_what_the_command_prints(
    capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = printed(capsysbinary, "table").splitlines()
    rows = {row["card"]: row for row in csv.DictReader(io.StringIO(printed(capsysbinary, "csv")))}
    app = GpufitApp(load_session([PROFILE], None, (), datetime.date(2026, 11, 30)))
    async with app.run_test(size=(200, 80)) as pilot:
        await pilot.press("g", "ctrl+a", "ctrl+k", *"2048x32+8", "enter")
        lines = screen_lines(app)
        assert table[:2] == [line.strip() for line in lines[1:3]], "model and scenario, with how many fit"
        cards = cards_screen(app).session.rows
        assert [row.card for row in cards] == list(rows)
        for row, told in zip(cards, cells_of(table), strict=True):
            shown = next(line for line in lines if f" {row.card} " in line)
            for title in ("card", "verdict", "capacity", "need", "headroom", "lots"):
                assert f" {told[title]}" in shown, (row.card, title)
            assert (rows[row.card]["need_bytes"], rows[row.card]["verdict"]) == (str(row.need_bytes), str(row.verdict))
            assert f" {rows[row.card]['evidence']} " in shown
