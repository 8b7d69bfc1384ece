"""Slots for LoRA adapters, against arithmetic over published shapes and two printed figures."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from public_models import CONFIGS

from benchmarks import accuracy_vllm
from gpufit.architecture.record import Architecture
from gpufit.architecture.registry import architecture_of
from gpufit.errors import UsageError
from gpufit.memory.allocator import handed_out, parse_settings
from gpufit.memory.engines.base import parse_version
from gpufit.memory.engines.vllm import (
    Device,
    Lora,
    Ranks,
    Settings,
    VllmStart,
    of_config,
    plain,
    rules_of,
    serve_flags,
    start,
)
from gpufit.memory.engines.vllm.activation import adapters_peak
from gpufit.memory.engines.vllm.lora import adapter_sizes, lora_part
from gpufit.memory.engines.vllm.lora_models import adapts_head, takes_adapters
from gpufit.memory.engines.vllm.settings import Batch
from gpufit.units import GIB

H100 = Device("NVIDIA H100 80GB HBM3", int(79.18 * GIB), 9.0, fast_links=True)
UNSLOTH = parse_settings("expandable_segments:True,roundup_power2_divisions:[32:256,64:128,256:64,>:32]")
ITEM = 2
"""Bytes an element in 16 bit."""


def model(name: str) -> Architecture:
    return architecture_of(CONFIGS[name], name)


def total(name: str, version: str, ranks: Ranks, **lora: int) -> int:
    return sum(adapter_sizes(model(name), ranks, Lora(**lora), rules_of(version), ITEM))


def begun(name: str, version: str, lora: Lora | None, **flags: object) -> VllmStart:
    settings = Settings(max_model_len=4096, lora=lora, **flags)  # type: ignore[arg-type]
    return start(model(name), plain("BF16"), H100, settings, rules_of(version), name)


QWEN3_4B = 36 * (
    (2560 + 4096)  # q: A of rank x hidden, B of 32 heads of 128 x rank
    + 2 * (2560 + 1024)  # k, v: 8 heads of 128
    + (4096 + 2560)  # o
    + 2 * (2560 + 9728)  # gate, up
    + (9728 + 2560)  # down
)
"""Elements a rank: 2,064,384."""
LLAMA_3B = 28 * ((3072 + 3072) + 2 * (3072 + 1024) + (3072 + 3072) + 2 * (3072 + 8192) + (8192 + 3072))
"""Elements a rank: 1,519,616."""


def test_each_linear_layer_has_a_pair_and_a_family_without_embedding_modules_no_more() -> None:
    assert total("Qwen/Qwen3-4B", "0.8.5", Ranks(), max_rank=32) == QWEN3_4B * 32 * ITEM
    assert total("Qwen/Qwen3-4B", "0.8.5", Ranks(), max_rank=32, max_loras=3) == 3 * QWEN3_4B * 32 * ITEM


def test_embeddings_and_head_have_slots_and_until_0_12_room_for_tokens_of_adapters() -> None:
    added = 256 * 3072 * ITEM
    embeddings = ((128256 + 256) + 3072) * 64 * ITEM + added
    head = (3072 + (128256 + 256)) * 64 * ITEM + added  # 128,512 is a multiple of 256 as it is
    old = total("meta-llama/Llama-3.2-3B", "0.8.5", Ranks(), max_rank=64)
    assert old == LLAMA_3B * 64 * ITEM + embeddings + head
    new = total("meta-llama/Llama-3.2-3B", "0.29.0", Ranks(), max_rank=64)
    assert new == (LLAMA_3B + 2 * (128256 + 3072)) * 64 * ITEM


def test_a_tied_qwen3_has_the_slots_of_its_embeddings_twice() -> None:
    vocabulary = 151936 + 2560
    assert total("Qwen/Qwen3-4B", "0.29.0", Ranks()) == (QWEN3_4B + 3 * vocabulary) * 16 * ITEM


@pytest.mark.parametrize("row", ["A019", "A028", "A162"])
def test_what_three_starts_with_adapters_printed_is_met_to_a_ten_thousandth(row: str) -> None:
    found = [one for one in accuracy_vllm.compare().of("weights") if one.row == row]
    assert [abs(one.error) < 1e-4 for one in found] == [True]


def test_unsloths_allocator_rounds_the_embeddings_up_and_splits_all_else_off() -> None:
    # Above 512 MiB to the next 32nd of that: 46.4 times 16 MiB become 47. Torch's own would leave 512 B steps there.
    assert handed_out(151936 * 2560 * ITEM, UNSLOTH) == 47 * 16 * 1024**2
    # 19.5 MiB would keep the half MiB that is left of a segment of its own; an expandable one splits it off.
    assert (handed_out(39 * 2**19), handed_out(39 * 2**19, UNSLOTH)) == (20 * 1024**2, 39 * 2**19)


def test_a_rank_holds_a_whole_of_column_layers_and_b_whole_of_row_layers() -> None:
    # Llama-3.1-8B over 16 ranks: 2 query heads each, and one of 8 KV heads, which two ranks hold alike.
    a_layer = (
        (4096 + 256)  # q
        + 2 * (4096 + 128)  # k, v
        + (256 + 4096)  # o
        + 2 * (4096 + 896)  # gate, up: 14,336 / 16
        + (896 + 4096)  # down
    )
    vocabulary = 2 * (128256 + 4096)
    gathered = 128256 * 8
    whole = (32 * a_layer + vocabulary) * 16 * ITEM + gathered
    assert total("meta-llama/Meta-Llama-3.1-8B", "0.29.0", Ranks(16)) == whole


def test_layers_that_the_checkpoint_has_fused_have_one_pair() -> None:
    # Phi-4: qkv_proj and gate_up_proj are single tensors.
    a_layer = (5120 + 7680) + (5120 + 5120) + (5120 + 35840) + (17920 + 5120)
    vocabulary = 2 * (100352 + 5120)
    assert total("microsoft/phi-4", "0.29.0", Ranks()) == (40 * a_layer + vocabulary) * 16 * ITEM


def test_experts_have_slots_each_since_0_11_1() -> None:
    attention = (2048 + 4096) + 2 * (2048 + 512) + (4096 + 2048) + (2048 + 128)  # q, k, v, o and the router
    experts = 128 * (2 * (2048 + 768) + (768 + 2048))
    name = "Qwen/Qwen3-30B-A3B"
    assert total(name, "0.11.0", Ranks()) == 48 * attention * 16 * ITEM
    assert total(name, "0.12.0", Ranks()) == 48 * (attention + experts) * 16 * ITEM
    (told,) = lora_part(model(name), Ranks(), Lora(), rules_of("0.11.0"), ITEM).words
    assert "not the experts" in told


def test_experts_of_two_ranks_are_divided_by_width_or_by_number() -> None:
    name, half = "Qwen/Qwen3-30B-A3B", 48 * 16 * ITEM
    by_width = 128 * (2 * (2048 + 384) + (384 + 2048))
    by_number = 64 * (2 * (2048 + 768) + (768 + 2048))
    more = total(name, "0.29.0", Ranks(2)) - total(name, "0.29.0", Ranks(2, expert=True))
    assert more == (by_width - by_number) * half


def test_gpt_oss_has_one_pair_for_gate_and_up_since_0_12() -> None:
    name, layers = "openai/gpt-oss-20b", 24
    apart, at_once = (total(name, version, Ranks()) for version in ("0.11.2", "0.12.0"))
    assert apart - at_once == layers * 32 * 2880 * 16 * ITEM  # an A fewer for each of 32 experts


def test_short_convolutions_are_linear_layers_to_vllm() -> None:
    # Qwen3-Next-80B-A3B, outside experts: 12 layers of attention (queries and their gate, 8,192 wide), 36 linear ones.
    shared = 2 * (2048 + 512) + (512 + 2048) + (2048 + 1) + (2048 + 512)  # shared expert, its gate, and the router
    attention = (2048 + 8192) + 2 * (2048 + 512) + (4096 + 2048)
    linear = (2048 + 12288) + (2048 + 64) + (4 + 8192) + (4096 + 2048)
    name = "Qwen/Qwen3-Next-80B-A3B"
    assert total(name, "0.11.0", Ranks()) == (12 * attention + 36 * linear + 48 * shared) * 16 * ITEM
    part = lora_part(model(name), Ranks(), Lora(), rules_of("0.11.0"), ITEM)
    assert part.amount.upper_bytes > 1.4 * part.amount.point_bytes


def test_slots_of_a_quantised_model_are_in_16_bit() -> None:
    name = "Qwen/Qwen3-32B-FP8"
    settings = Settings(max_model_len=4096, lora=Lora())
    one = start(model(name), of_config(CONFIGS[name], name), H100, settings, rules_of("0.12.0"))
    a_layer = (5120 + 8192) + 2 * (5120 + 1024) + (8192 + 5120) + 2 * (5120 + 25600) + (25600 + 5120)
    # Below 1 MiB each, at rank 16: 512 B blocks, and all widths are multiples of 16.
    assert one.part("lora").amount.point_bytes == 64 * a_layer * 16 * ITEM


def test_the_pool_is_smaller_by_what_the_slots_take() -> None:
    without = begun("Qwen/Qwen3-4B", "0.29.0", None, enforce_eager=True)
    with_slots = begun("Qwen/Qwen3-4B", "0.29.0", Lora(2, 64), enforce_eager=True)
    slots = with_slots.part("lora").amount
    assert without.pool_bytes.point_bytes - with_slots.pool_bytes.point_bytes == slots.point_bytes
    assert "--enable-lora --max-loras 2 --max-lora-rank 64 --enforce-eager" in " ".join(serve_flags(with_slots))
    assert "lora" not in " ".join(serve_flags(without))


def test_before_0_8_slots_came_on_top_of_the_budget() -> None:
    without, with_slots = (begun("Qwen/Qwen3-4B", "0.7.3", lora) for lora in (None, Lora()))
    part = with_slots.part("lora")
    assert with_slots.pool_bytes == without.pool_bytes
    assert (part.amount.upper_bytes, part.on_top and part.on_top.point_bytes) == (0, QWEN3_4B * 16 * ITEM)
    assert "63.0 MiB on top of the budget" in part.words[1]  # 66,060,288 B


def test_graphs_are_captured_with_and_without_adapters() -> None:
    without, with_slots = (begun("Qwen/Qwen3-4B", "0.29.0", lora).part("cuda_graphs") for lora in (None, Lora()))
    assert with_slots.amount.point_bytes == 2 * without.amount.point_bytes
    older = [begun("Qwen/Qwen3-4B", version, Lora()).part("cuda_graphs").on_top for version in ("0.11.0", "0.12.0")]
    assert [one.upper_bytes / GIB for one in older if one is not None] == [2.5, 5.0]


def test_a_layer_keeps_what_a_makes_of_its_inputs_in_float32() -> None:
    batch, settings = Batch(256, 8192, True, frozenset()), Settings(max_model_len=4096, lora=Lora(max_rank=512))
    dense = adapters_peak(model("Qwen/Qwen3-4B"), settings, batch, rules_of())
    assert dense == 8192 * 3 * 512 * 4
    assert adapters_peak(model("Qwen/Qwen3-30B-A3B"), settings, batch, rules_of()) == 8 * dense
    assert adapters_peak(model("Qwen/Qwen3-4B"), replace(settings, lora=None), batch, rules_of()) == 0


@pytest.mark.parametrize(
    ("version", "rank", "taken"),
    [
        ("0.5.0", 128, False),
        ("0.6.6", 256, True),
        ("0.7.3", 512, False),
        ("0.8.0", 320, True),
        ("0.11.0", 1, False),
        ("0.11.2", 1, True),
        ("0.29.0", 24, False),
    ],
)
def test_releases_differ_in_the_ranks_that_they_take(version: str, rank: int, taken: bool) -> None:
    def asked() -> object:
        return lora_part(model("meta-llama/Meta-Llama-3.1-8B"), Ranks(), Lora(max_rank=rank), rules_of(version), ITEM)

    if taken:
        assert asked()
        return
    with pytest.raises(UsageError, match=rf"--max-lora-rank {rank}: vLLM {version} takes .*, 64"):
        asked()


@pytest.mark.parametrize(
    ("name", "version", "taken"),
    [
        ("LlamaForCausalLM", "0.6.6", True),
        ("FalconForCausalLM", "0.29.0", False),
        ("BertModel", "0.29.0", False),
        ("Qwen3ForSequenceClassification", "0.9.0", True),
        ("Qwen3MoeForCausalLM", "0.9.2", False),
        ("Qwen3MoeForCausalLM", "0.10.0", True),
        ("GptOssForCausalLM", "0.11.0", False),
        ("GptOssForCausalLM", "0.11.1", True),
        ("LlavaForConditionalGeneration", "0.12.0", False),
        ("UnheardOfForCausalLM", "0.29.0", True),
    ],
)
def test_families_take_adapters_from_some_release_on_or_never(name: str, version: str, taken: bool) -> None:
    assert takes_adapters(name, parse_version(version)) is taken


def test_heads_take_adapters_by_family_and_release() -> None:
    asked = [("Llama", "0.8.5"), ("Mistral", "0.14.0"), ("Mistral", "0.17.0"), ("Qwen3", "0.14.0"), ("Qwen3", "0.17.0")]
    found = [adapts_head(f"{family}ForCausalLM", parse_version(version)) for family, version in asked]
    assert found == [True, True, False, False, True]


def test_experts_divided_by_number_take_no_adapters_up_to_0_20() -> None:
    name, divided = "Qwen/Qwen3-30B-A3B", Ranks(2, expert=True)
    with pytest.raises(UsageError, match="leave --enable-expert-parallel out"):
        lora_part(model(name), divided, Lora(), rules_of("0.20.0"), ITEM)
    assert lora_part(model(name), divided, Lora(), rules_of("0.11.0"), ITEM)


def test_a_start_without_a_slot_is_none() -> None:
    with pytest.raises(UsageError, match="--max-loras 0 is not a positive number"):
        Lora(max_loras=0)


@given(
    st.sampled_from(["Qwen/Qwen3-4B", "Qwen/Qwen3-30B-A3B", "meta-llama/Meta-Llama-3.1-8B", "microsoft/phi-4"]),
    st.sampled_from(["0.8.5", "0.11.0", "0.12.0", "0.20.0", "0.29.0"]),
    st.integers(1, 8),
    st.sampled_from([8, 16, 64, 256]),
)
def test_slots_grow_with_their_number_and_rank_and_ranks_never_hold_less_than_one(
    name: str, version: str, slots: int, rank: int
) -> None:
    if not takes_adapters(model(name).class_name, parse_version(version)):
        return
    one = total(name, version, Ranks(), max_loras=slots, max_rank=rank)
    assert total(name, version, Ranks(), max_loras=slots + 1, max_rank=rank) > one
    assert total(name, version, Ranks(), max_loras=slots, max_rank=2 * rank) > one
    two = total(name, version, Ranks(2), max_loras=slots, max_rank=rank)
    gathered = model(name).vocabulary * 8 + 512 * 8  # the one thing that a rank has more than one card alone
    assert one / 2 <= two <= one + gathered
