"""Tasks for Label Studio: in the documented format, and nothing that the labelling configuration does not have."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from annotation_samples import do, project
from jsonschema import Draft202012Validator
from storage_helpers import exported

from core.annotating.aliases import parse_aliases
from storage.exchange.exports.label_studio import CONFIG
from storage.store import Store

# written from the pages named in the module: `data` and `predictions` of a task; each region of a result has five mandatory fields
REGION = {
    "type": "object",
    "required": ["id", "from_name", "to_name", "type", "value"],
    "properties": {name: {"type": "string", "minLength": 1} for name in ("id", "from_name", "to_name")},
    "oneOf": [
        {
            "properties": {
                "type": {"const": kind},
                "value": {
                    "type": "object",
                    "required": [field],
                    "properties": {field: {"type": "array", "minItems": 1, "items": {"type": "string"}}},
                    "additionalProperties": False,
                },
            }
        }
        for kind, field in (("choices", "choices"), ("textarea", "text"))
    ],
}
PREDICTION = {
    "type": "object",
    "required": ["result"],
    "properties": {
        "model_version": {"type": "string"},
        "score": {"type": "number"},
        "result": {"type": "array", "items": REGION},
    },
    "additionalProperties": False,
}
TASKS = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["data"],
        "properties": {"data": {"type": "object"}, "predictions": {"type": "array", "items": PREDICTION}},
        "additionalProperties": False,
    },
}


@pytest.mark.parametrize("answers", ["final", "all"])
def test_tasks_are_in_the_documented_format(store: Store, tmp_path: Path, answers: str) -> None:
    parts = project(store, 3)
    do(store, parts, "Ada", "Wood")
    do(store, parts, "Ada", "Wood", "Zegler")
    do(store, parts, "Ada")
    tasks = exported(store, "label-studio", tmp_path / "tasks.json", answers=answers)
    Draft202012Validator(TASKS).validate(tasks)
    assert [task["data"] for task in tasks] == [{"id": f"q{i}", "question": f"Who played part {i}?"} for i in range(3)]
    values = [[next(iter(region["value"].values())) for region in task["predictions"][0]["result"]] for task in tasks]
    pairs = ["Who played it in Wood? Wood", "Who played it in Zegler? Zegler"]
    assert values == [[["singleAnswer"], ["Wood"]], [["multipleQAs"], pairs], [["noAnswer"]]]
    assert tasks[0]["predictions"][0]["model_version"] == {"final": "final", "all": "generation, Ada, 1"}[answers]
    assert parse_aliases(values[0][1][0]) == ("Wood",)

    view = ElementTree.fromstring(CONFIG)
    controls = {tag.get("name"): (tag.tag.lower(), tag.get("toName")) for tag in view if tag.get("toName")}
    (shown,) = (tag for tag in view if tag.get("value"))
    assert (shown.get("name"), shown.get("value")) == ("question", "$question")
    for task in tasks:
        for region in task["predictions"][0]["result"]:
            assert controls[region["from_name"]] == (region["type"], region["to_name"])
    assert {choice.get("value") for choice in view.iter("Choice")} == {"singleAnswer", "multipleQAs", "noAnswer"}


def test_the_guide_has_the_configuration() -> None:
    guide = Path(__file__).parents[3] / "docs" / "formats.md"
    assert CONFIG in guide.read_text(encoding="utf-8")
