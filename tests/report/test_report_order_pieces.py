"""The scheme of an order, carried out: a job written as its steps say, interrupted, gone on with, and confirmed."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gpufit.advice.pieces import Span, parts, piece_name, pieces
from gpufit.report.order_pieces import completion_of, pieces_of

INPUTS, WORKERS, SIZE = 23, 3, 4


def write_piece(folder: Path, piece: Span, worker: int) -> None:
    """As the steps say: temporary name, rename, then the marker the same way."""
    name = piece_name(piece, worker, INPUTS)
    content = "".join(f'{{"input": {number}}}\n' for number in range(piece.first, piece.last + 1)).encode()
    temporary = folder / f"{name}.tmp"
    temporary.write_bytes(content)
    temporary.rename(folder / name)
    marker = {
        "piece": name,
        "worker": worker,
        "first": piece.first,
        "last": piece.last,
        "outputs": piece.inputs,
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    temporary.write_text(json.dumps(marker) + "\n")
    temporary.rename(folder / f"{name}.done")


def run_job(folder: Path, stop_after: int | None = None) -> int:
    """Every piece without a marker; the result is how many were written."""
    written = 0
    for worker, part in enumerate(parts(INPUTS, WORKERS), start=1):
        for piece in pieces(part, SIZE):
            if (folder / f"{piece_name(piece, worker, INPUTS)}.done").exists():
                continue
            if written == stop_after:
                return written
            write_piece(folder, piece, worker)
            written += 1
    return written


def confirm(folder: Path, *arguments: str, inputs: int | None = INPUTS) -> tuple[int, str]:
    script = completion_of(inputs).script
    done = subprocess.run([sys.executable, "-c", script, *arguments], cwd=folder, capture_output=True, text=True)
    assert not done.stderr
    return done.returncode, done.stdout


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    run_job(tmp_path)
    return tmp_path


def test_an_interrupted_job_goes_on_and_is_confirmed(tmp_path: Path) -> None:
    """23 inputs on three workers are 7, 8 and 8: pieces of at most 4 are 2 each, 6 in all."""
    assert run_job(tmp_path, stop_after=4) == 4
    code, words = confirm(tmp_path)
    assert (code, "the last input is 15, not 23" in words) == (1, True)
    assert run_job(tmp_path) == 2  # nothing that has its marker is done again
    assert confirm(tmp_path) == (0, "complete: inputs 1 to 23, pieces: 6\n")
    assert pieces_of(INPUTS, WORKERS, SIZE).pieces == 6


def test_the_total_may_be_given_where_the_order_does_not_know_it(finished: Path) -> None:
    assert confirm(finished, "23", inputs=None) == (0, "complete: inputs 1 to 23, pieces: 6\n")
    assert confirm(finished, "24", inputs=None)[0] == 1


def test_the_example_is_what_the_steps_make(finished: Path) -> None:
    scheme = pieces_of(INPUTS, WORKERS, SIZE)
    assert scheme.example_piece == "outputs/out-01-04.w1.jsonl"
    marker = json.loads((finished / "out-01-04.w1.jsonl.done").read_text())
    example = json.loads(scheme.example_marker)
    assert list(example) == list(marker)
    assert {name: value for name, value in example.items() if name != "sha256"} == {
        name: value for name, value in marker.items() if name != "sha256"
    }


def missing_piece(folder: Path) -> None:
    (folder / "out-05-07.w1.jsonl.done").unlink()


def missing_file(folder: Path) -> None:
    (folder / "out-05-07.w1.jsonl").unlink()


def another_byte(folder: Path) -> None:
    piece = folder / "out-05-07.w1.jsonl"
    piece.write_bytes(piece.read_bytes().replace(b"5", b"6"))


def line_lost(folder: Path) -> None:
    piece, marker = folder / "out-05-07.w1.jsonl", folder / "out-05-07.w1.jsonl.done"
    content = b"".join(piece.read_bytes().splitlines(keepends=True)[:-1])
    piece.write_bytes(content)
    line = json.loads(marker.read_text()) | {"outputs": 2, "sha256": hashlib.sha256(content).hexdigest()}
    marker.write_text(json.dumps(line))


def twice(folder: Path) -> None:
    write_piece(folder, Span(5, 7), 2)


def torn(folder: Path) -> None:
    (folder / "out-05-07.w1.jsonl.tmp").write_text("{")


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (missing_piece, "begins at input 8, not at 5"),
        (missing_file, "out-05-07.w1.jsonl has another SHA-256"),
        (another_byte, "out-05-07.w1.jsonl has another SHA-256"),
        (line_lost, "out-05-07.w1.jsonl has not one line an input"),
        (twice, "begins at input 5, not at 8"),
        (torn, "out-05-07.w1.jsonl.tmp is left"),
    ],
)
def test_a_job_that_is_not_whole_is_not_confirmed(finished: Path, harm: Callable[[Path], None], words: str) -> None:
    harm(finished)
    code, found = confirm(finished)
    assert code == 1
    assert words in found


def test_nothing_done_is_not_complete(tmp_path: Path) -> None:
    assert confirm(tmp_path) == (1, "the last input is 0, not 23\n")
