"""Names of the attention kernels that a simulated run can assume, as `--attn-implementation` takes them."""

from __future__ import annotations

from gpufit.errors import UsageError

SDPA = "sdpa"
"""What torch's sdpa runs on a card: flash without a mask, memory-efficient with one."""
FLASH = "flash_attention_2"
EFFICIENT = "efficient"
EAGER = "eager"
CPU = "cpu"
"""What torch's CPU build runs: for comparison with a run measured on a CPU."""

KERNELS = (SDPA, FLASH, EFFICIENT, EAGER, CPU)
ALIASES = {"flash": FLASH, "fa2": FLASH, "flash-attn": FLASH, "memory_efficient": EFFICIENT}
"""What else people write."""


def kernel_named(text: str) -> str:
    """The kernel of that name. Raises UsageError for a name that is none."""
    name = ALIASES.get(text, text)
    if name not in KERNELS:
        raise UsageError(
            f"--attn-implementation {text}: not a kernel that is simulated; use {', '.join(KERNELS[:-1])} or {CPU}"
        )
    return name
