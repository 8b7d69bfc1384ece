"""Whether a model that is here is the one that a profile is of."""

from __future__ import annotations

from pathlib import Path

from gpufit.errors import UnreadableInputError, UsageError
from gpufit.files import exists
from gpufit.profile.evidence import Evidence
from gpufit.profile.record import Profile
from gpufit.sources.estimate.model import headers_fingerprint
from gpufit.sources.model_files import folder
from gpufit.sources.model_files.find import find_model, fingerprint
from gpufit.sources.model_files.headers import open_headers


def model_of(profile: Profile, where: str, named: str | None) -> tuple[str, str | None]:
    """(text that leads to the model of a profile, its revision): `named`, or where the profile says it was.

    `where` is the profile's file. Raises UnreadableInputError where there is no model, UsageError where it is another.
    """
    model = profile.model
    text, revision = (model.source, model.revision) if named is None else (named, None)
    if named is None and revision is None and not exists(Path(text)):
        raise UnreadableInputError(
            f"{where} is of {model.name}, read from {text}, which is not here; say where it is: --model MODEL"
        )
    try:
        found = _fingerprints(profile, text, revision)
    except UnreadableInputError as error:
        if named is not None:
            raise
        raise UnreadableInputError(
            f"{where} is of {model.name}, read from {text}, which cannot be run ({error}); say where it is: --model "
            "MODEL"
        ) from error
    if model.fingerprint not in found:
        raise UsageError(
            f"{text} is not the model that {where} is of ({model.name}, fingerprint {model.fingerprint[:12]}): other "
            "files, or changed since; give that one with --model, or profile this one anew"
        )
    return text, revision


def _fingerprints(profile: Profile, text: str, revision: str | None) -> set[str]:
    """What a profile would call this model: one that was computed goes by the headers, any that knew nothing but a
    config by that."""
    files = find_model(text, revision)
    if profile.evidence is Evidence.COMPUTED:
        headers = open_headers(text, revision)
        return {headers_fingerprint(headers.config, headers.tensors), headers_fingerprint(headers.config, ())}
    config = files.path / folder.CONFIG
    return {files.fingerprint, *([] if files.is_gguf else [fingerprint((config,))])}
