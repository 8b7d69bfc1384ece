"""A text in place of random ids, and what is kept of the outputs of a run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from architectures import ARCHITECTURES
from measure_plan import make_decoder

from gpufit.errors import MeasurementError
from gpufit.memory.terms import Shape
from gpufit.sources.measure.drivers.base import random_tokens, token_ids
from gpufit.sources.measure.protocol import Prompt
from gpufit.sources.measure.sample import Keeping, prompt_ids, read_tokenizer

pytestmark = pytest.mark.model


def test_without_a_prompt_ids_are_random_and_the_same_for_the_same_seed() -> None:
    cpu = torch.device("cpu")
    expected = random_tokens(256, 2, 5, 7, cpu)
    assert torch.equal(token_ids(make_decoder(seed=7), Shape(5, 1, 2)), expected)


@pytest.mark.parametrize(
    ("tokens", "read"), [(2, [1, 2]), (3, [1, 2, 3]), (7, [1, 2, 3, 1, 2, 3, 1])], ids=["part", "whole", "repeated"]
)
def test_a_prompt_stands_again_and_again_up_to_the_length(tokens: int, read: list[int]) -> None:
    ids = token_ids(make_decoder(prompt=(1, 2, 3)), Shape(tokens, 1, 2))
    assert ids.tolist() == [read, read]


def test_ids_that_the_model_does_not_know_are_refused() -> None:
    def tokenizer(text: str) -> dict[str, list[int]]:
        return {"input_ids": [ord(letter) for letter in text]}

    assert prompt_ids(tokenizer, "ab", 99) == (97, 98)
    with pytest.raises(MeasurementError, match="makes token 98, and the model knows 98: it is another model's"):
        prompt_ids(tokenizer, "ab", 98)
    with pytest.raises(MeasurementError, match="makes no tokens of a text"):
        prompt_ids(tokenizer, "", 99)


def test_a_folder_without_a_tokenizer_has_none(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    assert read_tokenizer(Prompt(text="a", tokenizer_path=str(tmp_path), gguf_file=None), False) is None


def test_what_is_kept_of_a_run_are_its_ids_and_whether_its_numbers_are_finite() -> None:
    model = ARCHITECTURES["llama"]().build()
    watch = Keeping()
    make_decoder(prompt=(5, 6, 7)).run(model, Shape(16, 3, 1), watch)
    prompt = torch.tensor([[5, 6, 7, 5, 6, 7, 5, 6, 7, 5, 6, 7, 5, 6, 7, 5]])
    made = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=3, do_sample=False)
    found = watch.made(SimpleNamespace(decode=lambda ids: "-".join(map(str, ids))))
    assert list(found.token_ids) == made[0, 16:].tolist()
    assert found.text == "-".join(map(str, found.token_ids))
    assert (found.output_shape, found.output_dtype, found.finite) == ((1, 1, 256), "bfloat16", True)


def test_one_number_that_is_not_finite_is_enough() -> None:
    for bad in (float("nan"), float("inf")):
        watch = Keeping()
        watch.label([torch.tensor([1.0]), {"logits": torch.tensor([1.0, bad])}], "outputs")
        watch.label(torch.tensor([1.0]), "outputs")
        assert not watch.made(None).finite
    watch = Keeping()
    watch.label(torch.tensor([float("nan")]), "activations")
    assert watch.made(None).finite
