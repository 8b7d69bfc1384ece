"""Models that read images: tokens and pixel values from the config, bytes from the shapes."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
import transformers
from architectures import ARCHITECTURES, VOCABULARY
from measure_plan import cached, measure
from test_loading import make_job, save_config

from gpufit.errors import UsageError
from gpufit.memory.terms import Shape
from gpufit.profile.cells import Measured
from gpufit.profile.peaks import Phase, PhasePeak
from gpufit.sources.measure.drivers.vision_language import VisionLanguage
from gpufit.sources.measure.images import NO_IMAGES, Images, plan_images
from gpufit.sources.measure.loading import plan_load
from gpufit.sources.measure.storages import resident_model

pytestmark = pytest.mark.model

KV_A_TOKEN = 2 * 2 * 2 * 16 * 2
"""Layers x (key, value) x KV heads x head size x two bytes of bfloat16, for both small models."""

TOKEN_KINDS = int(
    "mm_token_type_ids" in inspect.signature(transformers.Qwen2_5_VLForConditionalGeneration.forward).parameters
)
"""Whether this transformers has to be told which tokens are an image's: an int64 each."""

SIZE = (112, 84)
"""Four by three merged patches of 28 pixels: 12 tokens of Qwen2.5-VL."""


def driver(images: Images) -> VisionLanguage:
    return VisionLanguage(torch.device("cpu"), VOCABULARY, 0, "last", images)


def prefill(measured: Measured) -> PhasePeak:
    return next(peak for peak in measured.phases if peak.phase is Phase.PREFILL)


@pytest.fixture(scope="module")
def qwen() -> Any:
    return ARCHITECTURES["qwen2_5_vl"]().build()


@pytest.fixture(scope="module")
def llava() -> Any:
    return ARCHITECTURES["llava"]().build()


def test_qwens_patches_and_tokens_come_from_the_size(qwen: Any) -> None:
    default = plan_images("m", qwen.config, None, None)
    # 448 / 14 = 32 patches a side, 2 x 2 of them a token, and a token at either end.
    assert default.size == (448, 448)
    assert default.pixels == (32 * 32, 3 * 2 * 14 * 14)
    assert default.tokens == 16 * 16 + 2
    assert plan_images("m", qwen.config, 2, SIZE).tokens == 2 * (4 * 3 + 2)


@pytest.mark.parametrize(
    ("asked", "seen"),
    [
        ((1024, 768), (37 * 28, 27 * 28)),  # 36.57 and 27.43 merged patches
        ((500, 333), (18 * 28, 12 * 28)),  # 17.86 and 11.89
        ((90, 70), (3 * 28, 2 * 28)),  # 3.21 and 2.5: halves go to the even number, as Python rounds
        ((5, 5), (28, 28)),  # never less than one token
    ],
)
def test_qwens_sizes_are_rounded_to_whole_tokens(qwen: Any, asked: tuple[int, int], seen: tuple[int, int]) -> None:
    assert plan_images("m", qwen.config, 1, asked).size == seen


def test_llavas_images_have_the_size_of_its_vision_tower(llava: Any) -> None:
    images = plan_images("m", llava.config, None, None)
    # 56 / 14 = 4 patches a side, a token each.
    assert (images.size, images.pixels, images.tokens) == ((56, 56), (1, 3, 56, 56), 16)
    with pytest.raises(UsageError, match="m scales every image to 56 x 56: leave --image-size out"):
        plan_images("m", llava.config, 1, (448, 448))


def test_llava_1_5_takes_576_tokens_an_image() -> None:
    # https://huggingface.co/llava-hf/llava-1.5-7b-hf/blob/main/config.json: 336 pixels, patches of 14; 24 x 24.
    vision = transformers.CLIPVisionConfig(image_size=336, patch_size=14)
    config = transformers.LlavaConfig(vision_config=vision, text_config=transformers.LlamaConfig())
    assert plan_images("m", config, 1, None).tokens == 576
    config.vision_feature_select_strategy = "full"
    assert plan_images("m", config, 1, None).tokens == 577


@pytest.mark.parametrize("count", [1, 2])
def test_pixel_values_are_inputs_and_the_cache_holds_the_images_tokens(qwen: Any, count: int) -> None:
    images = plan_images("m", qwen.config, count, SIZE)
    shape = Shape(context_tokens=100, new_tokens=4, concurrency=3)
    peak = prefill(measure(qwen, driver(images), shape))
    # 6 x 8 patches of 3 x 2 x 14 x 14 float32 and a grid of three int64, for each image; ids, mask and kinds of token.
    pixels, grid, tokens = 48 * 1176 * 4, 3 * 8, (2 + TOKEN_KINDS) * 100 * 8
    assert peak.parts.inputs_bytes == 3 * (count * (pixels + grid) + tokens)
    assert peak.parts.total_bytes == peak.allocated_bytes
    assert peak.parts.unexplained_bytes == 0
    found = cached(qwen, driver(images), shape)
    assert found[Phase.PREFILL] == {"bfloat16": KV_A_TOKEN * 100 * 3}
    assert found[Phase.DECODE] == {"bfloat16": KV_A_TOKEN * 103 * 3}


def test_llavas_pixels_are_whole_images(llava: Any) -> None:
    images = plan_images("m", llava.config, 2, None)
    peak = prefill(measure(llava, driver(images), Shape(64, 2, 3)))
    # Two images of 3 x 56 x 56 float32, ids and mask.
    assert peak.parts.inputs_bytes == 3 * (2 * 3 * 56 * 56 * 4 + 2 * 64 * 8)
    assert cached(llava, driver(images), Shape(64, 2, 3))[Phase.PREFILL] == {"bfloat16": KV_A_TOKEN * 64 * 3}


def test_the_vision_tower_is_weights_with_images_or_without(qwen: Any) -> None:
    vision = sum(parameter.numel() for parameter in qwen.model.visual.parameters())
    text = sum(parameter.numel() for parameter in qwen.parameters()) - vision
    # Patches of 3 x 2 x 14 x 14 to 64; two blocks of two norms, q, k and v of 64 and the output, each with a bias, and
    # three matrices of 64 x 128 with theirs; the merger's norm, 256 x 256 and 256 x 64.
    block = 2 * 64 + (64 * 192 + 192) + (64 * 64 + 64) + (2 * (64 * 128 + 128) + 128 * 64 + 64)
    assert vision == 1176 * 64 + 2 * block + (64 + 256 * 256 + 256 + 256 * 64 + 64)
    assert sum(one.size_bytes for one in resident_model(qwen, "cpu").weights.values()) == 2 * (vision + text)
    for images in (NO_IMAGES, plan_images("m", qwen.config, 1, SIZE)):
        assert prefill(measure(qwen, driver(images), Shape(40, 1, 1))).parts.weights_bytes == 2 * (vision + text)


def test_reading_images_takes_memory_that_text_alone_does_not(qwen: Any) -> None:
    shape = Shape(120, 1, 2)
    text = prefill(measure(qwen, driver(NO_IMAGES), shape))
    seen = prefill(measure(qwen, driver(plan_images("m", qwen.config, 1, (224, 224))), shape))
    # 16 x 16 patches of 1176 float32 numbers for each of two sequences, and what the tower makes of them.
    pixels = 2 * 256 * 1176 * 4
    assert seen.parts.inputs_bytes - text.parts.inputs_bytes == pixels + 2 * (3 * 8 + TOKEN_KINDS * 120 * 8)
    assert seen.allocated_bytes > text.allocated_bytes + pixels
    assert text.parts.inputs_bytes == 2 * 120 * 2 * 8


def test_text_never_holds_a_token_that_means_an_image(qwen: Any) -> None:
    images = plan_images("m", qwen.config, 1, SIZE)
    tokens = driver(images)._tokens(Shape(2000, 1, 2))
    assert tokens[0, : images.tokens].tolist() == [252, *[250] * 12, 253]
    assert not set(tokens[:, images.tokens :].flatten().tolist()) & {250, 251, 252, 253}


def test_tokens_after_an_image_stand_where_the_model_itself_puts_them(qwen: Any) -> None:
    images = plan_images("m", qwen.config, 2, SIZE)
    tokens = driver(images)._tokens(Shape(60, 1, 1))
    beside = driver(images)._beside(qwen, tokens)
    told = {name: tensor for name, tensor in beside.items() if name != "pixel_values"}
    _, shift = qwen.model.get_rope_index(input_ids=tokens, **told)
    assert shift.tolist() == [[images.text_shift]]
    # Each image of 4 x 3 tokens takes as many positions as its longer side: 4 in place of 12.
    assert images.text_shift == 2 * (4 - 12)


def test_the_probe_has_room_for_the_images(qwen: Any) -> None:
    images = plan_images("m", qwen.config, 3, SIZE)
    assert driver(images).probe == Shape(3 * 14 + 16, 1, 1)


def test_gemma_3_takes_its_pooled_tokens_between_two_marks() -> None:
    config = transformers.Gemma3Config(
        text_config={
            "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
            "num_key_value_heads": 2, "head_dim": 16, "vocab_size": VOCABULARY,
        },
        vision_config={
            "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
            "image_size": 56, "patch_size": 14,
        },
        mm_tokens_per_image=4, boi_token_index=251, eoi_token_index=252, image_token_index=250,
    )  # fmt: skip
    model = transformers.Gemma3ForConditionalGeneration._from_config(config, dtype=torch.bfloat16).eval()
    images = plan_images("m", model.config, 2, None)
    assert images.tokens == 2 * (1 + 4 + 1)
    found = cached(model, driver(images), Shape(40, 3, 2))
    assert found[Phase.PREFILL]["bfloat16"] == KV_A_TOKEN * 40 * 2


def test_qwen2_vl_takes_its_images_as_its_successor_does() -> None:
    config = transformers.Qwen2VLConfig(
        text_config=ARCHITECTURES["qwen2_5_vl"]().config.text_config.to_dict() | {"model_type": "qwen2_vl_text"},
        vision_config={"depth": 2, "embed_dim": 64, "hidden_size": 64, "num_heads": 4, "mlp_ratio": 2},
        image_token_id=250, video_token_id=251, vision_start_token_id=252, vision_end_token_id=253,
    )  # fmt: skip
    model = transformers.Qwen2VLForConditionalGeneration._from_config(config, dtype=torch.bfloat16).eval()
    images = plan_images("m", model.config, 2, SIZE)
    assert images.tokens == 2 * (12 + 2)
    found = cached(model, driver(images), Shape(40, 3, 2))
    assert found == {Phase.PREFILL: {"bfloat16": KV_A_TOKEN * 40 * 2}, Phase.DECODE: {"bfloat16": KV_A_TOKEN * 42 * 2}}


@pytest.mark.parametrize(("strategy", "tokens"), [("full", 16), ("default", 15)])
def test_a_llava_without_a_class_token_loses_a_patch_to_the_default_strategy(strategy: str, tokens: int) -> None:
    vision = transformers.SiglipVisionConfig(
        hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, image_size=56, patch_size=14
    )
    text = ARCHITECTURES["llama"]().config
    config = transformers.LlavaConfig(
        vision_config=vision, text_config=text, image_token_index=250, vision_feature_select_strategy=strategy
    )
    model = transformers.LlavaForConditionalGeneration._from_config(config, dtype=torch.bfloat16).eval()
    images = plan_images("m", model.config, 1, None)
    assert images.tokens == tokens
    # The model itself refuses a prompt with another number of placeholders.
    assert cached(model, driver(images), Shape(40, 1, 2)) == {Phase.PREFILL: {"bfloat16": KV_A_TOKEN * 40 * 2}}


def test_a_family_whose_images_are_not_known_is_measured_on_text_alone_and_no_other_way(tmp_path: Any) -> None:
    config = transformers.PaliGemmaConfig()
    folder = save_config(tmp_path / "model", config, "PaliGemmaForConditionalGeneration")
    with pytest.raises(UsageError, match=r"some/model: gpufit does not know how paligemma takes images .*--images 0"):
        plan_load(make_job(model_path=folder))
    assert plan_load(make_job(model_path=folder, images=0)).images is NO_IMAGES
    with pytest.raises(UsageError, match="--image-size is of no use with --images 0"):
        plan_load(make_job(model_path=folder, images=0, image_size=(56, 56)))
