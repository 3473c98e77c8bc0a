"""Where bf16 is faster: CUDA, and CPUs with native support (AMX, AVX-512 BF16); emulated, it is several times slower than fp32."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch


def native_bf16(device: torch.device) -> bool:
    """True if bf16 matrix products run natively on this device."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    # these names exist since torch 2.4; without them, native support is unknown
    tests = (getattr(torch.cpu, name, None) for name in ("_is_amx_tile_supported", "_is_avx512_bf16_supported"))
    return device.type == "cpu" and any(test is not None and test() for test in tests)


def bf16_autocast(device: torch.device) -> AbstractContextManager[object]:
    """Autocast to bf16 where it is native, for computations that do not need full precision."""
    return torch.autocast(device.type, dtype=torch.bfloat16) if native_bf16(device) else nullcontext()
