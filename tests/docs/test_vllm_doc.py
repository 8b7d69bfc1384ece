"""What README and docs/vllm.md show of `--engine vllm` is real output."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from model_files import REPOSITORY
from public_models import CONFIGS

from gpufit.cli.main import main

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
    command: str,
    shown: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    (tmp_path / "Qwen3-32B").mkdir()
    (tmp_path / "Qwen3-32B" / "config.json").write_text(json.dumps(CONFIGS["Qwen/Qwen3-32B"]))
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command)[1:]) == 0
    assert capsysbinary.readouterr().out.decode() == shown + "\n"
