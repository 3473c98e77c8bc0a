"""What the registry shows of a system's options is what the system takes."""

from __future__ import annotations

import pytest

from core.errors import AmbiscopeError, InputError
from core.settings import Settings
from core.systems import SYSTEMS
from core.systems.shared.base import Options, Parts

DECLARED = [(system, name, values) for system, entry in SYSTEMS.items() for name, values in entry.choices.items()]
NOWHERE = Settings(answerer="/no/such/folder", reader="/no/such/folder", device="cpu")


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
    assert not SYSTEMS["one-pass"].choices
