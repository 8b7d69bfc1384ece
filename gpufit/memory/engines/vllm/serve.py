"""The command that starts vLLM as it was worked out, every setting that memory depends on spelled out."""

from __future__ import annotations

from gpufit.memory.engines.vllm.dtypes import lacks_bfloat16
from gpufit.memory.engines.vllm.start import VllmStart


def serve_flags(
    one: VllmStart,
    source: str = "",
    *,
    dtype: str = "auto",
    quantization: str | None = None,
    revision: str | None = None,
    trust_remote_code: bool = False,
) -> tuple[str, ...]:
    """The words of the command; `source` is where the model lies, by default its name.

    `dtype` and `revision` are as they were asked for, `quantization` is vLLM's own name of a method applied at load.
    """
    flags = ["vllm", "serve", source or one.model]
    flags += ["--revision", revision] if revision else []
    flags += ["--trust-remote-code"] if trust_remote_code else []
    flags += ["--tensor-parallel-size", str(one.settings.ranks.tensor)]
    if one.settings.ranks.stages > 1:
        flags += ["--pipeline-parallel-size", str(one.settings.ranks.stages)]
    if one.spans_machines:
        # Over several machines vLLM is started once, on a Ray cluster of them
        # (https://docs.vllm.ai/en/latest/serving/parallelism_scaling/).
        flags += ["--distributed-executor-backend", "ray"]
    flags += ["--max-model-len", str(one.settings.max_model_len), "--gpu-memory-utilization", f"{one.utilization:g}"]
    flags += ["--max-num-seqs", str(one.batch.sequences), "--max-num-batched-tokens", str(one.batch.tokens)]
    if lacks_bfloat16(one.device):
        dtype = "half"
    flags += ["--dtype", dtype] if dtype != "auto" else []
    flags += ["--quantization", quantization] if quantization else []
    if one.settings.kv_cache_dtype != "auto":
        flags += ["--kv-cache-dtype", one.settings.kv_cache_dtype]
    if one.settings.ranks.expert:
        flags.append("--enable-expert-parallel")
    if one.settings.lora is not None:
        flags += ["--enable-lora", "--max-loras", str(one.settings.lora.max_loras)]
        flags += ["--max-lora-rank", str(one.settings.lora.max_rank)]
    if one.settings.enforce_eager:
        flags.append("--enforce-eager")
    if one.settings.one_pool:
        flags.append("--disable-hybrid-kv-cache-manager")
    if one.settings.language_only:
        flags.append("--language-model-only")
    return tuple(flags)
