"""`gpufit`: parse, run one command, turn errors into one line and an exit status."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from gpufit import __version__
from gpufit.cli import diagnostics
from gpufit.cli.diagnostics import ExitCode
from gpufit.cli.registry import COMMANDS, help_line, load_command
from gpufit.errors import GpufitError, UsageError

_EPILOG = """exit status: 0 answered, 1 answered and nothing fits (verify: not as predicted), 2 usage, 3 unreadable
input, 4 measurement or a step of check failed, 70 a fault of gpufit's own, 130 interrupted. Without a command: opens
the TUI on a terminal, prints this elsewhere."""


class OneLineParser(argparse.ArgumentParser):
    """Reports a bad command line as one of our errors: one line, without the usage text above it. Options are whole: a
    part of a name would mean another option as soon as there are more of them."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """A parser as argparse makes it, without abbreviations."""
        super().__init__(*arguments, **{"allow_abbrev": False} | options)

    def error(self, message: str) -> NoReturn:
        """Raise UsageError with the sentence and where help is."""
        raise UsageError(f"{message} (see {self.prog} --help)")


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = OneLineParser(
        prog="gpufit",
        description="Which GPU card, how many, for how long: answered from a measured run of your model.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"gpufit {__version__}")
    parser.add_argument("--debug", action="store_true", help="show tracebacks")
    verbs = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name in COMMANDS:
        command = load_command(name)
        verb = verbs.add_parser(name, help=help_line(command), description=command.__doc__)
        verb.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help="show tracebacks")
        command.prepare_parser(verb)
    return parser


def main(argv: Sequence[str]) -> int:
    """Run one command line; the result is the exit status. Never raises for bad input."""
    debug = "--debug" in argv
    try:
        return _dispatch(build_parser().parse_args(argv))
    except SystemExit as end:  # --help and --version have printed their text
        return int(end.code or 0)
    except GpufitError as error:
        return diagnostics.report_error(error, debug)
    except KeyboardInterrupt:
        diagnostics.say("gpufit: interrupted")
        return ExitCode.INTERRUPTED
    except Exception as error:  # noqa: BLE001 (the last resort: a bug is one line and a status of its own)
        return diagnostics.report_bug(error, debug)


def _dispatch(arguments: argparse.Namespace) -> int:
    if arguments.command is not None:
        return load_command(arguments.command).run(arguments)
    if diagnostics.has_screen():
        return _dispatch(build_parser().parse_args(["tui"]))
    build_parser().print_help()
    return ExitCode.ANSWERED


def run() -> None:
    """Entry point of the `gpufit` script."""
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    run()
