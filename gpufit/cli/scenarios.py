"""`--scenario name=CONTEXTxCONCURRENCY[+NEW]`: several questions in one command."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass

from gpufit.errors import UsageError
from gpufit.units import parse_shape

_FORM = "name=CONTEXTxCONCURRENCY[+NEW] (chat=8kx16+256)"

LONGEST_NAME = 40
"""Characters of a scenario's name: it heads a column."""


@dataclass(frozen=True)
class NamedScenario:
    """One question, as it was given."""

    name: str
    context_tokens: int
    concurrency: int
    new_tokens: int | None
    """Absent: what stands for `--new-tokens` where a context is given."""


def scenario(text: str) -> NamedScenario:
    """Read one scenario, as an argparse type."""
    name, equals, shape = (part.strip() for part in text.partition("="))
    try:
        found = parse_shape(shape, f" of {name!r}")
    except UsageError as error:
        raise argparse.ArgumentTypeError(f"{error}; a scenario is {_FORM}") from error
    if not name or not equals or found is None:
        raise argparse.ArgumentTypeError(f"a scenario is {_FORM}; not {text!r}")
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise argparse.ArgumentTypeError(
            f"a scenario's name is up to {LONGEST_NAME} printable characters; not {name[: LONGEST_NAME + 1]!r}"
        )
    context, concurrency, new = found
    return NamedScenario(name=name, context_tokens=context, concurrency=concurrency, new_tokens=new)


def add_scenarios(parser: argparse.ArgumentParser) -> None:
    """`--scenario`, in place of `--context`, `--concurrency` and `--new-tokens`."""
    parser.add_argument(
        "--scenario",
        dest="scenarios",
        type=scenario,
        action="append",
        default=[],
        metavar="NAME=CONTEXTxCONCURRENCY[+NEW]",
        help="a scenario with a name (repeat for more), each asked of every profile: chat=8kx16+256",
    )


def check_scenarios(arguments: argparse.Namespace) -> None:
    """Raise UsageError for scenarios beside a shape of its own, or two of one name."""
    if not arguments.scenarios:
        return
    for flag in ("context", "concurrency", "new_tokens"):
        if getattr(arguments, flag) is not None:
            raise UsageError(f"--{flag.replace('_', '-')} and --scenario are two ways to ask: give it within {_FORM}")
    twice = first_twice(one.name for one in arguments.scenarios)
    if twice is not None:
        raise UsageError(f"two scenarios are called {twice!r}; give each a name of its own")


def first_twice(names: Iterable[str]) -> str | None:
    """The first name that stands there a second time."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def questions(arguments: argparse.Namespace) -> list[tuple[str | None, argparse.Namespace]]:
    """(name, arguments) of each scenario: the same arguments as if it were asked alone."""
    if not arguments.scenarios:
        return [(None, arguments)]
    return [
        (
            one.name,
            argparse.Namespace(
                **vars(arguments)
                | {"context": one.context_tokens, "concurrency": one.concurrency, "new_tokens": one.new_tokens}
            ),
        )
        for one in arguments.scenarios
    ]
