"""Light screens: every colour that a renderable names has a darker one, and both can be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.style import Style
from textual.color import Color
from tui_builders import cards_screen, make_app, screen_text

import gpufit.tui
from gpufit.report.part_groups import PART_GROUPS
from gpufit.tui.app import DARK, LIGHT
from gpufit.tui.light import LIGHT as LIGHT_COLOURS
from gpufit.tui.light import light_style
from gpufit.tui.renderables.palette import SELECTED_BACKGROUND

FOLDER = Path(gpufit.tui.__file__).parent / "renderables"
FILLS = {group.colour for group in PART_GROUPS}
TEXTS = sorted(set(LIGHT_COLOURS) - FILLS - {SELECTED_BACKGROUND})


def contrast(first: str, second: str) -> float:
    """As WCAG 2 defines it: https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio"""

    def luminance(colour: str) -> float:
        parts = [channel / 255 for channel in Color.parse(colour).rgb]
        red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def test_every_colour_that_a_renderable_names_has_its_light_one() -> None:
    named = {colour for file in FOLDER.glob("*.py") for colour in re.findall("#[0-9a-f]{6}", file.read_text())}
    assert named | FILLS <= set(LIGHT_COLOURS)


@pytest.mark.parametrize("colour", TEXTS)
def test_words_can_be_read(colour: str) -> None:
    for dark in (DARK.background, DARK.panel):
        assert contrast(colour, str(dark)) >= 4.5
    for light in (LIGHT.background, LIGHT.panel):
        assert contrast(LIGHT_COLOURS[colour], str(light)) >= 4.5


@pytest.mark.parametrize("colour", sorted(FILLS))
def test_fills_can_be_seen(colour: str) -> None:
    assert contrast(colour, str(DARK.background)) >= 3
    assert contrast(LIGHT_COLOURS[colour], str(LIGHT.background)) >= 3


def test_other_colours_stay() -> None:
    assert light_style(Style.parse("bold #123456")) == Style.parse("bold #123456")
    assert light_style(Style.parse("bold #62d68a on #222e43")) == Style.parse("bold #0a6b30 on #d3e2ff")


async def test_a_key_turns_the_light_on_and_off_and_the_figures_stay() -> None:
    app = make_app()
    async with app.run_test(size=(120, 40)) as pilot:
        dark = screen_text(app)
        await pilot.press("T")
        assert app.theme == LIGHT.name == cards_screen(app).session.theme
        colours = {
            segment.style.color.triplet.hex
            for strip in app.screen._compositor.render_strips()
            for segment in strip.apply_filter(app.get_line_filters()[0], Color.parse(str(LIGHT.background)))
            if segment.style is not None and segment.style.color is not None and segment.style.color.triplet is not None
        }
        assert not colours & (set(LIGHT_COLOURS) - set(LIGHT_COLOURS.values()))
        assert screen_text(app) == dark
        await pilot.press("T")
        assert app.theme == DARK.name
