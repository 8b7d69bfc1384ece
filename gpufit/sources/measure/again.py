"""One cell of a profile run again on this machine's device, with the profile's own settings."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from gpufit.errors import MeasurementError, TooLargeError, UsageError
from gpufit.memory.terms import Shape
from gpufit.profile.cells import Failed, OutOfMemory
from gpufit.profile.evidence import Evidence
from gpufit.profile.peaks import Phase
from gpufit.profile.record import Profile
from gpufit.sources.measure.campaign import Campaign
from gpufit.sources.measure.kernels import CPU, EFFICIENT, SDPA
from gpufit.sources.measure.listener import Listener
from gpufit.sources.measure.request import ProfileRequest

TRANSFORMERS = "transformers"
"""The engine that is run here; what another one printed or is computed for is not verified by it."""


@dataclass(frozen=True)
class RepeatRequest:
    """Which cell to run again, and what is not in the profile."""

    shape: Shape
    model: str
    """Directory, GGUF file or hub id."""
    revision: str | None = None
    device: str = "auto"
    trust_remote_code: bool = False
    memory_limit_bytes: int | None = None
    """A ceiling below the device's own memory."""
    limit_name: str = "the profile's memory limit"
    """What asked for it, as errors name it."""
    cell_seconds: int = 900


def repeat(profile: Profile, request: RepeatRequest, listener: Listener) -> Profile | OutOfMemory:
    """The profile of the cell alone, its outcome measured or out of memory; an OutOfMemory where the model could not
    even be loaded.

    Raises UsageError for what cannot be repeated here, UnreadableInputError for a model that cannot be read,
    MeasurementError for a run that failed otherwise.
    """
    check_repeatable(profile)
    with tempfile.TemporaryDirectory(prefix="gpufit-verify-") as folder:
        asked = request_of(profile, request, Path(folder) / "profile.json")
        campaign = Campaign(asked, listener)
        try:
            return campaign.run()
        except TooLargeError as error:
            return OutOfMemory(phase=Phase.LOAD, message=str(error), limit_bytes=asked.memory_limit_bytes)
        except MeasurementError:
            if campaign.profile is None or not campaign.profile.cells:
                raise
        (cell,) = campaign.profile.cells
        if isinstance(cell.outcome, Failed):
            shape = request.shape
            raise MeasurementError(f"context {shape.context_tokens} x {shape.concurrency}: {cell.outcome.error}")
        return campaign.profile


def check_repeatable(profile: Profile) -> None:
    """Raise UsageError for a profile whose cells one device with transformers cannot run."""
    if profile.engine.name != TRANSFORMERS:
        raise UsageError(f"the profile is of {profile.engine.name}; only {TRANSFORMERS} is run here")
    ranks = profile.workload.tensor_parallel_size
    if ranks > 1:
        raise UsageError(f"the profile is of one of {ranks} cards that share the model; one device cannot repeat that")


def request_of(profile: Profile, request: RepeatRequest, output: Path) -> ProfileRequest:
    """The measurement of one cell with a profile's settings."""
    workload, shape = profile.workload, request.shape
    return ProfileRequest(
        model=request.model,
        output=output,
        contexts=(shape.context_tokens,),
        concurrencies=(shape.concurrency,),
        new_tokens=shape.new_tokens,
        dtype=workload.dtype_requested,
        attention=attention_of(profile),
        device=request.device,
        seed=workload.seed,
        logits_kept=workload.logits_kept,
        revision=request.revision,
        trust_remote_code=request.trust_remote_code,
        images=workload.images,
        image_size=workload.image_size,
        cache_implementation=workload.cache_implementation,
        kv_cache_dtype=workload.kv_cache_dtype,
        quantization=workload.quantization,
        compute_dtype=workload.compute_dtype,
        memory_limit_bytes=request.memory_limit_bytes,
        limit_name=request.limit_name,
        cell_seconds=request.cell_seconds,
        adaptive=False,
    )


def attention_of(profile: Profile) -> str:
    """The attention implementation to ask transformers for; a simulation names the kernel inside torch's sdpa."""
    kernel = profile.engine.attention
    return SDPA if profile.evidence is Evidence.SIMULATED and kernel in (EFFICIENT, CPU) else kernel
