"""`gpufit schema`, and that what `gpufit fit --json` prints is valid by it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from builders import make_profile
from conftest import Run
from jsonschema import Draft202012Validator
from model_files import REPOSITORY

from gpufit.profile.store import save_profile
from gpufit.report.schema import DOCUMENTS


def test_what_fit_prints_is_valid_by_what_schema_prints(gpufit: Run, tmp_path: Path) -> None:
    profile = tmp_path / "profile.json"
    save_profile(make_profile(), profile)
    schema = json.loads(gpufit("schema").stdout)
    document = json.loads(gpufit("fit", profile, "--json").stdout)
    assert list(Draft202012Validator(schema).iter_errors(document)) == []
    del document["evidence"]
    assert list(Draft202012Validator(schema).iter_errors(document)) != []


RECORDED = REPOSITORY / "tests" / "facts" / "profiles"
SMOLLM2 = RECORDED / "SmolLM2-135M-Instruct.Q4_1.json"
FLOAT32 = RECORDED / "compared" / "SmolLM2-135M-Instruct.Q4_1.float32.json"


@pytest.mark.parametrize(
    ("document", "arguments"),
    [
        ("fits", ("fit", SMOLLM2, "--scenario", "chat=2kx16+256", "--scenario", "rag=8kx128")),
        ("fits", ("fit", SMOLLM2, FLOAT32, "--card", "l4", "--offers", "public-indicative")),
        ("order", ("order", SMOLLM2, "--card", "b200", "--term", "7", "--inputs", "1000")),
        ("order", ("order", SMOLLM2, "--card", "t4", "--context", "8k", "--concurrency", "4096")),
        ("compare", ("compare", SMOLLM2, FLOAT32)),
        ("compare", ("compare", SMOLLM2, SMOLLM2, "--context", "4k")),
    ],
)
def test_what_each_command_prints_is_valid_by_its_schema_alone(
    gpufit: Run, document: str, arguments: tuple[str, ...]
) -> None:
    done = gpufit(*arguments, "--json")
    assert done.code in (0, 1)
    printed = json.loads(done.stdout)
    schemas = {name: json.loads(gpufit("schema", name).stdout) for name in DOCUMENTS}
    valid = {name for name, schema in schemas.items() if Draft202012Validator(schema).is_valid(printed)}
    assert valid == {document}


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
