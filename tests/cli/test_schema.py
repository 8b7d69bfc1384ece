"""`gpufit schema`, and that what `gpufit fit --json` prints is valid by it."""

from __future__ import annotations

import json
from pathlib import Path

from builders import make_profile
from conftest import Run
from jsonschema import Draft202012Validator

from gpufit.profile.store import save_profile


def test_what_fit_prints_is_valid_by_what_schema_prints(gpufit: Run, tmp_path: Path) -> None:
    profile = tmp_path / "profile.json"
    save_profile(make_profile(), profile)
    schema = json.loads(gpufit("schema").stdout)
    document = json.loads(gpufit("fit", profile, "--json").stdout)
    assert list(Draft202012Validator(schema).iter_errors(document)) == []
    del document["evidence"]
    assert list(Draft202012Validator(schema).iter_errors(document)) != []


def test_a_profile_s_schema_goes_to_a_file(gpufit: Run, tmp_path: Path) -> None:
    output = tmp_path / "profile.schema.json"
    done = gpufit("schema", "profile", "-o", output)
    assert (done.code, done.stdout, done.error) == (0, "", f"wrote {output}")
    profile = tmp_path / "profile.json"
    save_profile(make_profile(), profile)
    validator = Draft202012Validator(json.loads(output.read_text()))
    assert list(validator.iter_errors(json.loads(profile.read_text()))) == []


def test_another_document_is_refused_with_those_there_are(gpufit: Run) -> None:
    done = gpufit("schema", "order-of-the-garter")
    assert done.code == 2
    assert "'fit'" in done.error
    assert "'profile'" in done.error
