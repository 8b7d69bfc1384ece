"""From what was asked of a run back to the form: whether it asks the same, and a refusal in the words of its fields."""

from __future__ import annotations

import re
from dataclasses import replace

import msgspec

from gpufit.sources.measure.events import RunRequest
from gpufit.tui.run_form import FIELDS, GO_ON, KEEP, REPLACE, Form, Kind, WrongFieldError, filled, request_of

_OPTION = re.compile(r"-o FILE\b|--[a-z][a-z-]*")


def in_form_words(request: RunRequest, reason: str, there: str) -> str:
    """Why a run was refused, the command's options in it by the names that the form's fields have; `there` names the
    file that would have been written over, where that is why."""
    kind = kind_of(request)
    titles = {one.name: one.title for one in FIELDS[kind]}
    if there:
        ways = f"{GO_ON!r} or {REPLACE!r}" if kind is Kind.PROFILE else repr(REPLACE)
        return f"{there} exists; choose {ways} in {titles['existing']!r}, or name another in {titles['output']!r}"
    named = {one.flag: one.title for one in FIELDS[kind] if one.flag}
    named |= {"-o FILE": titles["output"], "--model": titles["model"], "--resume": GO_ON, "--force": REPLACE}
    return _OPTION.sub(lambda found: repr(named[found[0]]) if found[0] in named else found[0], reason)


def kind_of(request: RunRequest) -> Kind:
    """Which form makes a request."""
    if request.profile is None:
        return Kind.ESTIMATE
    return Kind.PROFILE if request.profile.simulation is None else Kind.SIMULATE


def asks_for(form: Form, request: RunRequest) -> bool:
    """Whether a form makes a request, whatever is to become of a file that is there."""
    try:
        asked = request_of(form)
    except WrongFieldError:
        return False
    return _whatever_is_there(asked) == _whatever_is_there(request)


def _whatever_is_there(request: RunRequest) -> RunRequest:
    run = None if request.profile is None else replace(request.profile, resume=False, force=False)
    return msgspec.structs.replace(request, profile=run, estimate_force=False)


def of_request(form: Form, request: RunRequest) -> Form:
    """The form with what a request does with a file that is there."""
    run = request.profile
    resumes = run is not None and run.resume
    replaces = request.estimate_force if run is None else run.force
    return filled(form, "existing", GO_ON if resumes else REPLACE if replaces else KEEP)
