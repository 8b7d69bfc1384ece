"""Text as it is."""

from __future__ import annotations

from rich.console import RenderableType
from textual.widgets import Static


class Words(Static):
    """Shows text in which nothing is markup, wherever it came from: a file, a name, what somebody typed."""

    def __init__(self, content: RenderableType = "", *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(content, markup=False, id=id, classes=classes)
