"""Profiles as the TUI takes them: read, and known to have a scenario to start from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from gpufit import flows
from gpufit.errors import GpufitError, UsageError
from gpufit.files import typed_name
from gpufit.memory.terms import Shape
from gpufit.profile.record import Profile
from gpufit.sources.estimate.request import EstimateRequest


@dataclass(frozen=True)
class LoadedProfile:
    """A profile that can be shown."""

    profile: Profile
    where: str
    """The file it was read from, as the document names it."""
    start: Shape
    """The scenario it starts from and is reset to."""


@dataclass(frozen=True)
class UnfinishedProfile:
    """A profile that no cell of was measured yet, so that it has no scenario to start from."""

    profile: Profile
    where: str
    why: str
    """What is missing, and what to do about it."""


class Found(NamedTuple):
    """What reading some files came to."""

    profiles: list[LoadedProfile]
    unfinished: list[UnfinishedProfile]
    problems: list[str]
    """One line for each file that cannot be read: a bad file never hides a good one."""


def read_profiles(paths: Sequence[Path]) -> Found:
    """All that the files hold, each kind in the order of the files."""
    found = Found([], [], [])
    for path in paths:
        try:
            one = read_profile(path)
        except GpufitError as error:
            message = str(error)
            found.problems.append(message if str(path) in message else f"{path}: {message}")
            continue
        if isinstance(one, LoadedProfile):
            found.profiles.append(one)
        else:
            found.unfinished.append(one)
    return found


def read_profile(path: Path) -> LoadedProfile | UnfinishedProfile:
    """One profile. Raises UsageError or UnreadableInputError, each in one line."""
    profile = flows.load_named_profile(path)
    try:
        return LoadedProfile(profile, str(path), flows.default_shape(profile))
    except UsageError as error:
        return UnfinishedProfile(profile, str(path), str(error))


def profile_named(text: str) -> LoadedProfile | UnfinishedProfile:
    """What somebody typed: a profile's file is read, a model is estimated. Raises UsageError or UnreadableInputError,
    each in one line."""
    name = typed_name(text)
    if not flows.names_model(name):
        return read_profile(Path(name))
    profile = flows.estimate(EstimateRequest(name))
    return LoadedProfile(profile, name, flows.default_shape(profile))
