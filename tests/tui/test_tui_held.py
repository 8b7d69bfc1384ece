"""The switches for weights, compute and KV cache: the keys, and the command line's figures."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import make_layout, make_profile
from tui_builders import make_app, make_loaded, make_session, screen_text

from gpufit.cli.main import main
from gpufit.memory.held import Cache, Compute, Held, Weights
from gpufit.profile.store import save_profile
from gpufit.report.cells import COLUMNS
from gpufit.tui.loaded import LoadedProfile
from gpufit.tui.state import Event, press


def divided(where: str = "profiles/tiny.json") -> LoadedProfile:
    return make_loaded(make_profile(layout=make_layout()), where)


@pytest.mark.parametrize(
    ("switches", "keys"),
    [
        (["weights=fp8"], [Event.WEIGHTS]),
        (["weights=4-bit", "kv=fp8"], [Event.WEIGHTS, Event.WEIGHTS, Event.KV_CACHE]),
        (["compute=float32"], [Event.COMPUTE]),
    ],
)
def test_the_figures_are_those_of_the_command_line(
    switches: list[str], keys: list[Event], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = str(tmp_path / "tiny.json")
    save_profile(make_profile(layout=make_layout()), Path(profile))
    main(["fit", profile, *(word for one in switches for word in ("--if", one))])
    printed = capsys.readouterr().out
    session = make_session(divided(profile))
    for key in keys:
        session.go(press(session.state, key))
    document = session.document
    assert document is not None
    text = {column.key: column.text for column in COLUMNS}
    for row in document.cards:
        line = next(line for line in printed.splitlines() if line.startswith(f"{row.card} "))
        for key in ("verdict", "capacity_bytes", "need_bytes", "need_upper_bytes", "headroom_bytes", "max_concurrency"):
            assert text[key](document, row) in line


class TestKeys:
    @pytest.mark.parametrize("screen", ["2", "3"])
    async def test_each_switch_goes_round_what_applies(self, screen: str) -> None:
        app = make_app(divided())
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.press(screen, "w")
            assert app.session.state.held == Held(weights=Weights.FP8)
            assert "if weights FP8: fits" in screen_text(app)
            await pilot.press("w", "c", "v")
            assert app.session.state.held == Held(Weights.BITS_4, Compute.FLOAT32, Cache.FP8)
            assert "if weights 4-bit and compute float32 and KV cache FP8: fits" in screen_text(app)
            assert "↗ scaled" in screen_text(app)
            await pilot.press("w", "c", "v")
            assert app.session.state.held.as_profiled

    async def test_what_does_not_apply_is_passed_over(self) -> None:
        app = make_app()
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.press("w", "c")
            assert app.session.state.held.as_profiled
            await pilot.press("v")
            assert app.session.state.held == Held(kv_cache=Cache.FP8)

    async def test_reset_and_another_profile_hold_it_as_profiled(self) -> None:
        app = make_app(divided(), divided("profiles/other.json"))
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.press("v", "r")
            assert app.session.state.held.as_profiled
            await pilot.press("v", "p")
            assert app.session.state.held.as_profiled
