"""One cell of the grid, and the four ways it can end."""

from __future__ import annotations

from gpufit.profile.base import Count, Record, Size
from gpufit.profile.peaks import Phase, PhasePeak


class Measured(Record, frozen=True, kw_only=True, tag_field="type", tag="measured"):
    """A cell that ran to its end."""

    phases: tuple[PhasePeak, ...]
    inputs_completed: Size
    """Sequences that ran to the end."""
    wall_seconds: float | None = None
    """Wall time of the untracked run, prefill and all decode steps; absent where nothing ran (simulated, computed)."""
    time_to_first_token_seconds: float | None = None
    """Wall time of the untracked prefill; absent for a model that does not generate, and where nothing ran."""


class OutOfMemory(Record, frozen=True, kw_only=True, tag_field="type", tag="out_of_memory"):
    """A cell that ran into the memory limit."""

    phase: Phase | None
    """The phase it struck in; absent when the system killed the process, which then could not say."""
    message: str
    """The error as the library worded it, first line."""
    asked_bytes: Size | None = None
    """The allocation that failed, where the error names it."""
    limit_bytes: Size | None = None
    """The limit it ran into, where known."""


class Failed(Record, frozen=True, kw_only=True, tag_field="type", tag="failed"):
    """A cell that ended in an error other than memory."""

    error: str


class Skipped(Record, frozen=True, kw_only=True, tag_field="type", tag="skipped"):
    """A cell that was not run, and why."""

    why: str


Outcome = Measured | OutOfMemory | Failed | Skipped


class Cell(Record, frozen=True, kw_only=True):
    """One point of the grid and how it ended."""

    context_tokens: Count
    """Prompt length of each sequence."""
    new_tokens: Size
    """Tokens generated for each sequence, the one that prefill yields included (0 for encoders)."""
    concurrency: Count
    """Sequences at once."""
    outcome: Outcome

    @property
    def key(self) -> tuple[int, int, int]:
        """What identifies the cell within a profile."""
        return (self.context_tokens, self.new_tokens, self.concurrency)
