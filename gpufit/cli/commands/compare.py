"""Explain the difference between two profiles, part by part: model, precision and environment before the device.

Where both ran the cell that is compared, its bytes are as they were; else they are predicted, and a difference counts
where the intervals exclude each other.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpufit.cli.arguments import add_document, add_scenario, chosen_format
from gpufit.cli.diagnostics import ExitCode, say
from gpufit.cli.engines import add_engine_options, check_engine_options, refuse_model_options, transformers_request
from gpufit.cli.output import write_document
from gpufit.errors import UsageError
from gpufit.files import refuse_own_input
from gpufit.report.registry import COMPARE_FORMATS, load_compare_format

if TYPE_CHECKING:
    from gpufit.memory.terms import Shape
    from gpufit.profile.record import Profile


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `gpufit compare`."""
    parser.add_argument(
        "a",
        metavar="A",
        help="a profile, or a model (directory, config.json, .gguf, hub id), which is estimated first",
    )
    parser.add_argument("b", metavar="B", help="the other one; differences are B less A")
    largest = "that of the largest cell both ran, else of the largest shape both answer for"
    add_scenario(parser, largest, "the same", "the same; of two models with --context 1, as gpufit fit has it")
    add_engine_options(parser.add_argument_group("for a model in place of a profile"), starts=False)
    add_document(parser, COMPARE_FORMATS)


def run(arguments: argparse.Namespace) -> int:
    """Compare and render; any answer is status 0."""
    from gpufit import flows

    form = load_compare_format(chosen_format(arguments))
    where = (arguments.a, arguments.b)
    refuse_model_options(arguments, where)
    a, b = _profiles(arguments, where)
    document = flows.compare(a, b, where, _shape(arguments, a, b))
    refuse_own_input(arguments.output, where)
    write_document(form.render_compare(document), form.BINARY, arguments.output)
    if arguments.output:
        say(f"wrote {arguments.output}")
    return ExitCode.ANSWERED


def _profiles(arguments: argparse.Namespace, where: tuple[str, str]) -> tuple[Profile, Profile]:
    """Both, those that are models estimated at the shape of the other one."""
    from gpufit import flows

    read = [None if flows.names_model(one) else flows.load_named_profile(Path(one)) for one in where]
    starts = [_start(one, profile) for one, profile in zip(where, read, strict=True) if profile is not None]
    start = starts[0] if starts else None
    a, b = (
        _estimated(arguments, one, start) if profile is None else profile
        for one, profile in zip(where, read, strict=True)
    )
    return a, b


def _start(where: str, profile: Profile) -> Shape:
    """The largest shape that a profile ran. Raises UsageError, naming it, where it ran none."""
    from gpufit.flows import default_shape

    try:
        return default_shape(profile)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error


def _estimated(arguments: argparse.Namespace, model: str, start: Shape | None) -> Profile:
    """A computed profile of a model; that nothing was measured is said."""
    from gpufit import flows

    check_engine_options(arguments)
    if arguments.engine != "transformers":
        raise UsageError(
            f"a start of {arguments.engine} is no profile, and {model} cannot be compared as one: leave --engine out, "
            f"or see gpufit fit {model} --engine {arguments.engine}"
        )
    request = transformers_request(arguments, model)
    if start is None and arguments.context is not None:
        # As `gpufit fit` has it: what was asked for is all that a sequence holds.
        request = replace(request, usual_new_tokens=1)
    if start is not None:
        request = replace(
            request,
            context_tokens=request.context_tokens or start.context_tokens,
            concurrency=arguments.concurrency or start.concurrency,
            usual_new_tokens=max(start.new_tokens, 1),
        )
    say(f"{model} is a model: estimated first, nothing was measured (gpufit profile measures)")
    return flows.estimate(request)


def _shape(arguments: argparse.Namespace, a: Profile, b: Profile) -> Shape:
    """What was asked for; what was not given is that of the shape that both can answer for."""
    from gpufit.flows import common_shape
    from gpufit.memory.terms import Shape

    if arguments.new_tokens is not None and not (a.model.generates or b.model.generates):
        raise UsageError(f"{a.model.name} and {b.model.name} are encoders and generate nothing: leave --new-tokens out")
    start = common_shape(a, b)
    return Shape(
        arguments.context or start.context_tokens,
        arguments.new_tokens or start.new_tokens,
        arguments.concurrency or start.concurrency,
    )
