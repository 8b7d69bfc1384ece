"""Nothing on the screen is markup, wherever it came from."""

from __future__ import annotations

import ast
from pathlib import Path

from textual.app import App, ComposeResult
from tui_builders import screen_text

import gpufit.tui
from gpufit.tui.widgets.words import Words

TYPED = "[/nothing] [bold]x[/] [ \\["


class _OneLine(App[None]):
    def compose(self) -> ComposeResult:
        yield Words(TYPED, id="one")


async def test_brackets_are_brackets() -> None:
    app = _OneLine()
    async with app.run_test(size=(60, 3)) as pilot:
        assert TYPED in screen_text(app)
        app.query_one("#one", Words).update(f"! {TYPED}")
        await pilot.pause()
        assert f"! {TYPED}" in screen_text(app)


def test_no_other_widget_shows_text_by_itself() -> None:
    """Textual's own take a bracket in a file's name for markup, and end where it is none."""
    package = Path(gpufit.tui.__file__).parent
    found = [
        (path.name, name.name)
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "textual.widgets"
        for name in node.names
        if name.name in ("Static", "Label")
    ]
    assert found == [("words.py", "Static")]
