"""Random keys, clicks and sizes never end the interface; `scripts/tui_soak.py` does it for thousands."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from model_files import REPOSITORY

SPEC = importlib.util.spec_from_file_location("tui_soak", REPOSITORY / "scripts" / "tui_soak.py")
assert SPEC is not None
assert SPEC.loader is not None
tui_soak = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(tui_soak)


@pytest.mark.parametrize("seed", [1, 2])
async def test_the_interface_is_alive_at_the_end(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    await tui_soak.soak(tui_soak.PROFILES, 80, seed)


def test_all_keys_are_pressed() -> None:
    assert {"left", "slash", "question_mark", "T", "1", "q"} <= set(tui_soak.keys())
