"""What docs/questions.md shows is real output, or where the answer is long its beginning."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from model_files import REPOSITORY, SMOLLM2, need

from gpufit.cli.main import main

PAGE = (REPOSITORY / "docs" / "questions.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```console\n\$ (gpufit \w+ [^\n]+)\n(.*?)\n```", PAGE, re.DOTALL)


@pytest.mark.parametrize(("command", "shown"), EXAMPLES)
def test_an_example_is_how_the_output_begins(
    command: str,
    shown: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    shutil.copytree(REPOSITORY / "tests" / "facts" / "profiles", tmp_path / "profiles")
    for path in (tmp_path / "profiles" / "compared").glob("*.json"):
        shutil.copy(path, tmp_path / "profiles")
    if "models/" in command:
        need(SMOLLM2)
        (tmp_path / "models").symlink_to(SMOLLM2.parent)
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command)[1:]) == 0
    assert capsysbinary.readouterr().out.decode().startswith(shown + "\n")


def test_every_command_of_the_page_has_an_example() -> None:
    assert {command.split()[1] for command, _ in EXAMPLES} == {"fit", "compare"}


def test_the_keys_on_the_page_are_those_of_the_document() -> None:
    from gpufit.report.fits_document import CardForAll, FitsDocument, ProfileAnswer

    for record in (FitsDocument, ProfileAnswer, CardForAll):
        for key in record.__struct_fields__:
            assert f'"{key}"' in PAGE, key
