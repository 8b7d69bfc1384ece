"""The options of `estimate` and `fit MODEL`: which engine, and the flags of each under the engine's own names."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpufit.cli.arguments import add_revision, count, share
from gpufit.errors import UsageError
from gpufit.files import exists
from gpufit.units import format_tokens

if TYPE_CHECKING:
    from gpufit.report.document import Scenario
    from gpufit.sources.estimate.request import EstimateRequest
    from gpufit.sources.estimate.vllm import VllmRequest

ENGINES = ("transformers", "vllm")
"""The engines that a model can be estimated for."""

_DEFAULTS: dict[str, Any] = {"engine": "transformers", "dtype": "auto", "kv_cache_dtype": "auto"} | dict.fromkeys(
    ("engine_version", "quantization", "revision")
)
"""What every engine takes, with what each is when it was not given."""

_OF_TRANSFORMERS: dict[str, Any] = {"attn_implementation": None}

_OF_VLLM: dict[str, Any] = {
    "tensor_parallel_size": None,
    "pipeline_parallel_size": None,
    "enable_expert_parallel": False,
    "gpu_memory_utilization": None,
    "max_num_seqs": None,
    "max_num_batched_tokens": None,
    "enforce_eager": False,
    "language_model_only": False,
    "enable_lora": False,
    "max_loras": None,
    "max_lora_rank": None,
}


def add_engine_options(parser: argparse._ActionsContainer, starts: bool = True) -> None:
    """How the model is run: what `estimate`, `fit MODEL` and `compare` take alike; `starts` adds what a start of vLLM
    takes beside that."""
    parser.add_argument(
        "--engine", choices=ENGINES, default="transformers", help="what runs it (default: transformers)"
    )
    parser.add_argument(
        "--engine-version", metavar="X.Y.Z", help="release of the engine (default: the newest whose rules are known)"
    )
    parser.add_argument(
        "--dtype", default="auto", help="dtype of the weights in memory (default: auto, the checkpoint's own)"
    )
    parser.add_argument(
        "--quantization",
        metavar="NAME",
        help="quantise 16-bit weights so: fp8, bitsandbytes-nf4, awq, gptq, ... (default: as the files)",
    )
    parser.add_argument(
        "--kv-cache-dtype",
        metavar="NAME",
        default="auto",
        help="dtype of the KV cache: auto, fp8; vllm: fp8_e4m3, fp8_e5m2, bfloat16, float16 too (default: auto)",
    )
    parser.add_argument(
        "--trust-remote-code",
        action="store_true",
        help="stands in the command for vllm; changes nothing here, where nothing of the model runs",
    )
    add_revision(parser)
    parser.add_argument(
        "--attn-implementation",
        choices=("sdpa", "eager", "flash_attention_2"),
        help="transformers: attention implementation (default: sdpa, eager where a family has no sdpa)",
    )
    if starts:
        _add_vllm_options(parser)


def _add_vllm_options(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--tensor-parallel-size",
        "--tp",
        type=count("--tensor-parallel-size"),
        metavar="N",
        help="vllm: cards that one copy of the model is divided over (default: 1, with plans over more where needed)",
    )
    parser.add_argument(
        "--pipeline-parallel-size",
        "--pp",
        type=count("--pipeline-parallel-size"),
        metavar="N",
        help="vllm: stages that its layers are spread over, one after the other (default: 1, with plans over more)",
    )
    parser.add_argument(
        "--enable-expert-parallel", action="store_true", help="vllm: divide experts by number, not by width"
    )
    parser.add_argument(
        "--gpu-memory-utilization",
        type=share("--gpu-memory-utilization"),
        metavar="F",
        help="vllm: share of each card that it may use (default: the release's, 0.9 or 0.92)",
    )
    parser.add_argument(
        "--max-num-seqs",
        type=count("--max-num-seqs"),
        metavar="N",
        help="vllm: sequences in a step at most (default: the release's for the card)",
    )
    parser.add_argument(
        "--max-num-batched-tokens",
        type=count("--max-num-batched-tokens"),
        metavar="N",
        help="vllm: tokens in a step at most (default: the release's for the card)",
    )
    parser.add_argument("--enforce-eager", action="store_true", help="vllm: no CUDA graphs")
    parser.add_argument(
        "--language-model-only", action="store_true", help="vllm: leave out what reads images and sound"
    )
    parser.add_argument(
        "--enable-lora", action="store_true", help="vllm: keep slots for LoRA adapters beside the weights"
    )
    parser.add_argument(
        "--max-loras",
        type=count("--max-loras"),
        metavar="N",
        help="vllm, with --enable-lora: adapters in one batch, each a slot (default: 1)",
    )
    parser.add_argument(
        "--max-lora-rank",
        type=count("--max-lora-rank"),
        metavar="N",
        help="vllm, with --enable-lora: largest rank of an adapter, 8 to 512 in vLLM's steps (default: 16)",
    )


def check_engine_options(arguments: argparse.Namespace) -> None:
    """Raise UsageError for a flag of one engine beside another."""
    other, engine = (_OF_TRANSFORMERS, "transformers") if arguments.engine == "vllm" else (_OF_VLLM, "vllm")
    flag = _first_given(arguments, other)
    if flag is not None:
        raise UsageError(f"{flag} is an option of --engine {engine}, and --engine is {arguments.engine}")


def refuse_model_options(arguments: argparse.Namespace, inputs: Sequence[str]) -> None:
    """Raise UsageError for an option that only a model takes where all inputs are profiles; a path that leads nowhere
    is neither."""
    from gpufit.flows import names_model

    flag = _first_given(arguments, _DEFAULTS | _OF_TRANSFORMERS | _OF_VLLM)
    if flag is not None and all(exists(Path(one)) and not names_model(one) for one in inputs):
        raise UsageError(f"{flag} is for a model, and {inputs[0]} is a profile, which was made with its own")


def _first_given(arguments: argparse.Namespace, defaults: dict[str, Any]) -> str | None:
    for name, default in defaults.items():
        if getattr(arguments, name, default) != default:
            return f"--{name.replace('_', '-')}"
    return None


def transformers_request(arguments: argparse.Namespace, model: str) -> EstimateRequest:
    """What is to be estimated for transformers."""
    from gpufit.sources.estimate.request import EstimateRequest

    return EstimateRequest(
        model=model,
        context_tokens=arguments.context,
        concurrency=arguments.concurrency or 1,
        new_tokens=arguments.new_tokens,
        dtype=arguments.dtype,
        kv_cache_dtype=arguments.kv_cache_dtype,
        engine_version=arguments.engine_version,
        attention=arguments.attn_implementation,
        revision=arguments.revision,
        quantization=arguments.quantization,
    )


def vllm_request(arguments: argparse.Namespace, model: str) -> VllmRequest:
    """What vLLM is to be started with."""
    from gpufit.sources.estimate.vllm import VllmRequest

    return VllmRequest(
        model=model,
        max_model_len=arguments.context,
        concurrency=arguments.concurrency,
        new_tokens=arguments.new_tokens or 0,
        dtype=arguments.dtype,
        kv_cache_dtype=arguments.kv_cache_dtype,
        quantization=arguments.quantization,
        engine_version=arguments.engine_version,
        revision=arguments.revision,
        tensor_parallel=arguments.tensor_parallel_size,
        pipeline_parallel=arguments.pipeline_parallel_size,
        expert_parallel=arguments.enable_expert_parallel,
        utilization=arguments.gpu_memory_utilization,
        max_num_seqs=arguments.max_num_seqs,
        max_num_batched_tokens=arguments.max_num_batched_tokens,
        enforce_eager=arguments.enforce_eager,
        language_only=arguments.language_model_only,
        lora=arguments.enable_lora,
        max_loras=arguments.max_loras,
        max_lora_rank=arguments.max_lora_rank,
        trust_remote_code=arguments.trust_remote_code,
    )


def vllm_scenario_line(scenario: Scenario) -> str:
    """What was worked out for vLLM, defaults included."""
    return (
        f"scenario: sequences of {format_tokens(scenario.context_tokens)} tokens, prompt and new ones, "
        f"{scenario.concurrency} at once; computed by rules, nothing was started"
    )
