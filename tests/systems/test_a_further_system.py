"""A further system is one file in core/systems/ and one line in its registry: then every command and page has it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from core.engine import Engine, statuses
from core.registry import Entry
from core.settings import ROOT, Settings
from core.systems import SYSTEMS
from core.systems.base.base import Options, answer
from core.types import Passage, Question

# what CONTRIBUTING shows
FILE = '''"""Answers with the title of every passage, as it is."""

from collections.abc import Generator

from core import types as t
from core.systems.base.base import Options, Parts, read_extra
from core.systems.base.candidates import answer_events, choose
from core.systems.base.passage_system import PassageSystem


class Titles(PassageSystem):
    def find(self, question: t.Question, passages: tuple[t.RetrievedPassage, ...]) -> Generator[t.Event, None, str]:
        yield t.StepStarted(1, (), "")
        candidates = [t.Candidate(p.passage.title, 1 / p.rank) for p in passages]
        kept = choose(candidates, question, self.threshold, self.options.max_answers)
        yield from answer_events(kept, candidates, len(question.pinned), passages, 0.0)
        return "every title was said"


def build(parts: Parts, options: Options) -> Titles:
    system = Titles("titles", parts, options, None, ("none", ""), used := read_extra(options, "titles", {"threshold": 0.3}))
    system.threshold = used["threshold"]
    return system
'''
LINE = '        "titles": Entry("titles_system:build", "says the titles", "made up", ("nothing",)),\n'


@pytest.fixture
def further(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    (tmp_path / "titles_system.py").write_text(FILE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(SYSTEMS._entries, "titles", Entry("titles_system:build", "says the titles", "made up", ("nothing",)))
    return Settings(home=tmp_path / "home", encoder="hashing", device="cpu")


def test_it_is_listed_and_answers(further: Settings) -> None:
    (status,) = [s for s in statuses(further) if s.name == "titles"]
    assert status.ready
    passages = tuple(Passage(str(i), title, "Text.") for i, title in enumerate(["Oslo", "Bergen", "Narvik", "Hamar"]))
    system = Engine(further).system("titles", options=Options(extra={"threshold": 0.3}), own_passages=True)
    prediction = answer(system, Question("Which town?", passages=passages, pinned=("Bodo",), banned=("Bergen",)))
    assert [a.text for a in prediction.answers] == ["Bodo", "Oslo", "Narvik"]
    assert prediction.system.settings["threshold"] == 0.3


@pytest.mark.slow
def test_one_file_and_one_line_are_all(tmp_path: Path) -> None:
    """In a copy of core/: nothing but the registry is changed."""
    import shutil

    shutil.copytree(ROOT / "core", tmp_path / "core", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "core" / "systems" / "titles.py").write_text(FILE)
    registry = tmp_path / "core" / "systems" / "__init__.py"
    text = registry.read_text()
    at = text.index('        "scripted": Entry(')
    registry.write_text(text[:at] + LINE.replace("titles_system:", "core.systems.titles:") + text[at:])
    done = subprocess.run(
        [sys.executable, "-m", "core", "systems", "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    (row,) = [r for r in json.loads(done.stdout) if r["name"] == "titles"]
    assert (row["ready"], row["source"]) == (True, "made up")
