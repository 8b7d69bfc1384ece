"""How a job's outputs are written in pieces, and how the whole job is confirmed: the words and the program of an order.

A piece is finished when its marker is there. The marker is written last and whole, so that a look at names is enough to
go on after an interruption: no output is read again, and none is done twice.
"""

from __future__ import annotations

from gpufit.advice.pieces import Span, count_pieces, parts, piece_name, pieces
from gpufit.report.order_document import Completion, Pieces

FOLDER = "outputs"
MARKER = ".done"
TEMPORARY = ".tmp"
_SHA256 = "SHA-256 in 64 hexadecimal digits"


def pieces_of(inputs: int | None, workers: int, size: int) -> Pieces:
    """The scheme, with the first piece of worker 1 as its example; of a job of one full piece where the inputs are not
    known."""
    known = inputs if inputs is not None else size * workers
    first = next(pieces(parts(known, workers)[0], size), Span(1, min(size, max(known, 1))))
    name = piece_name(first, 1, known)
    line = (
        f'{{"piece": "{name}", "worker": 1, "first": {first.first}, "last": {first.last}, "outputs": {first.inputs}, '
        f'"sha256": "<{_SHA256}>"}}'
    )
    counted = None if inputs is None else sum(count_pieces(part, size) for part in parts(inputs, workers))
    return Pieces(
        piece_inputs=size,
        pieces=counted,
        example_piece=f"{FOLDER}/{name}",
        example_marker=line,
        steps=_steps(name, size),
    )


def _steps(name: str, size: int) -> tuple[str, ...]:
    return (
        f"Each worker goes through its own inputs in order, in pieces of at most {size:,}; nobody else touches them.",
        f"A piece is written to {FOLDER}/{name}{TEMPORARY}, one line an input; an input that failed gets a line with "
        "its error, never none.",
        f"When the last line is written and flushed to disk, the file is renamed to {FOLDER}/{name}: its name says "
        "range and worker.",
        f"Then the marker {FOLDER}/{name}{MARKER} is written the same way (to {TEMPORARY}, then renamed). It holds one "
        "line: piece, worker, range, outputs counted, and the SHA-256 taken while they were written.",
        "A piece is finished if its marker is there, and only then. After an interruption a worker looks for markers "
        f"by name, opens nothing, removes its {TEMPORARY} files, and does every piece without a marker anew.",
        f"All markers together are the manifest: cat {FOLDER}/*{MARKER} > {FOLDER}/manifest.jsonl",
    )


def completion_of(inputs: int | None) -> Completion:
    """The conditions, and a program that checks them."""
    whole = "the number of inputs" if inputs is None else f"{inputs:,}"
    last = "the last input" if inputs is None else f"input {inputs:,}"
    return Completion(
        conditions=(
            f"the outputs counted in the manifest add up to {whole}",
            f"sorted by their first input, the ranges begin at input 1, follow each other without gap or overlap, and "
            f"end at {last}: every input is there once",
            "every piece has as many lines as its marker says, and its SHA-256 is the marker's",
            f"no {TEMPORARY} file is left",
        ),
        script=_script("int(sys.argv[1])" if inputs is None else str(inputs)),
    )


def _script(total: str) -> str:
    return _SCRIPT.replace("TOTAL", total).replace("MARKER", MARKER).replace("TEMPORARY", TEMPORARY)


_SCRIPT = """\
import hashlib, json, pathlib, sys

total = TOTAL
wrong = [f"{left} is left" for left in sorted(pathlib.Path(".").glob("*TEMPORARY"))]
lines = [json.loads(marker.read_text()) for marker in pathlib.Path(".").glob("out-*MARKER")]
reached = 0
for line in sorted(lines, key=lambda line: line["first"]):
    piece = pathlib.Path(line["piece"])
    if line["first"] != reached + 1:
        wrong.append(f"{piece} begins at input {line['first']}, not at {reached + 1}")
    reached = line["last"]
    content = piece.read_bytes() if piece.is_file() else b""
    if not content.count(b"\\n") == line["outputs"] == line["last"] - line["first"] + 1:
        wrong.append(f"{piece} has not one line an input, as its marker counts them")
    if hashlib.sha256(content).hexdigest() != line["sha256"]:
        wrong.append(f"{piece} has another SHA-256 than its marker")
if reached != total:
    wrong.append(f"the last input is {reached}, not {total}")
print("\\n".join(wrong) or f"complete: inputs 1 to {total}, pieces: {len(lines)}")
sys.exit(bool(wrong))
"""
