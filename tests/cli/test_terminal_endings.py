"""However the interface ends on a real terminal, the terminal is as it was, and what was looked at is kept."""

from __future__ import annotations

import json
import signal
import termios
from pathlib import Path

import pytest
from builders import make_profile
from processes import wait_until
from terminals import Terminal, interface

from gpufit.datadir import state_path
from gpufit.profile.store import save_profile

RESTORED = {
    "\x1b[?1049l": "the alternate screen is left",
    "\x1b[?25h": "the cursor is shown",
    "\x1b[?2004l": "pastes come without brackets",
    **{f"\x1b[?{mode}l": f"no mouse is reported in mode {mode}" for mode in (1000, 1003, 1006, 1015)},
}
"""What a terminal is told, of xterm's control sequences (https://invisible-island.net/xterm/ctlseqs/ctlseqs.html)."""

TYPED_INTO = termios.ECHO | termios.ICANON | termios.ISIG


@pytest.fixture
def where(tmp_path: Path) -> Path:
    save_profile(make_profile(), tmp_path / "tiny.json")
    return tmp_path


def is_restored(terminal: Terminal) -> None:
    after = terminal.all_drawn.decode("utf-8", "replace").rpartition("\x1b[?1049h")[2]
    for sequence, what in RESTORED.items():
        assert sequence in after, what
    assert after.rindex("\x1b[?25h") > after.rfind("\x1b[?25l")
    assert "Traceback" not in after
    assert terminal.local_modes() & TYPED_INTO == TYPED_INTO, "it can be typed into again"


def kept_view() -> str:
    view: str = json.loads(state_path().read_text())["view"]
    return view


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_a_signal_closes_it_and_restores_the_terminal(number: signal.Signals, status: int, where: Path) -> None:
    with interface(where, {}, "tui", "tiny.json") as terminal:
        terminal.wait_for("capacity")
        terminal.send("3")
        terminal.wait_for("against tokens of context")
        terminal.process.send_signal(number)
        assert terminal.process.wait(timeout=30) == status
        wait_until(lambda: b"\x1b[?1049l" in terminal.all_drawn, 10, "the alternate screen is left")
        is_restored(terminal)
        assert kept_view() == "Curve"


@pytest.mark.parametrize("hangup", ["heard", "ignored"])
def test_a_terminal_that_is_closed_ends_it_and_the_view_is_kept(hangup: str, where: Path) -> None:
    with interface(where, {}, "tui", "tiny.json", hears_hangup=hangup == "heard") as terminal:
        terminal.wait_for("capacity")
        terminal.send("4")
        terminal.wait_for("how the cache grows")
        terminal.close()
        assert terminal.process.wait(timeout=30) == 129
        assert kept_view() == "Growth"


def test_put_aside_and_taken_up_again(where: Path) -> None:
    with interface(where, {}, "tui", "tiny.json") as terminal:
        terminal.wait_for("capacity")
        terminal.send("\x1a")
        wait_until(lambda: state_of(terminal.process.pid) == "T", 30, "ctrl+z stops it")
        is_restored(terminal)
        terminal.size(80, 24)
        terminal.process.send_signal(signal.SIGCONT)
        terminal.wait_for("\x1b[?1049h")
        terminal.wait_for("capacity")
        assert not terminal.local_modes() & termios.ICANON
        terminal.send("q")
        assert terminal.process.wait(timeout=30) == 0
        is_restored(terminal)


def state_of(pid: int) -> str:
    """The process's state as the kernel names it; T is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
