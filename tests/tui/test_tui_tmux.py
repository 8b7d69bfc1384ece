"""Every screen on a terminal that is none of ours: under tmux, at three sizes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from model_files import REPOSITORY

SIZES = ("80x24", "120x40", "200x60")


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_every_screen_under_tmux() -> None:
    done = subprocess.run(
        [REPOSITORY / "scripts" / "tui-tmux"],
        env=os.environ | {"PYTHON": sys.executable, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [f"tui-tmux: {size}, every screen as it should be" for size in SIZES]
