"""A loaded model that reads a real text, beside being measured: its ids in, what it makes of them out.

Everything is run by the drivers that measure, on the same model; the text takes the place of their random ids.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from gpufit.errors import MeasurementError
from gpufit.memory.replay import Category
from gpufit.memory.terms import Shape
from gpufit.profile.cells import Measured
from gpufit.profile.peaks import Phase
from gpufit.sources.measure.loading import text_config
from gpufit.sources.measure.protocol import Loaded, Made, Planned, Prepared, Prompt
from gpufit.sources.measure.session import PlannedRun, Session, autocast, driver_for
from gpufit.sources.measure.storages import dtype_name, tensors_within
from gpufit.sources.measure.worker import Tell

TOKENIZER_FILES = (
    "tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.txt", "vocab.json", "spiece.model",
    "sentencepiece.bpe.model", "tekken.json",
)  # fmt: skip
"""What transformers' tokenizers are saved as: a folder without any of them has none."""

NO_TOKENIZER = "no tokenizer beside the weights: random token ids"


@dataclass(frozen=True)
class SampledPlan:
    """A planned run whose cells read a prompt."""

    planned: PlannedRun
    prompt: Prompt
    tell: Tell

    @property
    def message(self) -> Planned:
        """As without a prompt."""
        return self.planned.message

    def open(self) -> SampledSession:
        """Load the model. Raises a GpufitError when that is refused."""
        return SampledSession(self.planned, self.prompt, self.planned.open(), self.tell)


class SampledSession:
    """Measures a cell on the prompt, then runs it once more and tells what came out."""

    def __init__(self, planned: PlannedRun, prompt: Prompt, session: Session, tell: Tell) -> None:
        self._planned, self._prompt, self._session, self._tell = planned, prompt, session, tell
        self.loaded: Loaded = session.loaded
        self.limit_bytes = session.limit_bytes

    @property
    def phase_reached(self) -> Phase:
        """The phase that began last."""
        return self._session.phase_reached

    def run(self, shape: Shape) -> Measured:
        """The cell, measured; the errors of tokenizer and model come through."""
        tokenizer = self._prepare(shape)
        measured = self._session.run(shape)
        watch = Keeping()
        self._session.plan.driver.run(self._session.model, shape, watch)
        self._tell(watch.made(tokenizer))
        return measured

    def _prepare(self, shape: Shape) -> Any:
        """Have the driver read the prompt; the tokenizer, or None where the model has none."""
        job, session = self._planned.job, self._session
        tokenizer = read_tokenizer(self._prompt, job.trust_remote_code)
        if tokenizer is None:
            self._tell(Prepared(tokens=0, how=NO_TOKENIZER))
            return None
        ids = prompt_ids(tokenizer, self._prompt.text, int(text_config(session.model.config).vocab_size))
        device = self._planned.device.torch_device
        driver = driver_for(session.model.config, self._planned.load_plan, job, device, ids)
        session.plan = replace(session.plan, driver=autocast(driver, job, device))
        read = min(len(ids), shape.context_tokens)
        self._tell(Prepared(tokens=len(ids), how=f"a text of {len(ids)} tokens, of which {read} are read"))
        return tokenizer


def read_tokenizer(prompt: Prompt, trust_remote_code: bool) -> Any:
    """The model's tokenizer; None where there is none beside its weights. The errors of a broken one come through."""
    import transformers

    options: dict[str, Any] = {"trust_remote_code": trust_remote_code}
    if prompt.gguf_file is not None:
        options["gguf_file"] = prompt.gguf_file
    elif not any((Path(prompt.tokenizer_path) / name).exists() for name in TOKENIZER_FILES):
        return None
    return transformers.AutoTokenizer.from_pretrained(prompt.tokenizer_path, **options)


def prompt_ids(tokenizer: Any, text: str, vocabulary: int) -> tuple[int, ...]:
    """The ids of a text. Raises MeasurementError for a tokenizer that cannot be the model's."""
    ids = tuple(int(one) for one in tokenizer(text)["input_ids"])
    if not ids:
        raise MeasurementError("the tokenizer makes no tokens of a text: its files are incomplete")
    if max(ids) >= vocabulary:
        raise MeasurementError(
            f"the tokenizer makes token {max(ids)}, and the model knows {vocabulary}: it is another model's"
        )
    return ids


@dataclass
class Keeping:
    """The watch of a run whose outputs are looked at: small things are kept of them, never the tensors."""

    ids: list[int] = field(default_factory=list)
    """Generated for the first sequence."""
    shape: tuple[int, ...] = ()
    dtype: str = ""
    finite: bool = True

    def label(self, thing: Any, category: Category) -> None:
        """Look at what is an output."""
        if category != "outputs":
            return
        for tensor in tensors_within(thing):
            if tensor.is_floating_point():
                self.shape, self.dtype = tuple(tensor.shape), dtype_name(tensor.dtype)
                self.finite = self.finite and bool(torch.isfinite(tensor).all())
            elif tensor.ndim == 2:
                self.ids.append(int(tensor[0, -1]))

    def phase_began(self, phase: Phase) -> None:
        """Nothing to note."""

    def step_began(self) -> None:
        """Nothing to note."""

    def phase_ended(self, phase: Phase, cached_tokens: int) -> None:
        """Nothing to note."""

    def made(self, tokenizer: Any) -> Made:
        """What came out."""
        text = tokenizer.decode(self.ids) if tokenizer is not None and self.ids else None
        return Made(
            token_ids=tuple(self.ids), text=text, output_shape=self.shape, output_dtype=self.dtype, finite=self.finite
        )
