"""A card judged for an order: what speaks against ordering it, and why its work runs on several copies, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec import structs

from gpufit.advice.machines import spanning_words, spans
from gpufit.advice.plan import Ask, Plan
from gpufit.advice.terms import HOURS_A_DAY
from gpufit.advice.verdict import Devices, Verdict
from gpufit.catalog.record import Card
from gpufit.memory.held import Held
from gpufit.profile.environment import Environment
from gpufit.profile.evidence import Evidence
from gpufit.profile.record import Profile
from gpufit.report.document import CardRow, FitDocument, Scenario
from gpufit.report.order_again import Again
from gpufit.report.order_environment import not_installable
from gpufit.report.order_text import hours_figure, more_workers
from gpufit.units import counted, format_size


@dataclass(frozen=True)
class Judged:
    """One card, judged for all sequences together and for what one worker runs at once."""

    asked: FitDocument
    """For all sequences; for those of one worker where workers were named and nothing answers for more."""
    worker: FitDocument
    """The same document where one worker runs all."""
    card: Card
    over: Devices
    """Devices that one worker is divided over."""
    profile: Profile | None
    """What was judged; None for a start of vLLM."""
    concurrency: int
    """Sequences at once that were asked for, over all workers."""
    saved: bool
    """Whether the profile lies in a file, which can be taken along."""
    held: Held = field(default_factory=Held)
    """What the profile was judged in."""

    @property
    def row(self) -> CardRow:
        """The card, at what one worker runs at once."""
        return self.worker.cards[0]

    @property
    def ran(self) -> Environment | None:
        """Where the figures were made; None where nothing ran."""
        profile = self.profile
        return None if profile is None or profile.evidence is Evidence.COMPUTED else profile.environment

    @property
    def again(self) -> Again | None:
        """How the profile's model is run on the card; None for a start of vLLM."""
        return None if self.profile is None else Again.of(self.profile, self.card, self.held)

    @property
    def scenario(self) -> Scenario:
        """The question: all sequences, over all workers."""
        return structs.replace(self.asked.scenario, concurrency=self.concurrency)

    @property
    def at_once(self) -> int:
        """Sequences that the fullest worker runs at once."""
        return self.worker.scenario.concurrency


def blockers(judged: Judged, plan: Plan | None, ask: Ask) -> Iterator[str]:
    """What speaks against the order, each with what to do about it."""
    if judged.row.verdict is not Verdict.FITS:
        yield _verdict_words(judged)
    if spans(judged.card, judged.over):
        yield spanning_words(judged.card, judged.over)
    environment = not_installable(judged.worker.engine, judged.card)
    if environment is not None:
        yield environment
    if plan is None:
        return
    inputs = ask.volume.inputs
    if inputs is not None and inputs < plan.workers:
        enough = f"--workers {inputs}" if ask.workers else f"--concurrency {inputs * judged.at_once}"
        without = plan.workers - inputs
        yield (
            f"{counted(plan.workers, 'worker')} for {counted(inputs, 'input')}: {without:,} of them "
            f"{'gets' if without == 1 else 'get'} none, and {'its' if without == 1 else 'their'} cards would be paid "
            f"for idle; {enough} is enough"
        )
    if plan.hours is not None and not plan.holds:
        days = plan.term_days
        takes = "may take up to" if plan.hours.at_most else "takes"
        yield (
            f"the work {takes} {hours_figure(plan.hours.total_hours)} h ({plan.hours.evidence}), and {days} days have "
            f"{days * HOURS_A_DAY}: {_way_out(plan, judged.at_once)}"
        )


def _verdict_words(judged: Judged) -> str:
    row = judged.row
    if row.capacity_bytes is None:
        return f"{row.card}: unknown: nobody has reported how much memory software sees on it, so nothing is claimed"
    if row.start is not None:
        why = row.start.binding
    else:
        why = row.reason or (
            f"a device has {format_size(row.capacity_bytes)}, and {format_size(row.need_lower_bytes)} to "
            f"{format_size(row.need_upper_bytes)} are needed"
        )
    if row.verdict is Verdict.DOES_NOT_FIT:
        no_plan = judged.asked.cards[0].no_plan or "the plan that was tried does not serve it"
        reasons = f"and {no_plan}: {why}" if no_plan != why else no_plan
        return f"{row.card}: does not fit, {reasons}; gpufit fit names cards that do"
    if row.reason is not None:
        return f"{row.card}: too close: {why}: on one such card, before more are ordered"
    return f"{row.card}: too close: {why}; measure on one such card before more are ordered"


def _way_out(plan: Plan, at_once: int) -> str:
    ways = [f"--term {one.days} holds it" for one in plan.options if one.holds][:1]
    own = next(one for one in plan.options if one.days == plan.term_days)
    if own.workers is not None:
        ways.append(f"{more_workers(own.workers, at_once)} brings it into {own.days} days")
    return ", ".join(ways) or "no number of workers brings it into any term"


def unproven(judged: Judged) -> bool:
    """Whether this very shape was not measured on the card, so that the checks on arrival decide."""
    measured = judged.row.evidence in (Evidence.MEASURED, Evidence.IMPORTED)
    return not measured or judged.worker.scenario_ran is False


def spread_words(judged: Judged, workers: int) -> str:
    """Why the work runs on several copies, or a copy on several devices; empty where one device holds everything."""
    asked, at_once = judged.concurrency, judged.at_once
    divided = _divided_words(judged)
    if at_once == asked and not divided:
        return ""
    row = judged.asked.cards[0]
    alone = row.verdict.replace("_", " ")
    everything = f"{'the one sequence' if asked == 1 else f'all {asked:,} sequences at once'}"
    if at_once == asked:
        return (
            f"One card with {everything}: {alone}. So the model is divided over {divided}, and every figure of memory "
            "is that of the fullest of them."
        )
    of_one = "the fullest card of one" if divided else "one of them"
    if row.verdict is Verdict.FITS:
        return (
            f"The {asked:,} sequences at once are shared out among {counted(workers, 'worker')}: at most {at_once:,} "
            f"each, and every figure of memory is that of {of_one}."
        )
    each = f", each divided over {divided}" if divided else ""
    what = "One card" if divided else "One copy of the model"
    return (
        f"{what} with {everything}: {alone}. So whole copies run side by side{each}, at most "
        f"{counted(at_once, 'sequence')} each, and every figure of memory is that of {of_one}."
    )


def _divided_words(judged: Judged) -> str:
    """Over what a copy is divided that the profile, or the start that was asked for, is not of; empty where it is
    not."""
    over, profile, start = judged.over, judged.profile, judged.asked.cards[0].start
    asked = over.count if start is None else start.tensor_parallel_size * start.pipeline_parallel_size
    if over.count == (asked if profile is None else profile.workload.tensor_parallel_size):
        return ""
    if over.stages > 1 and over.tensor > 1:
        return (
            f"{over.stages} stages, some layers on each (pipeline), and each stage over {over.tensor} devices that "
            "share every one of them (tensor parallel)"
        )
    if over.stages > 1:
        return f"{over.stages} devices, some layers on each (pipeline)"
    return f"{over.tensor} devices that share every layer (tensor parallel)"
