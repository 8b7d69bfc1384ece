"""A chart as inline SVG. Lines carry their names, so that they read in grey; dots say what is carried beyond a run."""

from __future__ import annotations

from collections.abc import Iterator

from gpufit.report.chart import Chart, ChartLevel, ChartLine, ChartMark
from gpufit.report.markup import Markup, element

WIDTH, HEIGHT = 960, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 16, 14, 46
"""Margins, in pixels."""
_DOTS = "1 6"
_LINE = 16
"""Height of a name, in pixels."""
_APART = 0.14
"""Between the names of two lines, a share of the width: their left ends lie close."""


def chart_figure(chart: Chart, name: str) -> Markup:
    """The drawing with what it shows in words; `name` is unique on the page."""
    drawn = element(
        "svg",
        element("title", chart.title, id=f"{name}-chart-title"),
        element("desc", chart.words, id=f"{name}-chart-desc"),
        element("clipPath", element("rect", **_plot()), id=f"{name}-plot"),
        *_grid(chart),
        element("g", *_inside(chart), clip_path=f"url(#{name}-plot)"),
        *_names(chart),
        *_titles(chart),
        class_="chart",
        role="img",
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        aria_labelledby=f"{name}-chart-title {name}-chart-desc",
    )
    return element("figure", drawn, element("figcaption", _caption(chart)))


def _plot() -> dict[str, str | float | None]:
    return {"x": _LEFT, "y": _TOP, "width": WIDTH - _LEFT - _RIGHT, "height": HEIGHT - _TOP - _BOTTOM}


def _x(chart: Chart, place: float) -> float:
    return round(_LEFT + chart.x.share(place) * (WIDTH - _LEFT - _RIGHT), 1)


def _y(chart: Chart, height: float) -> float:
    return round(HEIGHT - _BOTTOM - chart.y.share(height) * (HEIGHT - _TOP - _BOTTOM), 1)


def _grid(chart: Chart) -> Iterator[Markup]:
    yield element("rect", class_="plot", **_plot())
    for place, text in chart.x.ticks:
        x = _x(chart, place)
        yield element("line", class_="grid", x1=x, y1=_TOP, x2=x, y2=HEIGHT - _BOTTOM)
        yield element("text", text, class_="tick", x=x, y=HEIGHT - _BOTTOM + 17, text_anchor="middle")
    for height, text in chart.y.ticks:
        y = _y(chart, height)
        yield element("line", class_="grid", x1=_LEFT, y1=y, x2=WIDTH - _RIGHT, y2=y)
        yield element("text", text, class_="tick", x=_LEFT - 6, y=y + 4, text_anchor="end")


def _inside(chart: Chart) -> Iterator[Markup]:
    """All that ends where the plot does."""
    if chart.here is not None:
        x = _x(chart, chart.here)
        yield element("line", element("title", "the question"), class_="here", x1=x, y1=_TOP, x2=x, y2=HEIGHT - _BOTTOM)
    for level in chart.levels:
        y = _y(chart, level.height)
        kind = "level strong" if level.strong else "level"
        yield element("line", element("title", level.title), class_=kind, x1=_LEFT, y1=y, x2=WIDTH - _RIGHT, y2=y)
    for line in chart.lines:
        places = " ".join(f"{_x(chart, x)},{_y(chart, y)}" for x, y in line.points)
        yield element(
            "polyline",
            element("title", line.title),
            class_="line",
            points=places,
            stroke=line.colour,
            stroke_dasharray=_DOTS if line.dotted else None,
        )
    for mark in chart.marks:
        yield _mark(chart, mark)


def _mark(chart: Chart, mark: ChartMark) -> Markup:
    sign = element("text", mark.sign, class_="mark", x=_x(chart, mark.x), y=_y(chart, mark.y) + 5, text_anchor="middle")
    return element("g", element("title", mark.title), sign)


def _names(chart: Chart) -> Iterator[Markup]:
    """Each level's name at its left end, those of levels too close for a name each in one line above them; each line's
    name on it, one further to the right than the other."""
    for levels in _together(chart):
        named = [
            element("tspan", f"{' · ' if at else ''}{level.title}", class_="strong" if level.strong else None)
            for at, level in enumerate(sorted(levels, key=lambda one: not one.strong))
        ]
        yield element("text", *named, class_="name", x=_LEFT + 6, y=_y(chart, levels[-1].height) - 4)
    longest: dict[str, ChartLine] = {}
    for line in chart.lines:
        if line.title not in longest or len(line.points) > len(longest[line.title].points):
            longest[line.title] = line
    for slot, line in enumerate(longest.values()):
        wanted = 0.42 + _APART * slot
        x, y = min(line.points, key=lambda point: abs(chart.x.share(point[0]) - wanted))
        place: dict[str, str | float | None] = {"x": _x(chart, x), "y": _y(chart, y) - 7, "text_anchor": "middle"}
        yield element("text", line.title, class_="name", fill=line.colour, **place)


def _together(chart: Chart) -> list[list[ChartLevel]]:
    """Levels from the lowest up, those within a name's height of the one below with it."""
    found: list[list[ChartLevel]] = []
    for level in sorted(chart.levels, key=lambda one: one.height):
        if found and _y(chart, found[-1][-1].height) - _y(chart, level.height) < _LINE:
            found[-1].append(level)
        else:
            found.append([level])
    return found


def _titles(chart: Chart) -> Iterator[Markup]:
    yield element(
        "text", chart.x.title, class_="tick", x=(WIDTH + _LEFT - _RIGHT) / 2, y=HEIGHT - 8, text_anchor="middle"
    )


def _caption(chart: Chart) -> str:
    """What is drawn, and which signs there are."""
    dotted = " Dotted: carried beyond what was run, or worked out." if any(line.dotted for line in chart.lines) else ""
    here = " The upright line is the question." if chart.here is not None else ""
    signs = dict.fromkeys(f"{mark.sign} {mark.means}" for mark in chart.marks)
    return f"{chart.words}{dotted}{here}" + (f" Signs: {', '.join(signs)}." if signs else "")
