"""Small models of every family with its switches set one way and the other: `(model_type, class, settings)`."""

from __future__ import annotations

from typing import Any

ROTARY = {"rope_type": "default", "rope_theta": 10000.0}
SMALL = {
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "vocab_size": 160,
}
GPT = {"n_embd": 64, "n_layer": 3, "n_head": 4, "vocab_size": 160, "n_positions": 128}
ENCODER = {
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 96,
    "vocab_size": 160,
    "max_position_embeddings": 66,
}
BOTH = {
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 96,
    "decoder_ffn_dim": 128,
    "vocab_size": 160,
    "max_position_embeddings": 66,
}
EXPERTS = {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
ROUTED = {"n_routed_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "n_group": 1, "topk_group": 1}
LATENT = {
    "q_lora_rank": 24,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 12,
    "num_key_value_heads": 4,
}
LINEAR = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 12,
}
EYE = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 56,
    "patch_size": 14,
}
MAMBA = {"mamba_n_heads": 8, "mamba_d_head": 16, "mamba_d_state": 16, "mamba_n_groups": 2, "mamba_expand": 2}

VARIANTS: list[tuple[str, str, dict[str, Any]]] = [
    ("llama", "LlamaForCausalLM", SMALL | {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}),
    ("llama", "LlamaForCausalLM", SMALL | {"head_dim": 24, "num_key_value_heads": 1}),
    ("llama", "LlamaModel", SMALL),
    ("llama", "LlamaForSequenceClassification", SMALL | {"num_labels": 3}),
    ("mistral", "MistralForCausalLM", SMALL),
    ("mistral", "MistralModel", SMALL),
    ("ministral", "MinistralForCausalLM", SMALL | {"head_dim": 16}),
    ("ministral3", "Ministral3ForCausalLM", SMALL | {"head_dim": 16}),
    ("granite", "GraniteForCausalLM", SMALL | {"attention_bias": True, "mlp_bias": True}),
    ("seed_oss", "SeedOssForCausalLM", SMALL | {"attention_out_bias": True, "mlp_bias": True}),
    ("seed_oss", "SeedOssForCausalLM", SMALL | {"attention_bias": False}),
    ("smollm3", "SmolLM3ForCausalLM", SMALL | {"attention_bias": True, "pad_token_id": 0}),
    ("helium", "HeliumForCausalLM", SMALL | {"attention_bias": True, "head_dim": 16}),
    ("ernie4_5", "Ernie4_5ForCausalLM", SMALL | {"use_bias": True}),
    ("stablelm", "StableLmForCausalLM", SMALL | {"use_qkv_bias": True, "use_parallel_residual": True}),
    ("stablelm", "StableLmForCausalLM", SMALL | {"qk_layernorm": True}),
    ("internlm3", "LlamaForCausalLM", SMALL | {"qkv_bias": True, "bias": True}),
    ("nemotron", "NemotronForCausalLM", SMALL | {"head_dim": 16, "attention_bias": True, "mlp_bias": True}),
    ("qwen2", "Qwen2ForCausalLM", SMALL | {"use_sliding_window": True, "max_window_layers": 2}),
    ("qwen2", "Qwen2ForTokenClassification", SMALL | {"num_labels": 5}),
    ("qwen3", "Qwen3ForCausalLM", SMALL | {"attention_bias": True}),
    ("qwen3", "Qwen3Model", SMALL),
    ("qwen2_moe", "Qwen2MoeForCausalLM", SMALL | EXPERTS | {"shared_expert_intermediate_size": 48}),
    ("qwen2_moe", "Qwen2MoeForCausalLM", SMALL | EXPERTS | {"decoder_sparse_step": 2, "qkv_bias": False}),
    ("qwen3_moe", "Qwen3MoeForCausalLM", SMALL | EXPERTS | {"mlp_only_layers": [0, 2], "head_dim": 24}),
    ("olmoe", "OlmoeForCausalLM", SMALL | {"num_experts": 6, "num_experts_per_tok": 2, "attention_bias": True}),
    ("qwen3_next", "Qwen3NextForCausalLM", SMALL | EXPERTS | LINEAR | {"shared_expert_intermediate_size": 24}),
    ("qwen3_next", "Qwen3NextForCausalLM", SMALL | EXPERTS | LINEAR | {"mlp_only_layers": [1], "attention_bias": True}),
    ("qwen3_5_text", "Qwen3_5ForCausalLM", SMALL | LINEAR | {"tie_word_embeddings": True}),
    ("qwen3_5_moe_text", "Qwen3_5MoeForCausalLM", SMALL | EXPERTS | LINEAR),
    ("gemma", "GemmaForCausalLM", SMALL | {"attention_bias": True, "head_dim": 24}),
    ("gemma2", "Gemma2ForCausalLM", SMALL | {"tie_word_embeddings": False}),
    ("gemma3_text", "Gemma3ForCausalLM", SMALL | {"attention_bias": True}),
    (
        "gemma4_text",
        "Gemma4ForCausalLM",
        SMALL
        | {"hidden_size_per_layer_input": 0, "attention_k_eq_v": True}
        | {"global_head_dim": 48, "num_global_key_value_heads": 1},
    ),
    (
        "gemma4_text",
        "Gemma4ForCausalLM",
        SMALL
        | {
            "num_hidden_layers": 6,
            "layer_types": ["sliding_attention", "full_attention"] * 3,
            "num_kv_shared_layers": 2,
            "use_double_wide_mlp": True,
            "hidden_size_per_layer_input": 8,
            "vocab_size_per_layer_input": 150,
            "enable_moe_block": True,
            "num_experts": 6,
            "top_k_experts": 2,
            "moe_intermediate_size": 32,
        },
    ),
    ("olmo", "OlmoForCausalLM", SMALL | {"attention_bias": True}),
    ("olmo2", "Olmo2ForCausalLM", SMALL | {"attention_bias": True}),
    ("olmo3", "Olmo3ForCausalLM", SMALL),
    ("exaone4", "Exaone4ForCausalLM", SMALL | {"head_dim": 24}),
    ("cohere", "CohereForCausalLM", SMALL | {"use_qk_norm": True, "attention_bias": True}),
    ("cohere2", "Cohere2ForCausalLM", SMALL | {"tie_word_embeddings": False}),
    ("deepseek_v2", "DeepseekV2ForCausalLM", SMALL | LATENT | ROUTED | {"q_lora_rank": None, "attention_bias": True}),
    ("deepseek_v2", "DeepseekV2ForCausalLM", SMALL | LATENT | ROUTED | {"first_k_dense_replace": 2}),
    ("deepseek_v3", "DeepseekV3ForCausalLM", SMALL | LATENT | ROUTED | {"q_lora_rank": None}),
    ("deepseek_v3", "DeepseekV3ForCausalLM", SMALL | LATENT | ROUTED | {"n_shared_experts": 2, "attention_bias": True}),
    ("deepseek_v32", "DeepseekV32ForCausalLM", SMALL | LATENT | ROUTED | {"index_head_dim": 16, "index_n_heads": 2}),
    ("glm_moe_dsa", "GlmMoeDsaForCausalLM", SMALL | LATENT | ROUTED | {"index_head_dim": 16, "index_n_heads": 2}),
    ("glm4_moe_lite", "Glm4MoeLiteForCausalLM", SMALL | LATENT | ROUTED | {"attention_bias": True}),
    ("mixtral", "MixtralForCausalLM", SMALL | {"num_local_experts": 6, "head_dim": 24, "tie_word_embeddings": True}),
    ("minimax_m2", "MiniMaxM2ForCausalLM", SMALL | {"num_local_experts": 8, "head_dim": 24}),
    ("phimoe", "PhimoeForCausalLM", SMALL | {"num_local_experts": 6, "attention_bias": True, "lm_head_bias": True}),
    ("gpt_oss", "GptOssForCausalLM", SMALL | {"num_local_experts": 6, "rope_parameters": ROTARY}),
    ("gpt_oss", "GptOssForCausalLM", SMALL | {"attention_bias": False, "rope_parameters": ROTARY}),
    ("mimo_v2_flash", "MiMoV2FlashForCausalLM", SMALL | ROUTED | {"head_dim": 24, "v_head_dim": 16}),
    ("llama4_text", "Llama4ForCausalLM", SMALL | {"num_local_experts": 4, "interleave_moe_layer_step": 2}),
    ("mllama_text_model", "MllamaForCausalLM", SMALL | {"cross_attention_layers": [1, 3], "pad_token_id": 0}),
    ("phi", "PhiForCausalLM", SMALL | {"tie_word_embeddings": True}),
    ("phi3", "Phi3ForCausalLM", SMALL | {"pad_token_id": 0}),
    ("starcoder2", "Starcoder2ForCausalLM", SMALL | {"use_bias": False, "tie_word_embeddings": False}),
    ("gpt2", "GPT2LMHeadModel", GPT | {"n_inner": 100, "tie_word_embeddings": False}),
    ("gpt_bigcode", "GPTBigCodeForCausalLM", GPT | {"multi_query": False}),
    ("gptj", "GPTJForCausalLM", GPT | {"rotary_dim": 8}),
    (
        "gpt_neo",
        "GPTNeoForCausalLM",
        {"hidden_size": 64, "num_layers": 4, "num_heads": 4, "vocab_size": 160}
        | {"attention_types": [[["global", "local"], 2]]},
    ),
    ("codegen", "CodeGenForCausalLM", GPT | {"rotary_dim": 8, "n_ctx": 128}),
    ("falcon", "FalconForCausalLM", SMALL | {"new_decoder_architecture": True, "num_kv_heads": 2, "bias": True}),
    ("falcon", "FalconForCausalLM", SMALL | {"new_decoder_architecture": True, "num_ln_in_parallel_attn": 1}),
    ("falcon", "FalconForCausalLM", SMALL | {"multi_query": False, "parallel_attn": False, "alibi": True}),
    ("bloom", "BloomForCausalLM", {"hidden_size": 64, "n_layer": 3, "n_head": 4, "vocab_size": 160}),
    ("gpt_neox", "GPTNeoXForCausalLM", SMALL | {"attention_bias": False, "tie_word_embeddings": True}),
    ("mpt", "MptForCausalLM", {"d_model": 64, "n_heads": 4, "n_layers": 3, "vocab_size": 160}),
    ("opt", "OPTForCausalLM", SMALL | {"ffn_dim": 96, "word_embed_proj_dim": 32, "do_layer_norm_before": False}),
    ("opt", "OPTForCausalLM", SMALL | {"ffn_dim": 96, "word_embed_proj_dim": 64, "enable_bias": False}),
    (
        "nemotron_h",
        "NemotronHForCausalLM",
        SMALL
        | ROUTED
        | {
            "layers_block_type": ["mamba", "moe", "attention", "mlp"],
            "moe_latent_size": 24,
            "moe_shared_expert_intermediate_size": 40,
            "mamba_num_heads": 8,
            "mamba_head_dim": 8,
            "attention_bias": True,
            "mlp_bias": True,
            "mamba_proj_bias": True,
            "use_conv_bias": False,
        },
    ),
    ("glm", "GlmForCausalLM", SMALL | {"attention_bias": False, "pad_token_id": 0}),
    ("glm4", "Glm4ForCausalLM", SMALL | {"pad_token_id": 0}),
    ("glm4_moe", "Glm4MoeForCausalLM", SMALL | ROUTED | {"use_qk_norm": True, "attention_bias": True, "head_dim": 16}),
    ("dots1", "Dots1ForCausalLM", SMALL | ROUTED | {"n_shared_experts": 2, "first_k_dense_replace": 1}),
    (
        "ernie4_5_moe",
        "Ernie4_5_MoeForCausalLM",
        SMALL
        | {"moe_num_experts": 6, "moe_k": 2, "moe_intermediate_size": 32, "moe_layer_end_index": 2}
        | {"use_bias": True},
    ),
    ("hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM", SMALL | {"head_dim": 16, "attention_bias": True}),
    ("hunyuan_v1_moe", "HunYuanMoEV1ForCausalLM", SMALL | {"head_dim": 16, "num_experts": 6, "moe_topk": 2}),
    ("mamba", "MambaForCausalLM", {"hidden_size": 64, "num_hidden_layers": 3, "vocab_size": 160, "use_bias": True}),
    ("falcon_mamba", "FalconMambaForCausalLM", {"hidden_size": 64, "num_hidden_layers": 3, "use_conv_bias": False}),
    (
        "mamba2",
        "Mamba2ForCausalLM",
        {"hidden_size": 64, "num_hidden_layers": 3, "vocab_size": 160, "num_heads": 8, "head_dim": 16, "n_groups": 2}
        | {"tie_word_embeddings": True},
    ),
    ("jamba", "JambaForCausalLM", SMALL | {"num_experts": 4, "attn_layer_period": 3, "attn_layer_offset": 1}),
    ("jamba", "JambaForCausalLM", SMALL | {"num_experts": 1, "mamba_proj_bias": True}),
    ("bamba", "BambaForCausalLM", SMALL | MAMBA | {"attn_layer_indices": [1, 3], "mlp_bias": True}),
    ("falcon_h1", "FalconH1ForCausalLM", SMALL | MAMBA | {"mamba_d_ssm": 128, "mamba_rms_norm": True}),
    (
        "granitemoehybrid",
        "GraniteMoeHybridForCausalLM",
        SMALL | MAMBA | {"layer_types": ["mamba", "attention", "mamba", "mamba"], "num_local_experts": 0},
    ),
    ("granitemoehybrid", "GraniteMoeHybridForCausalLM", SMALL | MAMBA | {"num_local_experts": 4}),
    ("granitemoe", "GraniteMoeForCausalLM", SMALL | {"num_local_experts": 4, "attention_bias": True}),
    ("granitemoeshared", "GraniteMoeSharedForCausalLM", SMALL | {"shared_intermediate_size": 40}),
    (
        "dbrx",
        "DbrxForCausalLM",
        {"d_model": 64, "n_heads": 4, "n_layers": 3, "vocab_size": 160}
        | {"attn_config": {"kv_n_heads": 2, "rope_theta": 10000.0, "clip_qkv": 8}}
        | {"ffn_config": {"ffn_hidden_size": 96, "moe_num_experts": 4, "moe_top_k": 2}},
    ),
    ("recurrent_gemma", "RecurrentGemmaForCausalLM", SMALL | {"num_attention_heads": 4, "lru_width": 96}),
    ("lfm2", "Lfm2ForCausalLM", SMALL | {"full_attn_idxs": [1, 3], "conv_bias": True}),
    ("lfm2", "Lfm2ForCausalLM", SMALL | {"block_auto_adjust_ff_dim": False, "full_attn_idxs": [0]}),
    (
        "lfm2_moe",
        "Lfm2MoeForCausalLM",
        SMALL | EXPERTS | {"layer_types": ["conv", "full_attention"] * 2, "num_dense_layers": 1},
    ),
    ("whisper", "WhisperForConditionalGeneration", BOTH | {"num_mel_bins": 40, "pad_token_id": 0}),
    ("bart", "BartForConditionalGeneration", BOTH),
    ("mbart", "MBartForConditionalGeneration", BOTH | {"tie_word_embeddings": True}),
    ("pegasus", "PegasusForConditionalGeneration", BOTH),
    ("marian", "MarianMTModel", BOTH | {"pad_token_id": 0}),
    ("t5", "T5ForConditionalGeneration", {"d_model": 64, "d_kv": 12, "d_ff": 96, "num_layers": 2, "num_heads": 4}),
    (
        "t5",
        "T5ForConditionalGeneration",
        {"d_model": 64, "num_layers": 2, "num_decoder_layers": 3, "num_heads": 4, "vocab_size": 160}
        | {"feed_forward_proj": "gated-gelu"},
    ),
    ("umt5", "UMT5ForConditionalGeneration", {"d_model": 64, "num_layers": 2, "num_heads": 4, "vocab_size": 160}),
    *(
        (family, f"{stem}{head}", ENCODER | {"num_labels": 3})
        for family, stem in (
            ("bert", "Bert"),
            ("roberta", "Roberta"),
            ("xlm-roberta", "XLMRoberta"),
            ("camembert", "Camembert"),
            ("electra", "Electra"),
            ("mpnet", "MPNet"),
            ("deberta-v2", "DebertaV2"),
        )
        for head in ("Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification")
    ),
    *(
        (
            "distilbert",
            f"DistilBert{head}",
            {"dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 96, "vocab_size": 160, "num_labels": 3},
        )
        for head in ("Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification")
    ),
    (
        "deberta-v2",
        "DebertaV2Model",
        ENCODER
        | {
            "relative_attention": True,
            "position_buckets": 16,
            "norm_rel_ebd": "layer_norm",
            "share_att_key": True,
            "pos_att_type": "p2c|c2p",
            "position_biased_input": False,
            "conv_kernel_size": 3,
        },
    ),
    ("deberta-v2", "DebertaV2Model", ENCODER | {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]}),
    ("modernbert", "ModernBertForMaskedLM", ENCODER | {"pad_token_id": 0, "attention_bias": True, "mlp_bias": True}),
    (
        "modernbert",
        "ModernBertForSequenceClassification",
        ENCODER | {"pad_token_id": 0, "num_labels": 3, "norm_bias": True, "classifier_bias": True},
    ),
    ("nomic_bert", "NomicBertModel", ENCODER),
    (
        "llava",
        "LlavaForConditionalGeneration",
        {"text_config": SMALL | {"model_type": "mistral"}, "vision_config": EYE | {"model_type": "pixtral"}},
    ),
    (
        "llava",
        "LlavaForConditionalGeneration",
        {"text_config": SMALL | {"model_type": "qwen2"}, "vision_config": EYE | {"model_type": "siglip_vision_model"}}
        | {"multimodal_projector_bias": False},
    ),
    ("llava_next", "LlavaNextForConditionalGeneration", {"text_config": SMALL | {"model_type": "llama"}}),
    ("llava_onevision", "LlavaOnevisionForConditionalGeneration", {"text_config": SMALL | {"model_type": "qwen2"}}),
    ("paligemma", "PaliGemmaForConditionalGeneration", {}),
    ("paligemma", "PaliGemmaForConditionalGeneration", {"text_config": SMALL | {"model_type": "gemma2"}}),
    ("internvl", "InternVLForConditionalGeneration", {"text_config": SMALL | {"model_type": "qwen3"}}),
    (
        "internvl",
        "InternVLForConditionalGeneration",
        {"vision_config": EYE | {"use_qk_norm": True, "norm_type": "rms_norm", "use_mean_pooling": False}}
        | {"text_config": SMALL | {"model_type": "llama"}, "tie_word_embeddings": False},
    ),
    ("idefics3", "Idefics3ForConditionalGeneration", {"text_config": SMALL | {"model_type": "llama"}}),
    ("smolvlm", "SmolVLMForConditionalGeneration", {"vision_config": EYE, "scale_factor": 4}),
    ("mistral3", "Mistral3ForConditionalGeneration", {}),
    ("gemma3", "Gemma3ForConditionalGeneration", {"vision_config": EYE | {"vision_use_head": True}}),
    ("qwen2_vl", "Qwen2VLForConditionalGeneration", {}),
    ("qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration", {"text_config": SMALL | {"rope_parameters": ROTARY}}),
    ("qwen3_vl", "Qwen3VLForConditionalGeneration", {"tie_word_embeddings": True}),
    ("qwen3_vl_moe", "Qwen3VLMoeForConditionalGeneration", {}),
    ("qwen3_5", "Qwen3_5ForConditionalGeneration", {}),
    ("qwen2_audio", "Qwen2AudioForConditionalGeneration", {}),
    ("llama4", "Llama4ForConditionalGeneration", {}),
    ("cwm", "CwmForCausalLM", SMALL | {"mlp_bias": True}),
    ("arcee", "ArceeForCausalLM", SMALL | {"attention_bias": True, "mlp_bias": True}),
    ("bitnet", "BitNetForCausalLM", SMALL),
    ("exaone", "LlamaForCausalLM", SMALL),
    ("granite_swa", "GraniteSWAForCausalLM", SMALL | {"attention_bias": True, "tie_word_embeddings": False}),
    ("apertus", "ApertusForCausalLM", SMALL | {"attention_bias": True}),
    ("mistral4", "Mistral4ForCausalLM", SMALL | LATENT | ROUTED | {"first_k_dense_replace": 1}),
    ("minicpm3", "MiniCPM3ForCausalLM", SMALL | LATENT),
    (
        "kimi_linear",
        "KimiLinearForCausalLM",
        SMALL | LATENT | {"num_experts": 6, "q_lora_rank": None, "pad_token_id": 0},
    ),
    ("glm4v", "Glm4vForConditionalGeneration", {"text_config": SMALL}),
    ("glm4v_moe", "Glm4vMoeForConditionalGeneration", {"text_config": SMALL | ROUTED | {"head_dim": 16}}),
    ("voxtral", "VoxtralForConditionalGeneration", {}),
    ("glm5_next", "Glm5NextForConditionalGeneration", {}),
    ("qwen2_5_omni", "Qwen2_5OmniForConditionalGeneration", {}),
    (
        "kimi_k25",
        "Kimi_K25ForConditionalGeneration",
        {"text_config": SMALL | LATENT | ROUTED | {"model_type": "deepseek_v3"}, "tie_word_embeddings": False},
    ),
    (
        "glm_moe_dsa",
        "GlmMoeDsaForCausalLM",
        SMALL | LATENT | ROUTED | {"index_head_dim": 16, "index_topk_freq": 2, "index_skip_topk_offset": 1},
    ),
    ("clip", "CLIPModel", {"projection_dim": 40}),
    ("siglip", "SiglipModel", {"vision_config": EYE | {"vision_use_head": False}}),
]
