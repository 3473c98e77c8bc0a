"""A further system is one file in core/systems/ and one entry in its registry: then every command and page has it."""

from __future__ import annotations

from pathlib import Path

import pytest
from system_fakes import texts

from core.engine import Engine, statuses
from core.registry import Entry
from core.settings import Settings
from core.systems import SYSTEMS
from core.systems.base.options import Options
from core.systems.base.system import answer
from core.types import Passage, Question

# what docs/architecture.md describes
FILE = '''"""Answers with the title of every passage, as it is."""

from collections.abc import Generator
from dataclasses import dataclass

from core import types as t
from core.systems.base.options import Options, SystemOptions, option
from core.systems.base.selection import answer_events, choose
from core.systems.base.system import System, SystemParts, SystemRun


@dataclass(frozen=True)
class TitlesOptions(SystemOptions):
    threshold: float = option(0.3, "an answer needs this probability", 0, 1)


class Titles(System):
    config: TitlesOptions

    def find(self, run: SystemRun) -> Generator[t.Event, None, str]:
        yield t.StepStarted(1, (), "")
        candidates = [t.Candidate(p.passage.title, 1 / p.rank) for p in run.passages]
        selected = choose(candidates, run.reading, self.config.threshold, self.options.max_answers)
        yield from answer_events(selected, candidates, len(run.reading.pinned), run.passages, 0.0)
        return "every title was said"


def build(name: str, parts: SystemParts, options: Options, config: TitlesOptions) -> Titles:
    return Titles(name, parts, options, config=config)
'''


def test_it_is_listed_and_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "titles_system.py").write_text(FILE)
    monkeypatch.syspath_prepend(tmp_path)
    entry = Entry("titles_system:build", "titles", "made up", ("nothing",), options="titles_system:TitlesOptions")
    monkeypatch.setitem(SYSTEMS, "titles", entry)
    settings = Settings(home=tmp_path / "home", encoder="hashing", device="cpu")
    (status,) = [s for s in statuses(settings) if s.name == "titles"]
    assert status.ready
    passages = tuple(Passage(str(i), title, "Text.") for i, title in enumerate(["Oslo", "Bergen", "Narvik", "Hamar"]))
    system = Engine(settings).system("titles", options=Options(extra={"threshold": 0.3}), own_passages=True)
    prediction = answer(system, Question("Which town?", passages=passages, pinned=("Bodo",), banned=("Bergen",)))
    assert texts(prediction) == ["Bodo", "Oslo", "Narvik"]
    assert [a.pinned for a in prediction.answers] == [True, False, False]
    assert [len(s.candidates) for s in prediction.steps] == [4, 1, 1]
    assert prediction.system.settings["extra"] == {"threshold": 0.3}
