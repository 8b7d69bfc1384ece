"""A paste with control characters in it is text: in any pieces, and on a real terminal."""

from __future__ import annotations

import hypothesis
import hypothesis.strategies as st
import pytest

from gpufit.tui.paste import BEGIN, END, Pastes

ESC = "\x1b"


def cleaned(sent: str, *cuts: int) -> str:
    pastes, found, begin = Pastes(), "", 0
    for cut in (*sorted(cuts), len(sent)):
        found += pastes.clean(sent[begin:cut])
        begin = max(begin, cut)
    return found


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (f"{BEGIN}hello {ESC}[0m q{END}", f"{BEGIN}hello [0m q{END}"),
        (f"{BEGIN}{ESC}{END}", f"{BEGIN}{END}"),
        (f"{BEGIN}a{ESC}[20{END}b", f"{BEGIN}a[20{END}b"),
        (f"{BEGIN}one\r\n\ttwo\x07\x7f\x9b{END}", f"{BEGIN}one\r\n\ttwo{END}"),
        (f"{BEGIN}über 🙂{END}", f"{BEGIN}über 🙂{END}"),
        (f"{ESC}[A{ESC}{ESC}[<0;3;4M", f"{ESC}[A{ESC}{ESC}[<0;3;4M"),
        (f"q{BEGIN}{BEGIN}x{END}{ESC}[B{BEGIN}{ESC}y{END}", f"q{BEGIN}[200~x{END}{ESC}[B{BEGIN}y{END}"),
    ],
)
@hypothesis.given(data=st.data())
def test_control_characters_are_taken_out_of_a_paste_and_of_nothing_else(
    sent: str, read: str, data: st.DataObject
) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(sent)), max_size=4))
    assert cleaned(sent, *cuts) == read


@hypothesis.given(st.text(alphabet="q\x1b[20~1A", max_size=30))
def test_outside_a_paste_everything_goes_on_at_once(sent: str) -> None:
    hypothesis.assume(BEGIN not in sent)
    pastes = Pastes()
    assert [pastes.clean(one) for one in sent] == list(sent)
