"""What the user is looking at, as one frozen record, and how each key changes it. Knows nothing of Textual.

The state holds the question (profile, context, concurrency), the order and choice of cards, and the selection. The
answer is not part of it: the screen asks `flows.fit`, then tells the state with `show` which cards stand on screen.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from gpufit.advice.limits import CEILING
from gpufit.advice.verdict import Verdict
from gpufit.memory.positions import longest_context
from gpufit.memory.terms import Shape
from gpufit.profile.record import Profile
from gpufit.report.document import CardRow

_Choice = TypeVar("_Choice", bound=enum.StrEnum)


class Sort(enum.StrEnum):
    """The order of the cards, as it reads on screen."""

    CATALOG = "catalog order"
    HEADROOM = "most headroom first"
    CAPACITY = "most capacity first"


class Filter(enum.StrEnum):
    """Which cards are listed, as it reads on screen."""

    ALL = "all cards"
    FITS = "only what fits"
    POSSIBLE = "all but what does not fit"


class Event(enum.StrEnum):
    """What a key asks for; the keys themselves are bound by the cards screen."""

    LONGER = enum.auto()
    SHORTER = enum.auto()
    MORE = enum.auto()
    FEWER = enum.auto()
    UP = enum.auto()
    DOWN = enum.auto()
    PAGE_UP = enum.auto()
    PAGE_DOWN = enum.auto()
    FIRST = enum.auto()
    LAST = enum.auto()
    SORT = enum.auto()
    FILTER = enum.auto()
    NEXT_PROFILE = enum.auto()
    RESET = enum.auto()


@dataclass(frozen=True)
class Start:
    """Where one profile begins and how far its context can go."""

    shape: Shape
    """The scenario that a reset returns to."""
    longest_context: int
    """The longest prompt that leaves room for the new tokens inside the model's own positions."""


@dataclass(frozen=True)
class ViewState:
    """Everything that keys change."""

    starts: tuple[Start, ...]
    """One for each profile, at least one."""
    shape: Shape
    profile: int = 0
    """Index into `starts`."""
    sort: Sort = Sort.CATALOG
    filter: Filter = Filter.ALL
    cards: tuple[str, ...] = ()
    """Ids of the cards on screen, top to bottom."""
    selected: int = 0
    """Index into `cards`; 0 while there are none."""

    @property
    def start(self) -> Start:
        """That of the profile on screen."""
        return self.starts[self.profile]

    @property
    def selected_card(self) -> str | None:
        """Id of the selected card; None while no card is listed."""
        return self.cards[self.selected] if self.cards else None


def start_of(profile: Profile, shape: Shape) -> Start:
    """The start of a profile at its default shape."""
    model = profile.model
    limit = longest_context(model.position_limit, model.decodes_apart, shape.new_tokens)
    longest = CEILING if limit is None else max(limit, 1)
    return Start(replace(shape, context_tokens=min(shape.context_tokens, longest)), longest)


def initial_state(starts: Sequence[Start]) -> ViewState:
    """The first profile at its default scenario. `starts` must not be empty."""
    return ViewState(starts=tuple(starts), shape=starts[0].shape)


def press(state: ViewState, event: Event, page: int = 10) -> ViewState:
    """The state after a key; `page` is how many cards page up and page down jump over."""
    if event in _JUMPS:
        return select(state, _JUMPS[event](state.selected, page, len(state.cards)))
    return _CHANGES[event](state)


def select(state: ViewState, index: int) -> ViewState:
    """Select a card by its place on screen; beyond either end selects that end."""
    return replace(state, selected=max(0, min(index, len(state.cards) - 1)))


def show(state: ViewState, cards: Sequence[str]) -> ViewState:
    """Note which cards stand on screen now: the selection stays on its card, or else at its place."""
    held = state.selected_card
    listed = replace(state, cards=tuple(cards))
    return select(listed, listed.cards.index(held) if held in listed.cards else state.selected)


def listed_rows(rows: Sequence[CardRow], sort: Sort, which: Filter) -> tuple[CardRow, ...]:
    """The rows that a filter keeps, in the order of a sort; a card of unknown capacity comes last."""
    kept = [row for row in rows if _KEEPS[which](row.verdict)]
    key = _SORT_KEYS[sort]
    return tuple(kept if key is None else sorted(kept, key=lambda row: _descending(key(row))))


def first_that_fits(rows: Sequence[CardRow]) -> int:
    """Place of the first card that fits, 0 when none does."""
    return next((place for place, row in enumerate(rows) if row.verdict is Verdict.FITS), 0)


def _descending(size: int | None) -> tuple[bool, int]:
    return (size is None, -(size or 0))


def _longer(state: ViewState) -> ViewState:
    return _with_context(state, min(state.shape.context_tokens * 2, state.start.longest_context))


def _shorter(state: ViewState) -> ViewState:
    """Half; from the model's limit, back to the step before it, so that left undoes right there too."""
    shape, start = state.shape, state.start
    context = max(shape.context_tokens // 2, 1)
    if shape.context_tokens == start.longest_context:
        step = start.shape.context_tokens
        while step * 2 < start.longest_context:
            step *= 2
        context = step if step < start.longest_context else context
    return _with_context(state, context)


def _with_context(state: ViewState, context_tokens: int) -> ViewState:
    return replace(state, shape=replace(state.shape, context_tokens=context_tokens))


def _more(state: ViewState) -> ViewState:
    return _with_concurrency(state, min(state.shape.concurrency * 2, CEILING))


def _fewer(state: ViewState) -> ViewState:
    return _with_concurrency(state, max(state.shape.concurrency // 2, 1))


def _with_concurrency(state: ViewState, concurrency: int) -> ViewState:
    return replace(state, shape=replace(state.shape, concurrency=concurrency))


def _next_profile(state: ViewState) -> ViewState:
    """The next profile at the same context and concurrency, as far as its model can take them."""
    index = (state.profile + 1) % len(state.starts)
    if index == state.profile:
        return state
    start = state.starts[index]
    context = min(state.shape.context_tokens, start.longest_context)
    return replace(state, profile=index, shape=Shape(context, start.shape.new_tokens, state.shape.concurrency))


def _after(choice: _Choice) -> _Choice:
    choices = list(type(choice))
    return choices[(choices.index(choice) + 1) % len(choices)]


_JUMPS: Mapping[Event, Callable[[int, int, int], int]] = {
    Event.UP: lambda at, page, count: at - 1,
    Event.DOWN: lambda at, page, count: at + 1,
    Event.PAGE_UP: lambda at, page, count: at - page,
    Event.PAGE_DOWN: lambda at, page, count: at + page,
    Event.FIRST: lambda at, page, count: 0,
    Event.LAST: lambda at, page, count: count,
}

_CHANGES: Mapping[Event, Callable[[ViewState], ViewState]] = {
    Event.LONGER: _longer,
    Event.SHORTER: _shorter,
    Event.MORE: _more,
    Event.FEWER: _fewer,
    Event.SORT: lambda state: replace(state, sort=_after(state.sort)),
    Event.FILTER: lambda state: replace(state, filter=_after(state.filter)),
    Event.NEXT_PROFILE: _next_profile,
    Event.RESET: lambda state: replace(state, shape=state.start.shape),
}

_KEEPS: Mapping[Filter, Callable[[Verdict], bool]] = {
    Filter.ALL: lambda verdict: True,
    Filter.FITS: lambda verdict: verdict is Verdict.FITS,
    Filter.POSSIBLE: lambda verdict: verdict is not Verdict.DOES_NOT_FIT,
}

_SORT_KEYS: Mapping[Sort, Callable[[CardRow], int | None] | None] = {
    Sort.CATALOG: None,
    Sort.HEADROOM: lambda row: row.headroom_bytes,
    Sort.CAPACITY: lambda row: row.capacity_bytes,
}
