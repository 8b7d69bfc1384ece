"""The interface on a real (pseudo) terminal, started as people start it."""

from __future__ import annotations

from pathlib import Path

import pytest
from terminals import interface


@pytest.mark.parametrize("arguments", [(), ("tui",)])
def test_without_a_command_the_interface_opens_and_q_ends_it(arguments: tuple[str, ...], tmp_path: Path) -> None:
    with interface(tmp_path, {}, *arguments) as terminal:
        terminal.wait_for("No profile yet")
        terminal.send("q")
        assert terminal.process.wait(timeout=60) == 0


@pytest.mark.parametrize(
    ("arguments", "said", "status"), [(("tui",), "gpufit fit PROFILE", 2), ((), "usage: gpufit", 0)]
)
def test_a_terminal_that_can_only_print_is_told_what_prints(
    arguments: tuple[str, ...], said: str, status: int, tmp_path: Path
) -> None:
    with interface(tmp_path, {"TERM": "dumb"}, *arguments) as terminal:
        terminal.wait_for(said)
        assert terminal.process.wait(timeout=60) == status
