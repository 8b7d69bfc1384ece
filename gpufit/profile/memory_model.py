"""How every phase of a model grows, as physical terms with their coefficients in bytes."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from gpufit.profile.base import Count, Record, Size
from gpufit.profile.peaks import Phase

TermName = Literal[
    "constant",
    "per_sequence",
    "per_position",
    "per_token",
    "per_past_token",
    "per_prompt_token",
    "per_reserved_token",
    "per_token_in_window",
    "per_token_in_chunks",
    "per_token_squared",
    "mask",
    "per_token_beyond_window",
    "per_token_squared_beyond_window",
    "mask_beyond_window",
    "tile",
    "tile_row",
]
"""What a part can grow by; `memory.terms` says how many units of each a shape has."""


class Coefficient(Record, frozen=True, kw_only=True):
    """One physical term of one part: bytes for each unit of the term."""

    term: TermName
    bytes_per_unit: Annotated[float, msgspec.Meta(ge=0, le=1e18)]
    """Never negative."""


class PartModel(Record, frozen=True, kw_only=True):
    """How one part grows."""

    part: str
    """A field of Parts."""
    coefficients: tuple[Coefficient, ...]


class MomentModel(Record, frozen=True, kw_only=True):
    """How the moment at one site grows."""

    site: str
    parts: tuple[PartModel, ...]


class PhaseModel(Record, frozen=True, kw_only=True):
    """How one phase grows, and how well that was tested. What it needs is what its highest moment needs."""

    phase: Phase
    moments: tuple[MomentModel, ...]
    """The moments that are the highest at some shape; END_OF_PHASE among them, whether it ever is or not."""
    alternatives: tuple[tuple[PartModel, ...], ...] = ()
    """The same cells fitted with terms in tokens squared which they do not rule out: the upper bound is never below
    any of them."""
    fitted_cells: int
    held_out_cells: int
    worst_fitted_error: float
    """Largest |predicted - measured| / measured of `allocated` over the cells that were fitted."""
    worst_held_out_error: float | None
    """The same over cells that were not; absent when too few cells were measured to hold any out."""
    worst_held_out_growth_error: float | None = None
    """The same as a share of what grew in the cell (all but weights and buffers)."""
    worst_miss_bytes: Size
    """Largest |predicted - measured| over all cells, fitted and held out, of `allocated` and of every moment that the
    model is made of, these as if they were the cell's peak."""
    largest_growth_bytes: Size
    """What grew (`allocated` less weights and buffers) in the cell where it was largest: the reach of the fit."""


class MemoryModel(Record, frozen=True, kw_only=True):
    """The growth of every phase, with the domain it was seen in."""

    phases: tuple[PhaseModel, ...]
    max_cached_tokens: Count
    """Longest sequence seen, prompt and new tokens."""
    max_new_tokens: Count | None = None
    """Most new tokens of a sequence seen; absent in profiles of version 1 and where none are generated."""
    min_context_tokens: Count = 1
    """Shortest prompt seen."""
    max_concurrency: Count
    max_total_tokens: Count
    """Largest concurrency x sequence length seen in one cell."""
    untested: bool = False
    """True for a model made of an engine's rules, which no run has tested: `memory.predict` says how far it is
    trusted."""
