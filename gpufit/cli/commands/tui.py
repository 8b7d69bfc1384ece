"""Open profiles in the terminal interface: every card's bar against its ceiling, context and concurrency by keys.

With --web it is served as a web page instead, on this machine alone unless told otherwise.
"""

from __future__ import annotations

import argparse
import os
import sys
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
    web = parser.add_argument_group("on a web page")
    web.add_argument("--web", action="store_true", help="serve the interface to a browser (extra `web`)")
    web.add_argument("--host", metavar="ADDRESS", help="address to serve on (default: 127.0.0.1, this machine alone)")
    web.add_argument("--port", type=port, metavar="N", help="port to serve on (default: 8000)")
    web.add_argument(
        "--open-to-network",
        action="store_true",
        help="let --host be an address that other machines reach: whoever has the printed address then works as you, "
        "with your files, and nothing that is sent is encrypted",
    )


def port(text: str) -> int:
    """A port as argparse takes it."""
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"--port must be a whole number from 1 to 65535, not {text!r}")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Run the interface until it is closed. Raises UsageError where there is no terminal to run it on."""
    if arguments.web:
        return _serve(arguments)
    for name in ("host", "port", "open_to_network"):
        if getattr(arguments, name):
            raise UsageError(f"--{name.replace('_', '-')} is for a web page: add --web")
    if not (has_screen() or _drawn_elsewhere()):
        raise UsageError(
            "the terminal interface needs a terminal that draws; `gpufit fit PROFILE` prints the same figures"
        )
    from gpufit.tui.endings import exit_status
    from gpufit.tui.run import run_tui

    left = run_tui(arguments.profiles, arguments.catalog, arguments.offers)
    if left.not_kept is not None:
        say(f"the view is not kept: {left.not_kept}")
    if left.signal_number is not None:
        return exit_status(left.signal_number)
    return ExitCode.INTERNAL if left.failed else ExitCode.ANSWERED


def _drawn_elsewhere() -> bool:
    """Whether a server draws on a page what this process sends through a pipe: textual-serve says so by naming a
    driver."""
    return bool(os.environ.get("TEXTUAL_DRIVER"))


def _serve(arguments: argparse.Namespace) -> int:
    """Serve pages until interrupted; what would stop each page is found before the first is opened."""
    try:
        from gpufit.tui import web
    except ImportError as error:
        raise UsageError("--web needs textual-serve: pip install 'gpufit[web]'") from error
    import datetime

    from gpufit.tui.run import load_session

    host = web.check_host(arguments.host or "127.0.0.1", arguments.open_to_network)
    load_session(arguments.profiles, arguments.catalog, arguments.offers, datetime.date.today())
    web.serve(_command(arguments), host, arguments.port or 8000, say)
    return ExitCode.ANSWERED


def _command(arguments: argparse.Namespace) -> str:
    """What a shell runs for a page: the same interface, of the same profiles."""
    words = [sys.executable, "-m", "gpufit", "tui"]
    if arguments.catalog is not None:
        words.append(f"--catalog={arguments.catalog}")
    words += [f"--offers={name}" for name in arguments.offers]
    import shlex

    return shlex.join([*words, "--", *map(str, arguments.profiles)])
