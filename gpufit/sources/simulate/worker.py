"""The process that runs a model on fake tensors; it speaks as the measuring worker does."""

from __future__ import annotations

from gpufit.sources.measure import worker
from gpufit.sources.measure.protocol import Job


def simulated(job: Job, tell: worker.Tell) -> worker.PlannedModel:
    """A model that runs nowhere."""
    from gpufit.sources.simulate import session

    return session.plan(job)


if __name__ == "__main__":
    raise SystemExit(worker.main(simulated))
