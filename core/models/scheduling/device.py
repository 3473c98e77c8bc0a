"""The device that models run on, where bf16 is worth while on it, and what happens when its memory is too small."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

import torch
from torch import nn

from core.errors import InputError
from core.models.scheduling.halving import Halving

T = TypeVar("T")
_log = logging.getLogger(__name__)


def pick_device(name: str = "auto") -> torch.device:
    """`auto`: CUDA if there is a GPU, else the CPU.  Raises InputError for a device that torch does not know or this machine lacks."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        why = str(error).splitlines()[0]
        raise InputError(
            f"AMBISCOPE_DEVICE is '{name}', which torch cannot use here ({why}); use auto, cpu, cuda or cuda:1"
        ) from error
    return device


def native_bf16(device: torch.device) -> bool:
    """True if bf16 matrix products run natively: on CUDA, and on CPUs with AMX or AVX-512 BF16.  Emulated, bf16 is several times slower than fp32."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    # these names exist since torch 2.4; without them, native support is unknown
    tests = (getattr(torch.cpu, name, None) for name in ("_is_amx_tile_supported", "_is_avx512_bf16_supported"))
    return device.type == "cpu" and any(test is not None and test() for test in tests)


def bf16_autocast(device: torch.device) -> AbstractContextManager[object]:
    """Autocast to bf16 where it is native, for computations that do not need full precision."""
    return torch.autocast(device.type, dtype=torch.bfloat16) if native_bf16(device) else nullcontext()


def store_in_bf16(encoder: nn.Module, device: torch.device) -> None:
    """Converts the matrices of an encoder that always runs in `bf16_autocast`, which would otherwise convert all of them at each call."""
    if native_bf16(device):
        for module in encoder.modules():
            if isinstance(module, nn.Linear):
                module.to(torch.bfloat16)


class OnDevice:
    """A model on a device.  A forward pass that runs out of memory is repeated in halves; if a single item does not fit, the model moves to the CPU.
    Each change is logged once.  The caller holds the model's lock.
    """

    def __init__(self, what: str, model: nn.Module, device: torch.device) -> None:
        self._what, self._model, self.device = what, model.to(device).eval(), device
        self._halving = Halving(self._is_full, self._halved, self._leave)

    def run(self, forward: Callable[[slice], T], count: int, most: int = 0) -> list[T]:
        """The results of `forward` for items 0..count-1, in order, in batches of at most `most` (0: all), or fewer if memory is short.

        Raises torch.OutOfMemoryError if one item is too much for the CPU as well.
        """
        return self._halving.run(forward, count, most)

    def _is_full(self, error: RuntimeError) -> bool:
        full = isinstance(error, torch.OutOfMemoryError) and self.device.type != "cpu"
        if full:
            torch.cuda.empty_cache()
        return full

    def _halved(self, items: int, most: int) -> None:
        _log.warning("%s: the memory of %s is too small for %d at once; %d from now on", self._what, self.device, items, most)

    def _leave(self) -> None:
        _log.warning("%s: the memory of %s is too small for one; it runs on the CPU from now on", self._what, self.device)
        self.device = torch.device("cpu")
        self._model.float().to(self.device)
