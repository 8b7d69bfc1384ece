"""Whole pages of text: the help, and what to do when there is no profile."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from gpufit.report.cells import PART_TITLES, SYMBOLS
from gpufit.tui.keys import EVERYWHERE, OF_VIEWS, OVER_VIEWS, QUESTION, Key
from gpufit.tui.renderables.evidence import STYLES, evidence_text
from gpufit.tui.renderables.header import problem_lines
from gpufit.tui.renderables.palette import (
    CEILING_MARK,
    CUT_MARK,
    DIM,
    GROUPS,
    PLAIN,
    STRONG,
    TITLE,
    UPPER_FILL,
    UPPER_STYLE,
    VERDICT_STYLES,
    FilledGroup,
)
from gpufit.tui.renderables.words import EVIDENCE_WORDS, FIGURE_WORDS, VERDICT_WORDS
from gpufit.tui.state import View

_WIDTH = 20


def help_keys(views: Sequence[View]) -> Group:
    """All keys, those of every screen first."""
    return Group(
        *_keys("Keys, on every screen", EVERYWHERE),
        *_keys("On every screen with an answer", QUESTION),
        *(part for view in views if view in OF_VIEWS for part in _keys(str(view), OF_VIEWS[view])),
        *(part for title, keys in OVER_VIEWS.items() for part in _keys(title, keys)),
    )


def help_words() -> Group:
    """What each word and sign means."""
    bars = [(group.fill * 3, group.colour, _group_words(group)) for group in GROUPS]
    bars += [
        (UPPER_FILL * 3, UPPER_STYLE, "from the need to its upper bound"),
        (CEILING_MARK, STRONG, "the card's capacity: each bar has its own card's scale"),
        (CUT_MARK, STRONG, "the need goes on beyond the edge of the bar"),
    ]
    evidence = "Evidence, strongest first; a total takes the weakest of its parts"
    return Group(
        *_section("Verdicts", [(SYMBOLS[one], VERDICT_STYLES[one], words) for one, words in VERDICT_WORDS.items()]),
        *_section(evidence, [(evidence_text(one), STYLES[one], words) for one, words in EVIDENCE_WORDS.items()]),
        *_section("Bars: the phase that needs most", bars),
        *_section("Figures", [(word, STRONG, words) for word, words in FIGURE_WORDS.items()]),
    )


def _keys(title: str, keys: Sequence[Key]) -> tuple[Text, Padding]:
    return _section(title, [(one.shown, STRONG, one.words) for one in keys if one.shown])


def _group_words(group: FilledGroup) -> str:
    """The parts of a group by name, where its title does not say it."""
    names = ", ".join(PART_TITLES[part] for part in group.parts)
    return group.title if len(group.parts) == 1 else f"{group.title}: {names}"


def _section(title: str, entries: Sequence[tuple[str, str, str]]) -> tuple[Text, Padding]:
    grid = Table.grid(Column(width=_WIDTH), Column(ratio=1, style=PLAIN), expand=True)
    for word, style, words in entries:
        grid.add_row(Text(word, style), Text(words))
    return Text(title, TITLE), Padding(grid, (0, 0, 1, 2))


def empty_page(folder: str, problems: Sequence[str], here_imports: bool = False) -> Text:
    """Why there is nothing to show, and how to make a profile; `here_imports`: the key for it works on this screen."""
    text = Text()
    if problems:
        text.append("No profile could be read\n\n", STRONG).append_text(problem_lines(problems)).append("\n\n")
    else:
        text.append("No profile yet\n\n", STRONG)
        text.append(f"A profile is one measured run of your model. None was found in {folder}\n\n", PLAIN)
    shelf, form = (tuple(View).index(view) + 1 for view in (View.PROFILES, View.RUN))
    here = "i" if here_imports else f"{shelf} and then i"
    text.append(f"{here}: type a model's name or a profile's file, to look at it at once\n", STRONG)
    text.append(f"{form}: the form that measures, simulates or estimates a model and keeps its profile\n\n", STRONG)
    text.append("The same from a shell, measured where the model can run:\n\n", PLAIN)
    text.append("    gpufit profile MODEL\n\n", STRONG)
    text.append("or without the device, from the model's files or its config alone:\n\n", PLAIN)
    text.append("    gpufit simulate MODEL\n    gpufit estimate MODEL --save profiles/NAME.json\n\n", STRONG)
    text.append("MODEL is a local directory, a GGUF file or a hub id. Then:\n\n", PLAIN)
    text.append("    gpufit tui", STRONG).append("              every profile in the folder, newest first\n", DIM)
    text.append("    gpufit tui PROFILE...", STRONG).append("   the ones you name\n\n", DIM)
    return text.append("q quits", DIM)
