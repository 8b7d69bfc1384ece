"""`--if weights=fp8`: a profile asked as if its model were held or computed in something else."""

from __future__ import annotations

import argparse
import enum
from collections.abc import Mapping, Sequence

from gpufit.errors import UsageError
from gpufit.memory.held import AS_PROFILED, Cache, Compute, Held, Weights

_SWITCHES: Mapping[str, tuple[str, type[enum.StrEnum]]] = {
    "weights": ("weights", Weights),
    "compute": ("compute", Compute),
    "kv": ("kv_cache", Cache),
}
"""By the name that is typed: the field of `Held`, and what it can be."""


def _values(of: type[enum.StrEnum]) -> dict[str, enum.StrEnum]:
    return {one.value.lower(): one for one in of if one != AS_PROFILED}


_FORM = "; ".join(f"{name}={'|'.join(_values(of))}" for name, (_, of) in _SWITCHES.items())


def switch(text: str) -> tuple[str, enum.StrEnum]:
    """(field of `Held`, value) of `weights=fp8`, as an argparse type."""
    name, _, value = (part.strip().lower() for part in text.partition("="))
    field, of = _SWITCHES.get(name, ("", Weights))
    found = _values(of).get(value) if field else None
    if found is None:
        raise argparse.ArgumentTypeError(f"--if takes {_FORM}; not {text!r}")
    return field, found


def add_held(parser: argparse.ArgumentParser) -> None:
    """`--if`, once for each switch."""
    parser.add_argument(
        "--if",
        dest="held",
        type=switch,
        action="append",
        default=[],
        metavar="WHAT=DTYPE",
        help="as if held or computed in another dtype, worked out and never measured (repeat for more): weights=fp8 "
        f"({_FORM})",
    )


def refuse_for_start(held: Held) -> None:
    """Raise UsageError for switches of a start of vLLM, whose own flags say what it is held in."""
    if not held.as_profiled:
        raise UsageError("--if is for profiles; a start of vLLM takes --quantization, --dtype and --kv-cache-dtype")


def held_of(given: Sequence[tuple[str, enum.StrEnum]]) -> Held:
    """What was given. Raises UsageError for a switch that is set twice."""
    fields = [field for field, _ in given]
    twice = next((field for field in fields if fields.count(field) > 1), None)
    if twice is not None:
        name = next(name for name, (field, _) in _SWITCHES.items() if field == twice)
        raise UsageError(f"--if {name}=... is given twice; set each switch once")
    chosen = dict(given)
    return Held(
        weights=Weights(chosen.get("weights", AS_PROFILED)),
        compute=Compute(chosen.get("compute", AS_PROFILED)),
        kv_cache=Cache(chosen.get("kv_cache", AS_PROFILED)),
    )
