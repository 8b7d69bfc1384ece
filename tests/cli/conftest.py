"""Running the command as a user does, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from gpufit.profile.cells import Cell, Measured


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    stdout: str
    stderr: str

    @property
    def error(self) -> str:
        """The one line of an error."""
        lines = self.stderr.splitlines()
        assert len(lines) == 1, self.stderr
        return lines[0]


Run = Callable[..., Done]


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "gpufit", *map(str, arguments)]


def environment(home: Path) -> dict[str, str]:
    variables = {name: str(home) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")}
    return os.environ | variables | {"HF_HUB_OFFLINE": "1", "COLUMNS": "110", "NO_COLOR": "1"}


def without_moments(cells: Iterable[Cell]) -> list[Cell]:
    """Cells as far as no run changes them once they have ended: a finished profile drops the lesser moments."""
    kept = []
    for cell in cells:
        outcome = cell.outcome
        if isinstance(outcome, Measured):
            phases = tuple(msgspec.structs.replace(peak, moments=(), moments_left_out=0) for peak in outcome.phases)
            outcome = msgspec.structs.replace(outcome, phases=phases)
        kept.append(msgspec.structs.replace(cell, outcome=outcome))
    return kept


@pytest.fixture(scope="session")
def gpufit(tmp_path_factory: pytest.TempPathFactory, model_cache: Path) -> Run:
    """Run `gpufit` with arguments, in a folder of its own unless `cwd` says otherwise."""
    home = tmp_path_factory.mktemp("gpufit-home")

    def run(*arguments: str | Path, cwd: Path | None = None) -> Done:
        variables = environment(home) | {"XDG_CACHE_HOME": str(model_cache)}
        done = subprocess.run(
            command(*arguments), cwd=cwd or home, env=variables, capture_output=True, text=True, timeout=600
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def llama_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from model_files import save_llama

    return save_llama(tmp_path_factory.mktemp("models") / "tiny-llama")


@pytest.fixture(scope="session")
def llama_profile(gpufit: Run, llama_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real profile of the tiny Llama: two contexts at two concurrencies."""
    path = tmp_path_factory.mktemp("profiles") / "tiny-llama.json"
    done = gpufit("profile", llama_dir, "-o", path, "--context", "32,128", "--concurrency", "1,3", "--new-tokens", "4")
    assert done.code == 0, done.stderr
    return path
