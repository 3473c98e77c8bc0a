"""The device that models run on, and what happens when its memory is too small."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import nn

from core.errors import InputError

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


class OnDevice:
    """A model on a device.  A forward pass that runs out of memory is repeated in halves; if a single item does not fit, the model moves to the CPU.
    Each change is logged once.  The caller holds the model's lock.
    """

    def __init__(self, what: str, model: nn.Module, device: torch.device) -> None:
        self._what, self._model, self.device = what, model.to(device).eval(), device
        self._most = 0  # items per pass; 0: no limit

    def run(self, forward: Callable[[slice], T], count: int, most: int = 0) -> list[T]:
        """The results of `forward` for items 0..count-1, in order, in batches of at most `most` (0: all), or fewer if memory is short.

        Raises torch.OutOfMemoryError if one item is too much for the CPU as well.
        """
        out: list[T] = []
        start = 0
        while start < count:
            stop = min([count, *(start + n for n in (most, self._most) if n)])
            try:
                out.append(forward(slice(start, stop)))
                start = stop
            except torch.OutOfMemoryError:
                if self.device.type == "cpu":
                    raise
                torch.cuda.empty_cache()
                self._give_way(stop - start)
        return out

    def _give_way(self, items: int) -> None:
        if items > 1:
            self._most = items // 2
            _log.warning(
                "%s: the memory of %s is too small for %d at once; %d from now on", self._what, self.device, items, self._most
            )
            return
        _log.warning("%s: the memory of %s is too small for one; it runs on the CPU from now on", self._what, self.device)
        self.device, self._most = torch.device("cpu"), 0
        self._model.float().to(self.device)
