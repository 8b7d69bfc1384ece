"""Judge a profile against the catalog: which cards fit, what binds, how many lots.

Several profiles and several scenarios are each judged, with a summary of cards that serve every scenario. Exit status 1
when no card fits, neither alone nor several of it; of several questions, when that is so for one of them.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpufit.cli.arguments import add_catalog, add_document, add_scenario, chosen_format
from gpufit.cli.diagnostics import ExitCode, say
from gpufit.cli.engines import (
    add_engine_options,
    check_engine_options,
    refuse_model_options,
    transformers_request,
    vllm_request,
    vllm_scenario_line,
)
from gpufit.cli.held import add_held, held_of, refuse_for_start
from gpufit.cli.offers import add_offers, chosen_offers, say_offers
from gpufit.cli.output import write_document
from gpufit.cli.scenarios import add_scenarios, check_scenarios, first_twice, questions
from gpufit.errors import UsageError
from gpufit.files import refuse_own_input
from gpufit.report.registry import load_format
from gpufit.units import format_tokens

if TYPE_CHECKING:
    from gpufit.catalog.offers import Offers
    from gpufit.catalog.record import Card, Catalog
    from gpufit.memory.held import Held
    from gpufit.memory.terms import Shape
    from gpufit.profile.record import Profile
    from gpufit.report.document import FitDocument


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `gpufit fit`."""
    parser.add_argument(
        "profiles",
        metavar="PROFILE",
        nargs="+",
        help="a profile that `gpufit profile` wrote, or a model (directory, config.json, .gguf, hub id), which is "
        "estimated first; several are each judged at every scenario",
    )
    add_scenario(
        parser,
        "the largest context measured",
        "that of the largest cell measured",
        "1, so that the context is all a sequence holds",
    )
    add_scenarios(parser)
    add_held(parser)
    parser.add_argument(
        "--card",
        "--gpu",
        action="append",
        default=[],
        metavar="CARD",
        help="judge this card only (repeat for more): h100-sxm",
    )
    add_engine_options(parser.add_argument_group("for a model in place of a profile"))
    add_document(parser)
    add_catalog(parser)
    add_offers(parser)


def run(arguments: argparse.Namespace) -> int:
    """Judge and render; the exit status says whether anything fits, at every scenario."""
    from gpufit.catalog.query import find_cards
    from gpufit.catalog.store import load_catalog
    from gpufit.report.fits_document import build_fits_document

    _check(arguments)
    form = load_format(chosen_format(arguments))
    catalog = load_catalog(arguments.catalog)
    cards = tuple(find_cards(catalog, arguments.card))
    judge = Judge(catalog, chosen_offers(arguments, catalog), cards, held_of(arguments.held))
    documents = [one for where in arguments.profiles for one in _answers(arguments, where, judge)]
    refuse_own_input(arguments.output, arguments.profiles)
    say_offers(judge.offers)
    several = len(documents) > 1
    content = form.render_fits(build_fits_document(documents)) if several else form.render_fit(documents[0])
    write_document(content, form.BINARY, arguments.output)
    if arguments.output:
        say(f"wrote {arguments.output}")
    return ExitCode.ANSWERED if all(one.something_fits for one in documents) else ExitCode.NOTHING_FITS


def _check(arguments: argparse.Namespace) -> None:
    """Raise UsageError for questions that contradict each other."""
    check_scenarios(arguments)
    twice = first_twice(os.path.realpath(where) for where in arguments.profiles)
    if twice is not None:
        again = [where for where in arguments.profiles if os.path.realpath(where) == twice][1]
        raise UsageError(f"{again} is given twice; name each profile once")
    refuse_model_options(arguments, arguments.profiles)


@dataclass(frozen=True)
class Judge:
    """What every question of one call is judged by."""

    catalog: Catalog
    offers: Offers
    cards: tuple[Card, ...]
    held: Held


def _answers(arguments: argparse.Namespace, where: str, judge: Judge) -> Iterator[FitDocument]:
    """One profile at every scenario; where there are several questions, an error says which one it is about."""
    from gpufit.report.fits_document import named

    answer = _answerer(arguments, where, judge)
    for name, question in questions(arguments):
        try:
            yield named(answer(question), name)
        except UsageError as error:
            if name is None and len(arguments.profiles) == 1:
                raise
            about = where if name is None else f"scenario {name!r} of {where}"
            raise UsageError(f"{about}: {error}") from error


def _answerer(arguments: argparse.Namespace, where: str, judge: Judge) -> Callable[[argparse.Namespace], FitDocument]:
    """What answers the questions about a profile or a model; that a model was not measured is said."""
    from gpufit import flows

    if not flows.names_model(where):
        profile = flows.load_named_profile(Path(where))
        return lambda question: _judged(profile, where, _shape(question, profile), judge)
    check_engine_options(arguments)
    if arguments.engine == "vllm":
        refuse_for_start(judge.held)
        return lambda question: _started(question, where, judge)
    say_estimated(where)
    return lambda question: _judged_estimate(question, where, judge)


def _judged(profile: Profile, where: str, shape: Shape, judge: Judge) -> FitDocument:
    from gpufit import flows

    return flows.fit(profile, where, shape, judge.catalog, judge.offers, judge.cards, judge.held)


def _judged_estimate(question: argparse.Namespace, model: str, judge: Judge) -> FitDocument:
    profile, shape = estimated(question, model)
    return _judged(profile, model, shape, judge)


def loaded(arguments: argparse.Namespace, where: str) -> tuple[Profile, Shape]:
    """A profile from its file, and the scenario."""
    from gpufit.flows import load_named_profile

    profile = load_named_profile(Path(where))
    return profile, _shape(arguments, profile)


def say_estimated(model: str) -> None:
    """Say that a model was given, of which nothing was measured."""
    say(f"{model} is a model: estimated first, nothing was measured (gpufit profile measures)")


def estimated(arguments: argparse.Namespace, model: str) -> tuple[Profile, Shape]:
    """A computed profile of the model, and the scenario, which is said."""
    from gpufit import flows
    from gpufit.report.run_text import estimate_line

    request = transformers_request(arguments, model)
    if arguments.context is not None:
        # As for a profile: what was asked for is all that a sequence holds.
        request = replace(request, usual_new_tokens=1)
    profile = flows.estimate(request)
    shape = flows.default_shape(profile)
    say(estimate_line(profile, shape))
    return profile, shape


def _started(arguments: argparse.Namespace, model: str, judge: Judge) -> FitDocument:
    """A start of vLLM on each card; that nothing was started is said."""
    from gpufit import flows

    document = flows.start_vllm(vllm_request(arguments, model), judge.catalog, judge.offers, judge.cards)
    say(vllm_scenario_line(document.scenario))
    return document


def _shape(arguments: argparse.Namespace, profile: Profile) -> Shape:
    """The scenario; what was not given comes from the largest measured cell, and is said."""
    from gpufit.flows import default_shape
    from gpufit.memory.terms import Shape

    if arguments.new_tokens is not None and not profile.model.generates:
        raise UsageError(f"{profile.model.name} is an encoder and generates nothing: leave --new-tokens out")
    given = (arguments.context, arguments.concurrency, arguments.new_tokens)
    if None not in given:
        return Shape(arguments.context, arguments.new_tokens, arguments.concurrency)
    start = default_shape(profile)
    # A context alone is all that a sequence holds; only a profile whose cells alone can answer is asked for theirs.
    shortest = start.new_tokens if profile.memory_model is None else min(start.new_tokens, 1)
    new_tokens = arguments.new_tokens or (shortest if arguments.context else start.new_tokens)
    shape = Shape(arguments.context or start.context_tokens, new_tokens, arguments.concurrency or start.concurrency)
    if arguments.context is None or arguments.concurrency is None:
        origin = "the scenario it was computed for" if not profile.cells else "the largest measured cell"
        say(
            f"scenario: context {format_tokens(shape.context_tokens)}, {shape.new_tokens} new tokens, "
            f"{shape.concurrency} at once (what was not given is that of {origin})"
        )
    return shape
