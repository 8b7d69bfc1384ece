"""A whole measurement: from a model's name to a finished profile on disk, every cell saved as it ends."""

from __future__ import annotations

import datetime
import importlib.util
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from gpufit import __version__
from gpufit.errors import MeasurementError, UsageError
from gpufit.files import check_writable, exists, remove_leftovers, sole_writer
from gpufit.memory.fit import fit_memory_model, without_lesser_moments
from gpufit.memory.positions import beyond_positions, longest_context, too_short_for_images
from gpufit.memory.terms import Knees, Shape
from gpufit.profile.cells import Cell, Skipped
from gpufit.profile.evidence import Evidence
from gpufit.profile.memory_model import MemoryModel
from gpufit.profile.record import Profile
from gpufit.profile.store import load_profile, save_profile
from gpufit.profile.workload import Workload
from gpufit.sources.layout import layout_of_run
from gpufit.sources.measure.adaptive import Round, next_round
from gpufit.sources.measure.protocol import CellKey, Job, Loaded, Planned, Simulation
from gpufit.sources.measure.quantization import check_quantization
from gpufit.sources.measure.supervisor import Sweep
from gpufit.sources.measure.sweep import ended, grid, remaining, settled
from gpufit.sources.model_files.find import find_config, find_model
from gpufit.sources.model_files.record import ModelFiles
from gpufit.units import format_size

DEFAULT_CONTEXTS = (256, 512, 768, 1024, 1536)
"""From 256 on, since oneDNN's matrix products take scratch by other rules below; three to pin the growth, one between
them and one beyond to test it."""

DEFAULT_CONCURRENCIES = (1, 2, 4)
DEFAULT_NEW_TOKENS = 8
DEFAULT_CELL_SECONDS = 900

SIMULATED_CONTEXTS = (1024, 2048, 4096, 8192, 16384)
SIMULATED_CONCURRENCIES = (1, 4, 16)
"""The same on fake tensors, where a longer prompt takes no longer."""

LONGEST_STEP_CONTEXT = 8192
"""A context added for the sake of a step (a sliding window, a chunk) is no longer than this: on a processor it would
take hours. Beyond, contexts have to be asked for."""

_SETTINGS = (
    "new_tokens", "seed", "dtype_requested", "logits_kept", "images", "image_size", "cache_implementation",
    "kv_cache_dtype", "quantization", "compute_dtype", "memory_limit_bytes", "tensor_parallel_size",
    "expert_parallel",
)  # fmt: skip
"""What of a workload changes the bytes of a cell, beside its place in the grid."""


@dataclass(frozen=True)
class ProfileRequest:
    """What to measure and how."""

    model: str
    """Directory, GGUF file or hub id."""
    output: Path | None = None
    """None: `profiles/<model>.json`."""
    contexts: tuple[int, ...] | None = None
    """None: DEFAULT_CONTEXTS, and both sides of a step that the config announces, as far as the positions go."""
    concurrencies: tuple[int, ...] | None = None
    """None: DEFAULT_CONCURRENCIES."""
    new_tokens: int = DEFAULT_NEW_TOKENS
    dtype: str = "auto"
    attention: str | None = None
    device: str = "auto"
    seed: int = 0
    logits_kept: str = "last"
    revision: str | None = None
    trust_remote_code: bool = False
    images: int | None = None
    """Images in each sequence; None: one, where the model takes images."""
    image_size: tuple[int, int] | None = None
    """Width and height in pixels, where the model takes any size."""
    cache_implementation: str | None = None
    """None: what the model builds itself, or a quantised cache where a dtype is asked for."""
    kv_cache_dtype: str = "auto"
    quantization: str | None = None
    compute_dtype: str | None = None
    memory_limit_bytes: int | None = None
    """A ceiling below the device's own memory."""
    limit_name: str = "--memory-limit"
    """What asked for it, as errors name it."""
    cell_seconds: int = DEFAULT_CELL_SECONDS
    """A cell that takes longer is given up."""
    adaptive: bool | None = None
    """Run few cells, and more only where the memory model misses those held out. None: so where neither contexts nor
    concurrencies are given; lists that are given are a grid to be run whole."""
    resume: bool = False
    force: bool = False
    simulation: Simulation | None = None
    """For a run on fake tensors, of which a config is enough; None: on the device."""

    @property
    def chosen_cache(self) -> str:
        """The kind of cache that is meant: asking for a cache's dtype asks for a quantised one."""
        return self.cache_implementation or ("dynamic" if self.kv_cache_dtype == "auto" else "quantized")

    @property
    def default_contexts(self) -> tuple[int, ...]:
        """What is run where no contexts are asked for."""
        return DEFAULT_CONTEXTS if self.simulation is None else SIMULATED_CONTEXTS

    @property
    def default_concurrencies(self) -> tuple[int, ...]:
        """What is run where no concurrencies are asked for."""
        return DEFAULT_CONCURRENCIES if self.simulation is None else SIMULATED_CONCURRENCIES

    @property
    def evidence(self) -> Evidence:
        """What the profile's figures are."""
        return Evidence.MEASURED if self.simulation is None else Evidence.SIMULATED


@dataclass(frozen=True)
class Listener:
    """Who is told how it goes."""

    folder: Callable[[Path], None] = lambda folder: None
    """The folder of the profile was missing and has been made."""
    started: Callable[[Workload, int, int], None] = lambda workload, done, total: None
    """What was asked for, and its cells done and wanted so far, once the model is loaded."""
    round: Callable[[str, int], None] = lambda purpose, total: None
    """What the next cells of an adaptive sweep are for, and how many are wanted with them."""
    progress: Callable[[str], None] = lambda text: None
    """What happens now, in words."""
    cell_began: Callable[[CellKey], None] = lambda key: None
    """A cell is being run; should it be lost with its worker, it is still told as ended."""
    cell: Callable[[Cell], None] = lambda cell: None
    """A cell has ended."""


@dataclass
class Campaign:
    """One request being carried out. `profile` is what stands on disk so far."""

    request: ProfileRequest
    listener: Listener
    profile: Profile | None = None
    workload: Workload | None = None
    steps: tuple[int, ...] = ()
    """Contexts at which memory may begin to grow otherwise, as the config has them."""
    announced: bool = False
    wanted: set[tuple[int, int, int]] = field(default_factory=set)
    """Keys of the cells that this run has asked for, or found done."""
    purpose: str = ""
    """What the cells asked for last are for."""
    files: ModelFiles = field(init=False)
    output: Path = field(init=False)

    def run(self) -> Profile:
        """Measure, save after each cell, fit the memory model, save the whole.

        Raises UsageError for a request that cannot be met, UnreadableInputError for a model or file that cannot be
        read or written, MeasurementError when nothing at all could be measured.
        """
        check_installed()
        find = find_model if self.request.simulation is None else find_config
        self.files = find(self.request.model, self.request.revision)
        check_quantization(self.request.quantization, self.files)
        self.output = self.request.output or Path("profiles") / f"{self.files.name.replace('/', '--')}.json"
        made = check_writable(self.output)
        if made is not None:
            self.listener.folder(made)
        with sole_writer(self.output):
            remove_leftovers(self.output)
            self._open_output()
            sweep = Sweep(
                job=job_of(self.request, self.files),
                cell_seconds=self.request.cell_seconds,
                on_planned=self._planned,
                next_cells=self._next_cells,
                on_loaded=self._loaded,
                on_cell=self._cell_ended,
                on_progress=self.listener.progress,
                on_cell_began=self.listener.cell_began,
                done=list(self.profile.cells) if self.profile else [],
            )
            sweep.run()
            return self._finish(sweep.done)

    def _open_output(self) -> None:
        """Take up the profile that is there, or refuse to replace it."""
        if not exists(self.output):
            return
        if self.request.resume:
            earlier = load_profile(self.output)
            self.profile = msgspec.structs.replace(earlier, cells=settled(earlier.cells))
            if self.profile.model.fingerprint != self.files.fingerprint:
                raise UsageError(
                    f"{self.output} is of another model ({self.profile.model.name}); choose another -o FILE"
                )
        elif not self.request.force:
            resume = "--resume goes on with it, " if self.request.simulation is None else ""
            raise UsageError(f"{self.output} exists; {resume}--force replaces it, -o FILE writes elsewhere")

    @property
    def adaptive(self) -> bool:
        """Whether few cells are run first."""
        request = self.request
        if request.adaptive is not None:
            return request.adaptive
        if request.contexts is not None or request.concurrencies is not None:
            return False
        return True if self.profile is None else self.profile.workload.adaptive

    def _planned(self, planned: Planned) -> None:
        new_tokens = self.request.new_tokens if planned.generates else 0
        simulation = self.request.simulation
        self.steps = planned.context_steps
        self.workload = Workload(
            contexts_tokens=_contexts(self.request, planned, new_tokens),
            concurrencies=self.request.concurrencies or self.request.default_concurrencies,
            adaptive=self.adaptive,
            new_tokens=new_tokens,
            seed=self.request.seed,
            dtype_requested=self.request.dtype,
            logits_kept=self.request.logits_kept,
            images=planned.images,
            image_size=planned.image_size,
            image_tokens=planned.image_tokens,
            cache_implementation=self.request.chosen_cache,
            kv_cache_dtype=self.request.kv_cache_dtype,
            quantization=self.request.quantization,
            compute_dtype=self.request.compute_dtype,
            memory_limit_bytes=self.request.memory_limit_bytes,
            tensor_parallel_size=1 if simulation is None else simulation.tensor_parallel_size,
            expert_parallel=simulation is not None and simulation.expert_parallel,
        )
        if self.profile is None:
            return
        self._check_same_settings(self.profile)
        if self.request.contexts is None and self.request.concurrencies is None:
            # What was asked for when it was begun is what is to be gone on with.
            self.workload = msgspec.structs.replace(
                self.workload,
                contexts_tokens=self.profile.workload.contexts_tokens,
                concurrencies=self.profile.workload.concurrencies,
            )

    def _next_cells(self, done: Sequence[Cell]) -> tuple[CellKey, ...]:
        """The cells to run next, and what for; a round is told once, when it begins."""
        assert self.workload is not None
        now = self._next_round(self.workload, done)
        asked = {(one.context_tokens, one.new_tokens, one.concurrency) for one in now.cells}
        if not self.wanted:
            grid_keys = {(one.context_tokens, one.new_tokens, one.concurrency) for one in grid(self.workload)}
            self.wanted = {cell.key for cell in done} & grid_keys
        if not asked <= self.wanted:
            self.wanted |= asked
            self.purpose = now.purpose
            if self.announced:
                self._tell_round()
        return now.cells

    def _next_round(self, workload: Workload, done: Sequence[Cell]) -> Round:
        if not self.adaptive:
            return Round(remaining(grid(workload), done), "")
        return next_round(workload, self.steps, done, self._held_out_error(done))

    def _held_out_error(self, cells: Sequence[Cell]) -> float | None:
        """The worst held-out error of the cells' model, of what grows; None where there is none to tell."""
        model = None if self.profile is None else self._fit(self.profile, cells)
        errors = [] if model is None else [one.worst_held_out_growth_error for one in model.phases]
        known = [error for error in errors if error is not None]
        return max(known) if errors and len(known) == len(errors) else None

    def _fit(self, profile: Profile, cells: Sequence[Cell]) -> MemoryModel | None:
        return fit_memory_model(cells, profile.engine.attention, Knees.of(profile))

    def _tell_round(self) -> None:
        if self.adaptive:
            self.listener.round(self.purpose, len(self.wanted))

    def _check_same_settings(self, earlier: Profile) -> None:
        """A resumed run must be the same run: settings that change the bytes may not differ."""
        assert self.workload is not None
        asked = self.request.attention
        if asked is not None and asked != earlier.engine.attention:
            raise UsageError(
                f"{self.output} was measured with {earlier.engine.attention} attention, not {asked}; leave "
                "--attn-implementation out, or choose another -o FILE"
            )
        for name in _SETTINGS:
            before, now = getattr(earlier.workload, name), getattr(self.workload, name)
            if before != now:
                setting, *sizes = _setting(name, before, now)
                raise UsageError(
                    f"{self.output} was measured with {setting} {sizes[0]}, not {sizes[1]}; "
                    "repeat that setting, or choose another -o FILE"
                )

    def _loaded(self, loaded: Loaded) -> None:
        assert self.workload is not None
        if self.profile is None:
            self.profile = Profile(
                gpufit_version=__version__,
                created_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
                evidence=self.request.evidence,
                model=loaded.model,
                engine=loaded.engine,
                precision=loaded.precision,
                environment=loaded.environment,
                workload=self.workload,
                load=loaded.load,
                cells=(),
            )
        else:
            self._check_same_surroundings(self.profile, loaded)
            self.profile = msgspec.structs.replace(
                self.profile, workload=_joined(self.profile.workload, self.workload), complete=False
            )
        save_profile(self.profile, self.output)
        self._announce(self.workload, self.profile)

    def _announce(self, workload: Workload, profile: Profile) -> None:
        """Tell what will be run, once: a model that cannot be loaded is refused without it."""
        if self.announced:
            return
        self.announced = True
        self.listener.started(workload, sum(cell.key in self.wanted for cell in profile.cells), len(self.wanted))
        self._tell_round()

    def _check_same_surroundings(self, earlier: Profile, loaded: Loaded) -> None:
        pairs = {
            "device": (earlier.environment.device.name, loaded.environment.device.name),
            "engine": (earlier.engine, loaded.engine),
            "torch": (earlier.environment.versions.get("torch"), loaded.environment.versions.get("torch")),
        }
        for name, (before, now) in pairs.items():
            if before != now:
                raise UsageError(
                    f"{self.output} was measured with another {name} ({_said(before)}, now {_said(now)}); "
                    "cells of both would not belong together: choose another -o FILE"
                )

    def _cell_ended(self, cell: Cell) -> None:
        if self.profile is not None:
            self.profile = msgspec.structs.replace(self.profile, cells=(*self.profile.cells, cell))
            save_profile(self.profile, self.output)
        self.listener.cell(cell)

    def _finish(self, cells: list[Cell]) -> Profile:
        if self.profile is None or self.workload is None:
            raise MeasurementError(f"{self.request.model}: nothing was measured")
        self.listener.progress("fitting the memory model")
        model = self._fit(self.profile, cells)
        cells_kept = self.profile.cells if model is None else without_lesser_moments(self.profile.cells, model)
        layout, without = layout_of_run(self.profile, self.request.model, self.request.revision)
        profile = msgspec.structs.replace(
            self.profile,
            memory_model=model,
            cells=(*cells_kept, *self._not_needed(self.workload, cells)),
            complete=True,
            layout=layout,
            notes=(*(note for note in self.profile.notes if note not in without), *without),
        )
        save_profile(profile, self.output)
        self.profile = profile
        if not profile.measured_cells:
            raise MeasurementError(f"no cell could be {profile.evidence}; {self.output} says how each ended")
        return profile

    def _not_needed(self, workload: Workload, cells: Sequence[Cell]) -> list[Cell]:
        """The cells of the grid that an adaptive sweep has left out, each with the reason."""
        left = remaining(grid(workload), cells)
        if not left:
            return []
        self.purpose = self._next_round(workload, cells).purpose
        self._tell_round()
        return [ended(key, Skipped(why=self.purpose)) for key in left]


def job_of(request: ProfileRequest, files: ModelFiles) -> Job:
    """A request as a worker is told it, of a model that was found."""
    return Job(
        model_path=str(files.path.parent if files.is_gguf else files.path),
        gguf_file=files.path.name if files.is_gguf else None,
        model_name=files.name,
        model_source=request.model,
        fingerprint=files.fingerprint,
        revision=files.revision,
        dtype=request.dtype,
        attention=request.attention,
        device=request.device,
        seed=request.seed,
        logits_kept=request.logits_kept,
        trust_remote_code=request.trust_remote_code,
        stored=files.stored,
        images=request.images,
        image_size=request.image_size,
        cache_implementation=request.chosen_cache,
        kv_cache_dtype=request.kv_cache_dtype,
        quantization=request.quantization,
        compute_dtype=request.compute_dtype,
        memory_limit_bytes=request.memory_limit_bytes,
        limit_name=request.limit_name,
        simulation=request.simulation,
    )


def check_installed() -> None:
    """Raise MeasurementError when what runs models is not installed; looking does not import it."""
    needed = ("torch", "transformers", "accelerate", "scipy")
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise MeasurementError(
            f"measuring needs {', '.join(missing)}, which this installation lacks: pip install 'gpufit[measure]'"
        )


def _contexts(request: ProfileRequest, planned: Planned, new_tokens: int) -> tuple[int, ...]:
    """The contexts asked for, or the default ones that the model can take. Raises UsageError for others."""
    contexts = request.contexts or _default_contexts(request, planned, new_tokens)
    for context in contexts:
        shape = Shape(context, new_tokens, 1)
        wrong = beyond_positions(request.model, planned.position_limit, planned.decodes_apart, shape) or (
            too_short_for_images(request.model, context, planned.images, planned.image_tokens)
        )
        if wrong is not None:
            raise UsageError(wrong)
    return contexts


def _default_contexts(request: ProfileRequest, planned: Planned, new_tokens: int) -> tuple[int, ...]:
    """The default contexts beside the images of each sequence, as far as the model's positions go.

    Where they do not all fit, as many spread over what the model takes.
    """
    longest = longest_context(planned.position_limit, planned.decodes_apart, new_tokens)
    contexts = {planned.image_tokens + one for one in request.default_contexts}
    if longest is not None and max(contexts) > longest:
        room = longest - planned.image_tokens
        contexts = {planned.image_tokens + max(room * eighths // 8, 1) for eighths in (2, 4, 5, 6, 8)}
    shortest = planned.image_tokens + 1
    farthest = max(LONGEST_STEP_CONTEXT, *request.default_contexts)
    return _on_both_sides(contexts, planned.context_steps, shortest, min(longest or farthest, farthest))


def _on_both_sides(contexts: Set[int], steps: Sequence[int], shortest: int, longest: int) -> tuple[int, ...]:
    """The contexts, with one below every step and three that reach it, as far as `shortest` and `longest` let them.

    What begins at a step may grow with tokens or with their square: two contexts tell which, a third tests it.
    """
    found = set(contexts)
    for step in steps:
        below = max(step // 2, shortest)
        if min(found) >= step > below:
            found.add(below)
        for further in (step, step * 3 // 2, step * 2):
            if sum(context >= step for context in found) < 3 and further <= longest:
                found.add(further)
    return tuple(sorted(found))


def _setting(name: str, *values: int | str | None) -> tuple[str, ...]:
    """A setting's name and values in words."""
    if not name.endswith("_bytes"):
        return (name.replace("_", " "), *map(str, values))
    sizes = ("none" if value is None else format_size(int(value)) for value in values)
    return (name.removesuffix("_bytes").replace("_", " "), *sizes)


def _joined(earlier: Workload, now: Workload) -> Workload:
    """The workload of a resumed profile: both grids."""
    return msgspec.structs.replace(
        earlier,
        contexts_tokens=tuple(sorted({*earlier.contexts_tokens, *now.contexts_tokens})),
        concurrencies=tuple(sorted({*earlier.concurrencies, *now.concurrencies})),
    )


def _said(value: object) -> str:
    if isinstance(value, msgspec.Struct):
        return " ".join(str(one) for one in msgspec.structs.astuple(value))
    return str(value)
