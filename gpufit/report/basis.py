"""What figures rest on where the profile did not run the very scenario: a model fitted to the cells that it ran."""

from __future__ import annotations

from gpufit.memory.terms import Shape
from gpufit.profile.evidence import Evidence
from gpufit.profile.peaks import Phase
from gpufit.profile.record import Profile


def scenario_ran(profile: Profile, shape: Shape) -> bool | None:
    """Whether a cell of the profile is this very shape; None where rules answer, which no run stands behind."""
    model = profile.memory_model
    if model is not None and model.untested:
        return None
    key = (shape.context_tokens, shape.new_tokens, shape.concurrency)
    return any(cell.key == key for cell in profile.measured_cells)


def held_out_error(profile: Profile) -> float | None:
    """The worst miss of the memory model in cells held out of its fit, a share of allocated; None where none were."""
    phases = () if profile.memory_model is None else profile.memory_model.phases
    errors = [phase.worst_held_out_error for phase in phases if phase.worst_held_out_error is not None]
    return max(errors, default=None)


def not_run_note(profile: Profile) -> str:
    """What answers for a scenario that no cell ran, and how far it was wrong where it was tested."""
    ran, error = len(profile.measured_cells), held_out_error(profile)
    tested = "no cell was held out to test it"
    if error is not None:
        least = "less than 0.01%" if error < 0.0001 else f"{error:.2%} at most"
        tested = f"it missed held-out cells by {least} of allocated"
    return (
        f"no cell of the profile ran this very scenario: its figures are those of the model fitted to {ran} "
        f"{profile.evidence} {'cell' if ran == 1 else 'cells'} ({tested})"
    )


def evidence_text(evidence: Evidence, ran: bool | None) -> str:
    """The evidence, with what a reader would miss in the word alone; `ran` is that of `scenario_ran`."""
    return f"{evidence}, by a model (this shape was not run)" if ran is False else str(evidence)


def phase_evidence_text(phase: str, evidence: Evidence, ran: bool | None) -> str:
    """The same of one phase; what loading took is as it was seen, whatever runs then."""
    return f"{evidence}, by a model" if ran is False and phase != Phase.LOAD else str(evidence)
