"""The bar of a card: it says what the verdict says, at every size and width, without colour."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from tui_builders import GB, make_row

from gpufit.advice.verdict import Verdict
from gpufit.profile.peaks import Parts
from gpufit.report.document import CardRow
from gpufit.tui.renderables.bar import bar, ceiling_column, legend
from gpufit.tui.renderables.palette import CEILING_MARK, CUT_MARK, GROUPS, UPPER_FILL

PART_FILLS = {group.fill for group in GROUPS}


def halves(row: CardRow, width: int) -> tuple[str, str]:
    """Left and right of the ceiling."""
    inside, _, beyond = bar(row, width).plain.partition(CEILING_MARK)
    return inside, beyond


def test_fits_leaves_everything_left_of_the_ceiling() -> None:
    assert bar(make_row(80 * GB, 40 * GB, 8 * GB), 30).plain == "████████▓▓▓▌░░         │      "
    assert bar(make_row(80 * GB, 40 * GB, 8 * GB), 12).plain.endswith("│   ")


def test_too_close_shades_beyond_the_ceiling() -> None:
    inside, beyond = halves(make_row(80 * GB, 77 * GB, 8 * GB), 30)
    assert inside == "████████████████▓▓▓▓▓▌░"
    assert beyond == "░░    "


def test_too_close_with_its_point_beyond_has_no_solid_cell_there() -> None:
    inside, beyond = halves(make_row(80 * GB, 82 * GB, 8 * GB), 30)
    assert UPPER_FILL not in inside
    assert beyond == "░░░   "


def test_does_not_fit_is_solid_beyond_the_ceiling() -> None:
    inside, beyond = halves(make_row(80 * GB, 90 * GB, 4 * GB), 30)
    assert set(inside) == {"█", "▓"}
    assert beyond == "▓▓░░░ "


def test_a_need_far_beyond_is_marked_as_cut() -> None:
    assert halves(make_row(80 * GB, 400 * GB), 30)[1] == f"█████{CUT_MARK}"


def test_a_tiny_need_still_shows_with_its_interval() -> None:
    assert bar(make_row(80 * GB, 1 * GB, GB // 10), 30).plain.startswith("█░ ")


def test_without_a_capacity_nothing_is_drawn() -> None:
    assert bar(make_row(None), 30).plain == "no capacity known".ljust(30)


@pytest.mark.parametrize("width", [12, 22, 31, 72])
def test_the_ceiling_is_in_the_same_column_for_every_card(width: int) -> None:
    for capacity in (16, 40, 80, 288):
        assert bar(make_row(capacity * GB), width).plain.index(CEILING_MARK) == ceiling_column(width)


@given(
    st.integers(1, 300 * GB),
    st.integers(1, 600 * GB),
    st.one_of(st.just(0), st.integers(0, 1000), st.integers(0, 100 * GB)),
    st.integers(5, 90),
)
def test_a_bar_never_contradicts_its_verdict(capacity: int, need: int, spread: int, width: int) -> None:
    row = make_row(capacity, need, spread)
    text = bar(row, width).plain
    inside, beyond = halves(row, width)
    assert len(text) == max(width, 12)
    assert text.count(CEILING_MARK) == 1
    assert set(inside) & PART_FILLS
    if row.verdict is Verdict.FITS:
        assert not beyond.strip()
        assert (UPPER_FILL in inside) == (row.need_upper_bytes > row.need_bytes)
    elif row.verdict is Verdict.TOO_CLOSE:
        assert not set(beyond) & PART_FILLS
        assert set(beyond) & {UPPER_FILL, CUT_MARK}
    else:
        assert set(beyond) & PART_FILLS


@given(st.integers(1, 300 * GB), st.integers(0, 200 * GB), st.integers(0, 100 * GB))
def test_a_larger_need_never_draws_a_shorter_bar(need: int, more: int, spread: int) -> None:
    def drawn(size: int) -> int:
        return len(bar(make_row(80 * GB, size, spread), 40).plain.replace(CEILING_MARK, "").rstrip())

    assert drawn(need) <= drawn(need + more)


def test_every_part_belongs_to_one_group() -> None:
    grouped = [part for group in GROUPS for part in group.parts]
    assert sorted(grouped) == sorted([*Parts.NAMES, "context_bytes", "other_bytes"])


def test_the_groups_of_a_row_add_up_to_its_need() -> None:
    row = make_row()
    assert sum(group.size_bytes(row) for group in GROUPS) == row.need_bytes


def test_fills_differ_and_take_one_cell() -> None:
    fills = [*(group.fill for group in GROUPS), UPPER_FILL, CEILING_MARK, CUT_MARK]
    assert len(set(fills)) == len(fills)
    assert all(cell_len(fill) == 1 for fill in fills)


@pytest.mark.parametrize("width", [76, 156])
def test_the_legend_names_every_fill_in_one_line(width: int) -> None:
    text = legend(width)
    assert text.cell_len <= width
    assert "\n" not in text.plain
    assert all(group.fill in text.plain for group in GROUPS)
    assert all((group.title if width > 80 else group.short) in text.plain for group in GROUPS)
    assert UPPER_FILL in text.plain
    assert CEILING_MARK in text.plain
