"""How a text is painted: what stands out is what was meant to, and nothing that follows it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.style import Style
from rich.text import Text
from test_tui_light import contrast
from test_tui_pages import real

import gpufit.tui
from gpufit.flows_curve import times
from gpufit.tui.light import LIGHT as LIGHT_COLOURS
from gpufit.tui.renderables.palette import DIM, PLAIN, SELECTED_BACKGROUND, VERDICT_STYLES
from gpufit.tui.renderables.times import times_head, times_table

FOLDER = Path(gpufit.tui.__file__).parent


def bold(text: Text, words: str) -> bool:
    """Whether the first letter of these words is."""
    at = text.plain.index(words)
    styles = [text.style, *(span.style for span in text.spans if span.start <= at < span.end)]
    return bool(Style.combine(Style.parse(str(one)) for one in styles).bold)


def _bases(tree: ast.AST) -> Iterator[int]:
    """Lines where words are put behind others whose style is that of the whole text: `Text(words, style).append(…)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in ("append", "append_text") and _is_painted(node.value):
            yield node.lineno


def _is_painted(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _is_painted(node.func.value)
    named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Text"
    return named and isinstance(node, ast.Call) and len(node.args) > 1


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.py")), ids=lambda path: path.stem)
def test_no_text_is_put_behind_one_that_paints_it(path: Path) -> None:
    assert list(_bases(ast.parse(path.read_text()))) == []


def test_such_a_line_would_be_found() -> None:
    assert list(_bases(ast.parse("x = 1\nText('a', STRONG).append('b')"))) == [2]
    assert list(_bases(ast.parse("Text('a', no_wrap=True).append('b')"))) == []


def test_only_the_titles_of_times_stand_out() -> None:
    loaded = real("all-MiniLM-L6-v2.json")
    document = times(loaded.profile, loaded.where)
    head, table = times_head(document), times_table(document, (0, 0, 0), 120)
    assert bold(head, "times on")
    assert not bold(head, "speed is never carried")
    assert not bold(table, "skipped")


@pytest.mark.parametrize("style", [PLAIN, DIM, *VERDICT_STYLES.values()])
def test_words_on_the_selected_line_can_be_read(style: str) -> None:
    colour = style.split()[-1]
    assert contrast(colour, SELECTED_BACKGROUND) >= 4.5
    assert contrast(LIGHT_COLOURS[colour], LIGHT_COLOURS[SELECTED_BACKGROUND]) >= 4.5
