"""HTML and SVG elements as text, escaped by construction: what is not Markup already cannot bring a tag onto a page."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from gpufit.report.cells import printable


class Markup(str):
    """Text that may stand on a page as it is; `element` and `joined` make it."""

    __slots__ = ()


VOID = ("br", "link", "meta")
"""Elements without an end tag. https://html.spec.whatwg.org/multipage/syntax.html#void-elements"""


def element(tag: str, *children: str | None, **attributes: str | float | None) -> Markup:
    """One element. Children that are plain text are escaped, None is left out, attributes of None too.

    An attribute's underscores become hyphens and one at its end is dropped: `class_`, `aria_label`.
    """
    named = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_text(str(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{tag}{named}>" if tag in VOID else f"<{tag}{named}>{joined(children)}</{tag}>")


def joined(children: Iterable[str | None]) -> Markup:
    """Neighbours without an element around them."""
    return Markup("".join(one if isinstance(one, Markup) else _text(one) for one in children if one is not None))


def _text(text: str) -> str:
    return escape(printable(text), quote=True)
