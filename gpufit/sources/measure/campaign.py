"""A whole measurement: from a model's name to a finished profile on disk, every cell saved as it ends."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from gpufit import __version__
from gpufit.errors import MeasurementError, OutputExistsError, UsageError
from gpufit.files import check_writable, exists, remove_leftovers, sole_writer
from gpufit.memory.fit import fit_memory_model, without_lesser_moments
from gpufit.memory.terms import Knees
from gpufit.profile.cells import Cell, Skipped
from gpufit.profile.memory_model import MemoryModel
from gpufit.profile.record import Profile
from gpufit.profile.store import load_profile, save_profile
from gpufit.profile.workload import Workload
from gpufit.sources.layout import layout_of_run
from gpufit.sources.measure.adaptive import Round, next_round
from gpufit.sources.measure.contexts import contexts_of
from gpufit.sources.measure.installed import check_installed
from gpufit.sources.measure.listener import Listener
from gpufit.sources.measure.protocol import CellKey, Loaded, Planned
from gpufit.sources.measure.quantization import check_quantization
from gpufit.sources.measure.request import ProfileRequest, job_of
from gpufit.sources.measure.resumed import check_same_settings, check_same_surroundings, joined
from gpufit.sources.measure.supervisor import Sweep
from gpufit.sources.measure.sweep import ended, grid, remaining, settled
from gpufit.sources.model_files.find import find_config, find_model
from gpufit.sources.model_files.record import ModelFiles


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
            raise OutputExistsError(self.output, f"{resume}--force replaces it, -o FILE writes elsewhere")

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
            contexts_tokens=contexts_of(self.request, planned, new_tokens),
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
        check_same_settings(self.profile, self.workload, self.request.attention, self.output)
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
            check_same_surroundings(self.profile, loaded, self.output)
            self.profile = msgspec.structs.replace(
                self.profile, workload=joined(self.profile.workload, self.workload), complete=False
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
