"""The screen of profiles: what a line and the details say, and every key."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import msgspec
import pytest
from builders import make_cell, make_profile
from public_models import CONFIGS
from run_screens import text_of
from tui_builders import CATALOG, OFFERS, make_app, make_loaded, named, plain, screen_lines, screen_text

from gpufit import flows
from gpufit.errors import GpufitError
from gpufit.profile.cells import Cell, Failed, OutOfMemory, Skipped
from gpufit.profile.evidence import Evidence
from gpufit.profile.peaks import Phase
from gpufit.profile.record import Profile
from gpufit.profile.store import save_profile
from gpufit.report.profiles import Listed, ProfileRow, build_profiles_document
from gpufit.report.profiles_text import cell_signs, cell_words
from gpufit.tui.app import GpufitApp
from gpufit.tui.loaded import LoadedProfile, UnfinishedProfile, profile_named
from gpufit.tui.renderables import listed
from gpufit.tui.renderables.cards import POINTER
from gpufit.tui.renderables.profiles import COLUMNS, Entry, details, entries, title
from gpufit.tui.screens.cards import CardsScreen
from gpufit.tui.screens.compare import CompareScreen
from gpufit.tui.screens.profiles import PROMPT, ProfilesScreen
from gpufit.tui.session import Session

SMALL, WIDE = (80, 24), (160, 48)
WHY = "the profile has no measured cell; gpufit profile --resume finishes it"


def ended(outcome: OutOfMemory | Failed | Skipped, context: int) -> Cell:
    return Cell(context_tokens=context, new_tokens=4, concurrency=1, outcome=outcome)


def swept() -> Profile:
    """Two cells ran, two ran out of memory, one failed, one was left out."""
    oom = OutOfMemory(phase=Phase.PREFILL, message="CUDA out of memory")
    cells = (
        make_cell(128),
        make_cell(512),
        ended(oom, 1024),
        ended(oom, 2048),
        ended(Failed(error="no kernel"), 4096),
        ended(Skipped(why="above a limit"), 8192),
    )
    return make_profile(cells=cells, complete=False)


def unfinished(where: str = "profiles/begun.json") -> UnfinishedProfile:
    return UnfinishedProfile(make_profile(cells=(), memory_model=None, complete=False), where, WHY)


def row(profile: Profile) -> ProfileRow:
    (found,) = build_profiles_document([Listed(profile, "p.json", None)]).profiles
    return found


def lines(
    found: tuple[LoadedProfile | UnfinishedProfile, ...], marked: tuple[str, ...] = (), opened: int = -1
) -> tuple[Entry, ...]:
    """As the screen makes them."""
    listed_here = [
        Listed(one.profile, one.where, one.start)
        if isinstance(one, LoadedProfile)
        else Listed(one.profile, one.where, None, one.why)
        for one in found
    ]
    return entries(build_profiles_document(listed_here), marked, opened)


def profiles_app(*extra: UnfinishedProfile) -> GpufitApp:
    """Three that can be asked, on a session that looks at the cards."""
    loaded = (named("first"), named("second"), named("third"))
    return GpufitApp(Session(loaded, CATALOG, OFFERS, ["profiles/bad.json: not a profile"], extra))


def selected_line(app: GpufitApp) -> str:
    return next(line for line in screen_lines(app) if line.startswith(f" {POINTER}"))


class TestLines:
    def test_cells_are_counted_by_how_they_ended(self) -> None:
        assert cell_signs(row(swept())) == "✓2 ✗2 !1 -1"
        assert cell_words(row(swept())) == "2 measured, 2 out of memory, 1 failed, 1 skipped"

    def test_what_has_no_cells_says_why(self) -> None:
        computed = make_profile(cells=(), evidence=Evidence.COMPUTED)
        assert (cell_signs(row(computed)), cell_words(row(computed))) == ("rules", "none: it answers by rules")
        begun = row(unfinished().profile)
        assert (cell_signs(begun), cell_words(begun)) == ("none yet", "none yet")

    def test_a_simulated_cell_is_never_called_measured(self) -> None:
        assert cell_words(row(make_profile(evidence=Evidence.SIMULATED))) == "6 simulated"

    def test_a_line_has_evidence_device_day_and_marks(self) -> None:
        rows = lines((make_loaded(swept()), unfinished()), ("profiles/begun.json",), opened=0)
        placed = listed.place(COLUMNS, rows, 150)
        first, second = (listed.line(placed, one, selected=False).plain for one in rows)
        assert first.split()[:5] == ["•", "tiny-llama", "●", "measured", "AMD"]
        for part in ("2026-01-02", "✓2 ✗2 !1 -1 unfinished", "transformers 5.24.0", "profiles/tiny.json"):
            assert part in first
        assert second.split()[:2] == ["A", "tiny-llama"]
        assert "none yet unfinished" in second

    def test_eighty_columns_keep_evidence_device_cells_and_day(self) -> None:
        rows = lines((named("a-model-with-a-name-of-some-length"),), opened=0)
        placed = listed.place(COLUMNS, rows, 76)
        assert listed.heading(placed).plain.split() == ["model", "evidence", "device", "cells", "made"]

    def test_a_cut_name_keeps_the_end_that_tells_it_apart_and_the_file_goes_before_the_engine(self) -> None:
        large, small = (f"meta-llama__Meta-Llama-3.1-{size}-Instruct" for size in ("70B", "8B"))
        rows = lines((named(large), named(small)), opened=0)
        placed = listed.place(COLUMNS, rows, 100)
        assert listed.heading(placed).plain.split() == ["model", "evidence", "device", "cells", "made", "file"]
        texts = [listed.line(placed, one, selected=False).plain for one in rows]
        assert all(f"{size}-Instruct " in text for text, size in zip(texts, ("70B", "8B"), strict=True)), texts
        assert all("…" in text for text in texts)
        assert all(len(text) <= 100 for text in texts)

    def test_an_estimate_that_was_only_opened_says_that_it_is_not_kept(self) -> None:
        (entry,) = lines((make_loaded(where="models/my model"),), opened=0)
        text = " ".join(plain(details(entry, kept=False)).split())
        assert "it is gone on quit" in text
        assert "gpufit estimate 'models/my model' --save profiles/tiny-llama.json" in text
        assert "gone on quit" not in plain(details(entry))

    def test_the_details_hold_what_a_line_cuts(self) -> None:
        text = plain(details(lines((make_loaded(swept()),), opened=0)[0]))
        for part in (
            "profiles/tiny.json",
            "measured, 2026-01-02 03:04 UTC",
            "AMD EPYC, 24.00 GiB",
            "transformers 5.24.0 (sdpa)",
            "LlamaForCausalLM, 128,000,000 parameters, positions to 32k",
            "2 measured, 2 out of memory, 1 failed, 1 skipped",
            "context 512 + 4 new x 1 at once",
            "finding: stored Q4_1, resident float16: dequantised at load",
        ):
            assert part in text

    def test_an_unfinished_one_names_the_command_that_goes_on(self) -> None:
        source = make_profile().model.source
        for evidence, words in ((Evidence.MEASURED, "profile {} -o p.json --resume goes on"),
                                (Evidence.SIMULATED, "simulate {} -o p.json --force makes it anew")):  # fmt: skip
            loaded = make_loaded(make_profile(evidence=evidence, complete=False), "p.json")
            text = " ".join(plain(details(lines((loaded,), opened=0)[0]), 200).split())
            assert "unfinished gpufit " + words.format(shlex.quote(source)) in text
        assert "unfinished" not in plain(details(lines((make_loaded(),), opened=0)[0]))

    def test_what_cannot_answer_says_so(self) -> None:
        assert WHY in " ".join(plain(details(lines((unfinished(),))[0])).split())

    def test_the_title_counts(self) -> None:
        assert title(1, 0, 0).plain == "1 profile"
        assert title(3, 1, 0).plain == "3 profiles, 1 of them with nothing to answer from yet"
        assert "= compares them" in title(3, 0, 2).plain


class TestKeys:
    @pytest.mark.parametrize("size", [SMALL, WIDE, (60, 20), (200, 60)])
    async def test_lists_all_the_unfinished_last_and_what_cannot_be_read(self, size: tuple[int, int]) -> None:
        app = profiles_app(unfinished())
        async with app.run_test(size=size) as pilot:
            await pilot.press("1")
            assert isinstance(app.screen, ProfilesScreen)
            text = screen_text(app)
            assert text.index("first") < text.index("second") < text.index("third") < text.index("tiny-llama")
            assert "4 profiles, 1 of them" in text
            assert "! profiles/bad.json: not a profile" in text
            assert {len(line) for line in screen_lines(app)} == {size[0]}

    async def test_moves(self) -> None:
        app = profiles_app(unfinished())
        moves = {"down": "second", "j": "third", "up": "second", "k": "first", "end": "tiny", "home": "first"}
        async with app.run_test(size=SMALL) as pilot:
            await pilot.press("1")
            for key, name in (*moves.items(), ("pagedown", "tiny"), ("pageup", "first")):
                await pilot.press(key)
                assert name in selected_line(app)

    async def test_enter_opens_for_every_screen(self) -> None:
        app = profiles_app()
        async with app.run_test(size=SMALL) as pilot:
            await pilot.press("1", "down", "enter")
            assert isinstance(app.screen, CardsScreen)
            assert "second · transformers" in screen_text(app)
            await pilot.press("1")
            assert " • " in selected_line(app)

    async def test_what_cannot_answer_is_not_opened(self) -> None:
        app = profiles_app(unfinished())
        async with app.run_test(size=SMALL) as pilot:
            await pilot.press("1", "end", "enter")
            assert isinstance(app.screen, ProfilesScreen)
            assert WHY in screen_text(app)
            assert app.session.state.profile == 0

    async def test_marks_and_compares(self) -> None:
        app = profiles_app()
        async with app.run_test(size=WIDE) as pilot:
            await pilot.press("1", "down", "space", "down", "space")
            assert "B third" in " ".join(selected_line(app).split())
            assert "two marked: = compares them" in screen_text(app)
            await pilot.press("equals_sign")
            screen = app.screen
            assert isinstance(screen, CompareScreen)
            assert screen.document is not None
            assert (screen.document.a.model.name, screen.document.b.model.name) == ("second", "third")
            await pilot.press("escape", "space")
            assert isinstance(app.screen, ProfilesScreen)
            assert "one marked" in screen_text(app)

    async def test_one_profile_is_not_compared_with_itself(self) -> None:
        app = make_app()
        async with app.run_test(size=SMALL) as pilot:
            await pilot.press("1", "equals_sign")
            assert isinstance(app.screen, ProfilesScreen)
            assert "a comparison is of two" in screen_text(app)
            await pilot.press("escape")
            assert "a comparison is of two" not in screen_text(app)

    async def test_tab_scrolls_the_details_and_goes_back(self) -> None:
        app = profiles_app()
        async with app.run_test(size=SMALL) as pilot:
            await pilot.press("1", "tab", "j", "j")
            await pilot.pause()
            assert app.screen.query_one("#profile").scroll_offset.y == 2
            assert "first" in selected_line(app)
            await pilot.press("tab", "j")
            assert "second" in selected_line(app)

    async def test_a_click_puts_the_cursor_and_a_second_one_opens(self) -> None:
        app = profiles_app()
        async with app.run_test(size=SMALL) as pilot:
            await pilot.press("1")
            await pilot.click("#profiles", offset=(10, 2))
            assert "third" in selected_line(app)
            await pilot.click("#profiles", offset=(10, 2))
            assert isinstance(app.screen, CardsScreen)
            assert "third · transformers" in screen_text(app)


class TestImport:
    async def test_the_prompt_says_what_it_takes_and_the_footer_the_way_back(self) -> None:
        app = make_app(named("one"), named("two"))
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.press("1", "i")
            await pilot.pause()
            assert PROMPT in screen_text(app)
            assert screen_lines(app)[-1].split() == ["esc", "leave"]
            await pilot.press("escape")
            await pilot.pause()
            assert PROMPT not in screen_text(app)
            assert screen_lines(app)[-1].split()[:2] == ["enter", "open"]

    async def test_a_file_is_read_and_opened(self, tmp_path: Path) -> None:
        profile = make_profile()
        other = msgspec.structs.replace(profile, model=msgspec.structs.replace(profile.model, name="other"))
        save_profile(other, tmp_path / "other.json")
        app = profiles_app()
        async with app.run_test(size=WIDE) as pilot:
            await pilot.press("1", "i")
            app.screen.query_one("#prompt").value = str(tmp_path / "other.json")  # type: ignore[attr-defined]
            await pilot.press("enter")
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert "other" in selected_line(app)
            assert " • " in selected_line(app)
            assert len(app.session.profiles) == 4
            assert app.session.document is not None
            assert app.session.document.model.name == "other"

    async def test_the_same_file_again_takes_its_place_and_is_asked_anew(self, tmp_path: Path) -> None:
        where = tmp_path / "grows.json"
        save_profile(make_profile(), where)
        session = Session((named("first"), make_loaded(make_profile(), str(where))), CATALOG, OFFERS)
        before = session.answer(session.state)
        profile = make_profile(created_at="2026-01-02T04:00:00Z")
        renamed = msgspec.structs.replace(profile, model=msgspec.structs.replace(profile.model, name="grown"))
        session.open(make_loaded(renamed, str(where)))
        assert [one.where for one in session.profiles] == ["profiles/first.json", str(where)]
        assert session.state.profile == 1
        assert session.document is not None
        assert session.document.model.name == "grown"
        assert before is not session.answer(session.state)

    async def test_a_model_is_estimated(self, tmp_path: Path) -> None:
        model = tmp_path / "Qwen3-32B"
        model.mkdir()
        (model / "config.json").write_text(json.dumps(CONFIGS["Qwen/Qwen3-32B"]))
        app = GpufitApp(Session((), CATALOG, OFFERS))
        async with app.run_test(size=WIDE) as pilot:
            await pilot.press("1", "i")
            app.screen.query_one("#prompt").value = str(model)  # type: ignore[attr-defined]
            await pilot.press("enter")
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert "Qwen3-32B" in selected_line(app)
            assert "computed" in selected_line(app)
            assert "it is gone on quit; screen 8 (start: estimate)" in text_of(app, "#about")
            assert app.session.profiles[0].start == flows.default_shape(app.session.profiles[0].profile)
            await pilot.press("enter")
            assert "Qwen3-32B · transformers" in screen_text(app)

    @pytest.mark.parametrize(("typed", "said"), [("missing.json", "missing.json: no such file"), ("no/such/x/y", "")])
    async def test_what_cannot_be_read_is_said_and_stays_to_be_mended(self, typed: str, said: str) -> None:
        app = profiles_app()
        async with app.run_test(size=SMALL) as pilot:
            await pilot.press("1", "i")
            app.screen.query_one("#prompt").value = typed  # type: ignore[attr-defined]
            await pilot.press("enter")
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert typed in screen_text(app)
            assert said in screen_text(app)
            assert len(app.session.profiles) == 3
            await pilot.press("escape", "down")
            assert "second" in selected_line(app)

    async def test_a_file_that_only_begins_is_listed(self) -> None:
        session = Session((named("first"),), CATALOG, OFFERS)
        session.open(unfinished())
        session.open(unfinished())
        assert [one.where for one in session.unfinished] == ["profiles/begun.json"]
        session.open(make_loaded(where="profiles/begun.json"))
        assert session.unfinished == ()
        session.open(unfinished())
        assert [one.where for one in session.profiles] == ["profiles/first.json"]


async def test_without_any_profile_it_says_how_to_make_one() -> None:
    app = GpufitApp(Session((), CATALOG, OFFERS))
    async with app.run_test(size=SMALL) as pilot:
        await pilot.press("1")
        assert "gpufit profile MODEL" in screen_text(app)
        assert "i: type a model's name" in screen_text(app)
        await pilot.press("down", "space", "equals_sign", "enter", "escape", "tab", "q")
        await pilot.pause()
        assert not app.is_running


async def test_without_any_profile_the_footer_names_no_key_of_an_answer() -> None:
    app = GpufitApp(Session((), CATALOG, OFFERS))
    async with app.run_test(size=WIDE) as pilot:
        for key in "234567":
            await pilot.press(key)
            await pilot.pause()
            footer = screen_lines(app)[-1].split()
            assert not {"search", "sort", "filter", "details", "context", "reset", "axis", "term"} & {*footer}, key
            assert "quit" in footer
            assert "1 and then i: type a model's name" in screen_text(app)
        app.session.take(named("first"))
        await pilot.press("2")
        await pilot.pause()
        assert {"search", "sort", "filter", "details"} <= {*screen_lines(app)[-1].split()}


@pytest.mark.parametrize("typed", ["x" * 300, f"{'x' * 300}.json", "zero\0.json", "~nobody/p.json"])
def test_what_can_be_no_file_is_an_error_of_its_own(typed: str) -> None:
    with pytest.raises(GpufitError):
        profile_named(typed)
