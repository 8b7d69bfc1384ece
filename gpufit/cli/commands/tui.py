"""Open profiles in the terminal interface: every card's bar against its ceiling, context and concurrency by keys."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpufit.cli.arguments import add_catalog
from gpufit.cli.diagnostics import ExitCode, has_screen, say
from gpufit.cli.offers import add_offers
from gpufit.errors import UsageError


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `gpufit tui`."""
    parser.add_argument(
        "profiles", nargs="*", type=Path, metavar="PROFILE", help="profiles to open (default: those in profiles/)"
    )
    add_catalog(parser)
    add_offers(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the interface until it is closed. Raises UsageError where there is no terminal to run it on."""
    if not has_screen():
        raise UsageError(
            "the terminal interface needs a terminal that draws; `gpufit fit PROFILE` prints the same figures"
        )
    from gpufit.tui.run import run_tui

    problem = run_tui(arguments.profiles, arguments.catalog, arguments.offers)
    if problem is not None:
        say(f"the view is not kept: {problem}")
    return ExitCode.ANSWERED
