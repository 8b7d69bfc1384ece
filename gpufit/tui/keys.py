"""Every key: what it asks for, how the footer and the help name it. Bindings and help are both made from these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from textual.binding import Binding

from gpufit.tui.state import Event, View


@dataclass(frozen=True, kw_only=True)
class Key:
    """One thing that can be asked for."""

    keys: str
    """Textual's names, separated by commas."""
    action: str
    """Textual's action."""
    shown: str
    """The keys as people call them, in the help."""
    words: str
    """What it does, in the help."""
    footer: str = ""
    """Its word in the footer; empty: it is not there."""
    sign: str = ""
    """The key in the footer, where that is not its name."""
    group: Binding.Group | None = None
    """Keys that stand together in the footer."""
    roomy: bool = False
    """Whether it stands in the footer only where there is room."""
    priority: bool = False

    @property
    def command(self) -> str:
        """Its name among the commands; empty for a second key of the same, and for moves, which are keys alone."""
        if " " in self.footer:
            return self.footer
        return "" if self.action in _MOVES else self.words


def bindings(keys: Iterable[Key]) -> list[Binding]:
    """The keys for a screen's or the app's BINDINGS."""
    return [
        Binding(
            one.keys,
            one.action,
            one.footer or one.words,
            show=bool(one.footer),
            key_display=one.sign or None,
            group=one.group,
            priority=one.priority,
        )
        for one in keys
    ]


_MOVES = {f"{how}('{event}')" for how in ("press", "move") for event in (Event.UP, Event.PAGE_UP, Event.FIRST)}
_CONTEXT = Binding.Group("context", compact=True)
_AT_ONCE = Binding.Group("at once", compact=True)


def _press(event: Event) -> str:
    return f"press('{event}')"


EVERYWHERE: tuple[Key, ...] = (
    *(
        Key(keys=str(place), action=f"look_at('{view}')", shown=str(place), words=f"the screen {view}")
        for place, view in enumerate(View, 1)
    ),
    Key(
        keys="e",
        action="export",
        shown="e",
        words="write what is on show, or a picture of it",
        footer="export",
        roomy=True,
    ),
    Key(keys="question_mark", action="help", shown="?", words="this help (escape closes it)", footer="help", sign="?"),
    Key(keys="ctrl+p", action="command_palette", shown="ctrl+p", words="every command by name"),
    Key(keys="T", action="light_or_dark", shown="T", words="light or dark"),
    Key(keys="q", action="quit", shown="q, ctrl+q, ctrl+c", words="quit", footer="quit"),
    Key(
        keys="ctrl+z",
        action="suspend_process",
        shown="ctrl+z",
        words="back to the shell for now; `fg` goes on here",
        priority=True,
    ),
    Key(keys="ctrl+q", action="quit", shown="", words=""),
    Key(keys="ctrl+c", action="quit", shown="", words="", priority=True),
)

QUESTION: tuple[Key, ...] = (
    Key(
        keys="left", action=_press(Event.SHORTER), shown="left, right", footer="halve the context", sign="←",
        words="halve, double the context (right stops at the model's own position limit)", group=_CONTEXT,
    ),
    Key(keys="right", action=_press(Event.LONGER), shown="", words="", footer="double the context", sign="→",
        group=_CONTEXT),
    Key(
        keys="minus", action=_press(Event.FEWER), shown="-, + or =", footer="halve the sequences at once", sign="-",
        words="halve, double the sequences at once", group=_AT_ONCE,
    ),
    Key(keys="plus,equals_sign", action=_press(Event.MORE), shown="", words="",
        footer="double the sequences at once", sign="+", group=_AT_ONCE),
    Key(keys="g", action="ask", shown="g", footer="type it", roomy=True,
        words="type the question: context, sequences at once, new tokens"),
    Key(keys="w", action=_press(Event.WEIGHTS), shown="w", words="weights as profiled, or worked out in other bytes"),
    Key(keys="c", action=_press(Event.COMPUTE), shown="c", words="compute as profiled, or worked out in another dtype"),
    Key(keys="v", action=_press(Event.KV_CACHE), shown="v", words="KV cache as profiled, or worked out in other bytes"),
    Key(keys="p", action=_press(Event.NEXT_PROFILE), shown="p", footer="profile",
        words="the next profile, at the same scenario"),
    Key(keys="r", action=_press(Event.RESET), shown="r", footer="reset",
        words="back to the first scenario, held as profiled"),
)  # fmt: skip
"""On every screen that shows an answer."""

ALL_CARDS = Key(keys="a", action=_press(Event.ALL_CARDS), shown="a", words="list all cards again")

CARDS: tuple[Key, ...] = (
    Key(keys="up,k", action=_press(Event.UP), shown="up, down, k, j", words="the card above, below"),
    Key(keys="down,j", action=_press(Event.DOWN), shown="", words=""),
    Key(keys="pageup", action=_press(Event.PAGE_UP), shown="page up, page down", words="a page of cards"),
    Key(keys="pagedown", action=_press(Event.PAGE_DOWN), shown="", words=""),
    Key(keys="home", action=_press(Event.FIRST), shown="home, end", words="the first, the last card"),
    Key(keys="end", action=_press(Event.LAST), shown="", words=""),
    # First of all, so that what is typed right after it is in the box already.
    Key(keys="slash", action="search", shown="/", words="search cards by name as you type (escape clears)",
        footer="search", sign="/", roomy=True, priority=True),
    Key(keys="escape", action="leave_search", shown="", words="", footer="leave", sign="esc"),
    Key(keys="s", action=_press(Event.SORT), shown="s", footer="sort",
        words="order: catalog, most headroom, most capacity"),
    Key(keys="f", action=_press(Event.FILTER), shown="f", footer="filter",
        words="list: all cards, only what fits, what serves it with several too, all but what does not fit"),
    ALL_CARDS,
    Key(keys="b", action="next_vendor", shown="b", words="list: any brand, or one vendor's cards"),
    Key(keys="o", action="next_form", shown="o", words="list: any form, or PCIe, SXM, OAM cards"),
    Key(keys="m", action="next_memory", shown="m", words="list: any size, or cards of so much memory at least"),
    Key(keys="d", action="toggle_details", shown="d", footer="details",
        words="details over the whole screen, and back (up and down then scroll)"),
    Key(keys="escape", action="back", shown="", words=""),
    Key(keys="tab", action="app.focus_next", shown="tab",
        words="into the details (up and down scroll them) and back to the cards"),
)  # fmt: skip

RUN: tuple[Key, ...] = (
    Key(keys="ctrl+s", action="start", shown="ctrl+s", words="start what the form asks for", footer="start",
        sign="^s"),
    Key(keys="x", action="stop", shown="x", words="stop the run; finished cells stay", footer="stop"),
    Key(keys="u", action="again", shown="u", words="go on with a run that was stopped, or start it again",
        footer="go on"),
    Key(keys="o", action="open", shown="o", words="the cards for the profile of the run", footer="open"),
    Key(keys="a", action="more", shown="a", words="all settings of the form, or the usual ones", footer="all settings"),
    Key(keys="f", action="form", shown="f", words="form or progress, where there is no room for both", footer="form"),
    Key(keys="tab", action="app.focus_next", shown="tab", words="into the form and through it (left, right choose)"),
    Key(keys="escape", action="leave", shown="escape", words="out of the form, so that single keys work again"),
)  # fmt: skip

CURVE: tuple[Key, ...] = (
    Key(keys="up,k", action=_press(Event.UP), shown="up, down, k, j", words="the card above, below"),
    Key(keys="down,j", action=_press(Event.DOWN), shown="", words=""),
    Key(keys="x", action=_press(Event.AXIS), shown="x", footer="axis",
        words="along the context, or along the sequences at once"),
    ALL_CARDS,
)  # fmt: skip

PAGE: tuple[Key, ...] = (
    Key(keys="up,k", action="scroll_page('up')", shown="up, down, k, j", words="scroll by a line"),
    Key(keys="down,j", action="scroll_page('down')", shown="", words=""),
    Key(keys="pageup", action="scroll_page('page up')", shown="page up, page down", words="scroll by a page"),
    Key(keys="pagedown", action="scroll_page('page down')", shown="", words=""),
    Key(keys="home", action="scroll_page('top')", shown="home, end", words="to the top, to the end"),
    Key(keys="end", action="scroll_page('end')", shown="", words=""),
)  # fmt: skip
"""On screens that are pages."""


def _move(event: Event) -> str:
    return f"move('{event}')"


_IN_LISTS: tuple[Key, ...] = (
    Key(keys="down,j", action=_move(Event.DOWN), shown="", words=""),
    Key(keys="pageup", action=_move(Event.PAGE_UP), shown="page up, page down", words="a page of lines"),
    Key(keys="pagedown", action=_move(Event.PAGE_DOWN), shown="", words=""),
    Key(keys="home", action=_move(Event.FIRST), shown="home, end", words="the first, the last line"),
    Key(keys="end", action=_move(Event.LAST), shown="", words=""),
    Key(keys="tab", action="app.focus_next", shown="tab",
        words="into the details (up and down scroll them) and back to the list"),
)  # fmt: skip

PROFILES: tuple[Key, ...] = (
    Key(keys="up,k", action=_move(Event.UP), shown="up, down, k, j", words="the profile above, below"),
    *_IN_LISTS,
    Key(keys="enter", action="open", shown="enter", footer="open", sign="enter",
        words="open the profile: every screen then asks it"),
    Key(keys="space", action="mark", shown="space", footer="mark", sign="space",
        words="mark a profile to be compared, or take its mark away"),
    Key(keys="equals_sign", action="compare", shown="=", footer="compare", sign="=",
        words="compare the two marked, or the one under the cursor with the marked or open one"),
    Key(keys="i", action="import", shown="i", footer="import",
        words="type a profile's file to open, or a model (directory, .gguf, hub id) to estimate"),
    Key(keys="escape", action="back", shown="", words="", footer="leave", sign="esc"),
)  # fmt: skip

ORDER: tuple[Key, ...] = (
    Key(keys="up,k", action=_move(Event.UP), shown="up, down, k, j", words="the line above, below"),
    *_IN_LISTS,
    Key(keys="t", action="next_term", shown="t", footer="term", words="the term that is sorted by: 3, 7, 30 days"),
    Key(keys="s", action="next_sort", shown="s", footer="sort",
        words="order: as the cards are listed, or lowest total first (each currency by itself)"),
    Key(keys="enter", action="open", shown="enter", footer="order", sign="enter",
        words="the order file of this line: say how much work, see it, write it"),
    ALL_CARDS,
)  # fmt: skip

ORDER_FILE: tuple[Key, ...] = (
    Key(keys="escape", action="dismiss", shown="escape", footer="back", sign="esc", words="back to the list"),
    Key(keys="tab", action="app.focus_next", shown="tab, shift+tab", words="the next, the last field; then the page"),
    Key(keys="shift+tab", action="app.focus_previous", shown="", words=""),
    Key(keys="ctrl+s", action="write", shown="ctrl+s", footer="write", sign="ctrl+s",
        words="write the order file: Markdown, JSON or a workbook", priority=True),
    Key(keys="e", action="write", shown="", words=""),  # as everywhere; in a field it is a letter
)  # fmt: skip

_OF_ONE_PROFILE = {_press(one) for one in (Event.NEXT_PROFILE, Event.WEIGHTS, Event.COMPUTE, Event.KV_CACHE)}
"""What cannot be asked of two profiles, each compared as it was made."""

COMPARE: tuple[Key, ...] = (
    Key(keys="escape", action="dismiss", shown="escape", footer="back", sign="esc", words="back to the profiles"),
    *(key for key in QUESTION if key.action not in _OF_ONE_PROFILE),
    Key(keys="x", action="swap", shown="x", footer="swap A and B", words="B as A, A as B"),
    Key(keys="e", action="app.export", shown="", words="", footer="export"),
)
"""On the comparison, which stands over the profiles."""

OF_VIEWS: Mapping[View, tuple[Key, ...]] = {
    View.PROFILES: PROFILES,
    View.CARDS: CARDS,
    View.CURVE: CURVE,
    View.GROWTH: PAGE,
    View.PRECISION: PAGE,
    View.TIME: PAGE,
    View.ORDER: ORDER,
    View.RUN: RUN,
}
"""The keys that one screen has alone."""

OVER_VIEWS: Mapping[str, tuple[Key, ...]] = {
    "Compare, over the profiles": COMPARE,
    "The order file, over the orders": ORDER_FILE,
}
"""The keys of screens that stand over another until they are closed."""

ROOMY_ACTIONS = frozenset(
    key.action for keys in (EVERYWHERE, QUESTION, *OF_VIEWS.values(), *OVER_VIEWS.values()) for key in keys if key.roomy
)
"""What the footer of a narrow screen leaves out."""
