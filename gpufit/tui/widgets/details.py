"""The details of the selected card: answer, parts, and where the figures come from, side by side or stacked."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.markup import escape

from gpufit.report.document import CardRow, FitDocument
from gpufit.tui.renderables import details
from gpufit.tui.widgets.block import Block


class Details(VerticalScroll, can_focus=True, inherit_bindings=False):
    """Scrolls by itself while it has the focus; every other key goes on to the screen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_up", show=False),
        Binding("down,j", "scroll_down", show=False),
        Binding("pageup", "page_up", show=False),
        Binding("pagedown", "page_down", show=False),
        Binding("home", "scroll_home", show=False),
        Binding("end", "scroll_end", show=False),
    ]

    def __init__(self, id: str) -> None:  # noqa: A002  (Textual's own name)
        super().__init__(id=id)
        self._shown: tuple[FitDocument, CardRow] | None = None

    def compose(self) -> ComposeResult:
        """Three blocks; the style sheet places them."""
        yield Block(id="facts")
        yield Block(id="parts")
        yield Block(id="notes")

    def show(self, document: FitDocument, row: CardRow, settled: bool = True) -> None:
        """Show one card of a document."""
        if self._shown is not None and document is self._shown[0] and row is self._shown[1]:
            return
        self.border_title = f" {escape(row.card)} · {escape(row.name)} "
        self.query_one("#facts", Block).show(details.facts(document, row, settled), stays=settled)
        self.query_one("#parts", Block).show(details.parts_table(document, row))
        if self._shown is None or document is not self._shown[0]:
            self.query_one("#notes", Block).show(details.notes(document), stays=settled)
        self._shown = (document, row)

    def clear(self) -> None:
        """Show nothing: there is no card."""
        self._shown = None
        self.border_title = ""
        for block in self.query(Block):
            block.show("")
