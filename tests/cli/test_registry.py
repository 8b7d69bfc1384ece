"""Registry, modules, help and README agree, so that forgetting a step fails at once."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from model_files import REPOSITORY

from gpufit.cli.diagnostics import ExitCode
from gpufit.cli.main import build_parser
from gpufit.cli.registry import COMMANDS, help_line, load_command


def test_every_module_is_a_command_and_every_command_a_module() -> None:
    folder = REPOSITORY / "gpufit" / "cli" / "commands"
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert modules == {name.rsplit(".", 1)[1] for name in COMMANDS.values()}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_help_a_parser_and_a_run(name: str) -> None:
    command = load_command(name)
    assert 10 < len(help_line(command)) < 130
    command.prepare_parser(argparse.ArgumentParser())
    assert callable(command.run)


def test_every_option_has_help() -> None:
    waiting: list[argparse.ArgumentParser] = [build_parser()]
    while waiting:
        parser = waiting.pop()
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                waiting.extend(action.choices.values())
            else:
                assert action.help, (parser.prog, action)


def test_the_readme_names_every_command_and_every_exit_status() -> None:
    readme = (REPOSITORY / "README.md").read_text()
    for name in COMMANDS:
        assert f"gpufit {name}" in readme
    for code in ExitCode:
        assert f"| {code.value} |" in readme


def test_the_readmes_commands_exist_in_the_makefile() -> None:
    makefile = Path(REPOSITORY / "Makefile").read_text()
    for target in ("demo", "test", "check"):
        assert f"\n{target}:" in makefile
