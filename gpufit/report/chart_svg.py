"""A chart as inline SVG. Lines carry their names, so that they read in grey; dots say what is carried beyond a run."""

from __future__ import annotations

from collections.abc import Iterator

from gpufit.report.chart import Chart, ChartLevel, ChartMark
from gpufit.report.markup import Markup, element

WIDTH, HEIGHT = 960, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 24, 14, 46
"""Margins, in pixels."""
_DOTS = "1 6"
_LINE = 16
"""Height of a name, in pixels."""
_APART = 0.14
"""Between the names of two lines, a share of the width."""
_CLEAR = 26
"""Pixels to the next line that are as good as more for a name."""


def chart_figure(chart: Chart, name: str) -> Markup:
    """The drawing with what it shows in words; `name` is unique on the page."""
    drawn = element(
        "svg",
        element("title", chart.title, id=f"{name}-chart-title"),
        element("desc", chart.words, id=f"{name}-chart-desc"),
        element("clipPath", element("rect", **_plot()), id=f"{name}-plot"),
        *_grid(chart),
        element("g", *_inside(chart), clip_path=f"url(#{name}-plot)"),
        *(
            _mark(chart, mark)
            for mark in chart.marks
            if 0 <= chart.x.share(mark.x) <= 1 and 0 <= chart.y.share(mark.y) <= 1
        ),
        *_level_names(chart),
        *_line_names(chart),
        *_titles(chart),
        class_="chart",
        role="img",
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        aria_labelledby=f"{name}-chart-title {name}-chart-desc",
    )
    return element("figure", drawn, _legend(chart), element("figcaption", _caption(chart)))


def _legend(chart: Chart) -> Markup:
    """Which colour is which line."""
    colours = {line.title: line.colour for line in chart.lines}
    keys = [
        (
            element(
                "svg",
                element("path", d="M1,7 H23", stroke=colour, stroke_width=3),
                width=24,
                height=14,
                aria_hidden="true",
            ),
            title,
        )
        for title, colour in colours.items()
    ]
    return element("ul", *(element("li", sign, f" {title}") for sign, title in keys), class_="legend")


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


def _mark(chart: Chart, mark: ChartMark) -> Markup:
    sign = element("text", mark.sign, class_="mark", x=_x(chart, mark.x), y=_y(chart, mark.y) + 5, text_anchor="middle")
    return element("g", element("title", mark.title), sign)


def _level_names(chart: Chart) -> Iterator[Markup]:
    """Each level's name at its left end, those of levels too close for a name each in one line above them."""
    for levels in _together(chart):
        named = [
            element("tspan", f"{' · ' if at else ''}{level.title}", class_="strong" if level.strong else None)
            for at, level in enumerate(sorted(levels, key=lambda one: not one.strong))
        ]
        yield element("text", *named, class_="name", x=_LEFT + 6, y=_y(chart, levels[-1].height) - 4)


def _line_names(chart: Chart) -> Iterator[Markup]:
    """Each line's name on it, where it is farthest from the other lines, on the side where it has more room."""
    pieces: dict[str, list[tuple[float, float]]] = {}
    for line in chart.lines:
        pieces.setdefault(line.title, []).extend((_x(chart, x), _y(chart, y)) for x, y in line.points)
    colours = {line.title: line.colour for line in chart.lines}
    for slot, (title, points) in enumerate(pieces.items()):
        others = [other for name, other in pieces.items() if name != title]
        wanted = _LEFT + (0.42 + _APART * slot) * (WIDTH - _LEFT - _RIGHT)
        spots = [(_room(x, y, others), x, y) for x, y in points if _LEFT + 40 <= x <= WIDTH - _RIGHT - 40]
        shown = [spot for spot in spots if _TOP + _LINE <= spot[2] <= HEIGHT - _BOTTOM - _LINE] or spots
        if shown:
            room, x, y = max(shown, key=lambda spot: (min(abs(spot[0]), _CLEAR), -abs(spot[1] - wanted)))
            below = room < 0  # the nearest line is above
            yield element(
                "text",
                title,
                class_="name",
                fill=colours[title],
                x=x,
                y=y + 17 if below else y - 7,
                text_anchor="middle",
            )


def _room(x: float, y: float, others: list[list[tuple[float, float]]]) -> float:
    """Pixels to the nearest other line at a place, below 0 where that is above; `_CLEAR` where there is none."""
    apart = [min(other, key=lambda point: abs(point[0] - x))[1] - y for other in others]
    return min(apart, key=abs, default=_CLEAR)


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
