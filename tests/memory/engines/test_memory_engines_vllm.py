"""Each rule of vLLM by itself, against arithmetic and printed figures."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from gpufit.architecture.record import Architecture, AttentionCache, Experts, Kind, Split, StateCache, Weight
from gpufit.architecture.registry import architecture_of
from gpufit.errors import UsageError
from gpufit.memory.allocator import handed_out
from gpufit.memory.engines.base import Amount, Outcome, parse_version
from gpufit.memory.engines.vllm import (
    Device,
    Ranks,
    Sampler,
    Settings,
    plain,
    quantised,
    rules_of,
    serve_flags,
    start,
)
from gpufit.memory.engines.vllm.activation import layers_peak, sampler_peak, sort_entry_bytes
from gpufit.memory.engines.vllm.layers import kinds_of
from gpufit.memory.engines.vllm.overheads import graph_count
from gpufit.memory.engines.vllm.precision import MXFP4_KERNELS
from gpufit.memory.engines.vllm.rope import rope_table_sizes
from gpufit.memory.engines.vllm.settings import Batch, batch_of
from gpufit.memory.engines.vllm.weights import tensors_per_rank, weights_per_rank
from gpufit.units import GIB, MIB

H100 = Device("NVIDIA H100 80GB HBM3", int(79.18 * GIB), 9.0, fast_links=True)
RTX3090 = Device("NVIDIA GeForce RTX 3090", int(23.58 * GIB), 8.6)


def llama(**changed: object) -> Architecture:
    """Llama-3.1-8B: https://huggingface.co/meta-llama/Llama-3.1-8B."""
    config = {
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "max_position_embeddings": 131072,
        "torch_dtype": "bfloat16",
    }
    return architecture_of({**config, **changed}, "llama")


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        (1, 512),
        (9 * MIB, 9 * MIB),
        (10 * MIB, 10 * MIB),
        (35 * MIB, 36 * MIB),  # 1 MiB of the 36 MiB segment is left over: it stays with the tensor
        (16 * MIB + 512, 16 * MIB + 512),  # nearly 2 MiB left over: given to others
        (67 * MIB + MIB // 2, 68 * MIB),
    ],
)
def test_tensors_take_blocks_of_the_allocator(asked: int, given: int) -> None:
    assert handed_out(asked) == given


def test_tensors_are_fused_as_vllm_does() -> None:
    names = dict.fromkeys(name for name, *_ in tensors_per_rank(llama(), Ranks(2), plain("BF16")))
    # Embedding, head, last norm; and a layer: qkv, o, gate and up, down, two norms.
    assert len(names) == 3 + 32 * 6
    sizes = {name: size for name, _, size in tensors_per_rank(llama(), Ranks(2), plain("BF16"))}
    assert sizes["model.layers.0.self_attn.q_proj.weight"] == (4096 + 2 * 1024) // 2 * 4096 * 2
    assert sizes["model.layers.0.mlp.gate_proj.weight"] == 14336 * 4096 * 2


def test_vocabularies_are_padded_to_64_rows() -> None:
    sizes = {name: size for name, _, size in tensors_per_rank(llama(vocab_size=32002), Ranks(1), plain("BF16"))}
    assert sizes["model.embed_tokens.weight"] == 32064 * 4096 * 2


def test_the_rotary_table_is_whole_on_every_rank() -> None:
    assert rope_table_sizes(llama(), 2) == (131072 * 128 * 2,)
    whole, half = (weights_per_rank(llama(), Ranks(tp), plain("BF16")).amount.point_bytes for tp in (1, 2))
    # Printed: 14.9888 GiB (vllm-project/vllm#10517) and 7.5122 GiB (pytorch/serve#3315).
    assert whole / GIB == pytest.approx(14.9888, abs=5e-5)
    assert half / GIB == pytest.approx(7.5122, abs=5e-5)


@pytest.mark.parametrize(
    ("ranks", "changed", "why"),
    [
        (3, {}, "32 attention heads cannot be divided over 3 ranks"),
        (2, {"num_key_value_heads": 1, "intermediate_size": 14335}, "gate_proj.weight: 14335 cannot be divided"),
        (4, {"num_attention_heads": 36, "num_key_value_heads": 6, "head_dim": 128}, "6 KV heads cannot be divided"),
    ],
)
def test_what_cannot_be_divided_is_refused_with_the_reason(ranks: int, changed: dict[str, object], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        weights_per_rank(llama(**changed), Ranks(ranks), plain("BF16"))


def experts_of(model: Architecture) -> Architecture:
    layers = (0, 1)
    names = (("gate_proj", (768, 4096)), ("up_proj", (768, 4096)), ("down_proj", (4096, 768)))
    weights = tuple(
        Weight(
            f"model.layers.{{layer}}.mlp.experts.{{expert}}.{name}.weight",
            shape,
            Kind.EXPERT,
            Split.ROW if name == "down_proj" else Split.COLUMN,
            layers=layers,
            experts=16,
            fused="" if name == "down_proj" else "gate_up_proj",
        )
        for name, shape in names
    )
    return replace(model, weights=weights, experts=Experts(layers=2, count=16, per_token=2, intermediate=768))


def test_all_experts_of_a_layer_are_two_tensors_divided_by_width_or_by_number() -> None:
    model = experts_of(llama())
    by_width = sorted(size for *_, size in tensors_per_rank(model, Ranks(4), plain("BF16")))
    by_number = sorted(size for *_, size in tensors_per_rank(model, Ranks(4, expert=True), plain("BF16")))
    assert by_width == by_number == [16 * 4096 * 768 * 2 // 4] * 2 + [16 * 2 * 4096 * 768 * 2 // 4] * 2


def test_mxfp4_experts_are_padded_by_their_kernel() -> None:
    # gpt-oss has widths of 2,880. Marlin: to 2,944 and 3,072. Triton on Hopper: the values' inputs to 3,072.
    square = 2880**2
    marlin, triton = MXFP4_KERNELS["marlin"], MXFP4_KERNELS["triton"]
    assert marlin.padding(2880, 2880, down=False) == (Fraction(2944 * 3072, square),) * 2
    assert triton.padding(2880, 2880, down=True) == (Fraction(3072, 2880), 1)
    # Over four ranks 720 become 768, which rows of 256 divide.
    assert triton.padding(720, 2880, down=True) == (Fraction(768, 720),) * 2


def test_a_sorting_sampler_takes_38_bytes_an_entry_and_more_with_few_rows() -> None:
    # 16-bit and float32 logits, sorted values, int64 places: 2 + 4 + 4 + 8 = 18; scratch: 8 + 4 + 8 = 20, with fewer
    # than 128 rows 8 + 8 + 4 + 4 + 8 = 32.
    assert [sort_entry_bytes(rows) for rows in (1, 2, 127, 128, 1024)] == [18, 50, 50, 38, 38]


def test_the_sampler_rules_the_peak_of_llama_70b_as_printed() -> None:
    # 4.84 GiB on two H100 with 1,024 sequences and steps of 8,192 tokens (llm-d-planner's table).
    model = llama(hidden_size=8192, intermediate_size=28672, num_hidden_layers=80, num_attention_heads=64)
    batch = Batch(1024, 8192, chunked=True, assumed=frozenset({"sequences", "tokens"}))
    rules = rules_of("0.11.0")
    assert sampler_peak(model, batch, H100, Sampler.SORTED, rules) / GIB == pytest.approx(4.84, abs=0.01)
    assert sampler_peak(model, batch, H100, Sampler.FUSED, rules) < sampler_peak(
        model, batch, H100, Sampler.SORTED, rules
    )


def test_the_layers_rule_the_peak_of_a_long_prompt_as_printed() -> None:
    # 2.07 GiB at 20,000 tokens, 2.99 GiB at 29,000 (vllm-project/vllm#10517).
    for tokens, printed in ((20000, 2.07), (29000, 2.99)):
        peak = layers_peak(llama(), Batch(4, tokens, chunked=False, assumed=frozenset()), RTX3090, 1)
        assert peak / GIB == pytest.approx(printed, abs=0.01)


@pytest.mark.parametrize(
    ("version", "card", "length", "sequences", "tokens"),
    [
        ("0.11.0", H100, 4096, 1024, 8192),
        ("0.11.0", RTX3090, 4096, 256, 2048),
        ("0.11.0", Device("NVIDIA A100-SXM4-80GB", int(79.25 * GIB), 8.0), 4096, 256, 2048),
        ("0.8.2", RTX3090, 4096, 1024, 2048),
        ("0.7.2", RTX3090, 20000, 256, 20000),
        ("0.7.2", RTX3090, 131072, 256, 2048),
        ("0.6.4", RTX3090, 35000, 256, 512),
    ],
)
def test_defaults_depend_on_card_and_release(
    version: str, card: Device, length: int, sequences: int, tokens: int
) -> None:
    batch = batch_of(Settings(max_model_len=length), card, rules_of(version))
    assert (batch.sequences, batch.tokens) == (sequences, tokens)


@pytest.mark.parametrize(
    ("sequences", "said"),
    [
        (None, "sequences and tokens of a step are vLLM's defaults for this card"),
        (43, "tokens of a step are vLLM's default for this card"),
    ],
)
def test_only_what_was_not_set_is_called_a_default(sequences: int | None, said: str) -> None:
    settings = Settings(max_model_len=4096, max_num_seqs=sequences)
    one = start(llama(), plain("BF16"), H100, settings, rules_of("0.29.0"), "llama")
    activation = next(part for part in one.parts if part.name == "activation")
    assert activation.words[1] == said


def test_a_start_says_what_it_holds_for_and_how_to_repeat_it() -> None:
    settings = Settings(max_model_len=16384, utilization=0.9, ranks=Ranks(2))
    one = start(llama(), plain("BF16"), H100, settings, rules_of("0.11.0"), "meta-llama/Llama-3.1-8B")
    assert one.outcome is Outcome.FITS
    assert one.holds_for == (
        "meta-llama/Llama-3.1-8B, vLLM 0.11.0 (V1 engine), BF16 weights, 2 x NVIDIA H100 80GB HBM3"
    )
    assert " ".join(serve_flags(one)) == (
        "vllm serve meta-llama/Llama-3.1-8B --tensor-parallel-size 2 --max-model-len 16384 "
        "--gpu-memory-utilization 0.9 --max-num-seqs 1024 --max-num-batched-tokens 8192"
    )


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("auto", "BF16 weights, 1 x"),
        ("bfloat16", "BF16 weights, 1 x"),
        ("fp8", "BF16 weights, float8_e4m3fn KV cache, 1 x"),
        ("fp8_e5m2", "BF16 weights, float8_e5m2 KV cache, 1 x"),
    ],
)
def test_a_start_holds_for_the_dtype_of_its_cache_where_that_is_not_the_models(flag: str, said: str) -> None:
    settings = Settings(max_model_len=4096, kv_cache_dtype=flag)
    assert said in start(llama(), plain("BF16"), H100, settings, rules_of("0.29.0"), "llama").holds_for


def test_a_hybrid_model_names_the_sequences_that_its_states_allow() -> None:
    # 30 layers of 2,146,304 B in pages of 2,162,688 B, ten a block: 21.6 MB a sequence, in three groups.
    state = StateCache(30, convolution_elements=4 * 8192, recurrent_elements=32 * 128 * 128)
    model = replace(llama(), caches=(AttentionCache(10, 2, 256, 256), state))
    card = Device("NVIDIA H100", 30 * GIB, 9.0)
    one = start(model, plain("BF16"), card, Settings(max_model_len=4096, max_num_seqs=1024), rules_of())
    assert one.outcome is Outcome.DOES_NOT_FIT
    most = int(one.binding.rpartition(" ")[2])
    again = start(model, plain("BF16"), card, Settings(max_model_len=4096, max_num_seqs=most), rules_of())
    assert again.outcome is Outcome.FITS


def test_cards_without_bfloat16_are_started_in_half() -> None:
    t4 = Device("Tesla T4", int(14.74 * GIB), 7.5)
    one = start(llama(), plain("BF16"), t4, Settings(max_model_len=4096), rules_of())
    assert serve_flags(one)[-2:] == ("--dtype", "half")


def test_a_model_that_is_too_large_is_refused_with_what_binds() -> None:
    one = start(
        llama(), plain("BF16"), replace(RTX3090, total_bytes=12 * GIB), Settings(max_model_len=4096), rules_of()
    )
    assert one.outcome is Outcome.DOES_NOT_FIT
    assert "short before any KV cache, at the least " in one.binding
    assert one.binding.endswith("; the largest part is weights with 14.99 GiB")
    assert one.least_utilization is None


def test_graphs_are_captured_for_51_batch_sizes_at_most() -> None:
    # 1, 2, 4; 32 multiples of 8; 16 multiples of 16 beyond: the list that logs of 0.10 print has the same ends.
    assert [graph_count(sequences) for sequences in (1, 4, 256, 1024)] == [2 * 2, 2 * 4, 2 * 51, 2 * 51]


def test_the_graphs_estimate_is_subtracted_since_0_21_and_never_in_eager_mode() -> None:
    def graphs(version: str, eager: bool = False) -> Amount:
        settings = Settings(max_model_len=4096, enforce_eager=eager)
        return start(llama(), plain("BF16"), H100, settings, rules_of(version)).part("cuda_graphs").amount

    assert graphs("0.19.0").upper_bytes == 0
    assert graphs("0.23.0").point_bytes > 0
    assert graphs("0.23.0", eager=True).upper_bytes == 0


@pytest.mark.parametrize(
    ("text", "release"),
    [("0.11.0", "0.11.0"), ("v0.8", "0.8.0"), ("0.19.2rc1.dev134", "0.19.2"), ("0.8.5.post1", "0.8.5")],
)
def test_releases_are_read_as_they_are_written(text: str, release: str) -> None:
    assert str(parse_version(text)) == release


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: rules_of("latest"), "is not a release"),
        (lambda: Settings(max_model_len=0), "max model length 0"),
        (lambda: Settings(max_model_len=1, utilization=1.5), "gpu memory utilization 1.5"),
        (lambda: quantised("qqq"), "not a name that is known here"),
        (lambda: kinds_of(llama(), Ranks(), "int3"), "kv cache dtype 'int3'"),
        (
            lambda: start(llama(), plain("BF16"), H100, Settings(max_model_len=131073), rules_of()),
            "beyond the model's own 131072 positions",
        ),
    ],
)
def test_what_makes_no_sense_gets_one_clear_line(make, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        make()
