"""Profiles as the TUI takes them: read, and known to have a scenario to start from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpufit.errors import GpufitError
from gpufit.flows import default_shape, load_named_profile
from gpufit.memory.terms import Shape
from gpufit.profile.record import Profile


@dataclass(frozen=True)
class LoadedProfile:
    """A profile that can be shown."""

    profile: Profile
    where: str
    """The file it was read from, as the document names it."""
    start: Shape
    """The scenario it starts from and is reset to."""


def read_profiles(paths: Sequence[Path]) -> tuple[list[LoadedProfile], list[str]]:
    """The profiles that can be read, in order, and one line for each that cannot: a bad file never hides a good one."""
    profiles: list[LoadedProfile] = []
    problems: list[str] = []
    for path in paths:
        try:
            profile = load_named_profile(path)
            profiles.append(LoadedProfile(profile, str(path), default_shape(profile)))
        except GpufitError as error:
            message = str(error)
            problems.append(message if str(path) in message else f"{path}: {message}")
    return profiles, problems
