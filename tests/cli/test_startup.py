"""What each command imports: a name to an answer must not wait for torch, transformers or a terminal framework."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from builders import make_profile

from gpufit.profile.store import save_profile

HEAVY = ("torch", "transformers", "accelerate", "safetensors", "gguf", "scipy", "numpy", "textual", "rich")

HELP_MODULES = 150
"""The budget for `gpufit --help`."""


def modules_after(arguments: list[str]) -> list[str]:
    code = (
        "import json, sys; from gpufit.cli.main import main; "
        f"main({arguments!r}); print('\\n' + json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names: list[str] = json.loads(done.stdout.splitlines()[-1])
    return names


@pytest.fixture
def profile_file(tmp_path: Path) -> Path:
    path = tmp_path / "profile.json"
    save_profile(make_profile(), path)
    return path


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["profile", "--help"], ["catalog", "list"], ["schema"], []]
)
def test_light_commands_import_nothing_heavy(arguments: list[str]) -> None:
    assert not set(HEAVY) & set(modules_after(arguments))


@pytest.mark.parametrize("form", ["table", "json", "csv", "html"])
def test_fit_imports_nothing_heavy(profile_file: Path, form: str) -> None:
    assert not set(HEAVY) & set(modules_after(["fit", str(profile_file), "--format", form]))


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_compare_imports_nothing_heavy(profile_file: Path, form: str) -> None:
    assert not set(HEAVY) & set(modules_after(["compare", str(profile_file), str(profile_file), "--format", form]))


def test_help_stays_within_its_budget_of_modules() -> None:
    assert len(modules_after(["--help"])) <= HELP_MODULES
