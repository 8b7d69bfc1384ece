"""Every architecture that gpufit measures, as a small real model: its parts, its growth, its held-out error.

    python benchmarks/architectures.py [NAME ...] [--keep FOLDER]

Each model is built from its config class with random weights, saved, and profiled by `gpufit profile`, adaptively. Then
cells that no fit has seen are run and compared: inside the domain and beyond, up to twice the longest context and twice
the most sequences. SmolLM2 and MiniLM are the real models of `make models`. A table in Markdown goes to standard
output; `--keep` leaves the profiles in a folder, those of the unseen cells beside them as NAME.unseen.json.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from gpufit.errors import GpufitError
from gpufit.flows import measure
from gpufit.memory.growth import cache_growth
from gpufit.memory.predict import PhasePrediction, predict
from gpufit.memory.terms import Shape
from gpufit.profile.cells import Measured
from gpufit.profile.peaks import Parts, PhasePeak
from gpufit.profile.record import Profile
from gpufit.profile.store import save_profile
from gpufit.report.summary import growth_sentence
from gpufit.sources.measure.listener import Listener
from gpufit.sources.measure.request import ProfileRequest
from gpufit.units import format_size

REPOSITORY = Path(__file__).resolve().parent.parent
REAL = {
    "SmolLM2-135M": REPOSITORY / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf",
    "MiniLM": REPOSITORY / "models" / "all-MiniLM-L6-v2",
}


@dataclass(frozen=True)
class Comparison:
    """One phase of one unseen cell: what was predicted and what was measured."""

    shape: Shape
    beyond: bool
    predicted: PhasePrediction
    measured: PhasePeak

    @property
    def error(self) -> float:
        """|predicted - measured| as a share of what was measured."""
        return abs(self.predicted.allocated_bytes - self.measured.allocated_bytes) / self.measured.allocated_bytes

    @property
    def held(self) -> bool:
        """Whether the interval holds what was measured."""
        return self.predicted.lower_bytes <= self.measured.allocated_bytes <= self.predicted.upper_bytes


def unseen_cells(profile: Profile) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(contexts, concurrencies) inside the domain that no cell has, then as far beyond as positions go."""
    contexts = sorted(profile.workload.contexts_tokens)
    between = (contexts[-2] + contexts[-1]) // 2 - 8
    longest = profile.model.position_limit
    reach = 2 * contexts[-1]
    if longest is not None:
        reach = min(reach, longest - (0 if profile.model.decodes_apart else max(profile.workload.new_tokens - 1, 0)))
    return tuple(sorted({between, max(reach, between)})), (3, 2 * max(profile.workload.concurrencies))


def compare(profile: Profile, unseen: Profile) -> Iterator[Comparison]:
    """Every phase of every unseen cell that ran to its end."""
    assert profile.memory_model is not None
    for cell in unseen.measured_cells:
        assert isinstance(cell.outcome, Measured)
        shape = Shape(*cell.key)
        predicted = {one.phase: one for one in predict(profile, shape)}
        beyond = (
            shape.cached_tokens > profile.memory_model.max_cached_tokens
            or shape.concurrency > profile.memory_model.max_concurrency
        )
        for peak in cell.outcome.phases:
            yield Comparison(shape, beyond, predicted[peak.phase], peak)


def row(name: str, profile: Profile, compared: Sequence[Comparison]) -> str:
    """One line of the table."""
    assert profile.memory_model is not None
    largest = max(profile.measured_cells, key=lambda cell: cell.context_tokens * cell.concurrency)
    assert isinstance(largest.outcome, Measured)
    peak = max(largest.outcome.phases, key=lambda one: one.allocated_bytes)
    parts = ", ".join(
        f"{part.removesuffix('_bytes')} {format_size(getattr(peak.parts, part))}"
        for part in Parts.NAMES
        if getattr(peak.parts, part)
    )
    unexplained = max(
        one.parts.unexplained_bytes
        for cell in profile.measured_cells
        for one in (cell.outcome.phases if isinstance(cell.outcome, Measured) else ())
    )
    growth = cache_growth(profile)
    held_out = [one.worst_held_out_error for one in profile.memory_model.phases if one.worst_held_out_error is not None]
    inside = [one.error for one in compared if not one.beyond]
    beyond = [one.error for one in compared if one.beyond]
    cells = [
        f"{name} ({profile.model.architecture})",
        f"{len(profile.measured_cells)}",
        f"{peak.phase} {largest.context_tokens} x {largest.concurrency}: {parts}",
        f"{unexplained} B",
        "no cache" if growth is None else growth_sentence(growth).removeprefix("KV cache: "),
        f"{max(held_out, default=float('nan')):.3%}",
        f"{statistics.median(inside):.3%} / {max(inside):.3%}",
        f"{statistics.median(beyond):.3%} / {max(beyond):.3%}",
        f"{sum(one.held for one in compared)} of {len(compared)}",
    ]
    return f"| {' | '.join(cells)} |"


def named(profile: Profile, name: str) -> Profile:
    """The profile with its model's name for the folder that it was measured in."""
    return msgspec.structs.replace(profile, model=msgspec.structs.replace(profile.model, source=name))


def without_moments(profile: Profile) -> Profile:
    """The profile with the peaks of its cells alone, and no model."""
    cells = []
    for cell in profile.cells:
        if isinstance(cell.outcome, Measured):
            phases = tuple(msgspec.structs.replace(peak, moments=()) for peak in cell.outcome.phases)
            cell = msgspec.structs.replace(cell, outcome=msgspec.structs.replace(cell.outcome, phases=phases))
        cells.append(cell)
    return msgspec.structs.replace(profile, cells=tuple(cells), memory_model=None)


HEADER = (
    "| model | cells | parts at the peak of the largest | unexplained | cache grows by | held out | unseen inside, "
    "median / worst | unseen beyond, median / worst | within the interval |\n|---|---|---|---|---|---|---|---|---|"
)


def saved_models(names: Sequence[str], folder: Path) -> Iterator[tuple[str, Path]]:
    """(name, path) of every model asked for, or of all."""
    sys.path.insert(0, str(REPOSITORY / "tests"))
    from architectures import ARCHITECTURES  # type: ignore[import-not-found]

    for name in names or [*REAL, *ARCHITECTURES]:
        yield name, REAL[name] if name in REAL else ARCHITECTURES[name]().save(folder / name)


def main() -> None:
    parser = argparse.ArgumentParser(description="parts, growth and accuracy of every architecture")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    given = parser.parse_args()
    compared: list[Comparison] = []
    with tempfile.TemporaryDirectory() as temporary:
        keep = given.keep or Path(temporary) / "profiles"
        keep.mkdir(parents=True, exist_ok=True)
        print(HEADER)
        for name, path in saved_models(given.names, Path(temporary)):
            try:
                profile, _ = measure(ProfileRequest(str(path), keep / f"{name}.json", force=True), Listener())
                contexts, concurrencies = unseen_cells(profile)
                request = ProfileRequest(
                    str(path), keep / f"{name}.unseen.json", contexts, concurrencies, profile.workload.new_tokens or 8,
                    force=True,
                )  # fmt: skip
                unseen, _ = measure(request, Listener())
            except GpufitError as error:
                print(f"| {name} | {error} |", flush=True)
                continue
            save_profile(named(profile, name), keep / f"{name}.json")
            save_profile(named(without_moments(unseen), name), keep / f"{name}.unseen.json")
            these = list(compare(profile, unseen))
            print(row(name, profile, these), flush=True)
            compared += these
    errors = [one.error for one in compared]
    held = sum(one.held for one in compared)
    print(
        f"\nunseen cells: median {statistics.median(errors):.3%}, worst {max(errors):.3%}; "
        f"{held} of {len(compared)} phases within their intervals"
    )
    for one in compared:
        if not one.held or one.error > 0.02:
            print(
                f"  {one.predicted.phase} at {one.shape}: predicted {one.predicted.allocated_bytes:,} "
                f"({one.predicted.lower_bytes:,} to {one.predicted.upper_bytes:,}), measured "
                f"{one.measured.allocated_bytes:,} in {one.measured.site}, predicted in {one.predicted.site}"
            )


if __name__ == "__main__":
    main()
