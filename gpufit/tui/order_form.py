"""What an order is asked for beside card and scenario, as fields to type in. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gpufit.advice.pieces import PIECE_INPUTS
from gpufit.advice.plan import Ask, AskError
from gpufit.advice.terms import BUSY_SHARE, CHECKS_HOURS, EXPORT_HOURS, PURPOSES, SETUP_HOURS, Overheads, Volume
from gpufit.catalog.offers import TERMS
from gpufit.errors import UsageError
from gpufit.units import parse_amount, parse_hours, parse_share


def parse_term(text: str, what: str) -> int:
    """Days of a term that sellers price. Raises UsageError, naming `what`, for anything else."""
    known = {str(days): days for days in TERMS}
    if text.strip() not in known:
        raise UsageError(f"{what} must be {', '.join(map(str, TERMS[:-1]))} or {TERMS[-1]} days, not {text!r}")
    return known[text.strip()]


@dataclass(frozen=True)
class Field:
    """One line of the form; the names are those of `gpufit order`'s options."""

    name: str
    title: str
    read: Callable[[str, str], float]
    """From what was typed, and the title for the error; hours and shares are not whole."""
    usual: str
    """What stands there at first; empty: it may be left out."""
    hint: str
    """What an empty field comes to, or what the value is for."""


FIELDS: tuple[Field, ...] = (
    Field("term", "term, days", parse_term, "", "the shortest that holds the work"),
    Field("inputs", "inputs", parse_amount, "", "to work off in all"),
    Field("tokens", "tokens", parse_amount, "", "to generate in all"),
    Field("workers", "workers", parse_amount, "", "as many as are needed"),
    Field("piece-inputs", "inputs a piece", parse_amount, str(PIECE_INPUTS), "of a worker's output"),
    Field("setup-hours", "set-up, hours", parse_hours, f"{SETUP_HOURS:g}", "installing, fetching weights, checks"),
    Field("checks-hours", "checks, hours", parse_hours, f"{CHECKS_HOURS:g}", "confirming that the job is complete"),
    Field("export-hours", "export, hours", parse_hours, f"{EXPORT_HOURS:g}", "taking results away"),
    Field("busy-share", "busy share", parse_share, f"{BUSY_SHARE:g}", "of its hours in which a worker computes"),
)
"""Top to bottom. What stands there at first are assumptions, and the order says so."""


def first_texts(term_days: int) -> dict[str, str]:
    """What the form begins with."""
    return {one.name: one.usual for one in FIELDS} | {"term": str(term_days)}


def read_ask(texts: Mapping[str, str]) -> Ask:
    """What was typed, by the names of the fields; empty fields are as nothing was asked. Raises AskError, naming the
    field, for what is not of its kind."""
    found = {one.name: _read(one, texts[one.name]) for one in FIELDS if texts.get(one.name, "").strip()}

    def whole(name: str) -> int | None:
        return None if name not in found else int(found[name])

    return Ask(
        term_days=whole("term"),
        volume=Volume(whole("inputs"), whole("tokens")),
        workers=whole("workers"),
        piece_inputs=whole("piece-inputs") or PIECE_INPUTS,
        overheads=Overheads(
            setup_hours=found.get("setup-hours", SETUP_HOURS),
            checks_hours=found.get("checks-hours", CHECKS_HOURS),
            export_hours=found.get("export-hours", EXPORT_HOURS),
            busy_share=found.get("busy-share", BUSY_SHARE),
        ),
    )


def _read(field: Field, text: str) -> float:
    try:
        return field.read(text, field.title)
    except UsageError as error:
        raise AskError(str(error), field.name) from error


_TITLES = {f"--{one.name}": one.title for one in FIELDS} | {"--concurrency": "at once", "--arrangement": "taken as"}
"""Options of the command line -> what stands before the same on screen: a field, a slider of the question, a column."""
_OPTION = re.compile("|".join(rf"{option}(?![-\w])" for option in _TITLES))


def in_fields(words: str) -> str:
    """What `gpufit order` says, with its options by the names that they have on screen."""
    return _OPTION.sub(lambda found: f"'{_TITLES[found[0]]}'", words)


TERM_WORDS = "; ".join(f"{days}: {words}" for days, words in PURPOSES.items())
"""What each term is for."""
