"""What the screens share: what was read, what is looked at, and the answers to it, each asked once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from gpufit import flows
from gpufit.advice.plan import Ask
from gpufit.catalog.offers import Offers
from gpufit.catalog.record import Card, Catalog
from gpufit.errors import UsageError
from gpufit.memory.held import Held
from gpufit.memory.terms import Shape
from gpufit.report.document import CardRow, FitDocument
from gpufit.report.order_document import OrderDocument
from gpufit.report.prices import BookFigures
from gpufit.tui import state
from gpufit.tui.kept import Kept, KeptShape
from gpufit.tui.listing import first_that_fits, listed_rows
from gpufit.tui.loaded import LoadedProfile, UnfinishedProfile


@dataclass(frozen=True)
class Question:
    """What a profile is asked."""

    loaded: LoadedProfile
    shape: Shape
    held: Held

    @property
    def key(self) -> tuple[str, str, int, Shape, Held]:
        """The same question has the same key. A file may be written anew while it is on show: when the profile was
        made and how many cells it has belongs to it."""
        profile = self.loaded.profile
        return (self.loaded.where, profile.created_at, len(profile.cells), self.shape, self.held)


_MOST_ANSWERS = 256
"""Kept at once; the oldest goes first."""


def _whole(loaded: LoadedProfile) -> str:
    return str(Path(loaded.where).resolve())


class Session:
    """Holds the state and answers its question; screens draw both and never ask by themselves."""

    def __init__(
        self,
        profiles: Sequence[LoadedProfile],
        catalog: Catalog,
        offers: Offers,
        problems: Sequence[str] = (),
        unfinished: Sequence[UnfinishedProfile] = (),
        *,
        verdicts_first: bool = False,
    ) -> None:
        self.verdicts_first = verdicts_first
        """Verdicts answer a state at once; the rest is `wanted`, for somebody else to work out."""
        self.wanted: Question | None = None
        """The question of the state, while its answer is verdicts alone."""
        self.catalog, self.offers = catalog, offers
        self.problems = tuple(problems)
        """What could not be read, a line each."""
        self.unfinished = tuple(unfinished)
        """Profiles that cannot be asked anything yet."""
        self.cards_by_id = {card.id: card for card in catalog.cards}
        self.profiles: tuple[LoadedProfile, ...] = ()
        self.state = state.ViewState()
        self.theme: str | None = None
        """The theme that is on show; None: that of the app."""
        self.document: FitDocument | None = None
        """The answer to the state's question; None without a profile and where it cannot answer."""
        self.why_not = ""
        """Why there is no answer, in words."""
        self.rows: tuple[CardRow, ...] = ()
        """The rows of the document that are listed, in their order on screen."""
        self._answers: dict[tuple[str, str, int, Shape, Held], FitDocument | str] = {}
        self.hold(profiles)

    @property
    def loaded(self) -> LoadedProfile | None:
        """The profile on screen."""
        return self.profiles[self.state.profile] if self.profiles else None

    @property
    def selected_row(self) -> CardRow | None:
        """The row of the selected card; None while no card is listed."""
        return self.rows[self.state.selected] if self.rows else None

    def hold(self, profiles: Sequence[LoadedProfile]) -> None:
        """Take these profiles in place of those before; the smallest card that fits is selected at the first."""
        shown = None if self.loaded is None else self.loaded.where
        places = {one.where: place for place, one in enumerate(profiles)}
        self.profiles = tuple(profiles)
        kept = {one.profile.created_at for one in profiles}
        self._answers = {key: answer for key, answer in self._answers.items() if key[1] in kept}
        starts = [state.start_of(one.profile, one.start) for one in profiles]
        self.go(state.with_starts(self.state, starts, places.get(shown or "")))
        if shown is None:
            self.go(state.select(self.state, first_that_fits(self.rows)))

    def take(self, loaded: LoadedProfile) -> None:
        """Take a profile beside the others, or in place of what was read from its file before."""
        place = self.place_of(loaded.where)
        profiles = list(self.profiles)
        if place is None:
            profiles.append(loaded)
        else:
            loaded = profiles[place] = replace(loaded, where=profiles[place].where)
        self.unfinished = tuple(one for one in self.unfinished if one.where != loaded.where)
        self._answers = {key: answer for key, answer in self._answers.items() if key[0] != loaded.where}
        self.hold(profiles)

    def open(self, one: LoadedProfile | UnfinishedProfile) -> None:
        """Take a profile, and look at it where it can answer; of one that cannot, the file's answers are gone."""
        if isinstance(one, LoadedProfile):
            self.take(one)
            place = self.place_of(one.where)
            if place is not None:
                self.go(state.with_profile(self.state, place))
            return
        self.unfinished = (*(other for other in self.unfinished if other.where != one.where), one)
        place = self.place_of(one.where)
        if place is not None:
            self.hold((*self.profiles[:place], *self.profiles[place + 1 :]))

    def place_of(self, where: str) -> int | None:
        """The place of the profile that was read from a file, however the file was named; None where none was."""
        whole = Path(where).resolve()
        return next((place for place, one in enumerate(self.profiles) if Path(one.where).resolve() == whole), None)

    def restore(self, kept: Kept) -> None:
        """Go back to where an earlier run ended, as far as the same profile is there."""
        self.theme = kept.theme
        to = replace(self.state, view=kept.view, axis=kept.axis, listing=kept.listing)
        shape = None if self.loaded is None else kept.scenarios.get(_whole(self.loaded))
        if shape is not None:
            to = state.with_shape(to, shape.context_tokens, shape.concurrency, shape.new_tokens)
        self.go(to)
        if not self.rows:  # what was chosen for another question leaves nothing of this one
            self.go(state.press(self.state, state.Event.ALL_CARDS))
        self.go(state.select(self.state, first_that_fits(self.rows)))

    def keep(self, kept: Kept) -> Kept:
        """What to remember of this run, beside what was remembered before it."""
        now, shape = self.state, self.state.shape
        listing = replace(now.listing, search="")
        found = msgspec.structs.replace(kept, theme=self.theme, view=now.view, axis=now.axis, listing=listing)
        if self.loaded is None:
            return found
        last = KeptShape(
            context_tokens=shape.context_tokens, concurrency=shape.concurrency, new_tokens=shape.new_tokens
        )
        return found.with_scenario(_whole(self.loaded), last)

    def go(self, to: state.ViewState) -> None:
        """Make `to` the state and answer what it asks."""
        answer = self._first_answer(to) if self.verdicts_first else self.answer(to)
        self.document = None if isinstance(answer, str) else answer
        self.why_not = answer if isinstance(answer, str) else ""
        if self.document is None:
            self.rows, self.state = (), to
            return
        self.rows = listed_rows(self.document.cards, to.listing, self.cards_by_id, self.settled)
        self.state = state.show(to, [row.card for row in self.rows])

    @property
    def settled(self) -> bool:
        """Whether the document is the whole answer, and not the verdicts alone."""
        return self.wanted is None

    def settle(self) -> None:
        """Have the whole answer now."""
        if self.wanted is not None:
            self.take_answer(self.wanted, self.work_out(self.wanted))

    def work_out(self, question: Question, between: Callable[[], None] | None = None) -> FitDocument | str:
        """The document for a question, or in words why there is none. Changes nothing here, so that another thread may
        do it; `between` is called now and then, and may raise to give up."""
        return self._worked_out(question, self.catalog.cards, between)

    def _worked_out(
        self, question: Question, cards: Sequence[Card], between: Callable[[], None] | None = None
    ) -> FitDocument | str:
        profile, where = question.loaded.profile, question.loaded.where
        try:
            return flows.judge_cards(
                profile, where, question.shape, self.catalog, self.offers, cards, question.held, between
            )
        except UsageError as error:
            return str(error)

    def take_answer(self, question: Question, answer: FitDocument | str) -> None:
        """Note the answer to a question; where that is still the one asked, it is the document."""
        self._note(question, answer)
        if self.wants(question):
            self.go(self.state)

    def wants(self, question: Question) -> bool:
        """Whether a question is the one whose whole answer is waited for."""
        return self.wanted is not None and self.wanted.key == question.key

    def answer(self, to: state.ViewState) -> FitDocument | str:
        """The document for a state's question, or in words why there is none. Asked once for each question."""
        if not self.profiles:
            return "no profile"
        question = self._question(to)
        if question.key not in self._answers:
            self._note(question, self.work_out(question))
        return self._answers[question.key]

    def _first_answer(self, to: state.ViewState) -> FitDocument | str:
        """The same, as far as it is known at once."""
        if not self.profiles or self._question(to).key in self._answers:
            self.wanted = None
            return self.answer(to)
        question = self._question(to)
        if self.document is not None and self.wants(question):
            return self.document
        self.wanted, loaded = None, question.loaded
        try:
            found = flows.verdicts(
                loaded.profile, loaded.where, question.shape, self.catalog, self.offers, question.held
            )
        except UsageError as error:
            self._note(question, str(error))
            return str(error)
        self.wanted = question
        return found

    def _question(self, to: state.ViewState) -> Question:
        return Question(self.profiles[to.profile], to.shape, to.held)

    def _note(self, question: Question, answer: FitDocument | str) -> None:
        if len(self._answers) >= _MOST_ANSWERS:
            del self._answers[next(iter(self._answers))]
        self._answers[question.key] = answer

    def listed(self) -> FitDocument | None:
        """The whole answer for the cards that are listed, in their order; None where there is none."""
        self.settle()
        if self.document is None or not self.rows:
            return None
        if len(self.rows) == len(self.document.cards):
            return msgspec.structs.replace(self.document, cards=self.rows)
        # What a document says of all its cards together is asked again for fewer.
        answer = self._worked_out(self._question(self.state), [self.cards_by_id[row.card] for row in self.rows])
        return None if isinstance(answer, str) else answer

    def order(self, card: str, book: BookFigures | None, ask: Ask, arrangement: str | None = None) -> OrderDocument:
        """The order of a card from one seller, at the state's scenario and held as its switches say, taken in one of
        the answer's ways (None: the one with the fewest cards). Raises UsageError, in one line, where there is none."""
        from gpufit import flows_order

        loaded, now = self.loaded, self.state
        if loaded is None:
            raise UsageError("no profile to order for")
        books = tuple(one for one in self.offers.books if book is None or one.name == book.name)
        offers = replace(self.offers, books=books)
        return flows_order.order(
            loaded.profile,
            loaded.where,
            now.shape,
            self.catalog,
            offers,
            self.cards_by_id[card],
            ask,
            held=now.held,
            arrangement=arrangement,
            saved=not flows.names_model(loaded.where),
        )
