"""Small models of every kind that gpufit measures: real architectures from their config classes.

Each is a few layers of hidden size 64 over a vocabulary of 256, with room for at least 2048 positions, so that a test
can work out its bytes by hand. torch and transformers are imported when one is asked for, not before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Architecture:
    """One small model: its config and the class that runs it."""

    config: Any
    model_class: type[Any]

    def build(self, dtype: str = "bfloat16", **options: Any) -> Any:
        """The model with seeded random weights, in evaluation mode."""
        import torch

        torch.manual_seed(0)
        model = self.model_class._from_config(self.config, dtype=getattr(torch, dtype), **options)
        return model.eval()

    def save(self, folder: Path, dtype: str = "bfloat16") -> Path:
        """The model written to a directory as transformers writes it: config.json and safetensors."""
        self.build(dtype).save_pretrained(folder)
        return folder


HIDDEN, VOCABULARY, POSITIONS, WINDOW = 64, 256, 2048, 384

_COMMON = {"hidden_size": HIDDEN, "vocab_size": VOCABULARY, "max_position_embeddings": POSITIONS}
_HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2}
_DENSE = _COMMON | _HEADS | {"intermediate_size": 128}


def _made(family: str, model: str, **settings: Any) -> Architecture:
    """`family` + Config and `model`, both names in transformers."""
    import transformers

    config = getattr(transformers, f"{family}Config")(**settings)
    return Architecture(config, getattr(transformers, model))


def llama() -> Architecture:
    """Grouped-query attention: 2 layers, 2 KV heads of 16."""
    return _made("Llama", "LlamaForCausalLM", **_DENSE, num_hidden_layers=2)


def gpt2() -> Architecture:
    """Multi-head attention: 2 layers, 4 heads of 16, learned positions."""
    return _made("GPT2", "GPT2LMHeadModel", n_embd=64, n_layer=2, n_head=4, vocab_size=256, n_positions=POSITIONS)


def mistral() -> Architecture:
    """Every layer slides over a window of 384: 2 layers, 2 KV heads of 16."""
    return _made("Mistral", "MistralForCausalLM", **_DENSE, num_hidden_layers=2, sliding_window=WINDOW)


def gemma3() -> Architecture:
    """Five layers slide over a window of 384, the sixth sees everything: 2 KV heads of 32."""
    return _made("Gemma3Text", "Gemma3ForCausalLM", **_DENSE, num_hidden_layers=6, head_dim=32, sliding_window=WINDOW)


def gpt_oss() -> Architecture:
    """Experts, and every other layer slides over a window of 384: 2 layers, 2 KV heads of 32."""
    return _made(
        "GptOss",
        "GptOssForCausalLM",
        **(_DENSE | {"intermediate_size": 64}),
        num_hidden_layers=2,
        head_dim=32,
        num_local_experts=4,
        num_experts_per_tok=2,
        sliding_window=WINDOW,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
    )


def mixtral() -> Architecture:
    """Four experts a layer: 2 layers, 2 KV heads of 16."""
    return _made("Mixtral", "MixtralForCausalLM", **_DENSE, num_hidden_layers=2, num_local_experts=4)


def qwen3_moe() -> Architecture:
    """Eight experts a layer: 2 layers, 2 KV heads of 32."""
    return _made(
        "Qwen3Moe",
        "Qwen3MoeForCausalLM",
        **_DENSE,
        num_hidden_layers=2,
        head_dim=32,
        moe_intermediate_size=32,
        num_experts=8,
        num_experts_per_tok=2,
    )


def deepseek_v3() -> Architecture:
    """Latent attention: 2 layers, each caching 16 latent and 8 rotary numbers a token; experts in the second."""
    return _made(
        "DeepseekV3",
        "DeepseekV3ForCausalLM",
        **(_DENSE | {"num_key_value_heads": 4}),
        num_hidden_layers=2,
        q_lora_rank=32,
        kv_lora_rank=16,
        qk_rope_head_dim=8,
        qk_nope_head_dim=16,
        v_head_dim=16,
        moe_intermediate_size=32,
        n_routed_experts=8,
        n_group=2,
        topk_group=1,
        num_experts_per_tok=2,
        first_k_dense_replace=1,
    )


def mamba2() -> Architecture:
    """State alone, whatever the length: 2 layers, 8 heads of 16 by 16 numbers, convolution over 4 tokens."""
    return _made(
        "Mamba2",
        "Mamba2ForCausalLM",
        hidden_size=HIDDEN,
        vocab_size=VOCABULARY,
        num_hidden_layers=2,
        num_heads=8,
        head_dim=16,
        n_groups=1,
        state_size=16,
        chunk_size=32,
    )


def qwen3_next() -> Architecture:
    """Three layers of linear attention to one of full attention, all with experts: 4 layers, 2 KV heads of 32."""
    return _made(
        "Qwen3Next",
        "Qwen3NextForCausalLM",
        **_DENSE,
        num_hidden_layers=4,
        head_dim=32,
        moe_intermediate_size=32,
        shared_expert_intermediate_size=32,
        num_experts=4,
        num_experts_per_tok=2,
        linear_key_head_dim=16,
        linear_value_head_dim=16,
        linear_num_key_heads=2,
        linear_num_value_heads=4,
    )


def jamba() -> Architecture:
    """Mamba layers with one of attention among them (the third of 4): 2 KV heads of 16."""
    return _made(
        "Jamba",
        "JambaForCausalLM",
        **_DENSE,
        num_hidden_layers=4,
        num_experts=2,
        num_experts_per_tok=1,
        attn_layer_period=4,
        attn_layer_offset=2,
        mamba_d_state=8,
        mamba_dt_rank=4,
        use_mamba_kernels=False,
    )


def bert() -> Architecture:
    """An encoder: 2 layers, no cache."""
    return _made("Bert", "BertModel", **_COMMON, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128)


def t5() -> Architecture:
    """Encoder and decoder of tokens, relative positions without a limit: 2 + 3 layers, 4 heads of 16."""
    return _made(
        "T5",
        "T5ForConditionalGeneration",
        d_model=HIDDEN,
        d_kv=16,
        d_ff=128,
        num_layers=2,
        num_decoder_layers=3,
        num_heads=4,
        vocab_size=VOCABULARY,
        decoder_start_token_id=0,
    )


def bart() -> Architecture:
    """Encoder and decoder of tokens with learned positions: 2 + 3 layers, 4 heads of 16."""
    return _made(
        "Bart",
        "BartForConditionalGeneration",
        d_model=HIDDEN,
        encoder_layers=2,
        decoder_layers=3,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        vocab_size=VOCABULARY,
        max_position_embeddings=POSITIONS,
        decoder_start_token_id=2,
    )


def whisper() -> Architecture:
    """Speech: 3000 frames of 80 mel bins become 1500 positions; 2 + 3 layers, 4 heads of 16."""
    return _made(
        "Whisper",
        "WhisperForConditionalGeneration",
        d_model=HIDDEN,
        encoder_layers=2,
        decoder_layers=3,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        num_mel_bins=80,
        vocab_size=VOCABULARY,
        max_target_positions=POSITIONS,
        decoder_start_token_id=1,
        pad_token_id=0,
        bos_token_id=2,
        eos_token_id=3,
    )


def qwen2_5_vl() -> Architecture:
    """Vision of any size: patches of 14, four to a token; a text model of 2 layers, 2 KV heads of 16."""
    return _made(
        "Qwen2_5_VL",
        "Qwen2_5_VLForConditionalGeneration",
        text_config=_DENSE
        | {
            "num_hidden_layers": 2,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]},
        },
        vision_config={
            "depth": 2,
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_heads": 4,
            "out_hidden_size": HIDDEN,
            "fullatt_block_indexes": [1],
        },
        image_token_id=250,
        video_token_id=251,
        vision_start_token_id=252,
        vision_end_token_id=253,
    )


def llava() -> Architecture:
    """Vision of one size: 56 x 56 pixels in patches of 14 are 16 tokens; a text model of 2 layers, 2 KV heads of 16."""
    import transformers

    vision = transformers.CLIPVisionConfig(
        hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, image_size=56, patch_size=14
    )
    text = transformers.LlamaConfig(**_DENSE, num_hidden_layers=2)
    return _made(
        "Llava",
        "LlavaForConditionalGeneration",
        vision_config=vision,
        text_config=text,
        image_token_index=250,
        vision_feature_layer=-2,
    )


ARCHITECTURES: dict[str, Callable[[], Architecture]] = {
    make.__name__: make
    for make in (
        llama,
        gpt2,
        mistral,
        gemma3,
        gpt_oss,
        mixtral,
        qwen3_moe,
        deepseek_v3,
        mamba2,
        qwen3_next,
        jamba,
        bert,
        t5,
        bart,
        whisper,
        qwen2_5_vl,
        llava,
    )
}
"""Every small model by name."""
