"""A loaded model on an open device, ready to run cells."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import torch

from gpufit.errors import TooLargeError, UsageError
from gpufit.memory.replay import Given, Label, Window, replay
from gpufit.memory.terms import Shape
from gpufit.profile.cells import Measured
from gpufit.profile.environment import Engine, ModelInfo
from gpufit.profile.peaks import Phase, PhasePeak
from gpufit.sources.measure import loading
from gpufit.sources.measure.cuda_accounting import account, known_blocks
from gpufit.sources.measure.cuda_history import CudaRecording
from gpufit.sources.measure.device import Ceiling, Device, environment, open_device
from gpufit.sources.measure.drivers.autocast import Autocast
from gpufit.sources.measure.drivers.base import Driver
from gpufit.sources.measure.drivers.decoder import Decoder
from gpufit.sources.measure.drivers.encoder import Encoder
from gpufit.sources.measure.drivers.encoder_decoder import EncoderDecoder
from gpufit.sources.measure.drivers.speech import Speech
from gpufit.sources.measure.drivers.vision_language import VisionLanguage
from gpufit.sources.measure.kinds import Kind
from gpufit.sources.measure.precision import is_quantised, observe
from gpufit.sources.measure.protocol import Job, Loaded, Planned
from gpufit.sources.measure.recording import Recorder, Recording, recorded
from gpufit.sources.measure.run import RunPlan, measure_cell, phase_peak
from gpufit.sources.measure.sites import site_names
from gpufit.sources.measure.storages import ResidentModel, resident_model
from gpufit.units import GIB, KIB, MIB, format_size

_ASKED = re.compile(r"[Tt]ried to allocate ([\d.]+) (GiB|MiB|KiB|bytes)")
_UNITS = {"GiB": GIB, "MiB": MIB, "KiB": KIB, "bytes": 1}

_OUT_OF_MEMORY = (
    "DefaultCPUAllocator: can't allocate memory",
    "could not create a primitive",
    "CUDA error: out of memory",
    "HIP error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "HIPBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
)
"""How an out-of-memory reads that torch's caching allocator did not meet itself: the CPU's allocator, the driver
(a kernel's code, a library's own memory), a library that could not set itself up on a full card. oneDNN says of any
cause that it could not create a primitive; of an operation that ran at a smaller shape, memory is the likely one."""


@dataclass(frozen=True)
class PlannedRun:
    """A device and a way to load, before a weight is read."""

    job: Job
    device: Device
    load_plan: loading.LoadPlan

    @property
    def message(self) -> Planned:
        """What the supervisor needs in order to choose the cells."""
        return planned_message(self.load_plan)

    def open(self) -> Session:
        """Load the model and look at it. Raises a GpufitError when that is refused."""
        return open_session(self)


def planned_message(plan: loading.LoadPlan) -> Planned:
    """What the supervisor needs of a model in order to choose the cells."""
    config = plan.config
    return Planned(
        architecture=(getattr(config, "architectures", None) or [type(config).__name__])[0],
        generates=plan.generates,
        position_limit=loading.position_limit(config),
        decodes_apart=plan.decodes_apart,
        images=plan.images.count,
        image_size=plan.images.size,
        image_tokens=plan.images.tokens,
        context_steps=loading.context_steps(config),
    )


def plan(job: Job) -> PlannedRun:
    """Open the device and read the config. Raises a GpufitError when either is refused."""
    import transformers

    transformers.logging.set_verbosity_error()
    device = open_device(job.device)
    load_plan = loading.plan_load(job)
    load_plan.cache.check(job.model_source, load_plan.kind, load_plan.config, device.torch_device.type)
    return PlannedRun(job=job, device=device, load_plan=load_plan)


class Session:
    """Runs cells of one model, one after the other."""

    def __init__(
        self,
        model: Any,
        resident: ResidentModel,
        run_plan: RunPlan,
        loaded: Loaded,
        reached: list[Phase],
        limit_bytes: int,
        hold: Callable[[], None],
    ) -> None:
        self.loaded = loaded
        self._hold = hold
        self.limit_bytes = limit_bytes
        """The memory that an out-of-memory ran into: the device's own, or the ceiling put below it."""
        self._reached = reached
        self.model = model
        self.plan = run_plan
        self._resident = resident

    @property
    def phase_reached(self) -> Phase:
        """The phase that began last."""
        return self._reached[-1]

    def run(self, shape: Shape) -> Measured:
        """Measure one cell; the errors of the model come through."""
        gc.collect()
        self._hold()
        return measure_cell(self.model, self.plan, shape, self._resident)


def open_session(planned: PlannedRun) -> Session:
    """Load the model under a recorder and observe its precisions. Raises a GpufitError when that is refused."""
    job, device = planned.job, planned.device
    info, flags = device.describe()
    ceiling = _ceiling(planned, info.total_bytes)
    if ceiling is not None:
        ceiling.around_load()
    model, load_peak, resident = _load(planned)
    _check_loaded_within(job, load_peak)
    resident_bytes = sum(block.size_bytes for block in resident.given)

    def hold() -> None:
        if ceiling is not None:
            ceiling.around_run(resident_bytes)

    def make_recorder() -> Recorder:
        if ceiling is not None:
            ceiling.around_recording(resident_bytes)
        return device.make_recorder()

    config = model.config
    reached: list[Phase] = [Phase.LOAD]
    driver = driver_for(config, planned.load_plan, job, device.torch_device)
    run_plan = RunPlan(
        driver=autocast(driver, job, device.torch_device),
        make_recorder=make_recorder,
        synchronize=device.synchronize,
        entering=lambda phase: reached.append(phase),
        sites=site_names(model),
    )
    precision = observe(
        model, run_plan.driver, job.stored, resident.weights.values(), config, autocast=job.compute_dtype
    )
    if job.quantization is not None and not is_quantised(precision.resident):
        raise UsageError(
            f"--quantization {job.quantization} changed no weight of {job.model_source}: {type(model).__name__} has no "
            "linear layers that it knows; leave the option out"
        )
    # A first forward may lay weights out anew (bitsandbytes packs its own for the processor): what is held from now on.
    resident = resident_model(model, device.torch_device.type)
    info = msgspec.structs.replace(info, context_bytes=device.context_bytes())
    flags = (*flags, *device.notes(), *job.notes)
    loaded = Loaded(
        model=model_info(job, model, planned.load_plan),
        engine=_engine(config),
        precision=precision,
        environment=environment(info, flags),
        load=load_peak,
    )
    limit = info.total_bytes if job.memory_limit_bytes is None else job.memory_limit_bytes
    return Session(model, resident, run_plan, loaded, reached, limit, hold)


def _ceiling(planned: PlannedRun, total_bytes: int) -> Ceiling | None:
    """The ceiling asked for. Raises UsageError for one above what the device has."""
    limit = planned.job.memory_limit_bytes
    if limit is None:
        return None
    if limit > total_bytes:
        raise UsageError(
            f"{planned.job.limit_name} {format_size(limit)}: {planned.device.torch_device} has "
            f"{format_size(total_bytes)}; a limit can only be lower"
        )
    return planned.device.make_ceiling(limit)


def _check_loaded_within(job: Job, peak: PhasePeak) -> None:
    """Raise TooLargeError when loading took more than the limit.

    Weights that stay mapped from their file are never allocated, so no ceiling stops them: they are counted instead.
    """
    limit = job.memory_limit_bytes
    if limit is not None and peak.allocated_bytes > limit:
        raise TooLargeError(
            f"{job.model_source} does not fit: loading it takes {format_size(peak.allocated_bytes)}, the limit is "
            f"{format_size(limit)}; raise the limit, or measure it in a smaller --dtype"
        )


def driver_for(
    config: Any, plan: loading.LoadPlan, job: Job, device: torch.device, prompt: tuple[int, ...] = ()
) -> Driver:
    """How a model of this config is driven; `prompt`: ids of a text to read in place of random ones."""
    vocabulary = int(loading.text_config(config).vocab_size)
    match plan.kind:
        case Kind.DECODER:
            return Decoder(device, vocabulary, job.seed, job.logits_kept, plan.cache, prompt=prompt)
        case Kind.VISION_LANGUAGE:
            return VisionLanguage(device, vocabulary, job.seed, job.logits_kept, plan.images, plan.cache, prompt=prompt)
        case Kind.ENCODER_DECODER:
            return EncoderDecoder(device, vocabulary, job.seed, plan.cache, prompt=prompt)
        case Kind.SPEECH:
            mel_bins, positions = int(config.num_mel_bins), int(config.max_source_positions)
            return Speech(device, vocabulary, job.seed, mel_bins, positions, plan.cache, prompt=prompt)
        case Kind.ENCODER:
            return Encoder(device, vocabulary, job.seed, prompt=prompt)


def autocast(driver: Driver, job: Job, device: torch.device) -> Driver:
    """The driver, under autocast where the job names a compute dtype."""
    if job.compute_dtype is None:
        return driver
    return Autocast(driver, device.type, getattr(torch, job.compute_dtype))


def _load(planned: PlannedRun) -> tuple[Any, PhasePeak, ResidentModel]:
    """The model, the peak of loading it, and what it holds afterwards."""
    device = planned.device
    recorder = device.make_recorder()
    with recorded(recorder):
        recorder.begin_phase()
        start = recorder.mark()
        model = _load_within_memory(planned)
        device.synchronize()
        end = recorder.mark()
        readings = recorder.end_phase()
    recording = recorder.stop()
    gc.collect()
    resident = resident_model(model, device.torch_device.type)
    window = Window(recording.positions[start], recording.positions[end])
    given, labels = split_known(resident, recording, window.end)
    (peak,) = replay(given, recording.events, labels, [window])
    return model, phase_peak(Phase.LOAD, *account(recording, peak, readings)), resident


def _load_within_memory(planned: PlannedRun) -> Any:
    """The loaded model. Raises TooLargeError, in one line, when the device has not the memory for it."""
    device = planned.device.torch_device
    if device.type == "cpu":
        # In one thread: torch's profiler sees the allocations of the thread that started it, and of no other.
        os.environ.setdefault("HF_DEACTIVATE_ASYNC_LOAD", "1")
    try:
        return loading.load(planned.job, planned.load_plan, device)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise loading.refusal(planned.job, error) from error
        asked = asked_bytes(str(error))
        what = f" (it asked for {format_size(asked)} more)" if asked else ""
        limit = planned.job.memory_limit_bytes
        where = f"{device}" if limit is None else f"{device} within {format_size(limit)}"
        remedy = "measure it on a larger device" if limit is None else "raise the limit"
        raise TooLargeError(
            f"{planned.job.model_source} does not fit on {where}: memory ran out while it was loaded{what}; "
            f"{remedy}, or measure it in a smaller --dtype"
        ) from error


def split_known(
    resident: ResidentModel, recording: Recording, position: int
) -> tuple[Sequence[Given], Sequence[Label]]:
    """What the model holds, as blocks that the recording saw being made (labels) and those it did not (given).

    On a CPU, weights that stay mapped from their file are never allocated; they count from the start.
    """
    if isinstance(recording, CudaRecording):
        return known_blocks(recording, resident.given, position, [])
    alive = {}
    for event in recording.events[:position]:
        alive[event.address] = event.size_bytes
    made = {address for address, size in alive.items() if size}
    given = [one for one in resident.given if one.address not in made]
    labels = [Label(one.address, one.category, position) for one in resident.given if one.address in made]
    return given, labels


def model_info(job: Job, model: Any, plan: loading.LoadPlan) -> ModelInfo:
    """Which model it is."""
    return ModelInfo(
        name=job.model_name,
        source=job.model_source,
        fingerprint=job.fingerprint,
        architecture=type(model).__name__,
        model_type=str(model.config.model_type),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        generates=plan.generates,
        decodes_apart=plan.decodes_apart,
        position_limit=loading.position_limit(model.config),
        sliding_window=loading.sliding_window(model.config),
        chunk_tokens=loading.chunk_tokens(model),
        revision=job.revision,
    )


def _engine(config: Any) -> Engine:
    import transformers

    attention = getattr(config, "_attn_implementation", None) or "eager"
    return Engine(name="transformers", version=transformers.__version__, attention=str(attention))


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory ran out, on a card or in the CPU's allocator."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or (
        isinstance(error, RuntimeError) and any(text in str(error) for text in _OUT_OF_MEMORY)
    )


def asked_bytes(text: str) -> int | None:
    """The size that an out-of-memory error names; None when it names none."""
    found = _ASKED.search(text)
    return round(float(found[1]) * _UNITS[found[2]]) if found else None
