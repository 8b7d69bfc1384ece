"""An order in words: the labelled lines that Markdown and the workbook share."""

from __future__ import annotations

from gpufit.profile.evidence import Evidence
from gpufit.report.basis import evidence_text
from gpufit.report.cells import PART_TITLES
from gpufit.report.order_document import (
    EnvironmentRow,
    HeldOtherwise,
    Idle,
    Margin,
    OrderDocument,
    Readiness,
    TermFigures,
    Worker,
)
from gpufit.report.summary import switched_words
from gpufit.units import counted, format_figure, format_size, format_tokens

Line = tuple[str, str]
"""A label and what stands behind it."""


def more_workers(workers: int, at_once: int) -> str:
    """The options for so many workers that each run as many sequences at once as before."""
    return f"--workers {workers} --concurrency {workers * at_once}"


def title(document: OrderDocument) -> str:
    """What the order comes to, in one line."""
    card = document.card
    if card.lots is None or card.cards_paid is None:
        return f"No order: {card.name}"
    return f"Order: {_lots(card.lots, card.lot_size)} of {card.name} for {document.term_days} days"


def _lots(lots: int, lot_size: int) -> str:
    """Lots with the cards in them, or cards alone where a lot is one card."""
    if lot_size == 1:
        return counted(lots, "card")
    return f"{counted(lots, 'lot')} ({counted(lots * lot_size, 'card')})"


def status(document: OrderDocument) -> str:
    """Whether it can be ordered as it stands, and on what."""
    if document.readiness is not Readiness.READY_UNPROVEN:
        return "Ready to order." if document.ready else "Not ready to order."
    on = {
        Evidence.SCALED: f"on figures scaled from a run on {document.measured_on}",
        Evidence.SIMULATED: "on a simulated run: no card ran it",
        Evidence.MEASURED: f"on a model fitted to a run on {document.measured_on}: this shape was not run",
    }.get(document.evidence, "on arithmetic: nothing was run")
    number = next((number for number, check in enumerate(document.checks, start=1) if check.decides), None)
    decides = "" if number is None else f"; check {number} decides before the work starts"
    return f"Ready to order, {on}{decides}."


def evidence_words(document: OrderDocument) -> str:
    """What the figures of memory rest on."""
    ran = document.scenario_ran
    if document.held is not None:
        words = (
            f"Figures of memory: {document.evidence}, worked out for {document.held.words} from a profile of "
            f"{document.measured_on} that is not held so."
        )
    else:
        words = f"Figures of memory: {evidence_text(document.evidence, ran)}, made on {document.measured_on}."
    if (document.evidence is Evidence.MEASURED and ran) or not document.checks:
        return words
    return f"{words} The checks on arrival measure them on the card itself."


def scenario_words(document: OrderDocument) -> str:
    """The question in one line."""
    scenario = document.scenario
    new = f" + {scenario.new_tokens} new" if scenario.new_tokens > 1 else ""
    context = format_tokens(scenario.context_tokens)
    return f"context {context}{new} tokens x {scenario.concurrency} at once{switched_words(scenario)}"


def ordered_lines(document: OrderDocument) -> list[Line]:
    """Card, lots, what lies idle, term and cost."""
    card = document.card
    form = f", {card.form_factor}" if card.form_factor else ""
    lines = [("card", f"{card.name} ({card.card}{form})")]
    if card.lots is None or card.cards_needed is None or card.cards_paid is None:
        return [*lines, ("cards", "none: no plan that was tried serves the scenario")]
    lines += [
        ("cards needed", f"{card.cards_needed:,} ({_arrangement(document)})"),
        *([("machines", machines_words(document))] if (card.machines or 0) > 1 or card.ranks > 1 else ()),
        ("lots", f"{counted(card.lots, 'lot')} of {counted(card.lot_size, 'card')}"),
        ("cards paid for", f"{card.cards_paid:,}"),
        ("idle cards", "none" if document.idle is None else idle_words(document.idle, document.cost.currency)),
        ("term", f"{document.term_days} days: {document.term_purpose}"),
        ("price", price_words(document)),
    ]
    return lines


def _arrangement(document: OrderDocument) -> str:
    card = document.card
    workers = counted(len(document.workers), "worker")
    each = "" if len(document.workers) == 1 else ", each"
    ranks = "" if card.ranks == 1 else f"{each} over {card.ranks} devices"
    shared = "" if card.devices_per_card == 1 else f", {card.devices_per_card} devices a card"
    return f"{card.arrangement}: {workers}{ranks}{shared}"


def machines_words(document: OrderDocument) -> str:
    """In how many machines the workers stand, and what has to stand in one."""
    card = document.card
    shared = card.tensor_parallel_size
    together = f"; the {shared} devices that share a layer have to stand in one" if shared > 1 else ""
    return f"{card.machines} at least: {card.machine}{together}"


def idle_words(idle: Idle, currency: str | None) -> str:
    """The idle cards, what they cost, and what they could host."""
    cost = f"{idle.cost_share:.0%} of the price"
    if idle.price is not None:
        cost += f", {money(idle.price, currency)}"
    if idle.copies is None:
        return f"{idle.cards} ({cost})"
    if not idle.copies:
        return f"{idle.cards} ({cost}); too few for another copy of the model"
    copies = counted(idle.copies, "more copy", "more copies")
    hosted = "" if not idle.sequences else f", {counted(idle.sequences, 'more sequence')} at once at this context"
    return f"{idle.cards} ({cost}); could host {copies} of the model{hosted}"


def price_words(document: OrderDocument) -> str:
    """Total, price of a lot, seller and date; or that the book leaves it blank."""
    cost = document.cost
    if cost.total_price is None or cost.price_per_lot is None:
        return f"blank: offer book {cost.book!r} has no price for this card and term (gpufit catalog offers --template)"
    of_lot = f"{money(cost.price_per_lot, cost.currency)} a lot"
    date = f", prices of {cost.date}" if cost.date else ", prices without a date"
    warnings = "; public figures, which nobody offers" if cost.indicative else ""
    warnings += "; old: ask again" if cost.stale else ""
    warnings += f"; odd, {cost.odd}: ask before you count on it" if cost.odd else ""
    return f"{money(cost.total_price, cost.currency)} ({of_lot}); {cost.seller or f'book {cost.book}'}{date}{warnings}"


def money(amount: float, currency: str | None) -> str:
    """An amount with its currency."""
    return f"{amount:,.2f} {currency or '(currency not named)'}"


def purpose_lines(document: OrderDocument) -> list[Line]:
    """Model, engine, scenario, and the work."""
    model, engine = document.model, document.engine
    revision = f"revision {model.revision}" if model.revision else "no revision named"
    lines = [
        ("model", f"{model.name} ({model.architecture}), {revision}"),
        ("fingerprint", model.fingerprint + ("" if document.weights_read else ", of the config alone")),
        ("engine", f"{engine.name} {engine.version}, attention {engine.attention}"),
        ("figures hold for", document.holds_for),
        ("from", f"{document.profile}, {document.measured_on}"),
        ("scenario", scenario_words(document) + _all_at_once(document)),
        *([] if document.held is None else [("held otherwise", held_words(document.held))]),
        ("work", _volume(document)),
    ]
    if document.workers:
        lines += [("throughput", throughput_words(document)), ("hours", hours_words(document))]
    return lines


def held_words(held: HeldOtherwise) -> str:
    """What is held otherwise, that it is worked out, and how it is had."""
    options = f"gpufit profile takes {held.options} for it" if held.options else ""
    return "; ".join((f"{held.words}: worked out, nothing was run so", *filter(None, (options, *held.remarks))))


def _all_at_once(document: OrderDocument) -> str:
    """What all workers together run at once, where they run more than was asked for."""
    together = sum(worker.at_once for worker in document.workers)
    if together <= document.scenario.concurrency:
        return ""
    return f"; {counted(len(document.workers), 'worker')} run {together:,}"


def _volume(document: OrderDocument) -> str:
    work = document.work
    amounts = [] if work.inputs is None else [counted(work.inputs, "input")]
    amounts += [] if work.tokens is None else [counted(work.tokens, "token")]
    return ", ".join(amounts) or "not stated"


def throughput_words(document: OrderDocument) -> str:
    """The rate of a worker with its evidence and how it came about; or why there is none."""
    work = document.work
    if work.inputs_per_second is None:
        return work.throughput
    least = "at least " if work.throughput_lower_bound else ""
    return (
        f"{least}{format_figure(work.inputs_per_second)} inputs/s by a worker ({work.throughput_evidence}): "
        f"{work.throughput}"
    )


def hours_figure(hours: float) -> str:
    """Hours to a tenth, and more finely below one: a small job takes more than none."""
    return f"{hours:,.1f}" if hours >= 1 else format_figure(hours, 2)


def hours_words(document: OrderDocument) -> str:
    """The hours and what they are made of; or that none are claimed."""
    work = document.work
    if work.total_hours is None or work.processing_hours is None:
        return "none claimed: there is no measured throughput" if _volume(document) != "not stated" else "none claimed"
    term = next(term.hours for term in document.terms if term.days == document.term_days)
    most = "at most " if work.hours_upper_bound else ""
    return (
        f"{most}{hours_figure(work.total_hours)} h ({work.hours_evidence}) = {hours_figure(work.processing_hours)} h "
        f"of work + {work.setup_hours:g} h set-up + {work.checks_hours:g} h checks + {work.export_hours:g} h export; "
        f"the term has {term} h"
    )


def margin_lines(document: OrderDocument) -> list[Line]:
    """Need against capacity, on one device at what one worker runs at once."""
    margin = document.margin
    lines = [
        ("at once", counted(margin.at_once, "sequence")),
        ("verdict", str(margin.verdict).replace("_", " ")),
        *([] if margin.reason is None else [("verdict, because", margin.reason)]),
        ("need", format_size(margin.need_bytes)),
        ("need, interval", f"{format_size(margin.need_lower_bytes)} to {format_size(margin.need_upper_bytes)}"),
    ]
    if margin.capacity_bytes is None or margin.headroom_bytes is None:
        lines.append(("capacity", "not known"))
    else:
        lines.append(("capacity", f"{format_size(margin.capacity_bytes)}, as torch sees it"))
        lines.append(("headroom", format_size(margin.headroom_bytes)))
        lower, upper = margin.headroom_lower_bytes or 0, margin.headroom_upper_bytes or 0
        lines.append(("headroom, interval", f"{format_size(lower)} to {format_size(upper)}"))
    if margin.max_concurrency is not None:
        lines.append(("most that surely fit", counted(margin.max_concurrency, "sequence")))
    if margin.held_out_error is not None:
        lines.append(
            ("worst miss in a test", f"{margin.held_out_error:.2%} of allocated, in cells held out of the fit")
        )
    if margin.reason is None:
        lines.append(("binds", binding_words(margin)))
    return [*lines, ("evidence", evidence_text(margin.evidence, document.scenario_ran))]


def binding_words(margin: Margin) -> str:
    """The largest part of what is needed, and the phase it is needed in."""
    return f"{PART_TITLES[margin.binding_part]} in {margin.binding_phase}"


def term_holds(document: OrderDocument, term: TermFigures) -> str:
    """Whether a term holds the work: of hours that are an upper bound, a shorter term may."""
    if term.holds is None:
        return "not known"
    return "yes" if term.holds else "not surely" if document.work.hours_upper_bound else "no"


def term_headers(document: OrderDocument) -> list[str]:
    """Over `term_cells`."""
    work = "workers to hold the work" if document.work.total_hours is not None else "workers"
    return ["term", "for", "holds the work", work, "lots", "cards", "price"]


def term_cells(document: OrderDocument, term: TermFigures) -> list[str]:
    """What one term would take."""
    workers = blank(term.workers)
    if document.work.total_hours is None:
        workers = blank(len(document.workers))
    elif term.workers is None:
        workers = "no number of them"
    price = "" if term.total_price is None else money(term.total_price, document.cost.currency)
    lots, cards = blank(term.lots), blank(term.cards)
    return [f"{term.days} days", term.purpose, term_holds(document, term), workers, lots, cards, price]


WORKER_HEADERS = ("worker", "devices", "at once", "inputs", "how many")
"""Over `worker_cells`."""


def worker_cells(one: Worker) -> list[str]:
    """One worker, and which inputs are its."""
    span = f"{one.first_input}-{one.last_input}" if one.first_input is not None else ""
    if one.inputs == 0:
        span = "none"
    return [str(one.worker), one.devices, str(one.at_once), span, blank(one.inputs)]


def shares_words(document: OrderDocument) -> str:
    """How inputs are shared where nobody said how many there are; empty where the workers' own lines say it."""
    workers = len(document.workers)
    if document.work.inputs is not None:
        return ""
    if workers == 1:
        return "The one worker takes all inputs."
    return f"Of N inputs, worker k takes those from floor((k - 1) x N / {workers}) + 1 to floor(k x N / {workers})."


ENVIRONMENT_HEADERS = ("component", "figures made with", "origin", "needed on the card", "source")
"""Over `environment_cells`."""


def environment_cells(row: EnvironmentRow) -> list[str]:
    """One component."""
    return [row.component, *declared(row), row.needed or "not known", row.source if row.needed else ""]


def declared(row: EnvironmentRow) -> tuple[str, str]:
    """What a component was as the figures were made, and the evidence; both blank where it was not there."""
    return ("", "") if row.declared is None else (row.declared, row.origin)


def blank(value: int | None) -> str:
    """A count, blank where it is not known."""
    return "" if value is None else f"{value:,}"
