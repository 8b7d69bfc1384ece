"""The commands by name; a command's module is imported when it is used, or when all help is shown."""

from __future__ import annotations

import argparse
import importlib
from typing import Protocol

COMMANDS: dict[str, str] = {
    "profile": "gpufit.cli.commands.profile",
    "estimate": "gpufit.cli.commands.estimate",
    "simulate": "gpufit.cli.commands.simulate",
    "fit": "gpufit.cli.commands.fit",
    "order": "gpufit.cli.commands.order",
    "compare": "gpufit.cli.commands.compare",
    "check": "gpufit.cli.commands.check",
    "verify": "gpufit.cli.commands.verify",
    "catalog": "gpufit.cli.commands.catalog",
    "schema": "gpufit.cli.commands.schema",
    "tui": "gpufit.cli.commands.tui",
}
"""Verb -> module, in the order of the help."""


class Command(Protocol):
    """A module that is one verb. Its docstring's first line is its help."""

    def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
        """Add the verb's own arguments."""
        ...

    def run(self, arguments: argparse.Namespace) -> int:
        """Carry it out; the result is the exit status. Errors for the user are raised as GpufitError."""
        ...


def load_command(name: str) -> Command:
    """The module of a verb."""
    module: Command = importlib.import_module(COMMANDS[name])
    return module


def help_line(command: Command) -> str:
    """The first line of a command's docstring, without its full stop."""
    return (command.__doc__ or "").strip().splitlines()[0].rstrip(".")
