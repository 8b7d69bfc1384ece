"""How fast a measured card worked, and what its work costs: only for the very card that a profile was measured on.

A figure is that of one cell, over its whole wall time: all sequences started at once, their prompts read and all new
tokens generated, in one untracked run. It holds for the profile's engine and precision. Rates are never carried to
another card: memory follows from shapes, speed does not. A CPU, a simulated or a computed profile has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gpufit.catalog.detect import detect_card
from gpufit.catalog.record import Card, Catalog
from gpufit.memory.terms import Shape
from gpufit.profile.cells import Measured
from gpufit.profile.evidence import Evidence
from gpufit.profile.record import Profile
from gpufit.units import counted, format_figure, format_tokens

SECONDS_A_DAY = 86_400
TOKENS_PRICED = 1_000_000
"""Tokens are priced by the million."""
INPUTS_PRICED = 1_000
"""Inputs are priced by the thousand."""


@dataclass(frozen=True)
class Throughput:
    """The rate at which whole copies of a model work off inputs of one shape."""

    asked: Shape
    """The shape that the rate is for, of one copy."""
    cell: Shape
    """The measured cell that it comes from."""
    inputs_completed: int
    """Sequences that the cell ran to their end."""
    wall_seconds: float
    """What it took for them: prompts and all new tokens."""
    copies: int = 1
    """Copies that work side by side, each with inputs of its own; nothing they may share was measured."""

    @property
    def is_asked_cell(self) -> bool:
        """Whether the very shape was measured; otherwise the rate is what that shape at least reaches."""
        return self.cell == self.asked

    @property
    def evidence(self) -> Evidence:
        """`measured` for one copy at a measured cell, `scaled` for other shapes and several copies."""
        return Evidence.MEASURED if self.is_asked_cell and self.copies == 1 else Evidence.SCALED

    @property
    def inputs_per_second(self) -> float:
        """Inputs worked off in a second, by all copies together."""
        return self.copies * self.inputs_completed / self.wall_seconds

    @property
    def generated_tokens_per_second(self) -> float | None:
        """New tokens a second, by all copies together, time for the prompts included; None where none are generated."""
        return self.inputs_per_second * self.asked.new_tokens if self.asked.new_tokens else None

    @property
    def prompt_tokens_per_second(self) -> float:
        """Prompt tokens a second, by all copies together, time for the new tokens included."""
        return self.inputs_per_second * self.asked.context_tokens

    @property
    def priced_tokens(self) -> str:
        """The tokens that a price a million is for: `generated`, or `prompt` where none are generated."""
        return "generated" if self.asked.new_tokens else "prompt"

    @property
    def priced_tokens_per_second(self) -> float:
        """Their rate, by all copies together."""
        generated = self.generated_tokens_per_second
        return self.prompt_tokens_per_second if generated is None else generated

    @property
    def how(self) -> str:
        """The computation in words: `32 inputs x 128 new tokens in 8.00 s, prompts included`, and which cell it was."""
        copies = f"{self.copies} copies x " if self.copies > 1 else ""
        inputs = counted(self.inputs_completed, "input")
        tokens = self.asked.new_tokens or self.asked.context_tokens
        each = counted(tokens, "new token" if self.asked.new_tokens else "prompt token")
        cell = f"the cell of context {format_tokens(self.cell.context_tokens)}"
        cell += f", {counted(self.cell.new_tokens, 'new token')}" if self.cell.new_tokens else ""
        cell += f", {self.cell.concurrency} at once"
        took = f"in {format_figure(self.wall_seconds)} s{', prompts included' if self.cell.new_tokens else ''}"
        if self.is_asked_cell:
            return f"{copies}{inputs} x {each} {took}: {cell}"
        return f"{copies}{inputs} {took}: {cell}, no easier an input than these of {each}"

    def of_copies(self, copies: int) -> Throughput:
        """The same for several copies side by side, each on cards of its own: the rates add up."""
        return replace(self, copies=copies)


@dataclass(frozen=True)
class NoThroughput:
    """No rate can be given."""

    why: str
    """In words, with what to do about it."""
    measured_here: bool = False
    """Whether the profile was measured on this card, as far as its names tell, and all the same has no rate for it."""


def throughput_on(profile: Profile, card: Card, shape: Shape) -> Throughput | NoThroughput:
    """The rate of one copy at a shape on a card; `shape.concurrency` is that of the one copy.

    That of the very cell where it was measured. Otherwise the best among cells that are no easier an input for input:
    no shorter prompts, no fewer new tokens, no more sequences at once to share the weights' way through the card.
    """
    device = profile.environment.device
    if profile.evidence is not Evidence.MEASURED or device.kind in ("cpu", "none"):
        return NoThroughput(
            f"no throughput: the profile is {_origin(profile)}, and only a run on the card itself has one"
        )
    found = detect_card(Catalog(cards=(card,)), device.name, device.pci_id, device.total_bytes)
    if found.card is None:
        return NoThroughput(f"no throughput: measured on {device.name}, and speed is never carried to another card")
    if found.warnings:
        return NoThroughput(f"no throughput: what was measured may not be a whole {card.id}: {found.warnings[0]}", True)
    rates = list(_rates(profile, shape))
    exact = [rate for rate in rates if rate.is_asked_cell]
    if not rates:
        return NoThroughput(
            measured_here=True,
            why=f"no throughput: no timed cell has {format_tokens(shape.context_tokens)} tokens of context or more, "
            f"{shape.new_tokens} new or more and at most {shape.concurrency} at once; measure the scenario on the card",
        )
    return max(exact or rates, key=lambda rate: rate.inputs_per_second)


def cost_per_million_tokens(price: float, term_days: int, throughput: Throughput) -> float:
    """What a million `throughput.priced_tokens` cost, in the currency of `price`.

    `price` is that of everything ordered for the term, idle cards included, and the cards work every second of it:
    price / (tokens a second x 86,400 x days) x 1,000,000. Time without work makes tokens dearer.
    """
    return _cost(price, term_days, throughput.priced_tokens_per_second, TOKENS_PRICED)


def cost_per_thousand_inputs(price: float, term_days: int, throughput: Throughput) -> float:
    """What a thousand inputs cost, in the currency of `price`: as `cost_per_million_tokens`, of inputs a second."""
    return _cost(price, term_days, throughput.inputs_per_second, INPUTS_PRICED)


def _cost(price: float, term_days: int, per_second: float, count: int) -> float:
    return price / (per_second * SECONDS_A_DAY * term_days) * count


def _rates(profile: Profile, asked: Shape) -> Iterator[Throughput]:
    """The rates of every timed cell that is no easier than what is asked."""
    for cell in profile.cells:
        shape = Shape(*cell.key)
        match cell.outcome:
            case Measured(inputs_completed=inputs, wall_seconds=float(seconds)) if inputs and seconds > 0:
                if _no_easier(shape, asked):
                    yield Throughput(asked, shape, inputs, seconds)


def _no_easier(cell: Shape, asked: Shape) -> bool:
    return (
        cell.context_tokens >= asked.context_tokens
        and cell.new_tokens >= asked.new_tokens
        and cell.concurrency <= asked.concurrency
    )


def _origin(profile: Profile) -> str:
    """Where a profile comes from, in words."""
    if profile.evidence is Evidence.MEASURED:
        return f"measured on a CPU ({profile.environment.device.name})"
    return f"{profile.evidence}, not measured"
