"""A chart as SVG: places in pixels by arithmetic, names that do not lie over one another."""

from __future__ import annotations

import pytest
from report_readers import Node, Page

from gpufit.report.chart import Chart, ChartAxis, ChartLevel, ChartLine, ChartMark
from gpufit.report.chart_svg import HEIGHT, WIDTH, chart_figure

LINEAR = ChartAxis("tokens", 0, 100, ((0, "0"), (50, "50"), (100, "100")))
DOUBLINGS = ChartAxis("GiB", 2, 32, ((2, "2"), (8, "8"), (32, "32")), doublings=True)


def drawn(
    lines: tuple[ChartLine, ...] = (),
    levels: tuple[ChartLevel, ...] = (),
    marks: tuple[ChartMark, ...] = (),
    here: float | None = None,
) -> Node:
    chart = Chart("a title", "words", LINEAR, DOUBLINGS, levels, lines, marks, here)
    (svg,) = Page.read(chart_figure(chart, "x")).root.all("svg", "chart")
    return svg


def place(node: Node) -> tuple[float, float]:
    return float(node.attributes["x"]), float(node.attributes["y"])


def names(svg: Node) -> dict[str, tuple[float, float]]:
    return {node.text: place(node) for node in svg.all("text", "name")}


def test_an_axis_of_doublings_goes_equal_ways_for_equal_ratios() -> None:
    assert [DOUBLINGS.share(one) for one in (2, 4, 8, 16, 32)] == [0, 0.25, 0.5, 0.75, 1]
    assert [LINEAR.share(one) for one in (0, 25, 100)] == [0, 0.25, 1]


def test_a_line_goes_through_its_places() -> None:
    svg = drawn((ChartLine("a", ((0, 2), (50, 8), (100, 32)), "#123456"),))
    (line,) = svg.all("polyline")
    first, middle, last = (tuple(map(float, one.split(","))) for one in line.attributes["points"].split())
    plot = next(node for node in svg.all("rect", "plot")).attributes
    left, top, width, height = (float(plot[key]) for key in ("x", "y", "width", "height"))
    assert first == (left, top + height)
    assert last == (left + width, top)
    assert middle == pytest.approx((left + width / 2, top + height / 2), abs=0.1)
    assert line.attributes["stroke"] == "#123456"
    assert width < WIDTH
    assert height < HEIGHT


def test_names_of_levels_too_close_stand_in_one_line_the_strong_one_first() -> None:
    close = (ChartLevel("low", 8, False), ChartLevel("next", 8.1, True), ChartLevel("far", 30, False))
    assert list(names(drawn(levels=close))) == ["next · low", "far"]
    (strong,) = drawn(levels=close).all("tspan", "strong")
    assert strong.text == "next"


def test_a_line_s_name_stands_where_the_other_is_far_and_on_the_free_side() -> None:
    """One line from 4 to 16, the other stays at 4: apart at the right alone."""
    upper = ChartLine("upper", tuple((x, 4 * 4 ** (x / 100)) for x in range(0, 101, 5)), "#111111")
    lower = ChartLine("lower", tuple((x, 4) for x in range(0, 101, 5)), "#222222")
    found = names(drawn((upper, lower)))
    middle = WIDTH / 2
    assert found["upper"][0] > 0.4 * WIDTH
    assert found["lower"][0] > middle
    line = next(one for one in drawn((lower,)).all("polyline"))
    height = float(line.attributes["points"].split()[0].split(",")[1])
    assert found["lower"][1] > height, "below, since the other line is above"
    assert found["upper"][1] < height


def test_a_mark_outside_the_plot_is_left_out() -> None:
    marks = (
        ChartMark("in", 50, 8, "x", "inside"),
        ChartMark("right", 101, 8, "o", ""),
        ChartMark("up", 50, 33, "o", ""),
    )
    assert [node.text for node in drawn(marks=marks).all("text", "mark")] == ["x"]


def test_pieces_of_one_line_have_one_name_and_one_key() -> None:
    pieces = (
        ChartLine("a", ((0, 4), (50, 8)), "#111111"),
        ChartLine("a", ((50, 8), (100, 16)), "#111111", dotted=True),
    )
    chart = Chart("t", "w", LINEAR, DOUBLINGS, (), pieces, ())
    page = Page.read(chart_figure(chart, "x"))
    assert [node.text.strip() for node in page.root.all("li")] == ["a"]
    assert [node.text for node in page.root.all("text", "name")] == ["a"]
    assert "Dotted: carried beyond what was run, or worked out." in page.root.all("figcaption")[0].text
