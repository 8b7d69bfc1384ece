"""`gpufit estimate --engine vllm` and `gpufit fit MODEL --engine vllm`, run as a user runs them.

Figures that real cards printed are rows of tests/facts/vllm/starts.json, each with its link.
"""

from __future__ import annotations

import csv
import io
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from builders import make_profile
from conftest import Run
from public_models import CONFIGS, FACTS

from gpufit.profile.store import save_profile
from gpufit.units import GIB, MIB

STARTS: dict[str, dict[str, Any]] = {
    row["id"]: row for row in json.loads((FACTS / "vllm" / "starts.json").read_text(encoding="utf-8"))
}
ONE_CARD = """schema_version = 1

[the-card]
vendor = "NVIDIA"
name = "{name}"
compute_capability = "{capability}"
peer_link = {{ kind = "NVLink" }}

[the-card.memory]
nominal_gb = 80
planning_torch_gib = {total_gib}
"""

QUESTION = ("--engine", "vllm", "--max-model-len", "16k", "--concurrency", "32")


def folder_of(name: str, folder: Path) -> Path:
    """A model's directory with the config that its publisher wrote, and no weights."""
    made = folder / name.split("/")[1]
    made.mkdir()
    (made / "config.json").write_text(json.dumps(CONFIGS[name]))
    return made


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of("Qwen/Qwen3-32B", tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of("Qwen/Qwen3-0.6B", tmp_path_factory.mktemp("models"))


def as_json(gpufit: Run, *arguments: str | Path, code: int = 0) -> dict[str, Any]:
    done = gpufit(*arguments, "--json")
    assert done.code == code, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def only(document: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The only row, and its start."""
    (row,) = document["cards"]
    return row, row["start"]


def part(start: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in start["parts"] if one["name"] == name)


def fact_arguments(fact: dict[str, Any], folder: Path) -> list[str | Path]:
    """The command that a fact's log was printed by, on a catalog card with the total that it reports."""
    card, settings = fact["card"], fact["settings"]
    catalog = folder / "catalog"
    catalog.mkdir()
    (catalog / "card.toml").write_text(ONE_CARD.format(**card))
    flags = {
        "--engine-version": fact["version"],
        "--tp": fact["tensor_parallel"],
        "--max-model-len": settings["max_model_len"],
        "--gpu-memory-utilization": settings["utilization"],
        "--max-num-batched-tokens": settings.get("max_num_batched_tokens", 8192),
    }
    words = [str(word) for flag in flags.items() for word in flag]
    model = folder_of(fact["config"], folder)
    return ["estimate", model, "--engine", "vllm", "--catalog", catalog, "--card", "the-card", *words]


@pytest.mark.parametrize("row", ["A043", "A036"])
def test_what_a_real_start_printed_lies_in_the_answer(gpufit: Run, tmp_path: Path, row: str) -> None:
    fact = STARTS[row]
    printed = fact["printed"]
    document = as_json(gpufit, *fact_arguments(fact, tmp_path))
    card, start = only(document)
    assert part(start, "weights")["size_bytes"] / GIB == pytest.approx(printed["weights_gib"], abs=0.005)
    # Printed with two decimals: 0.005 GiB either way.
    assert start["kv_pool_lower_bytes"] <= printed["kv_gib"] * GIB + 0.005 * GIB
    assert start["kv_pool_upper_bytes"] >= printed["kv_gib"] * GIB - 0.005 * GIB
    activation = part(start, "activation")
    if "activation_gib" in printed:
        assert activation["lower_bytes"] <= printed["activation_gib"] * GIB <= activation["upper_bytes"] + 0.005 * GIB
    if "kv_tokens" in printed:
        tokens, at_once = start["kv_tokens"], start["max_concurrency"]
        assert tokens["lower"] <= printed["kv_tokens"] <= tokens["upper"]
        assert at_once["lower"] <= printed["concurrency"] <= at_once["upper"]
        # With FlashInfer, as here, the activation is at its lower bound and the pool near its upper.
        assert tokens["upper"] == pytest.approx(printed["kv_tokens"], rel=0.01)
    assert document["engine"] == {"name": "vllm", "version": fact["version"][:6], "attention": "paged"}
    assert card["verdict"] == "fits"


def test_the_weights_of_qwen2_7b_are_those_of_the_log_to_two_in_a_hundred_thousand(gpufit: Run, tmp_path: Path) -> None:
    _, start = only(as_json(gpufit, *fact_arguments(STARTS["A043"], tmp_path)))
    assert part(start, "weights")["size_bytes"] / GIB == pytest.approx(14.2488, rel=2e-5)


def test_json_has_the_contract_of_estimate_a_rank(gpufit: Run, qwen: Path) -> None:
    document = as_json(gpufit, "estimate", qwen, *QUESTION, "--tp", "2", "--gpu", "h100-sxm", "--new-tokens", "384")
    assert document["scenario"] == {
        "context_tokens": 16384,
        "new_tokens": 384,
        "concurrency": 32,
        "cached_tokens": 16384,
    }
    assert document["holds_for"] == "Qwen3-32B, vLLM 0.29.0 (V1 engine), BF16 weights, 2 x NVIDIA H100 SXM5 80GB"
    row, start = only(document)
    # 64 layers of 8 KV heads of 128, keys and values in two bytes, over two ranks: 131,072 B a token.
    token_bytes = 64 * 8 * 128 * 2 * 2 // 2
    assert set(document["phases"]) == {"prefill", "decode"}
    for phase, tokens in (("prefill", 16000), ("decode", 16384)):
        figures = document["phases"][phase]
        parts = figures["parts"]
        assert len(parts) == 9
        assert sum(parts.values()) == figures["allocated_bytes"]
        assert parts["kv_cache_bytes"] == 32 * tokens * token_bytes
        assert parts["weights_bytes"] == part(start, "weights")["size_bytes"]
        assert parts["activations_bytes"] == part(start, "activation")["size_bytes"]
        assert figures["allocated_bytes"] < figures["need_bytes"] < figures["need_upper_bytes"]
    beside = sum(part(start, name)["size_bytes"] for name in ("non_torch", "cuda_graphs"))
    assert row["need_bytes"] == document["phases"]["decode"]["allocated_bytes"] + beside + row["context_bytes"]
    assert row["other_bytes"] == beside
    assert row["headroom_bytes"] == row["capacity_bytes"] - row["need_bytes"]
    assert start["sequence_bytes"] == 16384 * token_bytes
    assert start["budget_bytes"] == int(row["capacity_bytes"] * 0.92)
    taken = sum(one["size_bytes"] for one in start["parts"])
    assert start["kv_pool_bytes"] == start["budget_bytes"] - taken
    assert start["kv_tokens"]["point"] == start["kv_pool_bytes"] // (16 * token_bytes) * 16
    assert {one["evidence"] for one in start["parts"]} <= {"computed", "assumed"}
    assert all(one["words"] for one in start["parts"])
    assert document["precision"]["kv"] == [{"dtype": "bfloat16", "size_bytes": token_bytes, "tensors": 0}]


def test_the_answer_for_one_card_names_what_it_is_for_and_how_to_start_it(gpufit: Run, qwen: Path) -> None:
    done = gpufit("estimate", qwen, *QUESTION, "--tp", "2", "--gpu", "h200-sxm")
    assert done.code == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "Qwen3-32B, vLLM 0.29.0 (V1 engine), BF16 weights, 2 x NVIDIA H200 SXM 141GB"
    assert lines[1] == "sequences of 16k tokens x 32 at once: ✓ fits · evidence: assumed"
    assert max(map(len, lines[6:])) <= 110 + len(str(qwen))
    for title in ("weights", "activation", "outside torch", "CUDA graphs", "KV pool", "KV cache:", "start it with:"):
        assert any(line.startswith(title) for line in lines), title
    assert "scenario: sequences of 16k tokens" in done.stderr


def test_the_command_is_one_that_a_shell_takes(gpufit: Run, tmp_path: Path) -> None:
    (tmp_path / "my models").mkdir()
    model = folder_of("Qwen/Qwen3-0.6B", tmp_path / "my models")
    flags = ("--tp", "2", "--kv-cache-dtype", "fp8", "--enforce-eager", "--gpu-memory-utilization", "0.85")
    asked = (*flags, "--quantization", "fp8", "--max-num-seqs", "64", "--dtype", "float16")
    document = as_json(gpufit, "estimate", model / "config.json", *QUESTION, *asked, "--gpu", "l40s")
    words = shlex.split(only(document)[1]["serve_command"])
    assert words[:3] == ["vllm", "serve", str(model)]
    # L40S: below 70 GiB, so that 2,048 tokens are vLLM's default for a step.
    assert words[3:] == [
        *("--tensor-parallel-size", "2", "--max-model-len", "16384", "--gpu-memory-utilization", "0.85"),
        *("--max-num-seqs", "64", "--max-num-batched-tokens", "2048", "--dtype", "float16"),
        *("--quantization", "fp8", "--kv-cache-dtype", "fp8", "--enforce-eager"),
    ]


def test_every_card_of_the_catalog_is_judged_by_the_same_rules(gpufit: Run, qwen: Path) -> None:
    document = as_json(gpufit, "fit", qwen, *QUESTION, "--tp", "2")
    assert len(document["cards"]) == 41
    verdicts = {row["card"]: row["verdict"] for row in document["cards"]}
    # 65.5 GB of weights over two ranks: more than an RTX 5090 has, and 64 GiB of KV cache a rank on top.
    assert verdicts["rtx-5090-32gb"] == "does_not_fit"
    assert verdicts["h200-sxm-141gb"] == "fits"
    assert verdicts["h100-sxm-64gb"] == "unknown"
    for row in document["cards"]:
        if row["verdict"] == "unknown":
            assert (row["start"], row["capacity_bytes"], row["max_concurrency"], row["lots"]) == (None,) * 4
            continue
        assert (row["verdict"] == "fits") == (row["max_concurrency"] >= 32), row["card"]
        assert (row["verdict"] == "fits") == (row["max_context_tokens"] >= 16384), row["card"]
        if row["verdict"] == "fits":
            assert row["need_upper_bytes"] <= row["capacity_bytes"]
            assert (row["arrangement"], row["cards_needed"]) == ("sharded", 2)
        elif row["max_concurrency"]:
            assert row["arrangement"] == "sharded"  # copies of it, each over two
            copies = -(-32 // row["max_concurrency"])
            # MI250X is one card with two devices, each of which is a rank.
            assert row["cards_needed"] == (copies if row["card"] == "mi250x-128gb" else 2 * copies)
        else:
            assert (row["arrangement"], row["cards_needed"]) == (None, None)
    by_id = {row["card"]: row for row in document["cards"]}
    assert (by_id["b200-sxm-180gb"]["lot_size"], by_id["b200-sxm-180gb"]["lots"]) == (2, 1)


def test_no_more_than_the_largest_concurrency_and_length_fit(gpufit: Run, qwen: Path) -> None:
    def verdict(length: int, concurrency: int) -> str:
        flags = ("--engine", "vllm", "--tp", "2", "--gpu", "h100-sxm", "--max-model-len", str(length))
        done = gpufit("estimate", qwen, *flags, "--concurrency", str(concurrency), "--json")
        return str(json.loads(done.stdout)["cards"][0]["verdict"])

    row, _ = only(as_json(gpufit, "estimate", qwen, *QUESTION, "--tp", "2", "--gpu", "h100-sxm"))
    most, longest = row["max_concurrency"], row["max_context_tokens"]
    assert [verdict(16384, most), verdict(longest, 32)] == ["fits", "fits"]
    assert verdict(16384, most + 1) != "fits"
    assert verdict(longest + 1, 32) != "fits"


def test_a_card_alone_is_single_and_too_small_a_share_says_which_would_do(gpufit: Run, small: Path) -> None:
    flags = ("--engine", "vllm", "--gpu", "l40s", "--max-model-len", "4k", "--concurrency", "8")
    flags += ("--max-num-seqs", "256")
    row, _ = only(as_json(gpufit, "estimate", small, *flags))
    assert (row["verdict"], row["arrangement"], row["cards_needed"]) == ("fits", "single", 1)
    row, start = only(as_json(gpufit, "estimate", small, *flags, "--gpu-memory-utilization", "0.1", code=1))
    assert row["verdict"] != "fits"
    least = start["least_gpu_memory_utilization"]
    assert 0.1 < least < 0.3
    assert any(f"--gpu-memory-utilization {least:g}" in remark for remark in row["remarks"])
    row, _ = only(as_json(gpufit, "estimate", small, *flags, "--gpu-memory-utilization", f"{least:g}"))
    assert row["verdict"] == "fits"


def test_more_sequences_than_the_default_are_asked_of_vllm_where_the_pool_holds_them(gpufit: Run, small: Path) -> None:
    # vLLM schedules 256 on a card below 70 GiB unless told.
    flags = ("--engine", "vllm", "--gpu", "l40s", "--max-model-len", "512", "--concurrency", "400")
    row, start = only(as_json(gpufit, "estimate", small, *flags))
    assert (row["verdict"], start["max_num_seqs"]) == ("fits", 400)
    assert "--max-num-seqs 400" in start["serve_command"]


@pytest.mark.parametrize("name", ["google/gemma-3-27b-it", "google/gemma-2-9b", "google/gemma-3-1b-it"])
def test_a_model_that_vllm_refuses_in_float16_does_not_start_without_bfloat16(
    gpufit: Run, tmp_path: Path, name: str
) -> None:
    # V100 and T4 have no bfloat16 (compute capability 7.0 and 7.5), and these model types are refused in float16.
    model = folder_of(name, tmp_path)
    tp = "2" if name == "google/gemma-2-9b" else "4"
    asked = (model, "--engine", "vllm", "--tp", tp, "--max-model-len", "2k")
    cards = ("--gpu", "v100-sxm2-32gb", "--gpu", "t4", "--gpu", "a100-sxm-80gb")
    document = as_json(gpufit, "fit", *asked, *cards)
    *old, new = document["cards"]
    for row in old:
        assert (row["verdict"], row["max_concurrency"], row["cards_needed"]) == ("does_not_fit", 0, None)
        assert row["start"]["least_gpu_memory_utilization"] is None
        (remark,) = row["remarks"]
        assert "refuses float16 for gemma" in remark
        assert row["start"]["binding"] == remark
    assert new["verdict"] == "fits"
    for dtype in ("half", "float16", "fp16"):
        done = gpufit("estimate", *asked, "--gpu", "a100-sxm-80gb", "--dtype", dtype)
        assert (done.code, done.stdout) == (2, "")
        assert f"--dtype {dtype}: vLLM refuses float16 for gemma" in done.error


def test_a_float16_checkpoint_of_such_a_model_is_run_in_bfloat16(gpufit: Run, tmp_path: Path) -> None:
    # `auto` takes the first dtype that model and card both run.
    config = CONFIGS["google/gemma-3-1b-it"] | {"dtype": "float16"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    document = as_json(gpufit, "estimate", tmp_path, "--engine", "vllm", "--gpu", "l4")
    assert document["precision"]["compute"][0]["dtypes"] == ["bfloat16"]
    assert only(document)[0]["verdict"] == "fits"


@pytest.mark.parametrize(
    ("name", "asked", "concurrency"),
    [
        ("nvidia/Nemotron-H-56B-Base-8K", ("--tp", "2", "--gpu", "h100-sxm"), 16),
        ("Qwen/Qwen3-Next-80B-A3B", ("--gpu", "b200", "--context", "4k"), 4),
    ],
)
def test_a_model_with_states_is_started_with_fewer_sequences_than_the_default(
    gpufit: Run, tmp_path: Path, name: str, asked: tuple[str, ...], concurrency: int
) -> None:
    # vLLM starts only with a block of state for each of --max-num-seqs, by default 1,024 on such cards.
    flags = (folder_of(name, tmp_path), "--engine", "vllm", *asked, "--concurrency", str(concurrency))
    row, start = only(as_json(gpufit, "estimate", *flags))
    assert (row["verdict"], start["max_num_seqs"]) == ("fits", concurrency)
    assert f"--max-num-seqs {concurrency} " in start["serve_command"]
    most = row["max_concurrency"]
    assert concurrency < most < 1024
    for count in (most, most + 1):
        done = gpufit("estimate", *flags[:-1], str(count), "--json")
        assert (json.loads(done.stdout)["cards"][0]["verdict"] == "fits") == (count == most)
    said = f"--max-num-seqs {concurrency} surely serves this; vLLM's default of 1024 does not start"
    assert said in row["remarks"]
    tp = () if "--tp" in asked else ("--tp", "1")
    row, start = only(as_json(gpufit, "estimate", *flags, "--max-num-seqs", "1024", *tp, code=1))
    assert row["verdict"] == "does_not_fit"
    assert "each of 1024 sequences needs a block of state: lower --max-num-seqs to " in start["binding"]
    assert not any("--max-num-seqs" in remark for remark in row["remarks"])


def test_copies_side_by_side_schedule_what_each_of_them_serves(gpufit: Run, qwen: Path) -> None:
    row, start = only(as_json(gpufit, "estimate", qwen, *QUESTION, "--tp", "2", "--gpu", "l40s", code=0))
    most = row["max_concurrency"]
    assert start["max_num_seqs"] == most
    # 64 layers of 8 KV heads of 128, keys and values in two bytes, over two ranks, 16k tokens: 2 GiB a sequence.
    pool = start["pool_concurrency"]["point"]
    assert pool == pytest.approx(start["kv_pool_bytes"] / (2 * GIB), abs=1 / 1024)  # whole blocks of 16 tokens
    assert start["binding"].startswith(f"the KV pool holds {pool:.1f} sequences of 16k tokens (")
    assert start["binding"].endswith("and 32 are asked for, which take 64.00 GiB of it")
    assert row["cards_needed"] == -(-32 // most) * 2
    assert any(remark.startswith(f"--max-num-seqs {most} surely serves {most} a copy") for remark in row["remarks"])
    flags = ("--engine", "vllm", "--max-model-len", "16k", "--tp", "2", "--gpu", "l40s", "--max-num-seqs")
    row, _ = only(as_json(gpufit, "estimate", qwen, *flags, str(most), "--concurrency", str(most)))
    assert row["verdict"] == "fits"
    more = str(most + 1)
    row, _ = only(as_json(gpufit, "estimate", qwen, *flags, more, "--concurrency", more))
    assert row["verdict"] != "fits"


def test_the_pools_concurrency_is_the_logs_and_the_cap_stands_beside_it(gpufit: Run, small: Path) -> None:
    # 28 layers of 8 KV heads of 128, keys and values in two bytes: 112 KiB a token, 448 MiB a sequence of 4,096.
    flags = (small, "--engine", "vllm", "--max-model-len", "4k", "--concurrency", "4", "--max-num-seqs", "4")
    _, start = only(as_json(gpufit, "estimate", *flags, "--gpu", "l40s"))
    pool, at_once = start["pool_concurrency"], start["max_concurrency"]
    assert pool["point"] == pytest.approx(start["kv_pool_bytes"] / (448 * MIB), abs=1 / 256)  # blocks of 16 tokens
    assert pool["point"] == pytest.approx(start["kv_tokens"]["point"] / 4096, abs=1 / 4096)
    assert pool["lower"] > 4
    assert at_once == {"lower": 4, "point": 4, "upper": 4}
    said = f"concurrency at 4k: {pool['point']:.1f} ({pool['lower']:.1f} to {pool['upper']:.1f}), by the pool alone"
    for form in ("table", "markdown", "html"):
        text = " ".join(gpufit("estimate", *flags, "--gpu", "l40s", "--format", form).stdout.split())
        assert said in text
        assert "at once: 4 surely, never more than 4 (--max-num-seqs); asked for: 4" in text
    order = gpufit("order", *flags, "--card", "l40s", "--term", "7").stdout
    assert f"The rules expect {pool['lower']:.1f}x to {pool['upper']:.1f}x, " in order


def test_a_budget_that_the_weights_alone_exceed_is_short_by_a_likely_and_a_least_size(gpufit: Run, qwen: Path) -> None:
    flags = ("estimate", qwen, "--engine", "vllm", "--gpu", "l4", "--tp", "1")
    row, start = only(as_json(gpufit, *flags, code=1))
    # 61 GiB of weights in a budget of 0.92 x 22 GiB.
    likely, least = (-start[key] / GIB for key in ("kv_pool_bytes", "kv_pool_upper_bytes"))
    most = -start["kv_pool_lower_bytes"] / GIB
    assert 35 < least < likely < most < 50
    done = " ".join(gpufit(*flags).stdout.split())
    assert f"likely {likely:.2f} GiB short before any KV cache, at the least {least:.2f} GiB; the largest" in done
    # Pool and reason in the card's row, the rank's parts, the verdict's words.
    assert done.count(f"{likely:.2f} GiB short") == 4
    assert f"{least:.2f} GiB to {most:.2f} GiB short" in done
    assert f"-{likely:.2f} GiB" not in done  # no pool below nothing
    assert row["binding"]["short_bytes"] > -start["kv_pool_bytes"]


def test_what_does_not_fit_has_no_command(gpufit: Run, qwen: Path) -> None:
    # 61 GiB of weights: an L4 has 22, and no more of them are taken than were asked for.
    flags = ("estimate", qwen, "--engine", "vllm", "--gpu", "l4", "--tp", "1")
    row, start = only(as_json(gpufit, *flags, code=1))
    assert (row["verdict"], start["serve_command"]) == ("does_not_fit", None)
    for form in ("table", "markdown", "csv"):
        done = gpufit(*flags, "--format", form)
        assert done.code == 1
        assert "vllm serve" not in done.stdout
        assert "start it with" not in done.stdout
    file = qwen.parent / "out.xlsx"
    assert gpufit(*flags, "-o", file).code == 1
    book = openpyxl.load_workbook(file)
    assert not any(
        "vllm serve" in str(cell) for sheet in book for line in sheet.iter_rows(values_only=True) for cell in line
    )


@pytest.mark.parametrize("command", ["estimate", "fit"])
def test_where_one_card_lacks_the_weights_a_start_over_more_of_them_is_planned(
    gpufit: Run, qwen: Path, command: str
) -> None:
    # 61 GiB of weights beside an L40S's 44 and an L4's 22: two halves, or four quarters of 15.
    asked = (command, qwen, "--engine", "vllm", "--gpu", "l40s", "--gpu", "l4", "--gpu", "h100-sxm")
    for row, ranks in zip(as_json(gpufit, *asked)["cards"], (2, 4, 1), strict=True):
        (plan,) = row["arrangements"]
        assert (plan["arrangement"], plan["copies"]) == ("single" if ranks == 1 else "sharded", 1), row["card"]
        assert (plan["tensor_parallel_size"], row["cards_needed"], row["start"]["tensor_parallel_size"]) == (
            ranks, ranks, 1,
        )  # fmt: skip
        assert f"--tensor-parallel-size {ranks} " in plan["serve_command"]
        # What does not serve alone has no command as the one thing to run.
        assert row["start"]["serve_command"] == (plan["serve_command"] if ranks == 1 else None)
        for tp in (2, 4):
            flags = (command, qwen, "--engine", "vllm", "--gpu", row["card"], "--tp", str(tp), "--json")
            wider = json.loads(gpufit(*flags).stdout)["cards"][0]
            assert (wider["verdict"] == "fits") == (tp >= ranks), (row["card"], tp)
            if tp == ranks:
                assert wider["arrangements"] == [plan]
            else:
                assert all(one["tensor_parallel_size"] == tp for one in wider["arrangements"])


def test_a_start_that_is_too_close_is_told_apart_from_the_plans(gpufit: Run, tmp_path: Path) -> None:
    # 27.5 GiB of weights on a card of 31.7: with vLLM's 256 sequences in a step it may start, with two it surely does.
    model = folder_of("Qwen/Qwen3-14B", tmp_path)
    flags = ("fit", model, "--engine", "vllm", "--context", "2k", "--concurrency", "4", "--gpu", "v100-pcie-32gb")
    row, start = only(as_json(gpufit, *flags))
    assert (row["verdict"], row["max_concurrency"], row["arrangement"]) == ("too_close", 2, "replicas")
    assert [(one["tensor_parallel_size"], one["copies"]) for one in row["arrangements"]] == [(1, 2), (2, 1)]
    assert row["arrangements"][0]["serve_command"] == start["serve_command"]
    assert "--max-num-seqs 4 " in start["serve_command"]
    text = " ".join(gpufit(*flags).stdout.replace("\\\n", " ").split())
    assert f"copy with this, or a single one, which may not be enough: {start['serve_command']}" in text
    for plan in row["arrangements"]:
        assert plan["serve_command"] in text


def test_what_would_make_one_card_do_is_told_with_vllms_flags(gpufit: Run, qwen: Path) -> None:
    flags = ("fit", qwen, "--engine", "vllm", "--context", "16k", "--concurrency", "16", "--gpu", "h100-nvl")
    row, _ = only(as_json(gpufit, *flags))
    words = {one["kind"]: one["words"] for one in row["changes"]}
    assert set(words) == {"concurrency", "context", "weights_and_kv_cache", "card"}
    assert f"--max-model-len {row['max_context_tokens']}" in words["context"]
    assert words["concurrency"].startswith(f"{row['max_concurrency']} at once fit")
    given = ("--quantization", "fp8", "--kv-cache-dtype", "fp8")
    assert " ".join(given) in words["weights_and_kv_cache"]
    assert only(as_json(gpufit, *flags, *given))[0]["verdict"] == "fits"
    # Neither does alone: one card, so that only its own verdict counts.
    for one in (given[:2], given[2:]):
        assert only(as_json(gpufit, *flags, *one, "--tp", "1"))[0]["verdict"] != "fits"
    table = " ".join(gpufit(*flags).stdout.split())
    assert all(" ".join(one.split()) in table for one in words.values())


def test_a_row_a_way_to_take_a_card_has_that_one_s_ranks_and_command(gpufit: Run, tmp_path: Path) -> None:
    model = folder_of("Qwen/Qwen3-8B", tmp_path)
    flags = ("fit", model, "--engine", "vllm", "--context", "4k", "--concurrency", "64", "--gpu", "l40s")
    plans = only(as_json(gpufit, *flags))[0]["arrangements"]
    rows = list(csv.DictReader(io.StringIO(gpufit(*flags, "--csv").stdout)))
    assert [(row["arrangement"], row["tensor_parallel_size"], row["copies"]) for row in rows] == [
        ("replicas", "1", "2"),
        ("sharded", "2", "1"),
    ]
    assert [row["start_tensor_parallel_size"] for row in rows] == ["1", "1"]
    assert [row["serve_command"] for row in rows] == [one["serve_command"] for one in plans]
    assert [int(row["device_need_upper_bytes"]) for row in rows] == [one["need_upper_bytes"] for one in plans]


@pytest.mark.parametrize("form", ["table", "markdown", "csv", "xlsx", "html"])
def test_every_format_has_the_command_of_the_arrangement_and_not_that_of_one_rank(
    gpufit: Run, qwen: Path, tmp_path: Path, form: str
) -> None:
    flags = ("fit", qwen, "--engine", "vllm", "--gpu", "l40s")
    (plan,) = only(as_json(gpufit, *flags))[0]["arrangements"]
    file = tmp_path / {"markdown": "out.md", "table": "out.txt"}.get(form, f"out.{form}")
    assert gpufit(*flags, "--format", form, "-o", file).code == 0
    if form == "xlsx":
        sheets = openpyxl.load_workbook(file)
        text = "\n".join(
            str(cell) for sheet in sheets for line in sheet.iter_rows(values_only=True) for cell in line if cell
        )
        assert plan["serve_command"] in [line[-1] for line in sheets["arrangements"].iter_rows(values_only=True)]
    else:
        text = file.read_text(encoding="utf-8")
    text = " ".join(text.replace("\\\n", " ").split())
    assert plan["serve_command"] in text
    assert "--tensor-parallel-size 1 " not in text


def test_a_width_that_the_model_cannot_be_divided_to_is_no_plan(gpufit: Run, tmp_path: Path) -> None:
    # 12 heads go into 2 and 4, not into 8, which would hold the weights: over more than 4 only as stages.
    config = CONFIGS["Qwen/Qwen3-32B"] | {"num_attention_heads": 12, "num_key_value_heads": 4}
    (tmp_path / "config.json").write_text(json.dumps(config))
    row, _ = only(as_json(gpufit, "estimate", tmp_path, "--engine", "vllm", "--gpu", "v100-pcie-16gb"))
    assert row["verdict"] == "does_not_fit"
    (plan,) = row["arrangements"]
    assert plan["arrangement"] == "sharded+pipeline"
    assert plan["tensor_parallel_size"] <= 4 < plan["cards_needed"]


def test_what_was_not_given_is_said_to_be_assumed(gpufit: Run, qwen: Path) -> None:
    flags = ("estimate", qwen, "--engine", "vllm", "--gpu", "h200-sxm", "--tp", "2")
    assumed = as_json(gpufit, *flags)["assumptions"]
    assert any(line.startswith("--max-model-len 4096, gpufit's own default") for line in assumed)
    assert any(line.startswith("--concurrency 1") for line in assumed)
    assumed = as_json(gpufit, *flags, "--max-model-len", "4k", "--concurrency", "1")["assumptions"]
    assert not any("--max-model-len" in line or "--concurrency" in line for line in assumed)


@pytest.mark.parametrize(
    ("asked", "kept", "size"),
    [
        ("fp8", "float8_e4m3fn", 1),
        ("fp8_e4m3", "float8_e4m3fn", 1),
        ("fp8_e5m2", "float8_e5m2", 1),
        ("bfloat16", "bfloat16", 2),
        ("auto", "bfloat16", 2),
    ],
)
def test_vllms_names_of_cache_dtypes_are_taken(gpufit: Run, small: Path, asked: str, kept: str, size: int) -> None:
    document = as_json(gpufit, "estimate", small, "--engine", "vllm", "--gpu", "l40s", "--kv-cache-dtype", asked)
    # Qwen3-0.6B: 28 layers of 8 KV heads of 128, keys and values.
    assert document["precision"]["kv"] == [{"dtype": kept, "size_bytes": 28 * 8 * 128 * 2 * size, "tensors": 0}]
    command = only(document)[1]["serve_command"]
    assert (f"--kv-cache-dtype {asked}" in command) == (size == 1)


def test_trust_remote_code_changes_the_command_alone(gpufit: Run, small: Path) -> None:
    flags = ("estimate", small, "--engine", "vllm", "--gpu", "l40s")
    plain, trusting = as_json(gpufit, *flags), as_json(gpufit, *flags, "--trust-remote-code")
    for document, given in ((plain, False), (trusting, True)):
        row, start = only(document)
        for commanded in (start, row["arrangements"][0]):
            assert ("--trust-remote-code" in shlex.split(commanded.pop("serve_command"))) == given
    assert trusting == plain
    assert as_json(gpufit, "estimate", small, "--trust-remote-code") == as_json(gpufit, "estimate", small)


def test_slots_for_adapters_are_a_part_of_their_own_and_stand_in_the_command(gpufit: Run, qwen: Path) -> None:
    asked = ("estimate", qwen, *QUESTION, "--gpu", "h200-sxm", "--tp", "2", "--enforce-eager")
    (_, without), (row, start) = (
        only(as_json(gpufit, *asked, *more)) for more in ((), ("--enable-lora", "--max-loras", "4"))
    )
    # Qwen3-32B over two ranks, elements a rank of an adapter: A of column layers and B of row layers are whole.
    a_layer = (5120 + 4096) + 2 * (5120 + 512) + (4096 + 5120) + 2 * (5120 + 12800) + (12800 + 5120)
    vocabulary = 2 * (151936 + 5120)
    gathered = 151936 * 8
    slots = part(start, "lora")["size_bytes"]
    assert slots == pytest.approx((64 * a_layer + vocabulary) * 4 * 16 * 2 + gathered, abs=4 * MIB)
    assert without["kv_pool_bytes"] - start["kv_pool_bytes"] == slots
    assert row["parts"]["buffers_bytes"] == slots
    assert "--enable-lora --max-loras 4 --max-lora-rank 16" in start["serve_command"]
    assert [one["name"] for one in without["parts"]] == ["weights", "activation", "non_torch", "cuda_graphs"]


def test_defaults_of_adapters_are_said_to_be_assumed(gpufit: Run, small: Path) -> None:
    document = as_json(gpufit, "estimate", small, "--engine", "vllm", "--gpu", "l4", "--enable-lora")
    assert {one.split(",")[0] for one in document["assumptions"]} >= {"--max-loras 1", "--max-lora-rank 16"}


def test_a_family_without_adapters_is_one_line(gpufit: Run, tmp_path: Path) -> None:
    model = folder_of("tiiuae/falcon-7b-instruct", tmp_path)
    for command in ("estimate", "fit"):
        card = ("--gpu", "l4") if command == "estimate" else ()
        done = gpufit(command, model, "--engine", "vllm", "--enable-lora", *card)
        assert (done.code, done.stdout) == (2, "")
        assert "vLLM 0.29.0 takes no adapters for FalconForCausalLM; leave it out" in done.error


def test_a_step_of_few_tokens_runs_no_more_sequences(gpufit: Run, small: Path) -> None:
    flags = ("--engine", "vllm", "--gpu", "l40s", "--max-num-batched-tokens", "100")
    _, start = only(as_json(gpufit, "estimate", small, *flags))
    assert (start["max_num_seqs"], start["max_num_batched_tokens"]) == (100, 100)
    assert "--max-num-seqs 100 --max-num-batched-tokens 100" in start["serve_command"]


def test_an_encoder_caches_nothing_and_has_one_phase(gpufit: Run, tmp_path: Path) -> None:
    model = folder_of("BAAI/bge-reranker-v2-m3", tmp_path)
    document = as_json(gpufit, "estimate", model, "--engine", "vllm", "--gpu", "l4", "--max-model-len", "512")
    row, start = only(document)
    assert list(document["phases"]) == ["forward"]
    assert (start["sequence_bytes"], row["max_concurrency"], row["verdict"]) == (0, 256, "fits")


@pytest.mark.parametrize(("engine", "also"), [("vllm", ("--gpu", "h100-sxm")), ("transformers", ())])
def test_weights_quantised_at_load_take_a_byte_each_and_their_scales(
    gpufit: Run, small: Path, engine: str, also: tuple[str, ...]
) -> None:
    # Qwen3-0.6B, 28 layers of hidden size 1,024: heads of 128, 16 for queries and 8 for keys and values, MLP of 3,072.
    matrices = 28 * (1024 * (16 + 8 + 8) * 128 + 16 * 128 * 1024 + 3 * 1024 * 3072)
    embeddings, norms = 151936 * 1024, 28 * (2 * 1024 + 2 * 128) + 1024
    document = as_json(gpufit, "estimate", small, "--engine", engine, *also, "--quantization", "fp8")
    by_dtype = {share["dtype"]: share["size_bytes"] for share in document["precision"]["resident"]}
    assert by_dtype[next(name for name in by_dtype if name.lower().startswith(("float8", "f8")))] == matrices
    assert by_dtype["bfloat16"] == pytest.approx(2 * (embeddings + norms), abs=4 * matrices / 128**2 + MIB)
    assert sum(by_dtype.values()) == pytest.approx(matrices * (1 + 4 / 128**2) + 2 * (embeddings + norms), rel=0.001)
    assert any("--quantization fp8" in note for note in document["notes"])


@pytest.mark.parametrize(
    ("card", "version", "verdict"),
    [
        ("l40s", "0.11.0", "does_not_fit"),
        ("l40s", "0.29.0", "too_close"),
        ("rtx-pro-6000-blackwell-server-96gb", "0.11.0", "fits"),
    ],
)
def test_weights_that_are_quantised_at_load_need_room_for_16_bit_first(
    gpufit: Run, qwen: Path, card: str, version: str, verdict: str
) -> None:
    # 32.76 billion parameters (https://huggingface.co/Qwen/Qwen3-32B) in two bytes: 61.0 GiB before there is a byte in
    # FP8, where an L40S has 44.4 GiB. Since 0.14 layers may be quantised as they arrive, which the docs do not promise.
    flags = ("--engine", "vllm", "--engine-version", version, "--gpu", card, "--quantization", "fp8")
    row, start = only(as_json(gpufit, "estimate", qwen, *flags, "--tp", "1", code=0 if verdict == "fits" else 1))
    assert row["verdict"] == verdict
    assert any("loaded in 16 bit first, 61.0" in words for words in part(start, "weights")["words"])
    assert "one scale a tensor" in start["holds_for"]
    if verdict != "fits":
        assert "loaded in 16 bit before they are quantised" in start["binding"]
        assert (start["least_gpu_memory_utilization"], row["max_concurrency"]) == (None, 0)


def test_a_checkpoint_in_fp8_is_loaded_as_it_is(gpufit: Run, tmp_path: Path) -> None:
    # Its weights take a byte each from the start: less than 34 GiB of the L40S's 44.4.
    model = folder_of("Qwen/Qwen3-32B-FP8", tmp_path)
    row, start = only(as_json(gpufit, "estimate", model, "--engine", "vllm", "--gpu", "l40s"))
    assert row["verdict"] == "fits"
    assert not any("16 bit first" in words for words in part(start, "weights")["words"])


def test_a_model_with_its_files_says_what_they_hold(gpufit: Run, llama_dir: Path) -> None:
    flags = ("--engine", "vllm", "--gpu", "l4", "--max-model-len", "64")
    document = as_json(gpufit, "estimate", llama_dir, *flags)
    held = sum(share["size_bytes"] for share in document["precision"]["stored"])
    assert held > 0
    assert not any("no weight files" in note or "no shape rule" in note for note in document["notes"])
    quantised = as_json(gpufit, "estimate", llama_dir, *flags, "--quantization", "fp8")
    assert quantised["precision"]["stored"] == document["precision"]["stored"]
    assert quantised["precision"]["quantization"]["method"].startswith("FP8")
    assert any("float8" in share["dtype"] for share in quantised["precision"]["resident"])


def test_a_method_that_calibrates_is_estimated_and_its_checkpoint_asked_for(gpufit: Run, small: Path) -> None:
    flags = ("--engine", "vllm", "--gpu", "l4", "--quantization", "awq")
    document = as_json(gpufit, "estimate", small, *flags)
    assert any("needs a checkpoint quantised beforehand" in note for note in document["notes"])
    assert any(note.startswith("QUANTISED_CHECKPOINT in the command stands for") for note in document["notes"])
    command = only(document)[1]["serve_command"]
    # Not the 16-bit model: that is what would start unquantised.
    assert command.startswith("vllm serve QUANTISED_CHECKPOINT --tensor-parallel-size 1 ")
    assert not {"--quantization", str(small)} & set(shlex.split(command))


def test_what_has_no_room_to_quantise_at_load_names_the_flag_that_has(gpufit: Run, qwen: Path) -> None:
    # 61 GiB in 16 bit are more than an L40S's 44.4; half of them are not.
    flags = ("estimate", qwen, "--engine", "vllm", "--gpu", "l40s", "--tp", "1", "--quantization")
    row, _ = only(as_json(gpufit, *flags, "fp8", code=1))
    (said,) = (remark for remark in row["remarks"] if "quantised beforehand" in remark)
    named = shlex.split(said.partition("ask for one: ")[2].rstrip(")"))
    assert named[0] == "--quantization"
    row, start = only(as_json(gpufit, *flags, named[1]))
    assert (row["verdict"], row["remarks"]) == ("fits", [])
    assert not any("16 bit first" in words for words in part(start, "weights")["words"])


def test_a_checkpoint_in_fp8_that_is_only_asked_for_takes_what_one_of_its_kind_printed(
    gpufit: Run, tmp_path: Path
) -> None:
    fact = STARTS["A032"]  # Llama-3.3-70B-Instruct-FP8-dynamic over two ranks: 33.88 GiB each
    model = folder_of(fact["config"], tmp_path)
    flags = ("--engine", "vllm", "--engine-version", fact["version"], "--gpu", "h100-sxm", "--max-model-len", "16000")
    flags += ("--tp", str(fact["tensor_parallel"]), "--quantization", "compressed-tensors-fp8")
    _, start = only(as_json(gpufit, "estimate", model, *flags))
    assert part(start, "weights")["size_bytes"] / GIB == pytest.approx(fact["printed"]["weights_gib"], rel=0.001)


@pytest.mark.parametrize("form", ["csv", "markdown", "xlsx", "table"])
def test_every_format_says_the_same(gpufit: Run, qwen: Path, tmp_path: Path, form: str) -> None:
    asked = ("fit", qwen, *QUESTION, "--tp", "2", "--gpu", "h100-sxm", "--gpu", "b200")
    first, second = as_json(gpufit, *asked)["cards"]
    file = tmp_path / {"markdown": "out.md", "table": "out.txt"}.get(form, f"out.{form}")
    assert gpufit(*asked, "--format", form, "-o", file).code == 0
    command = second["start"]["serve_command"]
    if form == "csv":
        rows = list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8"))))
        assert [int(row["kv_pool_bytes"]) for row in rows] == [one["start"]["kv_pool_bytes"] for one in (first, second)]
        assert [int(row["kv_tokens"]) for row in rows] == [
            one["start"]["kv_tokens"]["point"] for one in (first, second)
        ]
        assert (rows[1]["serve_command"], rows[1]["engine"], rows[1]["engine_version"]) == (command, "vllm", "0.29.0")
        assert [row["verdict"] for row in rows] == [first["verdict"], second["verdict"]]
    elif form == "xlsx":
        book = openpyxl.load_workbook(file)
        header, *rows = book["cards"].iter_rows(values_only=True)
        pool = header.index("KV pool (GiB)")
        assert rows[0][pool] == pytest.approx(first["start"]["kv_pool_bytes"] / GIB)
        assert rows[0][header.index("utilization")] == 0.92
        assert command in [line[-1] for line in book["evidence"].iter_rows(values_only=True)]
    else:
        text = " ".join(file.read_text(encoding="utf-8").replace("\\\n", " ").split())
        for one in (first, second):
            assert f"{one['start']['kv_tokens']['point']:,}" in text
            assert " ".join(one["start"]["serve_command"].split()) in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--tp", "3"), "64 attention heads cannot be divided over 3 ranks"),
        (("--tp", "16", "--max-model-len", "64k"), "beyond the model's own 40960 positions"),
        (("--max-num-seqs", "8"), "--max-num-seqs 8 runs no more than that at once"),
        (("--max-num-seqs", "64", "--max-num-batched-tokens", "32"), "--max-num-batched-tokens 32 is less than"),
        (("--kv-cache-dtype", "int8"), "--kv-cache-dtype int8: no memory rule"),
        (("--kv-cache-dtype", "float16"), "the model runs in bfloat16"),
        (("--tensor", "2"), "unrecognized arguments: --tensor 2"),
        (("--new-tokens", "16k"), "leaves no room for a prompt"),
        (("--dtype", "float32"), "16-bit weights"),
        (("--quantization", "quanto-int4"), "vLLM does not run it"),
        (("--quantization", "unheard-of"), "not a name that is known here"),
        (("--engine-version", "newest"), "not a release"),
        (("--attn-implementation", "eager"), "an option of --engine transformers"),
        (("--save", "profile.json"), "--save writes a profile"),
        (("--gpu-memory-utilization", "1.5"), "above 0 and at most 1"),
        (("--card", "h100"), "could be several cards"),
        (("--max-loras", "2"), "--max-loras goes with --enable-lora, which was not given"),
        (("--max-lora-rank", "8"), "--max-lora-rank goes with --enable-lora"),
        (("--enable-lora", "--max-lora-rank", "24"), "vLLM 0.29.0 takes 1, 8, 16, 32, 64, 128, 256, 320, 512"),
        (("--enable-lora", "--max-loras", "0"), "--max-loras must be a whole number of at least 1"),
    ],
)
def test_what_cannot_be_asked_is_one_line(gpufit: Run, qwen: Path, arguments: tuple[str, ...], message: str) -> None:
    done = gpufit("estimate", qwen, *QUESTION, "--gpu", "h100-sxm", *arguments)
    assert (done.code, done.stdout) == (2, "")
    assert message in done.error


def test_without_a_card_the_way_to_one_is_said(gpufit: Run, qwen: Path) -> None:
    done = gpufit("estimate", qwen, *QUESTION)
    assert (done.code, done.stdout) == (2, "")
    assert "takes a share of a card: name it with --card, or use gpufit fit" in done.error


def test_vllms_names_of_caches_are_no_names_of_transformers(gpufit: Run, small: Path) -> None:
    done = gpufit("estimate", small, "--kv-cache-dtype", "fp8_e5m2")
    assert (done.code, done.stdout) == (2, "")
    assert "--kv-cache-dtype fp8_e5m2: use auto or fp8" in done.error


def test_a_part_of_an_options_name_is_none(gpufit: Run, small: Path) -> None:
    for command in (
        ("estimate", small, "--conc", "2"),
        ("fit", small, "--quant", "fp8"),
        ("catalog", "list", "--cat", "."),
    ):
        done = gpufit(*command)
        assert (done.code, done.stdout) == (2, "")
        assert "unrecognized arguments" in done.error


@pytest.mark.parametrize("flag", [("--tp", "2"), ("--enforce-eager",), ("--enable-lora",)])
def test_a_flag_of_vllm_beside_transformers_is_refused(gpufit: Run, qwen: Path, flag: tuple[str, ...]) -> None:
    for command in ("estimate", "fit"):
        done = gpufit(command, qwen, *flag)
        assert (done.code, done.stdout) == (2, "")
        assert "is an option of --engine vllm, and --engine is transformers" in done.error


def test_a_profile_keeps_the_engine_it_was_measured_in(gpufit: Run, tmp_path: Path) -> None:
    save_profile(make_profile(), tmp_path / "profile.json")
    done = gpufit("fit", tmp_path / "profile.json", "--engine", "vllm")
    assert (done.code, done.stdout) == (2, "")
    assert "--engine is for a model" in done.error


@pytest.mark.parametrize(
    ("name", "message"),
    [("openai/whisper-large-v3", "cross-attention"), ("deepseek-ai/DeepSeek-V4-Flash", "caches of deepseek_v4")],
)
def test_a_model_that_no_rule_covers_is_one_line(gpufit: Run, tmp_path: Path, name: str, message: str) -> None:
    done = gpufit("estimate", folder_of(name, tmp_path), "--engine", "vllm", "--gpu", "h100-sxm")
    assert (done.code, done.stdout) == (2, "")
    assert f"no memory rule for vLLM with {message}" in done.error.replace("the caches", "caches")


def test_an_unknown_family_and_a_gguf_file_are_one_line(gpufit: Run, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "unheard_of"}')
    done = gpufit("estimate", tmp_path / "config.json", "--engine", "vllm", "--gpu", "h100-sxm")
    assert (done.code, done.stdout) == (3, "")
    assert "no shape rules" in done.error
    done = gpufit("estimate", tmp_path / "model.gguf", "--engine", "vllm", "--gpu", "h100-sxm")
    assert (done.code, done.stdout) == (2, "")
    assert "GGUF support is experimental" in done.error


@pytest.mark.parametrize("command", ["estimate", "fit"])
def test_torch_is_never_imported(qwen: Path, command: str) -> None:
    code = (
        "import sys; from gpufit.cli.main import main; "
        "status = main([*sys.argv[1:], '--engine', 'vllm', '--tp', '2', '--gpu', 'h200-sxm', '--json']); "
        "heavy = {'torch', 'transformers', 'numpy', 'scipy', 'textual', 'vllm'} & set(sys.modules); "
        "print(status, sorted(heavy), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, command, str(qwen)], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "0 []"
