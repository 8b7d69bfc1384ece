"""Writing what is on show: the same bytes as the command line's, never over a profile, never unasked over a file."""

from __future__ import annotations

import csv
import datetime
import json
import re
from pathlib import Path

import pytest
from builders import make_profile
from textual.pilot import Pilot
from textual.widgets import Input
from tui_builders import CATALOG, OFFERS, make_loaded, named, screen_lines, screen_text

from gpufit import flows
from gpufit.advice.plan import Ask
from gpufit.cli.main import main
from gpufit.errors import UnreadableInputError, UsageError
from gpufit.profile.store import save_profile
from gpufit.report.order_registry import ORDER_EXTENSIONS
from gpufit.report.registry import COMPARE_FORMATS, EXTENSIONS, FORMATS
from gpufit.tui.app import GpufitApp
from gpufit.tui.export import ending_of, of_compare, of_fit, of_order, of_run, with_ending, with_picture, write
from gpufit.tui.run_state import RunState, Stage
from gpufit.tui.runner import Runner
from gpufit.tui.screens.export import ExportScreen
from gpufit.tui.session import Session
from gpufit.tui.state import View, look_at

SMALL, WIDE = (80, 24), (160, 48)
DAY = datetime.date(2026, 11, 30)


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A profile's file, in the folder that is worked in."""
    monkeypatch.chdir(tmp_path)
    save_profile(make_profile(), tmp_path / "p.json")
    return tmp_path / "p.json"


def session_of(where: Path, view: View = View.CARDS) -> Session:
    session = Session((make_loaded(make_profile(), str(where)), named("other")), CATALOG, OFFERS)
    session.go(look_at(session.state, view))
    return session


def read_csv(name: str) -> list[dict[str, str]]:
    with Path(name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


async def done(app: GpufitApp, pilot: Pilot[None]) -> None:
    await app.workers.wait_for_complete()
    await pilot.pause()


def pointed(app: GpufitApp) -> str:
    """The format that the pointer stands at."""
    (line,) = [line for line in screen_lines(app) if "▸ ." in line]
    return line.partition("▸ ")[2].split()[0]


async def test_a_pointer_shows_the_chosen_format_without_colour(where: Path) -> None:
    app = GpufitApp(session_of(where, View.TIME))
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press("e")
        await pilot.pause()
        first = pointed(app)
        await pilot.press("down")
        await pilot.pause()
        assert pointed(app) != first
        assert app.screen.query_one(Input).value.endswith(pointed(app))


class TestDocuments:
    def test_each_kind_has_every_format_of_the_command_line(self, where: Path) -> None:
        profile = make_profile()
        fit = flows.fit(profile, str(where), flows.default_shape(profile), CATALOG, OFFERS)
        compare = flows.compare(profile, profile, (str(where), str(where)), flows.default_shape(profile))
        order = session_of(where).order("l4-24gb", None, Ask(term_days=7))
        assert {EXTENSIONS[one] for one in of_fit(fit).formats} == set(FORMATS)
        assert {EXTENSIONS[one] for one in of_compare(compare).formats} == set(COMPARE_FORMATS)
        assert set(of_order(order).formats) == set(ORDER_EXTENSIONS)
        for made in (of_fit(fit), of_compare(compare), of_order(order)):
            assert all(made.render(ending) for ending in made.formats)
            assert made.inputs[0] == str(where)

    def test_a_name_is_one_that_any_system_takes(self) -> None:
        profile = named("org/Some Model: v1 (b)").profile
        fit = flows.fit(profile, "p.json", flows.default_shape(profile), CATALOG, OFFERS)
        assert of_fit(fit).name == "some-model-v1-b-fit"

    def test_a_picture_can_be_had_of_any_screen(self) -> None:
        made = with_picture(None, "Profiles", "<svg/>")
        assert (made.name, list(made.formats), made.render(".svg")) == ("gpufit-profiles", [".svg"], b"<svg/>")

    @pytest.mark.parametrize(
        ("path", "expected"), [("a.csv", "a.json"), ("a", "a.json"), ("a.b/c", "a.b/c.json"), ("", ".json")]
    )
    def test_another_ending(self, path: str, expected: str) -> None:
        assert with_ending(path, ".json") == expected

    def test_an_ending_that_it_has_not_names_those_it_has(self) -> None:
        made = with_picture(None, "Run", "<svg/>")
        with pytest.raises(UsageError, match=r"x.pdf: cannot tell the format from the extension '.pdf'; use .svg"):
            ending_of(made, "x.pdf")

    def test_a_profile_is_never_written_over(self, where: Path) -> None:
        document = session_of(where).listed()
        assert document is not None
        before = where.read_bytes()
        for named_file in (str(where), "p.json", "./p.json"):
            with pytest.raises(UsageError, match="is the profile itself"):
                write(of_fit(document), named_file)
        assert where.read_bytes() == before

    def test_what_cannot_be_written_is_an_error_of_its_own(self, where: Path) -> None:
        document = session_of(where).listed()
        assert document is not None
        assert write(of_fit(document), "new/a.csv") == "made the folder new, wrote new/a.csv"
        assert write(of_fit(document), "new/a.csv") == "wrote new/a.csv"
        (where.parent / "folder.csv").mkdir()
        with pytest.raises(UnreadableInputError, match="it is a folder"):
            write(of_fit(document), "folder.csv")


class TestKey:
    @pytest.mark.parametrize("ending", ["csv", "json", "html", "md", "txt"])
    async def test_cards_are_written_as_the_command_line_writes_them(self, where: Path, ending: str) -> None:
        assert main(["fit", str(where), "-o", f"cli.{ending}"]) == 0
        app = GpufitApp(session_of(where))
        async with app.run_test(size=SMALL) as pilot:
            await pilot.press("e", "tab")
            app.screen.query_one("#file", Input).value = f"tui.{ending}"
            await pilot.press("enter")
            await done(app, pilot)
            assert not isinstance(app.screen, ExportScreen)
        assert Path(f"tui.{ending}").read_bytes() == Path(f"cli.{ending}").read_bytes()

    async def test_what_is_listed_is_what_is_written(self, where: Path) -> None:
        assert main(["fit", str(where), "--card", "h100-sxm-80gb", "--card", "h100-pcie-80gb", "-o", "cli.json"]) == 0
        app = GpufitApp(session_of(where))
        async with app.run_test(size=SMALL) as pilot:
            await pilot.press("slash", *"h100", "space", *"80gb", "enter")
            assert len(app.session.rows) == 2
            await pilot.press("e", "tab")
            app.screen.query_one("#file", Input).value = "tui.json"
            await pilot.press("enter")
            await done(app, pilot)
        written, printed = (json.loads(Path(name).read_text()) for name in ("tui.json", "cli.json"))
        order = [row["card"] for row in printed["cards"]]
        written["cards"].sort(key=lambda row: order.index(row["card"]))
        assert written == printed

    async def test_keys_choose_the_format(self, where: Path) -> None:
        app = GpufitApp(session_of(where))
        async with app.run_test(size=SMALL) as pilot:
            await pilot.press("e")
            assert "tiny-llama-fit.csv" in screen_text(app)
            assert ".svg a picture of this screen" in screen_text(app)
            assert {len(line) for line in screen_lines(app)} == {80}
            await pilot.press("down")
            assert "tiny-llama-fit.json" in screen_text(app)
            await pilot.press("enter")
            await done(app, pilot)
            assert [one.message for one in app._notifications] == ["wrote tiny-llama-fit.json"]
        assert json.loads(Path("tiny-llama-fit.json").read_text())["model"]["name"] == "tiny-llama"

    async def test_cards_and_orders_are_never_written_over_each_other(self, where: Path) -> None:
        app = GpufitApp(session_of(where))
        async with app.run_test(size=SMALL) as pilot:
            await pilot.press("7", "e")
            assert "tiny-llama-orders.csv" in screen_text(app)
            await pilot.press("enter")
            await done(app, pilot)
            await pilot.press("2", "e")
            assert "tiny-llama-fit.csv" in screen_text(app)
            await pilot.press("enter")
            await done(app, pilot)
        assert Path("tiny-llama-orders.csv").read_bytes() == Path("tiny-llama-fit.csv").read_bytes()

    async def test_a_file_that_is_there_is_replaced_when_asked_twice(self, where: Path) -> None:
        Path("tiny-llama-fit.csv").write_text("mine")
        app = GpufitApp(session_of(where))
        async with app.run_test(size=SMALL) as pilot:
            await pilot.press("e", "enter")
            await done(app, pilot)
            assert "is there already: enter again replaces it" in screen_text(app)
            assert Path("tiny-llama-fit.csv").read_text() == "mine"
            await pilot.press("enter")
            await done(app, pilot)
        assert Path("tiny-llama-fit.csv").read_text().startswith("model,engine,")

    async def test_escape_writes_nothing_and_an_error_can_be_mended(self, where: Path) -> None:
        app = GpufitApp(session_of(where))
        async with app.run_test(size=SMALL) as pilot:
            await pilot.press("e", "tab")
            app.screen.query_one("#file", Input).value = "p.json"
            await pilot.press("enter", "enter")
            await done(app, pilot)
            assert "! p.json is the profile itself; write the report to another file" in screen_text(app)
            app.screen.query_one("#file", Input).value = "x.pdf"
            await pilot.press("enter")
            await done(app, pilot)
            assert "cannot tell the format from the extension '.pdf'" in screen_text(app)
            await pilot.press("escape")
            assert not isinstance(app.screen, ExportScreen)
        assert sorted(path.name for path in where.parent.iterdir()) == ["p.json"]

    @pytest.mark.parametrize(
        ("view", "name"),
        [
            ("1", "gpufit-profiles"),
            ("3", "tiny-llama-curve"),
            ("4", "tiny-llama-growth"),
            ("5", "tiny-llama-precision"),
            ("6", "tiny-llama-times"),
        ],
    )
    async def test_a_screen_of_tables_lists_every_format_with_words(self, where: Path, view: str, name: str) -> None:
        app = GpufitApp(session_of(where))
        async with app.run_test(size=SMALL) as pilot:
            await pilot.press(view, "e")
            assert f"{name}.csv" in screen_text(app)
            shown = [line for line in screen_lines(app) if re.search(r"│\W+\.\w+ +\w", line)]
            assert [re.findall(r"\.\w+", line)[0] for line in shown] == [
                ".csv", ".json", ".xlsx", ".html", ".md", ".svg",
            ]  # fmt: skip
            assert {len(line) for line in screen_lines(app)} == {80}
            assert not any("…" in line for line in shown)
            await pilot.press("enter")
            await done(app, pilot)
        rows = read_csv(f"{name}.csv")
        assert rows
        assert {row["model"] for row in rows} <= {"tiny-llama", "other"}

    async def test_the_curve_s_csv_has_what_the_command_line_says_of_each_card(self, where: Path) -> None:
        """What surely fits is `max_context_tokens` of `gpufit fit`; listed are the two H100 of 80 GB."""
        chosen = ("--card", "h100-sxm-80gb", "--card", "h100-pcie-80gb")
        assert main(["fit", str(where), *chosen, "-o", "cli.csv"]) == 0
        app = GpufitApp(session_of(where))
        async with app.run_test(size=SMALL) as pilot:
            await pilot.press("slash", *"h100", "space", *"80gb", "enter", "3", "e", "enter")
            await done(app, pilot)
        rows = read_csv("tiny-llama-curve.csv")
        printed = {row["card"]: row for row in read_csv("cli.csv")}
        crossed = [row for row in rows if row["table"] == "cards"]
        assert {row["card"] for row in crossed} == set(printed)
        for row in crossed:
            told = printed[row["card"]]
            assert row["surely_up_to_context_tokens"] == told["max_context_tokens"]
            for key in ("capacity_bytes", "verdict", "evidence", "model", "engine", "context_tokens", "concurrency"):
                assert row[key] == told[key], key

    async def test_what_is_switched_is_what_is_written(self, where: Path) -> None:
        app = GpufitApp(session_of(where))
        async with app.run_test(size=SMALL) as pilot:
            await pilot.press("5", "v", "e", "down", "enter")
            await done(app, pilot)
            chosen = app.session.state.held.kv_cache
        written = json.loads(Path("tiny-llama-precision.json").read_text())
        (position,) = (one for one in written["choices"] if one["switch"] == "kv_cache" and one["chosen"])
        assert position["value"] == chosen == "FP8"
        assert written["scenario"]["kv_cache"] == "FP8"
        assert written["evidence"] == "scaled"

    @pytest.mark.parametrize(
        ("typed", "said"),
        [
            ("zero\0.csv", "zero…: no file can have this name"),
            (f"{'x' * 300}.csv", "cannot be written (File name too long)"),
            (f"{'x' * 300}/cards.csv", "cannot be written (File name too long)"),
            (".json", "cannot tell the format from the extension ''"),
            ("", "cannot tell the format from the extension ''"),
        ],
    )
    async def test_what_no_file_can_be_named_is_said_and_can_be_mended(
        self, typed: str, said: str, where: Path
    ) -> None:
        app = GpufitApp(session_of(where))
        async with app.run_test(size=WIDE) as pilot:
            await pilot.press("e", "tab")
            app.screen.query_one("#file", Input).value = typed
            await pilot.press("enter")
            await done(app, pilot)
            lines = [line.split("│")[1].strip() for line in screen_lines(app) if line.count("│") > 1]
            assert said in " ".join(lines)
            app.screen.query_one("#file", Input).value = "mended.csv"
            await pilot.press("enter")
            await done(app, pilot)
        assert Path("mended.csv").is_file()

    @pytest.mark.parametrize("view", ["1", "2", "7"])
    async def test_any_screen_can_be_had_as_a_picture(self, where: Path, view: str) -> None:
        app = GpufitApp(session_of(where))
        async with app.run_test(size=WIDE) as pilot:
            await pilot.press(view, "e", "tab")
            app.screen.query_one("#file", Input).value = "picture.svg"
            await pilot.press("enter")
            await done(app, pilot)
        svg = Path("picture.svg").read_text()
        assert svg.lstrip().startswith("<svg")
        assert "tiny-llama" in svg.replace("&#160;", " ")
        assert "write this view" not in svg.replace("&#160;", " ")

    async def test_a_comparison_and_an_order_file(self, where: Path) -> None:
        app = GpufitApp(session_of(where))
        async with app.run_test(size=WIDE) as pilot:
            await pilot.press("1", "down", "equals_sign", "e", "down", "enter")
            await done(app, pilot)
            assert Path("tiny-llama-other-compare.json").is_file()
            await pilot.press("escape", "7", "home", "enter")
            await done(app, pilot)
            await pilot.press("ctrl+s")
            assert "tiny-llama-t4-16gb-order.md" in screen_text(app)
            await pilot.press("enter")
            await done(app, pilot)
        assert (
            Path("tiny-llama-t4-16gb-order.md").read_text().startswith("# Order: 1 card of NVIDIA T4 16GB for 3 days")
        )

    async def test_without_an_answer_there_is_still_the_picture(self) -> None:
        app = GpufitApp(Session((), CATALOG, OFFERS))
        async with app.run_test(size=SMALL) as pilot:
            await pilot.press("e")
            assert "gpufit-cards.svg" in screen_text(app)
            await pilot.press("escape", "question_mark", "e")
            assert not isinstance(app.screen, ExportScreen)


class TestRun:
    async def test_before_a_run_there_is_the_picture_alone(self, where: Path) -> None:
        app = GpufitApp(session_of(where, View.RUN))
        async with app.run_test(size=SMALL) as pilot:
            await pilot.press("e")
            assert "gpufit-run.svg" in screen_text(app)
            assert ".json" not in screen_text(app)

    async def test_a_run_s_profile_is_copied_as_it_lies_on_disk_and_never_over_itself(self, where: Path) -> None:
        made = of_run(str(where))
        assert (made.name, list(made.formats)) == ("p-copy", [".json"])
        assert write(made, "p-copy.json") == "wrote p-copy.json"
        assert Path("p-copy.json").read_bytes() == where.read_bytes()
        with pytest.raises(UsageError, match="is the profile itself"):
            write(made, "p.json")
        where.unlink()
        with pytest.raises(UnreadableInputError, match="no such file"):
            write(made, "p-copy.json")

    async def test_key_e_offers_the_profile_of_the_run(self, where: Path) -> None:
        app = GpufitApp(session_of(where, View.RUN))
        app.runner = Runner()
        app.runner.state = RunState(stage=Stage.FINISHED, output=str(where))
        async with app.run_test(size=SMALL) as pilot:
            await pilot.press("e")
            assert "p-copy.json" in screen_text(app)
            await pilot.press("enter")
            await done(app, pilot)
        assert Path("p-copy.json").read_bytes() == where.read_bytes()
