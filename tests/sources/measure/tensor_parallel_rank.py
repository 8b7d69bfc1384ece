"""One rank of a tensor-parallel model, on the CPU over gloo: prints what it holds, as JSON.

RANK=0 LOCAL_RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=... python tensor_parallel_rank.py MODEL
"""

from __future__ import annotations

import json
import sys

import torch.distributed
import transformers

from gpufit.sources.measure.storages import resident_model

model = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1], tp_plan="auto")
resident = resident_model(model, "cpu")
print(
    json.dumps(
        {
            "footprint_bytes": model.get_memory_footprint(),
            "weights_bytes": sum(one.size_bytes for one in resident.weights.values()),
        }
    )
)
torch.distributed.destroy_process_group()
