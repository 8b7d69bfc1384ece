"""The pictures of docs: what their text is compared by, what counts as a cut figure, and two of them drawn anew."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from model_files import REPOSITORY
from recorded_run import RecordedRun

SPEC = importlib.util.spec_from_file_location("screenshots", REPOSITORY / "scripts" / "screenshots.py")
assert SPEC is not None
assert SPEC.loader is not None
screenshots = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(screenshots)

PAGE = (REPOSITORY / "docs" / "tui.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["cards", "run-live"])
async def test_a_picture_is_as_committed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(screenshots.FACTS)
    svg = await screenshots.drawn(screenshots.REAL, screenshots.SCREENS_OF[name])
    assert list(screenshots.check(name, svg)) == []


async def test_blocks_of_a_run_begin_in_one_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the cards screen says of its own parts does not move those of another."""
    monkeypatch.chdir(screenshots.FACTS)
    lines = screenshots.lines_of(await screenshots.drawn(screenshots.REAL, screenshots.SCREENS_OF["run-live"]))
    titles = ("running: ", "Cells, each", "Outcomes, the", "Parts at the peak")
    assert len({line.index(title) for title in titles for line in lines if title in line}) == 1


def test_every_picture_is_on_the_page_and_every_one_on_it_is_drawn() -> None:
    named = {path.stem for path in screenshots.DOCS.glob("*.svg")}
    assert named == set(screenshots.SCREENS_OF)
    assert {name for name in named if f"(screens/{name}.svg)" in PAGE} == named


def test_each_word_stands_in_its_column() -> None:
    """A letter is 12.2 wide: 36.6 is the fourth column."""
    one = '<text class="a" x="36.6" y="20" textLength="24.4" clip-path="url(#t-line-1)">7&#160;&amp;</text>'
    other = '<text class="b" x="0" y="44" textLength="12.2" clip-path="url(#t-line-2)">x</text>'
    assert screenshots.lines_of(other + one) == ["", "   7 &", "x"]


def test_what_differs_is_named_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screenshots, "DOCS", tmp_path)
    text = '<text class="a" x="0" y="20" textLength="9" clip-path="url(#t-line-0)">{}</text>'
    (tmp_path / "cards.svg").write_text(text.format("need"), encoding="utf-8")
    assert list(screenshots.check("cards", text.format("need").replace('"a"', '"b"'))) == [], "a class is no text"
    assert list(screenshots.check("cards", text.format("lots"))) == [
        "docs/screens/cards.svg differs from line 1 on: lots"
    ]
    assert len(list(screenshots.check("order", text.format("need")))) == 1, "one that is missing differs"


@pytest.mark.parametrize(
    "line", ["at 30.2… USD", "fits 12 … of", "capacity 21.99 Gi", "need 5 G", "total 1,720│", "x" * 29 + "7"]
)
def test_a_cut_figure_is_found(line: str) -> None:
    assert len(list(screenshots.cut_figures([line], 30))) == 1


@pytest.mark.parametrize(
    "line", ["capacity 21.99 GiB", "Meta-Llama-3.3-Instruct-abl…", "4 KiB of 5 MB", "a 7 │ b", "16 GiB┤", "reading x …"]
)
def test_a_whole_one_is_not(line: str) -> None:
    assert list(screenshots.cut_figures([line], 30)) == []


def test_the_recorded_run_is_told_as_far_as_its_moment() -> None:
    """Six of the eight cells were done after 40 s, and one takes 16 s from second 28.5 on."""
    run = RecordedRun(40.0)
    events = run.events()
    while not run.told.is_set() and run.clock() < 28.5:
        next(events)
    assert run.cells_done == 6
    assert run.clock() == pytest.approx(28.5, abs=0.1)
