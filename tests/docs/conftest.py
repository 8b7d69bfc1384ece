"""A page's command, run where the page's profiles and models stand."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from model_files import REPOSITORY, SMOLLM2, need
from public_models import CONFIGS

from gpufit.cli.main import main


@pytest.fixture
def run_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Callable[[str], tuple[int, str]]:
    """Runs a command as it stands on a page: its exit status, and what it printed."""
    recorded = REPOSITORY / "tests" / "facts" / "profiles"
    shutil.copytree(recorded, tmp_path / "profiles")
    for path in (recorded / "compared").glob("*.json"):
        shutil.copy(path, tmp_path / "profiles")
    (tmp_path / "Qwen3-32B").mkdir()
    (tmp_path / "Qwen3-32B" / "config.json").write_text(json.dumps(CONFIGS["Qwen/Qwen3-32B"]))
    monkeypatch.chdir(tmp_path)

    def run(command: str) -> tuple[int, str]:
        if "models/" in command:
            need(SMOLLM2)
            Path("models").symlink_to(SMOLLM2.parent)
        status = main(shlex.split(command)[1:])
        return status, capsysbinary.readouterr().out.decode()

    return run
