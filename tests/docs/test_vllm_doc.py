"""What README and docs/vllm.md show of `--engine vllm` is real output."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from model_files import REPOSITORY

EXAMPLES = [
    example
    for page in ("README.md", "docs/vllm.md")
    for example in re.findall(
        r"```console\n\$ (gpufit \w+ Qwen3-32B --engine vllm[^\n]*)\n(.*?)\n```",
        (REPOSITORY / page).read_text(encoding="utf-8"),
        re.DOTALL,
    )
]


def test_there_are_examples_of_both_commands() -> None:
    assert {command.split()[1] for command, _ in EXAMPLES} == {"estimate", "fit"}


@pytest.mark.parametrize(("command", "shown"), EXAMPLES)
def test_an_example_is_what_the_command_prints(
    command: str, shown: str, run_shown: Callable[[str], tuple[int, str]]
) -> None:
    assert run_shown(command) == (0, shown + "\n")
