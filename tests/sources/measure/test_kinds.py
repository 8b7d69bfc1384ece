"""Which kind a config is of, and what is refused by name."""

from __future__ import annotations

import pytest
import transformers
from architectures import ARCHITECTURES
from test_loading import make_job, save_config

from gpufit.errors import UsageError
from gpufit.sources.measure.kinds import Kind, choose
from gpufit.sources.measure.loading import plan_load

pytestmark = pytest.mark.model

KINDS = {
    "bert": Kind.ENCODER,
    "t5": Kind.ENCODER_DECODER,
    "bart": Kind.ENCODER_DECODER,
    "whisper": Kind.SPEECH,
    "qwen2_5_vl": Kind.VISION_LANGUAGE,
    "llava": Kind.VISION_LANGUAGE,
}


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_each_architecture_is_of_its_kind_and_loaded_by_its_own_class(name: str) -> None:
    made = ARCHITECTURES[name]()
    made.config.architectures = [made.model_class.__name__]
    loader, kind = choose(made.config, make_job())
    assert kind is KINDS.get(name, Kind.DECODER)
    assert loader in (made.model_class, transformers.AutoModelForCausalLM)


@pytest.mark.parametrize(
    ("config", "architecture", "said"),
    [
        (transformers.ViTConfig(), "ViTModel", "ViTModel takes pixel_values, not tokens"),
        (transformers.CLIPConfig(), "CLIPModel", "CLIPModel takes vision beside tokens"),
        (transformers.Wav2Vec2Config(), "Wav2Vec2ForCTC", "Wav2Vec2ForCTC takes input_values, not tokens"),
        (
            transformers.Speech2TextConfig(),
            "Speech2TextForConditionalGeneration",
            "Speech2TextForConditionalGeneration takes input_features, not tokens",
        ),
        (
            transformers.BartConfig(),
            "BartForSequenceClassification",
            "BartForSequenceClassification is an encoder-decoder that does not write",
        ),
    ],
)
def test_what_is_not_measured_is_refused_by_name_in_one_line(
    config: transformers.PreTrainedConfig, architecture: str, said: str, tmp_path: object
) -> None:
    folder = save_config(tmp_path / "model", config, architecture)
    with pytest.raises(UsageError) as refused:
        plan_load(make_job(model_path=folder))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_model_that_takes_no_images_refuses_them(tmp_path: object) -> None:
    folder = save_config(tmp_path / "llama", transformers.LlamaConfig(), "LlamaForCausalLM")
    for asked in ({"images": 1}, {"image_size": (448, 448)}):
        with pytest.raises(UsageError, match="some/model takes no images: leave --images and --image-size out"):
            plan_load(make_job(model_path=folder, **asked))
    assert plan_load(make_job(model_path=folder, images=0)).images.tokens == 0
