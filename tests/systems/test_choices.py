"""What the registry shows of a system's options is what the system takes."""

from __future__ import annotations

from typing import get_args

import pytest

from core.disambiguation.consolidation import Clustering, Embed, Unclustered
from core.errors import AmbiscopeError, InputError
from core.settings import Settings
from core.systems import SYSTEMS, entry_of
from core.systems.base.base import Options, Parts

DECLARED = [(system, name, values) for system, entry in SYSTEMS.items() for name, values in entry.choices.items()]
NOWHERE = Settings(answerer="/no/such/folder", reader="/no/such/folder", seq2seq="/no/such/folder", device="cpu")


@pytest.mark.parametrize(("system", "name", "values"), DECLARED, ids=[f"{s}-{n}" for s, n, _ in DECLARED])
def test_each_declared_value_is_taken_and_no_other(system: str, name: str, values: tuple[str, ...]) -> None:
    build = SYSTEMS.resolve(system)
    with pytest.raises(InputError, match=f"{name} is 'something else'; use {values[0]} or {values[1]}"):  # the default first
        build(Parts(NOWHERE, None), Options(extra={name: "something else"}))
    for value in values:
        with pytest.raises(AmbiscopeError) as caught:  # the value passes, and then there are no weights
            build(Parts(NOWHERE, None), Options(extra={name: value}))
        assert not isinstance(caught.value, InputError)


def test_the_fast_loop_is_a_choice() -> None:
    assert SYSTEMS["ambigprompt"].choices["loop"] == ("exact", "fast")
    assert not SYSTEMS["fid"].choices


def test_the_menus_show_every_way_of_clustering() -> None:
    shown = SYSTEMS["verdict"].choices
    assert (shown["clustering"], shown["embed"]) == (get_args(Clustering), get_args(Embed))
    assert shown["unclustered"][1:] == get_args(Unclustered)  # after the default, which is the generator's


def test_a_system_that_is_gone_declares_nothing() -> None:
    gone = entry_of("refuel-2")
    assert (gone.view, gone.passages, gone.decoding, dict(gone.choices)) == ("answers", 0, "", {})
    assert "refuel-2" not in SYSTEMS
