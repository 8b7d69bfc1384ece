"""A whole measurement: from a model's name to a finished profile on disk, every cell saved as it ends."""

from __future__ import annotations

import datetime
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from gpufit import __version__
from gpufit.errors import MeasurementError, UsageError
from gpufit.files import check_writable
from gpufit.memory.fit import FEWEST_CONTEXTS, fit_memory_model, without_lesser_moments
from gpufit.memory.positions import beyond_positions, longest_context, too_short_for_images
from gpufit.memory.predict import knees_of
from gpufit.memory.terms import Shape
from gpufit.profile.record import Cell, Evidence, Profile, Workload
from gpufit.profile.store import load_profile, save_profile
from gpufit.sources.measure.protocol import CellKey, Job, Loaded, Planned
from gpufit.sources.measure.quantization import check_quantization
from gpufit.sources.measure.supervisor import Sweep
from gpufit.sources.measure.sweep import grid, settled
from gpufit.sources.model_files.find import find_model
from gpufit.sources.model_files.record import ModelFiles

DEFAULT_CONTEXTS = (128, 512, 1024)
DEFAULT_CONCURRENCIES = (1, 2, 4)
DEFAULT_NEW_TOKENS = 8

_SETTINGS = (
    "new_tokens", "seed", "dtype_requested", "logits_kept", "images", "image_size", "cache_implementation",
    "kv_cache_dtype", "quantization", "compute_dtype",
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
    """None: DEFAULT_CONTEXTS, as far as the model's positions go."""
    concurrencies: tuple[int, ...] = DEFAULT_CONCURRENCIES
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
    resume: bool = False
    force: bool = False

    @property
    def chosen_cache(self) -> str:
        """The kind of cache that is meant: asking for a cache's dtype asks for a quantised one."""
        return self.cache_implementation or ("dynamic" if self.kv_cache_dtype == "auto" else "quantized")


@dataclass(frozen=True)
class Listener:
    """Who is told how it goes."""

    started: Callable[[Workload, int, int], None] = lambda workload, done, total: None
    """What will be run, and its cells done and wanted, once the model is loaded."""
    progress: Callable[[str], None] = lambda text: None
    """What happens now, in words."""
    cell: Callable[[Cell], None] = lambda cell: None
    """A cell has ended."""


@dataclass
class Campaign:
    """One request being carried out. `profile` is what stands on disk so far."""

    request: ProfileRequest
    listener: Listener
    profile: Profile | None = None
    workload: Workload | None = None
    announced: bool = False
    files: ModelFiles = field(init=False)
    output: Path = field(init=False)

    def run(self) -> Profile:
        """Measure, save after each cell, fit the memory model, save the whole.

        Raises UsageError for a request that cannot be met, UnreadableInputError for a model or file that cannot be
        read or written, MeasurementError when nothing at all could be measured.
        """
        _check_installed()
        self.files = find_model(self.request.model, self.request.revision)
        check_quantization(self.request.quantization, self.files)
        self.output = self.request.output or Path("profiles") / f"{self.files.name.replace('/', '--')}.json"
        self._open_output()
        sweep = Sweep(
            job=self._job(),
            choose_cells=self._choose_cells,
            on_loaded=self._loaded,
            on_cell=self._cell_ended,
            on_progress=self.listener.progress,
            done=list(self.profile.cells) if self.profile else [],
        )
        sweep.run()
        return self._finish(sweep.done)

    def _open_output(self) -> None:
        """Find out before the model is loaded whether the result has a place to go to."""
        check_writable(self.output)
        if not self.output.exists():
            return
        if self.request.resume:
            earlier = load_profile(self.output)
            self.profile = msgspec.structs.replace(earlier, cells=settled(earlier.cells))
            if self.profile.model.fingerprint != self.files.fingerprint:
                raise UsageError(
                    f"{self.output} is of another model ({self.profile.model.name}); choose another -o FILE"
                )
        elif not self.request.force:
            raise UsageError(
                f"{self.output} exists; --resume goes on with it, --force replaces it, -o FILE writes elsewhere"
            )

    def _job(self) -> Job:
        request = self.request
        return Job(
            model_path=str(self.files.path.parent if self.files.is_gguf else self.files.path),
            gguf_file=self.files.path.name if self.files.is_gguf else None,
            model_name=self.files.name,
            model_source=request.model,
            fingerprint=self.files.fingerprint,
            revision=self.files.revision,
            dtype=request.dtype,
            attention=request.attention,
            device=request.device,
            seed=request.seed,
            logits_kept=request.logits_kept,
            trust_remote_code=request.trust_remote_code,
            stored=self.files.stored,
            images=request.images,
            image_size=request.image_size,
            cache_implementation=request.chosen_cache,
            kv_cache_dtype=request.kv_cache_dtype,
            quantization=request.quantization,
            compute_dtype=request.compute_dtype,
        )

    def _choose_cells(self, planned: Planned) -> tuple[CellKey, ...]:
        new_tokens = self.request.new_tokens if planned.generates else 0
        self.workload = Workload(
            contexts_tokens=_contexts(self.request, planned, new_tokens),
            concurrencies=self.request.concurrencies,
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
        )
        if self.profile is not None:
            self._check_same_settings(self.profile)
        return grid(self.workload)

    def _check_same_settings(self, earlier: Profile) -> None:
        """A resumed run must be the same run: settings that change the bytes may not differ."""
        assert self.workload is not None
        for name in _SETTINGS:
            before, now = getattr(earlier.workload, name), getattr(self.workload, name)
            if before != now:
                raise UsageError(
                    f"{self.output} was measured with {name.replace('_', ' ')} {before}, not {now}; "
                    "repeat that setting, or choose another -o FILE"
                )

    def _loaded(self, loaded: Loaded) -> None:
        assert self.workload is not None
        if self.profile is None:
            self.profile = Profile(
                gpufit_version=__version__,
                created_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
                evidence=Evidence.MEASURED,
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
        wanted = {(one.context_tokens, one.new_tokens, one.concurrency) for one in grid(workload)}
        self.listener.started(workload, sum(cell.key in wanted for cell in profile.cells), len(wanted))

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
        if self.profile is None:
            raise MeasurementError(f"{self.request.model}: nothing was measured")
        model = fit_memory_model(cells, self.profile.engine.attention, knees_of(self.profile))
        profile = msgspec.structs.replace(
            self.profile,
            memory_model=model,
            cells=self.profile.cells if model is None else without_lesser_moments(self.profile.cells, model),
            complete=True,
        )
        save_profile(profile, self.output)
        self.profile = profile
        if not profile.measured_cells:
            raise MeasurementError(f"no cell could be measured; {self.output} says how each ended")
        return profile


def _check_installed() -> None:
    """Raise MeasurementError when what runs models is not installed; looking does not import it."""
    needed = ("torch", "transformers", "accelerate", "scipy")
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise MeasurementError(
            f"measuring needs {', '.join(missing)}, which this installation lacks: pip install 'gpufit[measure]'"
        )


def _contexts(request: ProfileRequest, planned: Planned, new_tokens: int) -> tuple[int, ...]:
    """The contexts asked for, or the default ones that the model can take. Raises UsageError for others."""
    contexts = request.contexts or _default_contexts(planned, new_tokens)
    for context in contexts:
        shape = Shape(context, new_tokens, 1)
        wrong = beyond_positions(request.model, planned.position_limit, planned.decodes_apart, shape) or (
            too_short_for_images(request.model, context, planned.images, planned.image_tokens)
        )
        if wrong is not None:
            raise UsageError(wrong)
    return contexts


def _default_contexts(planned: Planned, new_tokens: int) -> tuple[int, ...]:
    """DEFAULT_CONTEXTS beside the images of each sequence, as far as the model's positions go.

    Where fewer than two of them fit, a quarter, a half and all of what the model takes: with one context alone growth
    would stay unknown.
    """
    longest = longest_context(planned.position_limit, planned.decodes_apart, new_tokens)
    wanted = tuple(planned.image_tokens + one for one in DEFAULT_CONTEXTS)
    if longest is None:
        return wanted
    fitting = tuple(one for one in wanted if one <= longest)
    if len(fitting) >= FEWEST_CONTEXTS:
        return fitting
    room = longest - planned.image_tokens
    return tuple(sorted({planned.image_tokens + max(room // parts, 1) for parts in (4, 2, 1)}))


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
