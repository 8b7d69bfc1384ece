"""Fixed surroundings for every test: no network, no user's files, no colours, one width."""

from __future__ import annotations

import importlib.util
import os
import signal
from pathlib import Path

import pytest

if importlib.util.find_spec("hypothesis"):  # the tests for a card do without
    import hypothesis

    # How long an example takes says nothing on a machine that does other things, too.
    hypothesis.settings.register_profile("gpufit", deadline=None)
    hypothesis.settings.load_profile("gpufit")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's background job, whose children would not hear it
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"


@pytest.fixture(scope="session")
def model_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache folder for the whole session, so that a GGUF model is converted once."""
    return tmp_path_factory.mktemp("model-cache")


@pytest.fixture(autouse=True)
def fixed_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A home of its own for each test, 110 columns, no colour."""
    home = tmp_path_factory.mktemp("home")
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TZ", "UTC")
