"""The interface on a real (pseudo) terminal, started as people start it."""

from __future__ import annotations

from pathlib import Path

import pytest
from terminals import interface

from gpufit.tui.paste import BEGIN, END


@pytest.mark.parametrize("arguments", [(), ("tui",)])
def test_without_a_command_the_interface_opens_and_q_ends_it(arguments: tuple[str, ...], tmp_path: Path) -> None:
    with interface(tmp_path, {}, *arguments) as terminal:
        terminal.wait_for("No profile yet")
        terminal.send("q")
        assert terminal.process.wait(timeout=60) == 0


def test_a_paste_with_escapes_in_it_is_no_key(tmp_path: Path) -> None:
    with interface(tmp_path, {}, "tui") as terminal:
        terminal.wait_for("No profile yet")
        terminal.send(f"{BEGIN}red: \x1b[31m q \x1b q \x1b[0m{END}")
        terminal.send("?")
        terminal.wait_for("keys and words")
        assert terminal.process.poll() is None
        terminal.send("\x1b", "q")
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
