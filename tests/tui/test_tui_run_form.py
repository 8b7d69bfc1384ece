"""The form of a run: the request that it makes is the one that its command line makes."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from gpufit.cli.commands import profile, simulate
from gpufit.cli.engines import transformers_request
from gpufit.cli.main import build_parser
from gpufit.sources.measure.events import RunRequest
from gpufit.sources.measure.protocol import Simulation
from gpufit.sources.measure.request import DEFAULT_CONTEXTS, ProfileRequest
from gpufit.tui.run_asked import asks_for, in_form_words, of_request
from gpufit.tui.run_form import (
    FIELDS,
    GO_ON,
    KEEP,
    REPLACE,
    Field,
    Form,
    Kind,
    WrongFieldError,
    command_of,
    filled,
    of_kind,
    request_of,
)
from gpufit.units import parse_counts

TYPED = {
    "model": "models/my model",
    "context": "8k",
    "concurrency": "2",
    "new_tokens": "16",
    "device": "cuda:1",
    "output": "profiles/mine.json",
    "memory_limit": "6GiB",
    "cell_timeout": "60",
    "images": "2",
    "image_size": "448x320",
    "seed": "7",
    "revision": "main",
    "tensor_parallel": "4",
    "engine_version": "5.0.0",
    "quantization": "fp8",
    "attention": "eager",
}
"""Something of its own for every field that is typed."""

CHOSEN = {"dtype": "bfloat16", "existing": REPLACE}
"""For those that are chosen, where it is not simply the second choice."""


def of_its_own(one: Field) -> str:
    return TYPED[one.name] if not one.choices else CHOSEN.get(one.name, one.choices[1])


def full(kind: Kind) -> Form:
    return Form(kind, {one.name: of_its_own(one) for one in FIELDS[kind]})


def asked_by_command(form: Form) -> RunRequest:
    """The request that the command line makes of what the form shows as its command."""
    arguments = build_parser().parse_args(shlex.split(command_of(form))[1:])
    if form.kind is Kind.ESTIMATE:
        return RunRequest(
            estimate=transformers_request(arguments, arguments.model),
            estimate_output=arguments.save,
            estimate_force=form.value("existing") == REPLACE,
        )
    command = profile if form.kind is Kind.PROFILE else simulate
    return RunRequest(profile=command._request(arguments))


@pytest.mark.parametrize("kind", Kind)
def test_the_command_shown_asks_for_the_same(kind: Kind) -> None:
    bare = filled(Form(kind), "model", "m")
    assert request_of(bare) == asked_by_command(bare)
    assert command_of(bare) == f"gpufit {kind} m"
    assert request_of(full(kind)) == asked_by_command(full(kind))


@pytest.mark.parametrize(("kind", "name"), [(kind, one.name) for kind in Kind for one in FIELDS[kind]])
def test_every_field_changes_the_request_and_its_command(kind: Kind, name: str) -> None:
    one = next(one for one in FIELDS[kind] if one.name == name)
    bare = filled(filled(Form(kind), "model", "m"), "tensor_parallel", "2" if name == "expert_parallel" else "")
    changed = filled(bare, name, of_its_own(one))
    assert request_of(changed) != request_of(bare)
    assert request_of(changed) == asked_by_command(changed)


def test_what_to_do_with_a_file_that_is_there() -> None:
    form = filled(filled(Form(), "model", "m"), "existing", GO_ON)
    assert command_of(form) == "gpufit profile m --resume"
    assert request_of(form) == RunRequest(profile=ProfileRequest(model="m", resume=True))
    # Fake tensors cannot be gone on with: the choice is the default there.
    simulated = of_kind(form, Kind.SIMULATE)
    assert command_of(simulated) == "gpufit simulate m"
    assert request_of(simulated) == RunRequest(profile=ProfileRequest(model="m", device="cpu", simulation=Simulation()))


def test_an_empty_field_says_its_default() -> None:
    hints = {one.name: one.hint for one in FIELDS[Kind.PROFILE]}
    assert parse_counts(hints["context"]) == DEFAULT_CONTEXTS
    assert all(one.hint or one.choices for kind in Kind for one in FIELDS[kind])


@pytest.mark.parametrize("kind", Kind)
def test_the_short_form_has_room_on_the_smallest_screen(kind: Kind) -> None:
    shown = Form(kind).shown
    assert 0 < len(shown) <= 9
    assert set(Form(kind, more=True).shown) == set(FIELDS[kind])


def test_what_was_given_is_never_hidden() -> None:
    assert "seed" not in {one.name for one in Form().shown}
    assert "seed" in {one.name for one in filled(Form(), "seed", "7").shown}


@pytest.mark.parametrize(
    ("kind", "name", "text", "said"),
    [
        (Kind.PROFILE, "model", "  ", "model: name a directory, a GGUF file or a hub id"),
        (Kind.PROFILE, "context", "8k,x", "context must be a whole number of at least 1 (8192, or 8k = 8192), not 'x'"),
        (
            Kind.SIMULATE,
            "concurrency",
            "0",
            "at once must be a whole number of at least 1 (8192, or 8k = 8192), not '0'",
        ),
        (Kind.ESTIMATE, "context", "1k,2k", "context must be a whole number"),
        (Kind.PROFILE, "memory_limit", "6", "memory limit must be a size with its unit (6GiB, or 6g; 512MiB), not '6'"),
        (Kind.PROFILE, "cell_timeout", "9" * 5000, "seconds a cell must be a whole number of seconds"),
        (Kind.PROFILE, "image_size", "big", "image size must be WIDTHxHEIGHT in pixels"),
        (Kind.SIMULATE, "expert_parallel", "yes", "experts are spread over cards: say how many share the model"),
    ],
)
def test_a_field_that_cannot_be_understood_is_named(kind: Kind, name: str, text: str, said: str) -> None:
    with pytest.raises(WrongFieldError) as error:
        request_of(filled(filled(Form(kind), "model", "m"), name, text))
    assert str(error.value).startswith(said)
    assert error.value.name == ("tensor_parallel" if name == "expert_parallel" else name)


def test_a_file_is_found_from_home_and_the_command_names_it_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    form = filled(filled(Form(), "model", "~/models/tiny"), "output", "~/tiny.json")
    asked = request_of(form).profile
    assert asked is not None
    assert (asked.model, asked.output) == ("/home/someone/models/tiny", Path("/home/someone/tiny.json"))
    assert command_of(form).startswith("gpufit profile /home/someone/models/tiny -o /home/someone/tiny.json")


@pytest.mark.parametrize(("name", "field"), [("model", "model"), ("output", "output")])
def test_what_no_file_can_be_named_is_said_at_its_field(name: str, field: str) -> None:
    form = filled(filled(Form(), "model", "m"), name, "x\0y")
    with pytest.raises(WrongFieldError, match="zero character") as found:
        request_of(form)
    assert found.value.name == field


class TestAsked:
    """From a request back to the form."""

    @pytest.mark.parametrize("kind", Kind)
    def test_a_form_asks_for_its_own_request_whatever_becomes_of_the_file(self, kind: Kind) -> None:
        form = full(kind)
        for choice in next(one for one in FIELDS[kind] if one.name == "existing").choices:
            chosen = filled(form, "existing", choice)
            assert asks_for(form, request_of(chosen))
            assert of_request(form, request_of(chosen)).value("existing") == choice
        assert not asks_for(filled(form, "model", "another"), request_of(form))
        assert not asks_for(filled(form, "context", "x"), request_of(form))

    @pytest.mark.parametrize("kind", Kind)
    def test_a_file_that_is_there_is_told_by_the_fields_that_settle_it(self, kind: Kind) -> None:
        words = in_form_words(request_of(full(kind)), "x.json exists; --force replaces it, -o FILE", "x.json")
        fields = {one.name: one for one in FIELDS[kind]}
        assert words.startswith("x.json exists; choose ")
        assert all(repr(one) in words for one in fields["existing"].choices if one != KEEP)
        assert all(repr(fields[name].title) in words for name in ("existing", "output"))

    @pytest.mark.parametrize(
        ("kind", "said", "words"),
        [
            (Kind.PROFILE, "raise --cell-timeout", "raise 'seconds a cell'"),
            (Kind.PROFILE, "leave --keep-logits out", "leave 'logits kept' out"),
            (Kind.PROFILE, "choose another -o FILE", "choose another 'file'"),
            (Kind.SIMULATE, "run all layers: --full-depth", "run all layers: 'run every layer'"),
            (Kind.ESTIMATE, "name another with --dtype", "name another with 'dtype'"),
            # No field has it, so its name stays.
            (Kind.ESTIMATE, "join them (llama-gguf-split --merge)", "join them (llama-gguf-split --merge)"),
        ],
    )
    def test_options_are_told_by_the_names_of_their_fields(self, kind: Kind, said: str, words: str) -> None:
        assert in_form_words(request_of(full(kind)), said, "") == words
