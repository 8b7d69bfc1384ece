"""What docs/questions.md shows is real output, or where the answer is long its beginning."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from model_files import REPOSITORY

PAGE = (REPOSITORY / "docs" / "questions.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```console\n\$ (gpufit \w+ [^\n]+)\n(.*?)\n```", PAGE, re.DOTALL)


@pytest.mark.parametrize(("command", "shown"), EXAMPLES)
def test_an_example_is_how_the_output_begins(
    command: str, shown: str, run_shown: Callable[[str], tuple[int, str]]
) -> None:
    status, printed = run_shown(command)
    assert status == 0
    assert printed.startswith(shown + "\n")


def test_every_command_of_the_page_has_an_example() -> None:
    assert {command.split()[1] for command, _ in EXAMPLES} == {"fit", "compare"}


def test_the_keys_on_the_page_are_those_of_the_document() -> None:
    from gpufit.report.fits_document import CardForAll, FitsDocument, ProfileAnswer

    for record in (FitsDocument, ProfileAnswer, CardForAll):
        for key in record.__struct_fields__:
            assert f'"{key}"' in PAGE, key
