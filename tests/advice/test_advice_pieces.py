from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufit.advice.pieces import Span, count_pieces, parts, piece_name, pieces


def test_three_workers_share_ten_inputs() -> None:
    """10 / 3: the bounds are 0, 10 // 3 = 3, 20 // 3 = 6 and 10."""
    assert parts(10, 3) == (Span(1, 3), Span(4, 6), Span(7, 10))


def test_more_workers_than_inputs_leave_some_without() -> None:
    assert [part.inputs for part in parts(2, 4)] == [0, 1, 0, 1]


@given(inputs=st.integers(0, 5_000), workers=st.integers(1, 64))
def test_parts_are_disjoint_whole_and_even(inputs: int, workers: int) -> None:
    found = parts(inputs, workers)
    taken = [number for part in found for number in range(part.first, part.last + 1)]
    assert taken == list(range(1, inputs + 1))  # each input once, in order
    assert len(found) == workers
    sizes = [part.inputs for part in found]
    assert max(sizes) - min(sizes) <= 1


@given(inputs=st.integers(1, 3_000), workers=st.integers(1, 8), size=st.integers(1, 400))
def test_pieces_cover_their_part_and_none_is_too_large(inputs: int, workers: int, size: int) -> None:
    names = []
    for worker, part in enumerate(parts(inputs, workers), start=1):
        cut = list(pieces(part, size))
        assert [number for piece in cut for number in range(piece.first, piece.last + 1)] == list(
            range(part.first, part.last + 1)
        )
        assert all(1 <= piece.inputs <= size for piece in cut)
        assert len(cut) == count_pieces(part, size)
        names += [piece_name(piece, worker, inputs) for piece in cut]
    assert names == sorted(set(names))  # names sort as inputs do, and no two pieces share one


def test_a_name_is_range_and_worker() -> None:
    assert piece_name(Span(1, 1000), 3, 25_000) == "out-00001-01000.w3.jsonl"


@pytest.mark.parametrize(("inputs", "workers"), [(-1, 1), (1, 0), (5, -2)])
def test_no_workers_and_negative_inputs_are_an_error(inputs: int, workers: int) -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        parts(inputs, workers)
