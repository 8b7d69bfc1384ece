"""The lines above the cards: model, engine, device and scenario, what is listed, and what could not be read."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from gpufit.advice.verdict import Verdict
from gpufit.memory.held import AS_PROFILED, Held
from gpufit.profile.record import Profile
from gpufit.report.document import FitDocument
from gpufit.report.summary import headline
from gpufit.tui.listing import Filter, Sort
from gpufit.tui.loaded import LoadedProfile
from gpufit.tui.renderables.palette import DIM, PLAIN, STRONG, VERDICT_STYLES
from gpufit.tui.state import View, ViewState
from gpufit.units import counted, format_tokens

_WARNING = VERDICT_STYLES[Verdict.TOO_CLOSE]
_MOST_PROBLEMS = 3


_LISTS = frozenset({View.CARDS, View.CURVE, View.ORDER})
"""Screens on which the choice and order of the cards are seen."""


def header(
    loaded: LoadedProfile | None, state: ViewState, document: FitDocument | None, still_grows: bool = False
) -> Text:
    """Who was measured where, the scenario with its answer; what is missing of a profile that is unfinished, and on
    screens with a list what that shows. `still_grows`: a run adds to the profile right now."""
    first, second = _headline(loaded, state, document)
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{first}\n", STRONG).append(second, PLAIN)
    unfinished = loaded is not None and not loaded.profile.complete
    if loaded is not None and unfinished:
        text.append(f"\n! {unfinished_words(loaded.profile, still_grows)}", _WARNING)
    if state.view in _LISTS:
        text.append(" · " if unfinished else "\n", DIM).append(_list_line(state, document), DIM)
    return text


def unfinished_words(profile: Profile, still_grows: bool) -> str:
    """What an answer of an unfinished profile rests on, and whether that changes by itself."""
    many = len(profile.measured_cells)
    cells = counted(many, "cell")
    alone = f"only its {cells} {'answers' if many == 1 else 'answer'}"
    rests = alone if profile.memory_model is None else f"it answers from {cells}"
    return f"a run goes on: {rests} so far" if still_grows else f"unfinished: {rests}"


def _headline(loaded: LoadedProfile | None, state: ViewState, document: FitDocument | None) -> tuple[str, str]:
    if document is not None:
        first, second = headline(document).split("\n")
        return first, second
    if loaded is None:
        return "no profile yet", ""
    profile, shape = loaded.profile, state.shape
    new = f" + {format_tokens(shape.new_tokens)} new" if shape.new_tokens > 1 else ""
    return (
        f"{profile.model.name} · {profile.engine.name} {profile.engine.version} · profile of "
        f"{profile.environment.device.name}",
        f"context {format_tokens(shape.context_tokens)}{new} x {shape.concurrency:,} at once: no answer",
    )


def _list_line(state: ViewState, document: FitDocument | None) -> str:
    listed, total = len(state.cards), 0 if document is None else len(document.cards)
    counted = f" ({listed} of {total})" if listed < total else ""
    sort = state.listing.sort
    showing = f"showing {', '.join(state.listing.words)}{counted}"
    which = [f"profile {state.profile + 1} of {len(state.starts)}"] if len(state.starts) > 1 else []
    return " · ".join([*which, showing, f"{'in ' if sort is Sort.CATALOG else ''}{sort}"])


def problem_lines(problems: Sequence[str]) -> Text:
    """What could not be read, a line each; past a few, how many more."""
    shown = list(problems[:_MOST_PROBLEMS])
    if len(problems) > _MOST_PROBLEMS:
        shown.append(f"and {len(problems) - _MOST_PROBLEMS} more that cannot be read")
    return Text("\n".join(f"! {line}" for line in shown), _WARNING, no_wrap=True, overflow="ellipsis")


def no_answer(reason: str, several: bool, still_grows: bool = False) -> Text:
    """In place of the cards, when the profile cannot answer for the scenario."""
    other = "  ·  p: the next profile" if several else ""
    text = Text.assemble(("! ", _WARNING), (f"{reason}\n\n", _WARNING))
    if still_grows:
        text.append("A run adds cells to it right now, and this page follows.\n\n", PLAIN)
    return text.append(f"r: back to the first scenario{other}", DIM)


def nothing_listed(state: ViewState, document: FitDocument) -> Text:
    """In place of the cards, when the filter leaves none; that several of a card would do, where only what fits by
    itself was to be listed."""
    text = Text(f"no card to list: showing {', '.join(state.listing.words)} leaves none at this scenario\n", _WARNING)
    several = sum(row.cards_needed is not None for row in document.cards)
    if state.listing.filter is Filter.FITS and several:
        does = "1 card serves" if several == 1 else f"{several} cards serve"
        text.append(f"{does} it, several together where one is not enough: f lists them\n", PLAIN)
    where = "" if state.view is View.CARDS else "on Cards (2): "
    words = f"\na: all cards again  ·  {where}f: other verdicts  ·  b, o, m: other brands, forms, sizes"
    return text.append(f"{words}  ·  /: another search", DIM)


def held_line(held: Held) -> Text:
    """What the model is held in otherwise than it was; worked out, so it stands out."""
    chosen = (("weights", held.weights), ("compute", held.compute), ("KV", held.kv_cache))
    words = [f"{name} {choice}" for name, choice in chosen if choice != AS_PROFILED]
    return Text(f"if {', '.join(words)}", _WARNING) if words else Text("held as profiled", DIM)
