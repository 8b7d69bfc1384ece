"""The tables of `gpufit-accuracy`, as Markdown; the README's is the first of them, and a test compares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from tabulate import tabulate

from benchmarks import accuracy_caches
from benchmarks import accuracy_transformers as transformers
from benchmarks import accuracy_vllm as vllm
from benchmarks.accuracy_record import Comparison, summary

HEADERS = ("figure", "rows", "mean error", "median", "worst", "inside its interval")
WORST = 10


@cache
def of_transformers() -> tuple[Comparison, ...]:
    """Every figure of transformers that its source explains, slopes among them."""
    return (*transformers.comparisons(), *transformers.slopes())


@cache
def of_vllm() -> vllm.Report:
    """Every start of vLLM."""
    return vllm.compare()


def everything() -> tuple[Comparison, ...]:
    """All comparisons."""
    return (*of_transformers(), *of_vllm().comparisons, *accuracy_caches.comparisons())


def classes() -> list[tuple[str, list[Comparison]]]:
    """What the README shows: a name, and the comparisons that it stands for."""
    ours, report = of_transformers(), of_vllm()
    plain = [one for one in ours if "," not in one.figure]
    llama = [one for one in plain if one.figure.startswith("Llama")]
    return [
        (
            "transformers 4.34, 4.35: Llama-2 in float16, prefill",
            [one for one in llama if one.figure.endswith("prefill")],
        ),
        ("the same, decode", [one for one in llama if one.figure.endswith("decode")]),
        ("transformers 4.38, 4.46, 4.51: Qwen in bfloat16", [one for one in plain if one.figure.startswith("Qwen")]),
        (
            "the same with GPTQ, AWQ or FP8 weights",
            [one for one in ours if one.figure.startswith("Qwen") and "," in one.figure],
        ),
        ("a sequence more, under GPTQ", [one for one in ours if one.figure.startswith("slope")]),
        ("vLLM: 16-bit weights a rank", report.of("weights")),
        ("vLLM: quantised weights a rank", report.of("weights_quantised")),
        ("vLLM: activation peak", report.of("activation")),
        ("vLLM: KV tokens", report.of("kv_tokens")),
        ("vLLM: sequences at once, of a printed pool", report.of("concurrency")),
        ("llama.cpp, SGLang, others: bytes of a KV cache", list(accuracy_caches.comparisons())),
    ]


def summary_table() -> str:
    """A line a class."""
    return _table((_line(name, found) for name, found in classes()), HEADERS)


def detail_table() -> str:
    """A line a model family, release and figure."""
    groups: dict[str, list[Comparison]] = {}
    for one in everything():
        groups.setdefault(one.figure, []).append(one)
    return _table((_line(name, found) for name, found in groups.items()), HEADERS)


def formula_table() -> str:
    """The usual formulas over the rows of unquantised Llama-2, and gpufit's rules over the same."""
    rows = [one for one in transformers.readings() if one.plain and one.row.startswith("llm-perf")]
    ours = [one for one in of_transformers() if one.row.startswith("llm-perf") and one.figure.startswith("Llama")]
    found = [(name, list(transformers.formula_comparisons(name, rows))) for name in transformers.FORMULAS]
    lines = []
    for name, comparisons in [*found, ("gpufit estimate", ours)]:
        one = summary(comparisons)
        low = sum(each.error < 0 for each in comparisons)
        lines.append((name, one.rows, f"{one.mean:.2%}", f"{one.worst:.2%}", f"{low / one.rows:.0%}"))
    return _table(lines, ("formula", "rows", "mean error", "worst", "too low"))


def worst_table(count: int | None = WORST) -> str:
    """The rows with the largest errors, and why; `count` None: all."""
    worst = sorted(everything(), key=lambda one: -abs(one.error))[:count]
    lines = ((one.row, one.model, one.figure, f"{one.error:+.2%}", one.why or "not known") for one in worst)
    return _table(lines, ("row", "model", "figure", "error", "why"))


def verdict_lines() -> list[str]:
    """Runs that ended out of memory, starts that went through, and intervals, counted."""
    refused = list(transformers.refused())
    failed = [one for one in of_vllm().verdicts if not one.started]
    started = len(of_vllm().verdicts) - len(failed)
    promised = [one.row for one, fits in refused if fits] + [one.start for one in failed if one.false_promise]
    false = [one.start for one in of_vllm().false_refusals]
    found = everything()
    inside, broken = sum(one.inside for one in found), sum(one.broken for one in found)
    return [
        f"Runs and starts that did not fit: {len(refused) + len(failed)}; called a fit: {len(promised)}.",
        f"Starts that went through: {started}; refused: {len(false)}.",
        f"Figures: {len(found)}; inside their interval: {inside} ({inside / len(found):.1%}); above it: {broken}.",
    ]


def _line(name: str, found: Sequence[Comparison]) -> tuple[object, ...]:
    one = summary(found)
    return (name, one.rows, f"{one.mean:.2%}", f"{one.median:.2%}", f"{one.worst:.2%}", f"{one.inside} of {one.rows}")


def _table(rows: Iterable[Sequence[object]], headers: Sequence[str]) -> str:
    return tabulate(list(rows), headers=headers, tablefmt="pipe", disable_numparse=True)
