"""Chooses the device that models run on, uses bf16 where it is native, and handles a device that runs out of memory."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

import torch
from torch import nn

from core.errors import InputError

T = TypeVar("T")
_log = logging.getLogger(__name__)


def pick_device(name: str = "auto") -> torch.device:
    """`auto` means CUDA if there is a GPU, else the CPU. Raises InputError for a device that torch doesn't know or this machine
    doesn't have."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"AMBISCOPE_DEVICE is '{name}', which torch cannot use here ({reason}); use auto, cpu, cuda or cuda:1"
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
    """Converts the matrices of an encoder that always runs in `bf16_autocast`, which would otherwise convert all of them on
    every call."""
    if native_bf16(device):
        for module in encoder.modules():
            if isinstance(module, nn.Linear):
                module.to(torch.bfloat16)


class OnDevice:
    """A model on a device.  A forward pass that runs out of memory is repeated in halves.  If a single item doesn't fit, the
    model moves to the CPU. Each change is logged once.  The caller holds the model's lock.
    """

    def __init__(self, name: str, model: nn.Module, device: torch.device) -> None:
        self._name, self._model, self.device = name, model.to(device).eval(), device
        self._max_items = 0  # of one pass; 0: no limit

    def run(self, forward: Callable[[slice], T], count: int) -> list[T]:
        """The results of `forward` for slices of the items 0..count-1, in order: one slice, or smaller ones once memory has
        been short.

        Raises torch.OutOfMemoryError if one item is too much for the CPU as well.
        """
        results: list[T] = []
        start = 0
        while start < count:
            stop = min(count, start + (self._max_items or count))
            try:
                results.append(forward(slice(start, stop)))
                start = stop
            except torch.OutOfMemoryError:
                if self.device.type == "cpu":
                    raise
                torch.cuda.empty_cache()
                self._reduce(stop - start)
        return results

    def _reduce(self, items: int) -> None:
        """Lowers the slice size after a pass with this many items didn't fit."""
        self._max_items = items // 2
        problem = f"{self._name}: the memory of {self.device} is too small for"
        if self._max_items:
            _log.warning("%s %d at once; %d from now on", problem, items, self._max_items)
        else:
            _log.warning("%s one; it runs on the CPU from now on", problem)
            self.device = torch.device("cpu")
            self._model.float().to(self.device)
