"""What the user is looking at, as one frozen record, and how each key changes it. Knows nothing of Textual.

The state holds the question (profile, context, concurrency, what it is held in), the view, the order and choice of
cards, and the selection. The answer is not part of it: the session asks `flows.fit`, then tells the state with `show`
which cards stand on screen.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpufit.advice.curve import Axis as Axis
from gpufit.advice.limits import CEILING
from gpufit.memory.choices import choices
from gpufit.memory.held import Cache, Compute, Held, Weights
from gpufit.memory.positions import longest_context
from gpufit.memory.terms import Shape
from gpufit.profile.record import Profile
from gpufit.tui.listing import Filter, Listing, Sort, after, all_cards


class View(enum.StrEnum):
    """The screens, in the order of their keys, 1 and up."""

    PROFILES = "Profiles"
    CARDS = "Cards"
    CURVE = "Curve"
    GROWTH = "Growth"
    PRECISION = "Precision"
    TIME = "Time"
    ORDER = "Order"
    RUN = "Run"


class Event(enum.StrEnum):
    """What a key asks for; `tui.keys` names the keys."""

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
    ALL_CARDS = enum.auto()
    NEXT_PROFILE = enum.auto()
    RESET = enum.auto()
    WEIGHTS = enum.auto()
    COMPUTE = enum.auto()
    KV_CACHE = enum.auto()
    AXIS = enum.auto()


@dataclass(frozen=True)
class Start:
    """Where one profile begins and how far its context can go."""

    shape: Shape
    """The scenario that a reset returns to."""
    longest_context: int
    """The longest prompt that leaves room for the new tokens inside the model's own positions."""
    decodes_apart: bool = False
    """The model counts the positions of new tokens apart from those of the prompt."""
    weights: tuple[Weights, ...] = (Weights.AS_PROFILED,)
    """What its weights could be held in, in the order of the switch."""
    compute: tuple[Compute, ...] = (Compute.AS_PROFILED,)
    kv_cache: tuple[Cache, ...] = (Cache.AS_PROFILED,)


def _longest(start: Start, new_tokens: int) -> int:
    """The same for another number of new tokens."""
    if start.decodes_apart or start.longest_context >= CEILING:
        return start.longest_context
    return max(start.longest_context + start.shape.new_tokens - new_tokens, 1)


_NOTHING = Start(Shape(1, 1, 1), 1)
"""Stands where there is no profile."""


@dataclass(frozen=True)
class ViewState:
    """Everything that keys change."""

    starts: tuple[Start, ...] = ()
    """One for each profile."""
    shape: Shape = _NOTHING.shape
    asked_context: int = 0
    """The context that was asked for last: that of a profile whose model cannot take it is less; 0: none was."""
    profile: int = 0
    """Index into `starts`; 0 while there are none."""
    held: Held = field(default_factory=Held)
    view: View = View.CARDS
    axis: Axis = Axis.CONTEXT
    listing: Listing = field(default_factory=Listing)
    cards: tuple[str, ...] = ()
    """Ids of the cards on screen, top to bottom."""
    selected: int = 0
    """Index into `cards`; 0 while there are none."""

    @property
    def start(self) -> Start:
        """That of the profile on screen."""
        return self.starts[self.profile] if self.starts else _NOTHING

    @property
    def longest_context(self) -> int:
        """The longest prompt that leaves room for the new tokens asked for."""
        return _longest(self.start, self.shape.new_tokens)

    @property
    def selected_card(self) -> str | None:
        """Id of the selected card; None while no card is listed."""
        return self.cards[self.selected] if self.cards else None


def start_of(profile: Profile, shape: Shape) -> Start:
    """The start of a profile at its default shape."""
    model = profile.model
    limit = longest_context(model.position_limit, model.decodes_apart, shape.new_tokens)
    longest = CEILING if limit is None else max(limit, 1)
    found = choices(profile)
    return Start(
        replace(shape, context_tokens=min(shape.context_tokens, longest)),
        longest,
        decodes_apart=model.decodes_apart,
        weights=tuple(one.value for one in found.weights if not one.why_not),
        compute=tuple(one.value for one in found.compute if not one.why_not),
        kv_cache=tuple(one.value for one in found.kv_cache if not one.why_not),
    )


def initial_state(starts: Sequence[Start]) -> ViewState:
    """The first profile at its default scenario; without any profile, nothing to ask."""
    state = ViewState(starts=tuple(starts))
    return replace(state, shape=state.start.shape)


def press(state: ViewState, event: Event, page: int = 10) -> ViewState:
    """The state after a key; `page` is how many cards page up and page down jump over."""
    if event in _JUMPS:
        return select(state, jump(event, state.selected, page, len(state.cards)))
    return _CHANGES[event](state)


def jump(event: Event, at: int, page: int, count: int) -> int:
    """The place in a list of so many after a key that moves; beyond either end it is that end."""
    return max(0, min(_JUMPS[event](at, page, count), count - 1))


def select(state: ViewState, index: int) -> ViewState:
    """Select a card by its place on screen; beyond either end selects that end."""
    return replace(state, selected=max(0, min(index, len(state.cards) - 1)))


def show(state: ViewState, cards: Sequence[str]) -> ViewState:
    """Note which cards stand on screen now: the selection stays on its card, or else at its place."""
    held = state.selected_card
    listed = replace(state, cards=tuple(cards))
    return select(listed, listed.cards.index(held) if held in listed.cards else state.selected)


def look_at(state: ViewState, view: View) -> ViewState:
    """Another screen."""
    return replace(state, view=view)


def with_context(state: ViewState, context_tokens: int) -> ViewState:
    """A context of so many tokens, as far as the model can take them."""
    context = max(1, min(context_tokens, state.longest_context))
    return replace(state, shape=replace(state.shape, context_tokens=context), asked_context=context)


def with_concurrency(state: ViewState, concurrency: int) -> ViewState:
    """So many sequences at once."""
    return replace(state, shape=replace(state.shape, concurrency=max(1, min(concurrency, CEILING))))


def with_shape(state: ViewState, context_tokens: int, concurrency: int, new_tokens: int | None) -> ViewState:
    """Everything at once, as it was typed; new tokens stay where none were. What the model cannot take is left to the
    answer to say."""
    new = state.shape.new_tokens if new_tokens is None else new_tokens
    return replace(state, shape=Shape(context_tokens, new, concurrency), asked_context=context_tokens)


def with_held(state: ViewState, held: Held) -> ViewState:
    """Held so, as far as that applies to the profile; what does not leaves the state as it is."""
    start = state.start
    applies = held.weights in start.weights and held.compute in start.compute and held.kv_cache in start.kv_cache
    return replace(state, held=held) if applies else state


def with_profile(state: ViewState, index: int) -> ViewState:
    """Another profile at the context and concurrency that were asked for, as far as its model can take them, held as it
    was."""
    if index == state.profile or not 0 <= index < len(state.starts):
        return state
    start = state.starts[index]
    context = min(state.asked_context or state.shape.context_tokens, start.longest_context)
    shape = Shape(context, start.shape.new_tokens, state.shape.concurrency)
    return replace(state, profile=index, shape=shape, held=Held())


def with_starts(state: ViewState, starts: Sequence[Start], profile: int | None = None) -> ViewState:
    """The same view where profiles have come or gone, and the one on show now stands at `profile`; None: it is gone,
    and the first begins at its own scenario."""
    if profile is None:
        return replace(
            state, starts=tuple(starts), profile=0, shape=starts[0].shape if starts else state.shape, held=Held()
        )
    there = replace(state, starts=tuple(starts), profile=profile)
    context = max(1, min(there.shape.context_tokens, there.longest_context))
    return replace(there, shape=replace(there.shape, context_tokens=context))


def _longer(state: ViewState) -> ViewState:
    return with_context(state, state.shape.context_tokens * 2)


def _shorter(state: ViewState) -> ViewState:
    """Half; from the model's limit, back to the step before it, so that left undoes right there too."""
    shape, start, longest = state.shape, state.start, state.longest_context
    context = shape.context_tokens // 2
    if shape.context_tokens == longest:
        step = start.shape.context_tokens
        while step * 2 < longest:
            step *= 2
        context = step if step < longest else context
    return with_context(state, context)


def _with_listing(state: ViewState, listing: Listing) -> ViewState:
    return replace(state, listing=listing)


def _next_profile(state: ViewState) -> ViewState:
    return with_profile(state, (state.profile + 1) % max(len(state.starts), 1))


def _reset(state: ViewState) -> ViewState:
    return replace(state, shape=state.start.shape, asked_context=0, held=Held())


def _sorted(state: ViewState) -> ViewState:
    """In the next order, from its first card: that is what one sorts for."""
    listing = replace(state.listing, sort=after(state.listing.sort, tuple(Sort)))
    return replace(state, listing=listing, cards=(), selected=0)


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
    Event.MORE: lambda state: with_concurrency(state, state.shape.concurrency * 2),
    Event.FEWER: lambda state: with_concurrency(state, state.shape.concurrency // 2),
    Event.SORT: _sorted,
    Event.ALL_CARDS: lambda state: _with_listing(state, all_cards(state.listing)),
    Event.FILTER: lambda state: _with_listing(
        state, replace(state.listing, filter=after(state.listing.filter, tuple(Filter)))
    ),
    Event.NEXT_PROFILE: _next_profile,
    Event.RESET: _reset,
    Event.WEIGHTS: lambda state: replace(
        state, held=replace(state.held, weights=after(state.held.weights, state.start.weights))
    ),
    Event.COMPUTE: lambda state: replace(
        state, held=replace(state.held, compute=after(state.held.compute, state.start.compute))
    ),
    Event.KV_CACHE: lambda state: replace(
        state, held=replace(state.held, kv_cache=after(state.held.kv_cache, state.start.kv_cache))
    ),
    Event.AXIS: lambda state: replace(state, axis=after(state.axis, tuple(Axis))),
}
