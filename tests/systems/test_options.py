"""The options of systems: what a field says is what is taken, refused, shown and documented."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest

from core.errors import AmbiscopeError, InputError
from core.settings import ROOT, Settings
from core.systems import SYSTEMS, build, entry_of, options_of
from core.systems.base.options import Options, SystemOptions, table
from core.systems.base.system import SystemParts

NOWHERE = Settings(answerer="/no/such/folder", reader="/no/such/folder", seq2seq="/no/such/folder", device="cpu")
OWN = [(name, row) for name in SYSTEMS for row in options_of(name).rows() if name != "scripted"]


@pytest.mark.parametrize(("system", "row"), OWN, ids=[f"{system}-{row.name}" for system, row in OWN])
def test_an_option_takes_its_values_and_no_other(system: str, row: Any) -> None:
    options = options_of(system)
    for value in row.values:
        assert getattr(options.read(system, {row.name: value}), row.name) == value
    low, high = options.__dataclass_fields__[row.name].metadata["range"]
    outside = [bound for bound in (low - 1, high + 1) if math.isfinite(bound)]
    for value in ("something else", [], True, math.nan, 10**400, *outside):
        with pytest.raises(InputError, match=row.name):
            options.read(system, {row.name: value})


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_bad_option_is_refused_before_weights_are_loaded(system: str) -> None:
    with pytest.raises(InputError, match=f"{system} has no option 'colour'"):
        build(system, SystemParts(NOWHERE, None), Options(extra={"colour": 1}))
    if any(need.startswith(("checkpoint", "encoder-decoder", "answering")) for need in SYSTEMS[system].needs):
        with pytest.raises(AmbiscopeError) as caught:
            build(system, SystemParts(NOWHERE, None), Options())
        assert not isinstance(caught.value, InputError)


@pytest.mark.parametrize("system", SYSTEMS)
def test_what_is_stored_of_options_is_what_they_are_read_from(system: str) -> None:
    defaults = options_of(system)()
    assert options_of(system).read(system, json.loads(json.dumps(defaults.as_dict()))) == defaults


def test_an_unknown_name_gets_a_suggestion_and_a_number_its_type() -> None:
    with pytest.raises(InputError, match="Did you mean 'threshold'"):
        options_of("rectify").read("rectify", {"thresold": 0.1})
    pool = options_of("jpr").read("jpr", {"pool": 40.0, "diversity": 1}).as_dict()
    assert [(type(pool[name]), pool[name]) for name in ("pool", "diversity")] == [(int, 40), (float, 1.0)]
    with pytest.raises(InputError, match=r"pool is 1\.5"):
        options_of("jpr").read("jpr", {"pool": 1.5})


@pytest.mark.parametrize(
    ("system", "options", "threshold"),
    [
        ("one-pass", {}, 0.5),
        ("dpr-threshold", {}, 0.03),
        ("dpr-threshold", {"scoring": "passage"}, 0.25),
        ("dpr-threshold", {"scoring": "passage", "threshold": 0.7}, 0.7),
        ("jpr", {"threshold": 0.2}, 0.2),
        ("dpr-threshold", {"scoring": "passage", "threshold": None}, 0.25),
    ],
)
def test_a_default_may_depend_on_other_options(system: str, options: dict[str, Any], threshold: float) -> None:
    assert options_of(system).read(system, options).as_dict()["threshold"] == threshold


@pytest.mark.parametrize(
    "wrong", [{"top_k": 0}, {"max_answers": 0}, {"max_answers": 51}, {"stop_above": 1.1}, {"stop_above": -0.1}]
)
def test_options_of_every_run_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=str(next(iter(wrong.values())))):
        Options(**wrong)


@pytest.mark.parametrize("wrong", ["words", {"q": "a"}, {"q": [1]}])
def test_a_scripted_table_maps_questions_to_answers(wrong: Any) -> None:
    with pytest.raises(InputError, match="table"):
        build("scripted", SystemParts(Settings(), None), Options(extra={"table": wrong}))


def test_the_documents_have_the_tables_of_the_code() -> None:
    """docs/systems.md: paste what `python -m core systems NAME` prints."""
    text = (ROOT / "docs" / "systems.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"(?ms)^## (\S+)$(.*?)(?=^## |\Z)", text))
    for name, entry in SYSTEMS.items():
        if not entry.hidden:
            assert table(options_of(name)) in sections[name], f"python -m core systems {name}"


def test_a_system_that_is_gone_has_no_options() -> None:
    assert (entry_of("refuel-2").view, entry_of("refuel-2").passages, options_of("refuel-2")) == ("answers", 0, SystemOptions)
