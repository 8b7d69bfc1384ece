"""The use cases that run a model on this machine to try a statement: a profile's prediction, or the whole chain."""

from __future__ import annotations

from dataclasses import dataclass

from gpufit.advice.verification import Repeat, ceiling_of, predictions, what_differs
from gpufit.advice.verification import verify as hold_against
from gpufit.catalog.record import Card, Catalog
from gpufit.flows import check_position_limit, profiled_card
from gpufit.memory.carry import carrier_to
from gpufit.memory.terms import Shape
from gpufit.profile.cells import Measured, OutOfMemory
from gpufit.profile.record import Profile
from gpufit.report.check_document import CheckDocument, build_check_document
from gpufit.report.verify_document import Held, VerifyDocument, build_verify_document
from gpufit.sources.identity import model_of
from gpufit.sources.measure.again import RepeatRequest, check_repeatable, repeat
from gpufit.sources.measure.checking import CheckListener, CheckRequest
from gpufit.sources.measure.checking import check as take_steps
from gpufit.sources.measure.listener import Listener


@dataclass(frozen=True)
class VerifyAsk:
    """What is to be verified, and how."""

    shape: Shape
    model: str | None = None
    """Where the model is; None: where the profile says."""
    as_card: Card | None = None
    """The card whose memory is the limit of the run; None: no other than the profile's own."""
    device: str = "auto"
    trust_remote_code: bool = False
    cell_seconds: int = 900


def check(request: CheckRequest, listener: CheckListener) -> CheckDocument:
    """The smallest run of a model through the whole chain.

    Raises UsageError for a request that cannot be met, UnreadableInputError for a model that cannot be read or a folder
    that cannot be written; what fails afterwards is a step's outcome.
    """
    return build_check_document(take_steps(request, listener))


def verify(profile: Profile, where: str, ask: VerifyAsk, catalog: Catalog, listener: Listener) -> VerifyDocument:
    """Repeat a cell of a profile on this machine's device, and hold what it takes against the prediction.

    Raises UsageError, UnreadableInputError or MeasurementError, each in one line, where it cannot be run.
    """
    check_repeatable(profile)
    check_position_limit(profile, ask.shape)
    predictions(profile, ask.shape)  # nothing is run that there is no prediction for
    source, revision = model_of(profile, where, ask.model)
    ceiling = None
    if ask.as_card is not None:
        ceiling = ceiling_of(ask.as_card, profile, profiled_card(profile, catalog) is ask.as_card)
    again = RepeatRequest(
        shape=ask.shape,
        model=source,
        revision=revision,
        device=ask.device,
        trust_remote_code=ask.trust_remote_code,
        memory_limit_bytes=profile.workload.memory_limit_bytes if ceiling is None else ceiling.limit_bytes,
        limit_name="the profile's memory limit" if ceiling is None else f"--as {ceiling.card}: a memory limit of",
        cell_seconds=ask.cell_seconds,
    )
    found = repeat(profile, again, listener)
    ran = found if isinstance(found, Profile) else None
    outcome = found.cells[0].outcome if isinstance(found, Profile) else found
    ended = outcome if isinstance(outcome, OutOfMemory) else None
    phases = outcome.phases if isinstance(outcome, Measured) else ()
    here = Repeat(None, (), ended) if ran is None else Repeat(ran.environment.device, (ran.load, *phases), ended)
    card = None if ran is None else profiled_card(ran, catalog)
    carrier = None if card is None else carrier_to(card, profile, profiled_card(profile, catalog) is card)
    limit = again.memory_limit_bytes
    verification = hold_against(profile, ask.shape, here, limit, carrier)
    differences = () if ran is None else what_differs(profile, ran)
    return build_verify_document(
        Held(profile, where, ask.shape, source, verification, ran, ended, differences, ceiling, limit)
    )
