"""Damaged configs and unknown families: one clear line each, never a guess, never another error."""

import copy
import json
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from public_models import CONFIGS

from gpufit.architecture.registry import architecture_of
from gpufit.errors import UnreadableInputError

LLAMA = CONFIGS["meta-llama/Meta-Llama-3.1-8B"]
ONE_OF_EACH = sorted({values.get("model_type", "none"): name for name, values in CONFIGS.items()}.values())


def _refused(values: Any) -> str:
    with pytest.raises(UnreadableInputError) as caught:
        architecture_of(values, "model/config.json")
    line = str(caught.value)
    assert "\n" not in line
    assert line.startswith("model/config.json")
    return line


def test_an_unknown_family_is_refused_with_the_way_out() -> None:
    line = _refused(LLAMA | {"model_type": "llama_of_tomorrow"})
    assert "'llama_of_tomorrow'" in line
    assert "gpufit simulate" in line


@pytest.mark.parametrize("values", [[], "llama", None, 7])
def test_what_is_no_object_is_no_config(values: Any) -> None:
    _refused(values)


def test_a_config_without_a_family_is_refused() -> None:
    assert "model_type" in _refused({key: one for key, one in LLAMA.items() if key != "model_type"})


def test_code_of_its_own_does_not_matter_in_a_known_family() -> None:
    assert architecture_of(LLAMA | {"auto_map": {"AutoConfig": "configuration_x.X"}}, "config.json").layers == 32


@pytest.mark.parametrize(
    "key", ["hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"]
)
def test_a_width_that_is_missing_is_named(key: str) -> None:
    assert key in _refused({name: one for name, one in LLAMA.items() if name != key})


@pytest.mark.parametrize("value", ["4096", -1, 0, 4096.5, math.inf, math.nan, 10**30, True, [4096], {"size": 4096}])
@pytest.mark.parametrize("key", ["hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size"])
def test_a_width_that_is_no_width_is_named(key: str, value: Any) -> None:
    assert f"{key} is " in _refused(LLAMA | {key: value})


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("google/gemma-3-4b-it", {"text_config": ["not", "an", "object"]}),
        ("google/gemma-3-4b-it", {"vision_config": "siglip"}),
        ("google/gemma-3-4b-it", {"vision_config": {"model_type": "an_eye"}}),
        ("openai/gpt-oss-20b", {"layer_types": ["sliding_attention"]}),
        ("openai/gpt-oss-20b", {"layer_types": {"0": "sliding_attention"}}),
        ("nvidia/Llama-3_3-Nemotron-Super-49B-v1", {"block_configs": [1, 2, 3]}),
        ("nvidia/Llama-3_3-Nemotron-Super-49B-v1", {"block_configs": None}),
        ("nvidia/Nemotron-H-56B-Base-8K", {"hybrid_override_pattern": "MXM"}),
        ("deepseek-ai/DeepSeek-V4-Flash", {"compress_ratios": [7] * 43}),
        ("Qwen/Qwen3-30B-A3B", {"num_experts_per_tok": 1000}),
        ("meta-llama/Meta-Llama-3.1-8B", {"architectures": "LlamaForCausalLM"}),
        ("meta-llama/Meta-Llama-3.1-8B", {"tie_word_embeddings": "false"}),
        ("meta-llama/Meta-Llama-3.1-8B", {"torch_dtype": 16}),
        ("meta-llama/Meta-Llama-3.1-8B", {"num_hidden_layers": 10**9}),
    ],
)
def test_other_damage_is_named(name: str, changed: dict[str, Any]) -> None:
    _refused(CONFIGS[name] | changed)


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-10, 10**12),
    st.sampled_from([0, 1, 2, 3, 7, 10**9, 10**30, math.inf, -math.inf, math.nan, 0.5, 1e300]),
    st.text(max_size=6),
    st.lists(st.one_of(st.integers(-3, 300), st.text(max_size=4), st.none()), max_size=4),
    st.dictionaries(st.text(max_size=4), st.integers(-3, 300), max_size=3),
)


def _places(values: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where in a config something can be changed; of a long list the first element alone."""
    found = [at] if at else []
    children = values.items() if isinstance(values, dict) else enumerate(values[:1]) if isinstance(values, list) else ()
    for key, one in children:
        found += _places(one, (*at, key))
    return found


PLACES = {name: [one for one in _places(CONFIGS[name]) if one != ("model_type",)] for name in ONE_OF_EACH}


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_no_damage_ends_in_another_error(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(ONE_OF_EACH))
    values = copy.deepcopy(CONFIGS[name])
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from(PLACES[name]))
        _change(values, place, data)
    line = ""
    try:
        architecture = architecture_of(values, "config.json")
    except UnreadableInputError as error:
        line = str(error)
    else:
        assert architecture.parameters >= 0
        assert all(size > 0 for one in architecture.weights for size in one.shape)
        json.dumps([one.shape for one in architecture.weights])
    assert "\n" not in line


def _change(values: Any, place: tuple[Any, ...], data: st.DataObject) -> None:
    for key in place[:-1]:
        values = _inside(values, key)
    last = place[-1]
    if isinstance(values, dict):
        if data.draw(st.booleans()):
            values.pop(last, None)
        else:
            values[last] = data.draw(VALUES)
    elif isinstance(values, list) and values and isinstance(last, int):
        values[last] = data.draw(VALUES)


def _inside(values: Any, key: Any) -> Any:
    """What is under a key; None where an earlier change left nothing there."""
    if isinstance(values, dict):
        return values.get(key)
    return values[key] if isinstance(values, list) and isinstance(key, int) and values else None
