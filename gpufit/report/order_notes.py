"""What an order says of its hours, of what it leaves idle, and of cheaper ways to the same work."""

from __future__ import annotations

from collections.abc import Iterator

from gpufit.advice.plan import Ask, Plan
from gpufit.advice.terms import least_pace
from gpufit.advice.throughput import NoThroughput
from gpufit.catalog.offers import TERMS, OfferBook
from gpufit.catalog.record import Card
from gpufit.report.document import CardRow
from gpufit.report.order_document import Cost
from gpufit.report.order_text import money, more_workers
from gpufit.report.plans import arrangement_words
from gpufit.units import counted, format_figure


def other_plan(plan: Plan, ask: Ask, row: CardRow) -> Iterator[str]:
    """The first of `fit`'s plans for the card, where another was chosen for which more cards are paid; `row` is that of
    all sequences."""
    first = next(iter(row.arrangements), None)
    if first is None or ask.workers is not None:
        return
    paid = first.lots * row.lot_size
    if paid < plan.lots.cards:
        yield (
            f"{arrangement_words(first)}: {counted(paid, 'card')} in place of {plan.lots.cards:,} (--arrangement "
            f"{first.arrangement})"
        )


def better_use(plan: Plan, ask: Ask, at_once: int, card: Card, cost: Cost, book: OfferBook) -> Iterator[str]:
    """What is paid for and not used, and what does the same work for less, as far as prices are known."""
    inputs = ask.volume.inputs
    if plan.remainder.copies and (inputs is None or inputs >= plan.workers + plan.remainder.copies):
        most = plan.workers + plan.remainder.copies
        yield f"what is paid for holds {most} workers: --workers {most} puts idle cards to work at the same price"
    if cost.total_price is None or plan.hours is None:
        return
    for option in plan.options:
        price = book.offer(card.id).price(option.days)
        total = None if price is None or option.lots is None else price * option.lots.lots
        if option.workers is not None and total is not None and total < cost.total_price:
            yield (
                f"{option.days} days and {counted(option.workers, 'worker')}: the same work for "
                f"{money(total, cost.currency)} (--term {option.days} {more_workers(option.workers, at_once)})"
            )


def work_notes(plan: Plan, ask: Ask, concurrency: int) -> Iterator[str]:
    """What is said of the volume of work and its hours."""
    volume = ask.volume
    if not volume.stated:
        yield "no volume of work was stated (--inputs, --tokens), so no hours are claimed"
    elif isinstance(plan.rate, NoThroughput):
        yield f"{plan.rate.why}; no hours are claimed, and the term is as it was asked for"
        yield from _paces(plan, ask)
    if volume.inputs is not None and plan.workers <= volume.inputs < concurrency:
        never = f"{counted(volume.inputs, 'input')} never run {concurrency:,} at once"
        yield f"{never}: --concurrency {volume.inputs} is enough"


def _paces(plan: Plan, ask: Ask) -> Iterator[str]:
    """What the last check on arrival has to come to: from which pace on each term holds the work."""
    enough = []
    for days in TERMS:
        pace = least_pace(ask.volume, plan.workers, days, ask.overheads)
        if pace is not None:
            amounts = ((pace.inputs_per_second, "inputs"), (pace.tokens_per_second, "tokens"))
            asked = " and ".join(f"{format_figure(each, up=True)} {what}" for each, what in amounts if each is not None)
            enough.append(f"{days} days from {asked} a second on")
    if enough:
        workers = "the worker does" if plan.workers == 1 else f"each of {plan.workers:,} workers does"
        yield f"what is enough, by what {workers} in a second while it computes: {', '.join(enough)}"
