"""docs/tui.md: its tables of keys, signs and words are those of the help. `UPDATE_EXAMPLES=1` writes them anew."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence

import pytest
from model_files import REPOSITORY

from gpufit.report.cells import SYMBOLS
from gpufit.tui.keys import EVERYWHERE, OF_VIEWS, OVER_VIEWS, QUESTION, Key
from gpufit.tui.renderables.evidence import evidence_text
from gpufit.tui.renderables.words import EVIDENCE_WORDS, FIGURE_WORDS, VERDICT_WORDS

PAGE = REPOSITORY / "docs" / "tui.md"
WORDS, KEYS = "<!-- words -->\n", "<!-- keys -->\n"
NEXT = {WORDS: "\n## Keys\n", KEYS: ""}
"""What follows a section that is made here; empty: it is the last."""


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield ""
    yield f"| {' | '.join(titles)} |"
    yield f"|{'---|' * len(titles)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def words() -> Iterator[str]:
    yield from table(("verdict", "means"), ((f"`{SYMBOLS[one]}`", said) for one, said in VERDICT_WORDS.items()))
    evidence = ((f"`{evidence_text(one)}`", said) for one, said in EVIDENCE_WORDS.items())
    yield from table(("evidence, strongest first", "means"), evidence)
    yield from table(("word", "means"), FIGURE_WORDS.items())


def keys() -> Iterator[str]:
    groups: dict[str, Sequence[Key]] = {
        "on every screen": EVERYWHERE,
        "on every screen with an answer": QUESTION,
        **{str(view): found for view, found in OF_VIEWS.items()},
        **OVER_VIEWS,
    }
    for title, found in groups.items():
        yield from table((title, "does"), ((f"`{one.shown}`", one.words) for one in found if one.shown))


@pytest.mark.parametrize(("marker", "made"), [(WORDS, words), (KEYS, keys)])
def test_the_tables_are_those_of_the_help(marker: str, made: Callable[[], Iterator[str]]) -> None:
    expected = "\n".join(made()) + "\n"
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(marker)
    at = rest.index(NEXT[marker]) if NEXT[marker] else len(rest)
    if os.environ.get("UPDATE_EXAMPLES") == "1":
        PAGE.write_text(f"{before}{marker}{expected}{rest[at:]}", encoding="utf-8")
    else:
        assert rest[:at] == expected
