"""The kinds of KV cache that transformers has, under transformers' own names, and what each of them asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpufit.errors import UsageError
from gpufit.sources.measure.kinds import Kind

DYNAMIC, STATIC, QUANTIZED, OFFLOADED = "dynamic", "static", "quantized", "offloaded"
AUTO = "auto"

_BACKENDS = {AUTO: "quanto", "fp8": "fp8"}
"""--kv-cache-dtype: the backend of transformers' QuantizedCache. `auto` is what generate() takes when only a quantised
cache is asked for: quanto, 4 bits
(https://github.com/huggingface/transformers/blob/main/src/transformers/generation/utils.py, `cache_config`)."""


@dataclass(frozen=True)
class CacheChoice:
    """The cache that was asked for."""

    implementation: str = DYNAMIC
    """`dynamic` is what the model builds itself; else `static`, `quantized` or `offloaded`."""
    dtype: str = AUTO
    """`auto`, or `fp8` for a quantised one."""

    def check(self, name: str, kind: Kind, config: Any, device: str) -> None:
        """Raise UsageError, in one line, for a cache that this model, device or installation cannot have."""
        if self == DEFAULT:
            return
        if kind is Kind.ENCODER:
            raise UsageError(f"{name} is an encoder and has no KV cache: leave {self._flag} out")
        if self.dtype != AUTO and self.implementation != QUANTIZED:
            raise UsageError(f"--kv-cache-dtype {self.dtype} is a quantised cache, not a {self.implementation} one")
        if self.implementation == OFFLOADED and device == "cpu":
            raise UsageError(f"{self._flag} moves a card's cache to host memory: on cpu there is nothing to move")
        if self.implementation == QUANTIZED and kind in (Kind.ENCODER_DECODER, Kind.SPEECH):
            raise UsageError(f"{self._flag}: transformers has no quantised cache for an encoder-decoder")
        if _keeps_its_own(config):
            raise UsageError(f"{self._flag}: {name} has a cache class of its own, which no other can stand in for")
        if self.implementation == QUANTIZED:
            self._check_quantized(name, config)

    def build(self, config: Any, tokens: int) -> Any | None:
        """A fresh cache with room for so many tokens a sequence; None where the model builds its own."""
        from transformers import cache_utils

        if self.implementation == STATIC:
            return cache_utils.StaticCache(config=config, max_cache_len=tokens)
        if self.implementation == OFFLOADED:
            return cache_utils.DynamicCache(config=config.get_text_config(decoder=True), offloading=True)
        if self.implementation == QUANTIZED:
            return cache_utils.QuantizedCache(backend=_BACKENDS[self.dtype], config=config)
        return None

    def build_pair(self, config: Any, tokens: int, encoded: int) -> Any | None:
        """The same for an encoder-decoder: so many tokens of the decoder, so many positions of the encoder.

        `config` is that of the decoder alone, whose layers may be more or fewer than the encoder's.
        """
        from transformers.cache_utils import EncoderDecoderCache

        written, read = self.build(config, tokens), self.build(config, encoded)
        return EncoderDecoderCache(written, read) if written is not None and read is not None else None

    @property
    def _flag(self) -> str:
        return (
            f"--kv-cache-dtype {self.dtype}" if self.dtype != AUTO else f"--cache-implementation {self.implementation}"
        )

    def _check_quantized(self, name: str, config: Any) -> None:
        import transformers
        from transformers import cache_utils

        if self.dtype == "fp8" and not hasattr(cache_utils, "Fp8QuantizedLayer"):
            raise UsageError(
                f"{self._flag}: transformers {transformers.__version__} has no fp8 cache; transformers 5.24 has"
            )
        try:
            self.build(config, 1)
        except ImportError as error:
            raise UsageError(
                f"{self._flag}: transformers quantises a cache with optimum-quanto, which is not installed: "
                "pip install optimum-quanto, or ask for --kv-cache-dtype fp8"
            ) from error
        except ValueError as error:
            raise UsageError(f"{self._flag}: {name} cannot have it: {' '.join(str(error).split())[:300]}") from error


def _keeps_its_own(config: Any) -> bool:
    """Whether transformers says that this architecture does not take its general caches."""
    import transformers

    model_class = getattr(transformers, (getattr(config, "architectures", None) or [""])[0], None)
    takes = getattr(model_class, "_supports_default_dynamic_cache", None)
    return takes is not None and not takes()


DEFAULT = CacheChoice()
"""What the model builds itself."""
