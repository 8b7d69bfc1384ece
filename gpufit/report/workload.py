"""What of a workload changes its bytes without showing in the shape of a scenario, in words."""

from __future__ import annotations

from gpufit.profile.workload import Workload


def workload_words(workload: Workload) -> tuple[str, ...]:
    """The images of each sequence, the kind of cache, and how many cards share the model; nothing for text, the cache a
    model builds itself, and one card."""
    return tuple(one for one in (_images(workload), _cache(workload), _ranks(workload)) if one)


def _ranks(workload: Workload) -> str:
    ranks = workload.tensor_parallel_size
    if ranks == 1:
        return ""
    experts = ", experts spread whole" if workload.expert_parallel else ""
    return f"tensor parallel over {ranks} cards{experts}: every size is that of one of them"


def _images(workload: Workload) -> str:
    if not workload.images:
        return ""
    size = f" of {workload.image_size[0]} x {workload.image_size[1]} pixels" if workload.image_size else ""
    counted = "1 image" if workload.images == 1 else f"{workload.images} images"
    return f"{counted}{size} a sequence ({workload.image_tokens} tokens of its context)"


def _cache(workload: Workload) -> str:
    if workload.cache_implementation == "dynamic":
        return ""
    dtype = "" if workload.kv_cache_dtype == "auto" else f" in {workload.kv_cache_dtype}"
    return f"{workload.cache_implementation} KV cache{dtype}"
