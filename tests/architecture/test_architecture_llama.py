"""A Llama's shapes, against counts that its publisher states."""

from gpufit.architecture.registry import architecture_of

LLAMA_2_7B = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "vocab_size": 32000,
    "max_position_embeddings": 4096,
    "torch_dtype": "float16",
}


def test_parameters_of_llama_2_7b() -> None:
    # https://huggingface.co/meta-llama/Llama-2-7b-hf states 6,738,417,664 stored elements, of which 32 x 64 are the
    # rotary frequencies that its shards carry as buffers.
    assert architecture_of(LLAMA_2_7B, "config.json").parameters == 6_738_417_664 - 32 * 64
