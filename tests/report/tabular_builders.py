"""Reports with tables of the default profile, whose bytes are arithmetic, at four sequences of 512 tokens."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import msgspec
import openpyxl
from builders import TODAY, make_card, make_cell, make_layout, make_memory_model, make_offers, make_profile
from report_readers import Page

from gpufit import flows
from gpufit.advice.curve import Axis
from gpufit.catalog.record import Catalog
from gpufit.flows_curve import curve, growth, precision, times
from gpufit.memory.held import Held
from gpufit.memory.terms import Shape
from gpufit.profile.cells import Cell, OutOfMemory
from gpufit.profile.peaks import END_OF_PHASE
from gpufit.profile.record import Profile
from gpufit.report.curve_table import curve_report
from gpufit.report.document import FitDocument
from gpufit.report.growth_table import growth_report
from gpufit.report.precision_table import precision_report
from gpufit.report.profiles import Listed, build_profiles_document
from gpufit.report.profiles_table import profiles_report
from gpufit.report.registry import load_tabular_format
from gpufit.report.tabular import TabularReport
from gpufit.report.times_table import times_report

SHAPE = Shape(512, 4, 4)
CATALOG = Catalog(cards=(make_card("small-2gb", 2.0), make_card("large-80gb", 80.0), make_card("unknown", None)))

PREFILL = 256_004_000 + 1_000_000 + 4 * 100_000 + 2048 * 25_016
"""Allocated at its peak: weights and buffers, fixed temporaries, logits, and 25,016 B a token."""
LOAD = 256_004_000 + 500_000


def swept() -> Profile:
    """The default profile with moments at the end of each phase, a layout, and a cell that ran out of memory."""
    model = make_memory_model()
    phases = tuple(
        msgspec.structs.replace(one, moments=(*one.moments, msgspec.structs.replace(one.moments[0], site=END_OF_PHASE)))
        for one in model.phases
    )
    profile = make_profile(memory_model=msgspec.structs.replace(model, phases=phases), layout=make_layout())
    out = Cell(context_tokens=2048, new_tokens=4, concurrency=4, outcome=OutOfMemory(phase=None, message="killed"))
    return msgspec.structs.replace(profile, cells=(*profile.cells, out))


def answer(profile: Profile, held: Held | None = None) -> FitDocument:
    return flows.judge_cards(profile, "p.json", SHAPE, CATALOG, make_offers(today=TODAY), CATALOG.cards, held)


def curve_of(axis: Axis = Axis.CONTEXT, selected: str = "small-2gb", profile: Profile | None = None) -> TabularReport:
    profile = profile or swept()
    document = curve(profile, answer(profile), axis, CATALOG)
    return curve_report(document, document.cards, selected)


def growth_of(profile: Profile | None = None) -> TabularReport:
    profile = profile or swept()
    return growth_report(growth(profile, answer(profile)))


def precision_of(held: Held | None = None) -> TabularReport:
    return precision_report(precision(swept(), answer(swept(), held), held))


def times_of() -> TabularReport:
    return times_report(times(swept(), "p.json"))


def profiles_of() -> TabularReport:
    begun = make_profile(cells=(), memory_model=None, complete=False)
    return profiles_report(
        build_profiles_document([Listed(swept(), "p.json", SHAPE), Listed(begun, "=begun.json", None, "no cell yet")])
    )


REPORTS = {
    "curve": curve_of,
    "growth": growth_of,
    "precision": precision_of,
    "times": times_of,
    "profiles": profiles_of,
}
"""What makes a report of each kind."""


def bare() -> Profile:
    """A profile that answers only for the two cells it ran."""
    return make_profile(memory_model=None, cells=(make_cell(128, 4), make_cell(512, 4)))


def as_json(report: TabularReport) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(load_tabular_format("json").render_tables(report))
    return found


def as_csv(report: TabularReport) -> list[dict[str, str]]:
    text = load_tabular_format("csv").render_tables(report).decode()
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def as_workbook(report: TabularReport) -> Any:
    return openpyxl.load_workbook(io.BytesIO(load_tabular_format("xlsx").render_tables(report)))


def as_page(report: TabularReport) -> Page:
    return Page.read(load_tabular_format("html").render_tables(report).decode())
