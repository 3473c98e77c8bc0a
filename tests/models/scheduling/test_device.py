"""The device of models, and a GPU whose memory is too small: simulated, since the tests run without one."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from core.errors import InputError
from core.models.scheduling.device import OnDevice, pick_device


@pytest.mark.parametrize("name", ["abacus", "gpu", "cuda:99"])
def test_a_device_that_is_not_there(name: str) -> None:
    with pytest.raises(
        InputError, match=f"AMBISCOPE_DEVICE is '{name}', which torch cannot use here .*; use auto, cpu, cuda or cuda:1"
    ):
        pick_device(name)


class Card:
    """A GPU that holds `room` items, and what was asked of it and of the CPU."""

    def __init__(self, room: int) -> None:
        self.room, self.asked = room, []
        self.model = nn.Linear(2, 2).to(torch.bfloat16)
        self.place = OnDevice("the encoder", self.model, torch.device("cpu"))
        self.place.device = torch.device("cuda")  # where it says that it is; the arithmetic stays here

    def forward(self, part: slice) -> list[int]:
        size = part.stop - part.start
        if self.place.device.type == "cuda" and size > self.room:
            raise torch.OutOfMemoryError("CUDA out of memory")
        self.asked.append((self.place.device.type, size))
        return list(range(part.start, part.stop))

    def run(self, count: int) -> list[int]:
        return [i for part in self.place.run(self.forward, count) for i in part]


@pytest.mark.parametrize(("room", "count"), [(100, 7), (3, 7), (1, 7), (2, 0)])
def test_items_that_do_not_fit_are_taken_in_parts(room: int, count: int) -> None:
    card = Card(room)
    assert card.run(count) == list(range(count))
    assert all(kind == "cuda" and 0 < size <= room for kind, size in card.asked)


def test_the_smaller_size_is_kept_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    card = Card(4)
    card.run(8)
    card.run(8)
    assert card.asked == [("cuda", 4)] * 4
    assert caplog.messages == ["the encoder: the memory of cuda is too small for 8 at once; 4 from now on"]


def test_one_item_that_does_not_fit_goes_to_the_cpu(caplog: pytest.LogCaptureFixture) -> None:
    card = Card(0)
    assert card.run(3) == [0, 1, 2]
    assert card.asked == [("cpu", 3)]
    assert card.model.weight.dtype == torch.float32
    assert caplog.text.count("it runs on the CPU from now on") == 1


def test_on_the_cpu_it_is_an_error() -> None:
    def forward(part: slice) -> None:
        raise torch.OutOfMemoryError("not enough")

    with pytest.raises(torch.OutOfMemoryError):
        OnDevice("the reader", nn.Linear(1, 1), torch.device("cpu")).run(forward, 2)
