"""A run that is asked for without options is the run that a request stands for by itself, and help says which it is."""

from __future__ import annotations

import importlib
import re

import pytest

from gpufit.cli.main import build_parser
from gpufit.sources.measure.protocol import Simulation
from gpufit.sources.measure.request import DEFAULT_CELL_SECONDS, DEFAULT_NEW_TOKENS, ProfileRequest
from gpufit.units import parse_counts

REQUESTS = {
    "profile": ProfileRequest(model="m"),
    "simulate": ProfileRequest(model="m", device="cpu", simulation=Simulation()),
}


@pytest.mark.parametrize("command", REQUESTS)
def test_without_options_the_request_is_the_default_one(command: str) -> None:
    module = importlib.import_module(f"gpufit.cli.commands.{command}")
    assert module._request(build_parser().parse_args([command, "m"])) == REQUESTS[command]


@pytest.mark.parametrize("command", REQUESTS)
def test_help_names_what_is_run_where_nothing_is_said(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        build_parser().parse_args([command, "--help"])
    text = " ".join(capsys.readouterr().out.split())

    def default(words: str) -> str:
        found = re.search(rf"{words}.*?\(default: ([\w,]+)", text)
        assert found is not None
        return found[1].rstrip(",")

    request = REQUESTS[command]
    assert parse_counts(default("prompt lengths in tokens"), "") == request.default_contexts
    assert parse_counts(default("sequences at once"), "") == request.default_concurrencies
    assert int(default("tokens to generate")) == DEFAULT_NEW_TOKENS
    assert int(default("give a cell up")) == DEFAULT_CELL_SECONDS
