"""What every page is made of: the frame around it, sections, tables, lists and exact numbers."""

from __future__ import annotations

from collections.abc import Iterable

from gpufit.report.cells import Value
from gpufit.report.markup import Markup, element
from gpufit.report.page_style import STYLE

_NOTHING_IS_LOADED = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""What a browser refuses even if a name in the document should find a way past the escaping."""


def page(title: str, content: Iterable[Markup]) -> str:
    """A whole page, with its style inside."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=_NOTHING_IS_LOADED),
        element("link", rel="icon", href="data:,"),
        element("title", title),
        element("style", Markup(STYLE)),
    )
    return "<!DOCTYPE html>\n" + element("html", head, element("body", *content), lang="en") + "\n"


def section(title: str, *content: Markup) -> Markup:
    """A part of a report under its heading."""
    return element("section", element("h2", title), *content)


def table(caption: str, head: Iterable[Markup], rows: Iterable[Markup]) -> Markup:
    """A table that scrolls by itself where the screen is narrow, by keyboard as well."""
    inside = element(
        "table",
        element("caption", element("span", caption)),
        element("thead", element("tr", *head)),
        element("tbody", *rows),
    )
    return element("div", inside, class_="scroll", role="region", tabindex=0, aria_label=caption)


def column_heads(titles: Iterable[tuple[str, bool]]) -> list[Markup]:
    """Column headers; True for those that read left."""
    return [element("th", title, scope="col", class_="left" if left else None) for title, left in titles]


def bullets(texts: Iterable[str]) -> Markup:
    """A list of sentences; empty ones are left out."""
    return element("ul", *(element("li", text) for text in texts if text), class_="notes")


def exactly(value: Value, text: str) -> Markup | str:
    """A rounded number with the whole one behind it, for programs and for whoever points at it."""
    if isinstance(value, str) or value is None or not text or text == str(value):
        return text
    return element("data", text, value=value, title=f"{value:,}")
