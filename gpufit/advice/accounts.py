"""What accounts for the difference of one part between two profiles: arithmetic first, then what is recorded. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpufit.advice.differences import Difference, counted_alike
from gpufit.memory.predict import PhasePrediction
from gpufit.memory.terms import Knees, Shape, units_at
from gpufit.profile.base import Record
from gpufit.profile.cells import Measured
from gpufit.profile.memory_model import TermName
from gpufit.profile.peaks import NamedSize, Phase, PhasePeak
from gpufit.profile.precision import DtypeShare
from gpufit.profile.record import Profile
from gpufit.units import format_size

CLOSE = 0.01
"""Arithmetic that meets a difference to this share accounts for it (assumed: what a fit is trusted to at best)."""

MOST_NAMED = 3
"""Recorded differences named beside a part; all of them stand in the list above."""

ELEMENT_BYTES: Mapping[str, int] = {
    "float64": 8, "float32": 4, "bfloat16": 2, "float16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1, "int8": 1,
    "uint8": 1,
}  # fmt: skip
"""Bytes of one element, by torch's names."""


class Account(Record, frozen=True, kw_only=True):
    """One thing that accounts for a difference, or may."""

    words: str
    accounted_bytes: int | None
    """How much of it, by arithmetic; null where it is recorded, and how much it changes cannot be told."""


class TermDifference(Record, frozen=True, kw_only=True):
    """One physical term of a part, as the memory models of both have it."""

    term: TermName
    a_bytes_per_unit: float
    b_bytes_per_unit: float
    a_bytes: int
    """At the shape compared."""
    b_bytes: int


@dataclass(frozen=True)
class Asked:
    """One profile's answer for one phase."""

    profile: Profile
    shape: Shape
    answer: PhasePrediction
    ran: bool
    """Whether the answer is what this very cell took."""

    def size(self, part: str) -> int:
        """Bytes of a part."""
        found: int = getattr(self.answer.parts, part)
        return found

    @property
    def peak(self) -> PhasePeak | None:
        """What was recorded of the phase: of loading always, else where the cell ran."""
        if self.answer.phase is Phase.LOAD:
            return self.profile.load
        for cell in self.profile.measured_cells if self.ran else ():
            asked = (self.shape.context_tokens, self.shape.new_tokens, self.shape.concurrency)
            if cell.key == asked and isinstance(cell.outcome, Measured):
                return next((one for one in cell.outcome.phases if one.phase is self.answer.phase), None)
        return None


def terms_of(part: str, a: Asked, b: Asked) -> tuple[TermDifference, ...]:
    """The terms of a part that differ, largest first; none where a model lacks the moment, or misses what was seen."""
    one, other = _terms(part, a), _terms(part, b)
    if one is None or other is None:
        return ()
    difference = abs(b.size(part) - a.size(part))
    found = []
    for term in dict.fromkeys([*one, *other]):
        (a_unit, a_bytes), (b_unit, b_bytes) = one.get(term, (0.0, 0.0)), other.get(term, (0.0, 0.0))
        if abs(b_bytes - a_bytes) > CLOSE * difference:
            found.append(
                TermDifference(
                    term=term,
                    a_bytes_per_unit=a_unit,
                    b_bytes_per_unit=b_unit,
                    a_bytes=round(a_bytes),
                    b_bytes=round(b_bytes),
                )
            )
    return tuple(sorted(found, key=lambda term: -abs(term.b_bytes - term.a_bytes)))


def _terms(part: str, asked: Asked) -> dict[TermName, tuple[float, float]] | None:
    """(bytes a unit, bytes) of each term of a part at the peak's site."""
    model = asked.profile.memory_model
    phase = next((one for one in model.phases if one.phase is asked.answer.phase), None) if model else None
    moment = next((one for one in phase.moments if one.site == asked.answer.site), None) if phase else None
    if moment is None:
        return None
    units = units_at(asked.shape, asked.answer.phase, Knees.of(asked.profile)).of(moment.site)
    coefficients = [one for each in moment.parts if each.part == part for one in each.coefficients]
    found = {one.term: (one.bytes_per_unit, one.bytes_per_unit * units[one.term]) for one in coefficients}
    total, seen = sum(size for _, size in found.values()), asked.size(part)
    return found if abs(total - seen) <= max(CLOSE * seen, 1) else None


def accounts_of(part: str, a: Asked, b: Asked, found: Sequence[Difference], beyond: bool) -> tuple[Account, ...]:
    """What accounts for a part's difference, or may.

    Where arithmetic meets all of it, recorded differences that might bear on it are not named as well.
    """
    known = [*_by_parameters(part, a, b), *_by_dtype(part, a, b)]
    if not known and not beyond:
        known = [Account(words="no difference beyond the intervals", accounted_bytes=None)]
    known = known or [*_recorded(part, found), *_by_place(part, a, b), *_by_operations(part, a, b)]
    return tuple(known) or (Account(words="nothing that the profiles record accounts for it", accounted_bytes=None),)


def _by_parameters(part: str, a: Asked, b: Asked) -> Iterator[Account]:
    """Weights are parameters times bytes a parameter; what each of the two changes adds up to the difference."""
    counts = [asked.profile.model.parameters for asked in (a, b)]
    whole = all(asked.profile.workload.tensor_parallel_size == 1 for asked in (a, b))
    if part != "weights_bytes" or not all(counts) or not whole:
        return
    if not counted_alike(a.profile, b.profile):
        one, other = (_sizes(asked.profile.precision.resident) for asked in (a, b))
        yield Account(words=f"{one} against {other}", accounted_bytes=b.size(part) - a.size(part))
        return
    each = [asked.size(part) / count for asked, count in zip((a, b), counts, strict=True)]
    by_count = round((counts[1] - counts[0]) * each[0])
    by_width = b.size(part) - a.size(part) - by_count
    least = CLOSE * abs(b.size(part) - a.size(part))
    if abs(by_count) > least:
        yield Account(words=f"{counts[0]:,} parameters against {counts[1]:,}", accounted_bytes=by_count)
    if abs(by_width) > least:
        dtypes = [_dtypes(asked.profile.precision.resident) for asked in (a, b)]
        resident = f": {dtypes[0]} against {dtypes[1]}" if dtypes[0] != dtypes[1] else ""
        same = f" for each of {counts[0]:,} parameters" if counts[0] == counts[1] else " a parameter"
        yield Account(words=f"{each[0]:.3g} bytes{same} against {each[1]:.3g}{resident}", accounted_bytes=by_width)


def _sizes(shares: Sequence[DtypeShare]) -> str:
    return ", ".join(f"{share.dtype} {format_size(share.size_bytes)}" for share in shares)


def _by_dtype(part: str, a: Asked, b: Asked) -> Iterator[Account]:
    """A width of elements that accounts for all of a difference of one and the same model."""
    if part == "weights_bytes" or _identity(a.profile) != _identity(b.profile):
        return
    one, other = (_dtype(part, asked.profile) for asked in (a, b))
    if one not in ELEMENT_BYTES or other not in ELEMENT_BYTES or ELEMENT_BYTES[one] == ELEMENT_BYTES[other]:
        return
    widened = a.size(part) * ELEMENT_BYTES[other] / ELEMENT_BYTES[one]
    if widened and abs(b.size(part) - widened) <= CLOSE * abs(b.size(part) - a.size(part)):
        words = f"{ELEMENT_BYTES[one]} bytes an element against {ELEMENT_BYTES[other]}: {one} against {other}"
        yield Account(words=words, accounted_bytes=round(widened) - a.size(part))


def _identity(profile: Profile) -> tuple[str, int]:
    return (profile.model.architecture, profile.model.parameters)


def _dtype(part: str, profile: Profile) -> str:
    """The dtype that a part is mostly in; empty where none is known."""
    if part == "kv_cache_bytes":
        return _dtypes(profile.precision.kv)
    families = {
        "outputs_bytes": ("logits", "matmul"),
        "activations_bytes": ("matmul",),
        "temporaries_bytes": ("matmul",),
    }
    computed = {one.family: "/".join(one.dtypes) for one in profile.precision.compute}
    return next((computed[family] for family in families.get(part, ()) if family in computed), "")


def _dtypes(shares: Sequence[DtypeShare]) -> str:
    return "/".join(dict.fromkeys(share.dtype for share in shares))


def _by_operations(part: str, a: Asked, b: Asked) -> Iterator[Account]:
    """The operations that made most of the temporaries, where both runs recorded them and they are not the same."""
    if part != "temporaries_bytes":
        return
    one, other = (() if asked.peak is None else asked.peak.largest_temporaries for asked in (a, b))
    if one and other and one != other:
        yield Account(words=f"A's mostly from {_made(one)}; B's from {_made(other)}", accounted_bytes=None)


def _by_place(part: str, a: Asked, b: Asked) -> Iterator[Account]:
    """What is alive depends on the place of the model at which a phase peaks."""
    places = (a.answer.site, b.answer.site)
    if part not in ("weights_bytes", "buffers_bytes") and all(places) and places[0] != places[1]:
        yield Account(words="the two peak at different places", accounted_bytes=None)


def _made(operations: Sequence[NamedSize]) -> str:
    return ", ".join(f"{one.name} {format_size(one.size_bytes)}" for one in operations[:2])


def _recorded(part: str, found: Sequence[Difference]) -> list[Account]:
    """Recorded differences that bear on a part, in the order to look."""
    named = [one.what for one in found if part in one.bears_on]
    if not named:
        return []
    more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
    return [Account(words=f"what differs and bears on it: {', '.join(named[:MOST_NAMED])}{more}", accounted_bytes=None)]
