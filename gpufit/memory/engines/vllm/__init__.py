"""vLLM: weights a rank, activation peak, memory outside torch, CUDA graphs, and the KV pool that is left."""
