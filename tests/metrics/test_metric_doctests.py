"""The worked values in docstrings are right."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import core.datasets
import core.metrics

MODULES = [
    *(f"core.metrics.{m.name}" for m in pkgutil.iter_modules(core.metrics.__path__)),
    *(f"core.datasets.{m.name}" for m in pkgutil.iter_modules(core.datasets.__path__)),
    "core.json_io",
    "core.text",
    "core.evaluation.report",
    "core.disambiguation.edits",
    "core.disambiguation.edits.parts",
    "core.disambiguation.edits.phrases",
    "core.models.ranking.units",
    "core.systems.base.coverage",
]
WITH_EXAMPLES = {"answers", "base", "bootstrap", "documents", "ptb", "questions", "retrieval", "scoring", "json_io"}


@pytest.mark.parametrize("name", MODULES)
def test_worked_values_in_docstrings(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name))
    assert found.failed == 0
    if name.rpartition(".")[2] in WITH_EXAMPLES:
        assert found.attempted > 0
