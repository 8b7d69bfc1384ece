"""What docs/checking.md shows is how real runs were recorded and are rendered, and its figures are the code's."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import msgspec
import pytest
from model_files import REPOSITORY

from gpufit.cli.main import build_parser
from gpufit.memory.here import REPEAT_ERROR, REPEAT_LEAST_BYTES
from gpufit.profile.checked import StepName
from gpufit.report.check_document import CheckDocument
from gpufit.report.check_formats.table import render_check
from gpufit.report.verify_document import VerifyDocument
from gpufit.report.verify_formats.table import render_verify

PAGE = (REPOSITORY / "docs" / "checking.md").read_text(encoding="utf-8")
EXAMPLES = dict(re.findall(r"```console\n\$ (gpufit [^\n]+)\n(.*?)\n```", PAGE, re.DOTALL))

RECORDED = {
    "gpufit check models/SmolLM2-135M-Instruct.Q4_1.gguf": "check",
    "gpufit check models/SmolLM2-135M-Instruct.Q4_1.gguf --memory-limit 200MiB": "check-failed",
    "gpufit verify profiles/SmolLM2-135M-Instruct.Q4_1.json": "verify",
    "gpufit verify profiles/computed.json": "verify-computed",
    "gpufit verify profiles/SmolLM2-135M-Instruct.Q4_1.json --as t4 --cell 512x2": "verify-as",
}
"""Command: the document that it wrote with --json, in tests/facts/checks."""


def rendered(name: str) -> bytes:
    written = (REPOSITORY / "tests" / "facts" / "checks" / f"{name}.json").read_bytes()
    if name.startswith("check"):
        return render_check(msgspec.json.decode(written, type=CheckDocument))
    return render_verify(msgspec.json.decode(written, type=VerifyDocument))


def test_every_example_has_its_recording() -> None:
    assert set(EXAMPLES) == set(RECORDED)


@pytest.mark.parametrize("command", RECORDED)
def test_an_example_is_what_a_real_run_came_to(command: str) -> None:
    build_parser().parse_args(shlex.split(command)[1:])
    assert EXAMPLES[command] + "\n" == rendered(RECORDED[command]).decode()


def test_every_step_stands_there_in_its_order() -> None:
    section = PAGE.split("| step | does |")[1].split("\n\n")[0]
    assert re.findall(r"^\| ([a-z ]+) \|", section, re.MULTILINE) == [step.words for step in StepName]


def test_the_interval_of_a_single_figure_is_the_codes() -> None:
    assert (REPEAT_ERROR, REPEAT_LEAST_BYTES) == (0.02, 2**20)
    assert "2 % either way count as inside, and never less than 1 MiB" in " ".join(PAGE.split())


def test_links_lead_somewhere() -> None:
    for file, anchor in re.findall(r"\]\((\w+\.md)#([a-z-]+)\)", PAGE):
        assert anchor in anchors(REPOSITORY / "docs" / file), (file, anchor)


def anchors(path: Path) -> set[str]:
    headings = (line.lstrip("# ") for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#"))
    return {heading.lower().replace(" ", "-") for heading in headings}
