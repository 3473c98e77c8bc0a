"""Parts of the pages without a browser: corrections, runs in their thread, comparing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock

import pytest
from page_helpers import QUESTION, TIMEOUT
from serving import until

from core import types as t
from core.engine import Engine
from core.settings import Settings
from core.systems.base.options import Options
from pages.explore import runner
from pages.explore.corrections import PredictionCorrections, corrected
from pages.explore.options import made_with
from pages.explore.runner import Plan, QuestionRun
from pages.session import libraries, shared
from pages.session.shared import warm  # before a fixture puts another in its place
from pages.ui.markup import METER_CELLS, NO_BREAK, meter
from pages.ui.trace import candidates_table


def answers(*texts: str) -> tuple[t.Answer, ...]:
    return tuple(t.Answer(x, 0.5) for x in texts)


@pytest.mark.parametrize(
    ("struck", "added", "pinned", "banned"),
    [
        ({1}, (), ("a",), ("b",)),
        ({0, 2}, (), (), ("a", "c")),
        (set(), ("x",), ("a", "b", "c", "x"), ()),
        ({1}, ("x",), ("a", "x"), ("b",)),
        ({1}, ("B",), ("a", "B"), ()),  # struck and added again, in other letters: the person wants it
    ],
)
def test_corrections(struck: set[int], added: tuple[str, ...], pinned: tuple[str, ...], banned: tuple[str, ...]) -> None:
    question = corrected(t.Question("q"), answers("a", "b", "c"), PredictionCorrections(frozenset(struck), added))
    assert (question.pinned, question.banned, question.added) == (pinned, banned, added)


def test_earlier_corrections_stay() -> None:
    earlier = t.Question("q", pinned=("c",), banned=("z",))
    given = (*answers("a", "b"), t.Answer("c", 1.0, pinned=True))
    question = corrected(earlier, given, PredictionCorrections(frozenset({0})))
    assert (question.pinned, question.banned) == (("c",), ("z", "a"))


def test_options_of_a_prediction() -> None:
    values = {"top_k": 3, "max_answers": 2, "stop_above": None, "clarify": False, "extra": {}, "threshold": 0.5}
    assert made_with(t.SystemInfo("one-pass", values)) == Options(3, 2, None, False)
    for other in ({"top_k": "all"}, {"max_answers": 100}):  # another program's
        assert made_with(t.SystemInfo("one-pass", {"clarify": False, **other})) == Options()


def test_candidates_are_a_table_of_text() -> None:
    candidates = tuple(t.Candidate(f"<b>{i}|</b>", 0.5 / i) for i in range(1, 12))
    _, _, *rows = candidates_table(t.Step(1, (), "", candidates, candidates[1], 0.1, 0.0), True).split("\n")
    assert len(rows) == 9
    assert rows[0].startswith(r"| \<b\>1\|\<\/b\> | 50% ")
    assert rows[1].startswith(r"| **\<b\>2\|\<\/b\>** | 25% ")
    assert "10% " in rows[-1]
    one_pass = candidates_table(t.Step(1, (), "", candidates[:1], candidates[0], 0.0, 0.0), False)
    assert len(one_pass.split("\n")) == 3  # no row for "no further answer"
    assert "0.50 " in one_pass
    assert "%" not in one_pass  # a score is no percentage


def test_a_bar_grows_with_the_probability() -> None:
    widths = [meter(i / 50).count(NO_BREAK) for i in range(51)]
    assert widths == sorted(widths)
    assert (meter(0.0), meter(1e-9).count(NO_BREAK), widths[-1], meter(2.0)) == ("", 1, METER_CELLS, meter(1.0))


class Slow:
    """A system whose steps last until they are cancelled."""

    info = t.SystemInfo("slow")

    def __init__(self, cancelled: Any) -> None:
        self.cancelled = cancelled

    def run(self, question: t.Question) -> Iterator[t.Event]:
        yield t.PassagesRetrieved((), 0.0, question.text)
        while not self.cancelled():
            time.sleep(0.01)
        yield t.Finished(0.1, "stopped by a person")


@pytest.fixture
def slow(corpus: str, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> QuestionRun:
    engine = Engine(settings)
    monkeypatch.setattr(engine, "system", lambda name, corpus, options, cancelled, own_passages=False: Slow(cancelled))
    return QuestionRun(engine, Plan(t.Question(QUESTION), "slow", corpus)).start()


def test_a_run_stops_when_told_and_keeps_what_it_has(slow: QuestionRun) -> None:
    until(lambda: bool(slow.events))
    slow.stop()
    assert slow.wait(TIMEOUT)
    prediction = slow.prediction()
    assert prediction is not None
    assert [type(e) for e in prediction.events] == [t.PassagesRetrieved, t.Finished]
    assert slow.error is None


def test_a_run_that_nobody_watches_stops(slow: QuestionRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "ABANDONED_SECONDS", 0.2)
    slow.look()
    assert slow.wait(TIMEOUT)


def test_libraries_and_models_are_loaded_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Mock(needs_libraries=True)
    monkeypatch.setattr(shared, "_engine", lambda: engine)
    monkeypatch.setattr(libraries, "MODULES", ())
    monkeypatch.setattr(libraries, "_imported", imported := threading.Event())
    warm.clear()
    try:
        warm().join()
    finally:
        warm.clear()
    assert imported.is_set()
    engine.warm.assert_called_once_with()
