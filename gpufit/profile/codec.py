"""Profile to JSON text and back; pure. Reads every schema version ever written, refuses newer ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from gpufit.errors import UnreadableInputError
from gpufit.profile.cells import Measured
from gpufit.profile.peaks import Parts, PhasePeak
from gpufit.profile.record import SCHEMA_VERSION, Profile


def encode(profile: Profile) -> bytes:
    """The profile as indented JSON (UTF-8, a final newline); the same profile always gives the same bytes."""
    return msgspec.json.format(msgspec.json.encode(profile), indent=1) + b"\n"


def decode(text: bytes, where: str) -> Profile:
    """Read a profile; `where` names the file in messages.

    Raises UnreadableInputError, in one line, for anything that is not a whole and consistent profile.
    """
    profile = _convert(_versioned(text, where), where)
    for part in _modelled_parts(profile):
        if part not in Parts.NAMES:
            raise UnreadableInputError(f"{where}: damaged profile: its memory model has an unknown part {part!r}")
    for peak in _peaks(profile):
        if peak.parts.total_bytes != peak.allocated_bytes:
            raise UnreadableInputError(
                f"{where}: damaged profile: the parts of a {peak.phase} phase add up to {peak.parts.total_bytes}, "
                f"not to its allocated {peak.allocated_bytes}; restore the file or measure again"
            )
        if any(moment.parts.total_bytes > peak.allocated_bytes for moment in peak.moments):
            raise UnreadableInputError(
                f"{where}: damaged profile: a {peak.phase} phase has a moment above its peak of "
                f"{peak.allocated_bytes}; restore the file or measure again"
            )
    return profile


def _versioned(text: bytes, where: str) -> dict[str, Any]:
    try:
        raw = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableInputError(f"{where}: not a profile (not whole JSON: {error})") from error
    version = raw.get("schema_version") if isinstance(raw, dict) else None
    if version is None and isinstance(raw, dict) and ("model_type" in raw or "architectures" in raw):
        raise UnreadableInputError(
            f"{where}: the config of a model, not a profile: call it config.json, or give the folder that it is in"
        )
    if type(version) is not int or version < 1:
        raise UnreadableInputError(f"{where}: not a profile (no schema_version in it); `gpufit profile` writes one")
    if "workload" not in raw and ("scenario" in raw or "documents" in raw):
        raise UnreadableInputError(
            f"{where}: an answer that gpufit gave, not a profile: give the profile that it was made of "
            "(`gpufit estimate --save FILE` keeps a computed one)"
        )
    if version > SCHEMA_VERSION:
        raise UnreadableInputError(
            f"{where}: written by a newer gpufit (profile schema {version}, this one reads up to "
            f"{SCHEMA_VERSION}); upgrade gpufit"
        )
    found: dict[str, Any] = raw
    for older in range(version, SCHEMA_VERSION):
        _UPGRADES[older](found, where)
    found["schema_version"] = SCHEMA_VERSION
    return found


def _from_version_1(raw: dict[str, Any], where: str) -> None:
    """Version 1 knew one moment a phase, without a site."""
    model = raw.get("memory_model")
    phases = model.get("phases") if isinstance(model, dict) else None
    for phase in phases if isinstance(phases, list) else ():
        if not isinstance(phase, dict) or "parts" not in phase:
            raise UnreadableInputError(f"{where}: damaged profile: its memory model has a phase without parts")
        phase["moments"] = [{"site": "", "parts": phase.pop("parts")}]


_UPGRADES: dict[int, Callable[[dict[str, Any], str], None]] = {1: _from_version_1}
"""From each older version to the next."""


def _convert(raw: dict[str, Any], where: str) -> Profile:
    try:
        return msgspec.convert(raw, Profile)
    except msgspec.ValidationError as error:
        raise UnreadableInputError(f"{where}: damaged profile: {error}") from error


def _modelled_parts(profile: Profile) -> Iterator[str]:
    for phase in profile.memory_model.phases if profile.memory_model is not None else ():
        for parts in (*(moment.parts for moment in phase.moments), *phase.alternatives):
            for model in parts:
                yield model.part


def _peaks(profile: Profile) -> Iterator[PhasePeak]:
    yield profile.load
    for cell in profile.cells:
        if isinstance(cell.outcome, Measured):
            yield from cell.outcome.phases
