"""A paste is text and never keys, whatever stands in it.

Textual's parser takes an escape inside a bracketed paste for the beginning of a key, and what follows it for keys: a
paste with colours in it would type commands, `q` among them.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable

from textual._xterm_parser import XTermParser
from textual.driver import Driver
from textual.message import Message

BEGIN, END = "\x1b[200~", "\x1b[201~"
"""What a terminal sends around a paste (bracketed paste mode, xterm's control sequences)."""
_KEPT = "\n\r\t"


class Pastes:
    """Takes control characters out of pastes in what a terminal sends, in pieces of any length."""

    def __init__(self) -> None:
        self._inside = False
        self._rest = ""
        """What may be the beginning of a mark whose end has not come."""

    def clean(self, sent: str) -> str:
        """What goes on to the parser; nothing outside a paste is held back."""
        found, text = [], self._rest + sent
        passed, self._rest = (0, "") if self._inside else (len(self._rest), "")
        while text:
            mark = END if self._inside else BEGIN
            before, met, after = text.partition(mark)
            if not met:
                self._rest = _beginning_of(mark, text)
                if self._inside:
                    found.append(_plain(text[: len(text) - len(self._rest)]))
                else:
                    found.append(text[passed:])
                break
            found.append(_plain(before) + mark if self._inside else (before + mark)[passed:])
            self._inside, text, passed = not self._inside, after, 0
        return "".join(found)


def _beginning_of(mark: str, text: str) -> str:
    """The longest end of a text that a mark begins with."""
    return next((mark[:size] for size in range(len(mark) - 1, 0, -1) if text.endswith(mark[:size])), "")


def _plain(text: str) -> str:
    return "".join(one for one in text if one in _KEPT or unicodedata.category(one) != "Cc")


class _PasteSafeParser(XTermParser):
    def __init__(self, debug: bool = False) -> None:
        super().__init__(debug)
        self._pastes = Pastes()

    def feed(self, data: str) -> Iterable[Message]:
        return super().feed(self._pastes.clean(data))


def keep_pastes_text(driver: type[Driver]) -> None:
    """Have a driver read its terminal so. Drivers make their parser by the name that their module imports."""
    module = sys.modules[driver.__module__]
    if hasattr(module, XTermParser.__name__):
        setattr(module, XTermParser.__name__, _PasteSafeParser)
