"""What the TUI's tests share: documents of the shipped catalog, rows with chosen figures, the screen as text."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from typing import Any

import msgspec
from builders import TODAY, make_profile
from rich.console import Console, RenderableType
from textual.app import App

from gpufit import flows
from gpufit.advice.verdict import Verdict
from gpufit.catalog.store import load_folders
from gpufit.datadir import shipped_catalog_dir
from gpufit.memory.terms import Shape
from gpufit.profile.evidence import Evidence
from gpufit.profile.peaks import Parts, Phase
from gpufit.profile.record import Profile
from gpufit.report.document import BindingFigures, CardRow, FitDocument
from gpufit.tui.app import GpufitApp
from gpufit.tui.loaded import LoadedProfile
from gpufit.tui.screens.cards import CardsScreen
from gpufit.tui.session import Session

CATALOG = load_folders([shipped_catalog_dir()])
OFFERS = CATALOG.offers(TODAY)
GB = 10**9


def make_row(capacity: int | None = 80 * GB, need: int = 40 * GB, spread: int = 2 * GB, **changes: Any) -> CardRow:
    """A row whose need is mostly weights and cache, with an interval of `spread` either way."""
    lower, upper = max(need - spread, 0), need + spread
    context = need // 20
    cache = (need - context) // 4
    parts = Parts(weights_bytes=need - context - cache, kv_cache_bytes=cache)
    row = CardRow(
        card="test-80gb",
        name="Test 80 GB",
        verdict=verdict_of(capacity, lower, upper),
        capacity_bytes=capacity,
        need_bytes=need,
        need_lower_bytes=lower,
        need_upper_bytes=upper,
        headroom_bytes=None if capacity is None else capacity - need,
        headroom_lower_bytes=None if capacity is None else capacity - upper,
        headroom_upper_bytes=None if capacity is None else capacity - lower,
        binding=BindingFigures(
            phase=Phase.PREFILL,
            part="weights_bytes",
            part_bytes=parts.weights_bytes,
            short_bytes=0 if capacity is None else max(need - capacity, 0),
        ),
        parts=parts,
        context_bytes=context,
        other_bytes=0,
        max_concurrency=4,
        max_context_tokens=4096,
        max_context_is_position_limit=False,
        arrangement="single",
        cards_needed=1,
        lot_size=1,
        lots=1,
        idle_cards=0,
        prices=(),
        remarks=(),
        evidence=Evidence.SCALED,
    )
    return msgspec.structs.replace(row, **changes)


def verdict_of(capacity: int | None, lower: int, upper: int) -> Verdict:
    if capacity is None:
        return Verdict.UNKNOWN
    if upper <= capacity:
        return Verdict.FITS
    return Verdict.TOO_CLOSE if lower <= capacity else Verdict.DOES_NOT_FIT


def make_loaded(profile: Profile | None = None, where: str = "profiles/tiny.json") -> LoadedProfile:
    profile = profile or make_profile()
    return LoadedProfile(profile, where, flows.default_shape(profile))


def make_document(shape: Shape | None = None, profile: Profile | None = None) -> FitDocument:
    loaded = make_loaded(profile)
    return flows.fit(loaded.profile, loaded.where, shape or loaded.start, CATALOG, OFFERS)


def make_session(*profiles: LoadedProfile, problems: Sequence[str] = ()) -> Session:
    return Session(profiles or (make_loaded(),), CATALOG, OFFERS, problems)


def make_app(*profiles: LoadedProfile, problems: Sequence[str] = ()) -> GpufitApp:
    return GpufitApp(make_session(*profiles, problems=problems))


def named(name: str, **changes: Any) -> LoadedProfile:
    """The default profile under another model's name."""
    profile = make_profile()
    model = msgspec.structs.replace(profile.model, name=name, **changes)
    return make_loaded(msgspec.structs.replace(profile, model=model), f"profiles/{name}.json")


def cards_screen(app: App[None]) -> CardsScreen:
    screen = app.screen
    assert isinstance(screen, CardsScreen)
    return screen


def screen_lines(app: App[None]) -> list[str]:
    """What stands on the terminal, a string a line."""
    return [strip.text for strip in app.screen._compositor.render_strips()]


def screen_text(app: App[None]) -> str:
    """The same with every run of blanks as one, so that wrapped sentences can be looked for."""
    return " ".join(" ".join(screen_lines(app)).split())


def plain(renderable: RenderableType, width: int = 100) -> str:
    """A renderable as text."""
    console = Console(file=StringIO(), width=width, color_system=None)
    console.print(renderable)
    file = console.file
    assert isinstance(file, StringIO)
    return file.getvalue()
