"""A model on fake tensors, ready to run cells: built whole for what it holds, and with few layers for what it does."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from gpufit.memory.replay import Event, Window
from gpufit.memory.terms import Shape
from gpufit.profile.cells import Measured
from gpufit.profile.environment import DeviceInfo, Engine
from gpufit.profile.evidence import Evidence
from gpufit.profile.peaks import Parts, Phase, PhasePeak
from gpufit.profile.precision import ComputeDtype, DtypeShare, Precision
from gpufit.sources.measure import loading
from gpufit.sources.measure.device import environment
from gpufit.sources.measure.dispatch import DispatchRecorder
from gpufit.sources.measure.drivers.base import Driver
from gpufit.sources.measure.kernels import CPU
from gpufit.sources.measure.precision import observe
from gpufit.sources.measure.protocol import Job, Loaded, Planned, Simulation
from gpufit.sources.measure.run import RunPlan
from gpufit.sources.measure.session import driver_for, model_info, planned_message
from gpufit.sources.measure.storages import ResidentModel, resident_model
from gpufit.sources.simulate import attention, build, cells, depth, parallel
from gpufit.sources.simulate.experts import decode_as_on_a_card
from gpufit.sources.simulate.extend import Further, Phases, extend, extended_sizes
from gpufit.sources.simulate.passes import PassWatch
from gpufit.sources.simulate.reserved import with_reserved
from gpufit.sources.simulate.stream import NotRepeatedError, Pass, with_repetitions
from gpufit.sources.simulate.values import asking_for_values

NO_DEVICE = DeviceInfo(kind="none", name="no device (fake tensors)", total_bytes=0)
"""What a simulated profile has for a device."""

_CPU = torch.device("cpu")
"""The fake device: the one that a build of torch without CUDA can run every operation of."""

_FUSED_ELSEWHERE = ("Mamba", "Delta", "SSM")
"""What classes are called whose work a card does in one fused kernel."""


@dataclasses.dataclass(frozen=True)
class PlannedSimulation:
    """A model's config, read, and how it is to be run."""

    job: Job
    simulation: Simulation
    load_plan: loading.LoadPlan

    @property
    def message(self) -> Planned:
        """What the supervisor needs in order to choose the cells."""
        return planned_message(self.load_plan)

    def open(self) -> SimulatedSession:
        """Build the model. Raises a GpufitError when that is refused."""
        return SimulatedSession(self)


def plan(job: Job) -> PlannedSimulation:
    """Read the config. Raises a GpufitError when it is refused."""
    import transformers

    assert job.simulation is not None
    transformers.logging.set_verbosity_error()
    load_plan = loading.plan_load(job)
    return PlannedSimulation(job, job.simulation, load_plan)


class SimulatedSession:
    """Runs cells of one model, one after the other."""

    limit_bytes = 0
    """There is no memory to run out of."""
    phase_reached = Phase.LOAD

    def __init__(self, planned: PlannedSimulation) -> None:
        self._job, self._simulation = planned.job, planned.simulation
        self._mode = FakeTensorMode(allow_non_fake_inputs=True)
        self._decodes_apart = planned.load_plan.decodes_apart
        config = planned.load_plan.config
        dtype, notes = build.dtype_of(self._job, planned.load_plan)
        notes += _without_quantisation(config, dtype)
        attention.register_package()
        blueprint = build.Blueprint(
            planned.load_plan,
            dtype,
            attention.implementation(self._simulation.kernel),
            parallel.finisher(self._simulation, self._job.model_source),
        )
        with self._refusing("built"), self._mode:
            model = blueprint.build(config)
            self._held = resident_model(model, _CPU.type)
            self._variants = self._shallow(blueprint, config, model)
        self._driver: Driver = driver_for(config, planned.load_plan, self._job, _CPU)
        with self._refusing("run"):
            precision = self._precision(model)
        self._residents = [resident_model(one.model, _CPU.type) for one in self._variants]
        self.loaded = self._look(planned, model, precision, notes)

    def run(self, shape: Shape) -> Measured:
        """Simulate one cell; the errors of the model come through."""
        gc.collect()
        return Measured(phases=self._phases(shape), inputs_completed=shape.concurrency)

    def _phases(self, shape: Shape) -> Phases:
        if not self._driver.generates:
            return self._run(shape).phases
        if self._decodes_apart:
            few = cells.line(shape)
            return cells.on_the_line(self._run(few, one_step_less=few != shape), shape)
        few = cells.beginning(shape)
        begun = self._run(few).phases
        return begun if few == shape else cells.joined(begun, self._run(cells.ending(shape)).phases)

    def _shallow(self, blueprint: build.Blueprint, config: Any, model: Any) -> tuple[depth.Variant, ...]:
        """The variants to run: all layers where they were asked for, or where the weights of few do not extend to the
        weights of all."""
        if self._simulation.full_depth:
            return (depth.whole(model),)
        found = depth.variants(blueprint, config, model)
        base, *more = [(_held_parts(resident_model(one.model, _CPU.type)), one.missing) for one in found]
        whole = _held_parts(self._held)
        extends = extended_sizes(base[0], more) == {name: getattr(whole, name) for name in Parts.NAMES}
        return found if extends else (depth.whole(model),)

    def _run(self, shape: Shape, one_step_less: bool = False) -> cells.Run:
        """A run of all layers at a shape, told from runs of few."""
        pairs = zip(self._variants, self._residents, strict=True)
        ran = [self._run_variant(*pair, shape, one_step_less) for pair in pairs]
        runs = [run for run, _ in ran]
        missing = [one.missing for one in self._variants[1:]]

        def whole(phases: list[Phases]) -> Phases:
            return extend(phases[0], [Further(*pair) for pair in zip(phases[1:], missing, strict=True)])

        before = [one.before for one in runs if one.before is not None]
        phases = self._with_reserved(whole([one.phases for one in runs]), *ran[-1])
        return cells.Run(phases, whole(before) if before else None)

    def _run_variant(
        self, variant: depth.Variant, resident: ResidentModel, shape: Shape, one_step_less: bool
    ) -> tuple[cells.Run, list[Pass]]:
        """The run, and its passes through the layers that repeat, where they are known."""
        watch = None if variant.repeated is None else PassWatch(*variant.repeated)
        plan = RunPlan(
            driver=self._driver,
            make_recorder=DispatchRecorder if watch is None else lambda: watch.taking(DispatchRecorder()),
            synchronize=lambda: None,
            entering=self._entering,
            sites=variant.sites,
        )
        if self._simulation.kernel != CPU:
            decode_as_on_a_card(variant.model)
        with self._running(), contextlib.nullcontext() if watch is None else watch.watching():
            run = cells.run_cell(variant.model, plan, shape, resident, one_step_less)
        assert run.recording is not None
        return run, [] if watch is None else watch.passes(run.recording.positions)

    def _with_reserved(self, phases: Phases, run: cells.Run, passes: list[Pass]) -> Phases:
        """The phases with what the allocator reserves in each: replayed as recorded where every layer was run, and
        with the layers that are missing written into the stream where they are one repeated stretch."""
        assert run.recording is not None
        events: Sequence[Event] = run.recording.events
        windows = run.windows
        if len(self._variants) > 1:
            if self._variants[-1].repeated is None:
                return phases
            try:
                stream = with_repetitions(events, passes, self._variants[-1].missing - 1, self._held.given)
            except NotRepeatedError:
                return phases
            events, at = stream.events, stream.positions
            windows = {phase: Window(at[one.start], at[one.end]) for phase, one in windows.items()}
        return with_reserved(phases, events, self._held.given, windows)

    def _entering(self, phase: Phase) -> None:
        self.phase_reached = phase

    @contextlib.contextmanager
    def _running(self) -> Iterator[None]:
        """Fake tensors, as one rank, with values where code asks for some and attention as assumed."""
        with (
            self._mode,
            parallel.as_a_rank(self._simulation.tensor_parallel_size),
            asking_for_values(),
            attention.running(self._simulation.kernel),
        ):
            yield

    @contextlib.contextmanager
    def _refusing(self, doing: str) -> Iterator[None]:
        try:
            yield
        except build.REFUSALS as error:
            raise build.refusal(self._job, doing, error) from error

    def _precision(self, model: Any) -> Precision:
        """As observed in a small forward of each variant, extended to all layers."""
        held = list(self._held.weights.values())
        found = []
        for variant in self._variants:
            with self._running():
                found.append(observe(variant.model, self._driver, self._job.stored, held, model.config))
        missing = [one.missing for one in self._variants[1:]]
        return msgspec.structs.replace(
            found[0],
            compute=tuple(_calls(one, found[1:], missing) for one in found[0].compute),
            kv=tuple(_share(one, found[1:], missing) for one in found[0].kv),
        )

    def _look(self, planned: PlannedSimulation, model: Any, precision: Precision, notes: tuple[str, ...]) -> Loaded:
        return Loaded(
            model=model_info(self._job, model, planned.load_plan),
            engine=_engine(model.config, self._simulation.kernel),
            precision=precision,
            environment=environment(NO_DEVICE, (*notes, *self._notes(model), *self._job.notes)),
            load=_load_peak(self._held),
        )

    def _notes(self, model: Any) -> Iterator[str]:
        found = getattr(model.config, "_attn_implementation", None) or "eager"
        yield attention.words(self._simulation.kernel, found)
        layers = sum(1 for _ in self._variants)
        if layers == 1 and not self._simulation.full_depth:
            yield "every layer was run: fewer would not be cheaper, or would not stand for all of them"
        ranks = self._simulation.tensor_parallel_size
        if ranks > 1:
            yield f"every size is that of one of {ranks} ranks; buffers of the communication library are not counted"
        if any(name in type(module).__name__ for module in model.modules() for name in _FUSED_ELSEWHERE):
            yield (
                "recurrent layers run as torch code here, whose temporaries are an upper bound: the fused kernels of "
                "mamba-ssm and flash-linear-attention take less"
            )


def _without_quantisation(config: Any, dtype: torch.dtype) -> tuple[str, ...]:
    """Leave out the quantisation that a config declares: it works on weights, and there are none."""
    declared = getattr(config, "quantization_config", None)
    if declared is None:
        return ()
    method = declared.get("quant_method") if isinstance(declared, dict) else getattr(declared, "quant_method", None)
    del config.quantization_config
    name = str(dtype).removeprefix("torch.")
    return (f"the config's quantisation ({getattr(method, 'value', method)}) is not simulated: weights are {name}",)


def _engine(config: Any, kernel: str) -> Engine:
    import transformers

    found = getattr(config, "_attn_implementation", None) or "eager"
    name = "eager" if found == "eager" else kernel
    return Engine(name="transformers", version=transformers.__version__, attention=name)


def _held_parts(held: ResidentModel) -> Parts:
    return Parts(
        weights_bytes=sum(one.size_bytes for one in held.weights.values()),
        buffers_bytes=sum(one.size_bytes for one in held.buffers.values()),
    )


def _load_peak(held: ResidentModel) -> PhasePeak:
    """What a loaded model holds. Loading itself is not simulated: transformers reads weights straight onto a card."""
    parts = _held_parts(held)
    return PhasePeak(phase=Phase.LOAD, parts=parts, allocated_bytes=parts.total_bytes, evidence=Evidence.SIMULATED)


def _calls(base: ComputeDtype, further: list[Precision], missing: list[int]) -> ComputeDtype:
    counts = [next((one.calls for one in more.compute if one.family == base.family), base.calls) for more in further]
    total = base.calls + sum((count - base.calls) * times for count, times in zip(counts, missing, strict=True))
    return msgspec.structs.replace(base, calls=total)


def _share(base: DtypeShare, further: list[Precision], missing: list[int]) -> DtypeShare:
    size, tensors = base.size_bytes, base.tensors
    for more, times in zip(further, missing, strict=True):
        other = next((one for one in more.kv if one.dtype == base.dtype), base)
        size += (other.size_bytes - base.size_bytes) * times
        tensors += (other.tensors - base.tensors) * times
    return msgspec.structs.replace(base, size_bytes=size, tensors=tensors)
