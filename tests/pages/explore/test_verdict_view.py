"""The explore page over `verdict`: what each passage gave, the map, questions to ask on; over a generator from a table, without weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import streamlit as st
from annotate_helpers import fine
from page_helpers import QUESTION, ROWS, Open, ask, texts
from streamlit.testing.v1 import AppTest
from test_explore import link

from core import types as t
from core.disambiguation.consolidation import Consolidation
from core.engine import SystemStatus
from core.models.language.roles import Claim, Run
from core.systems import verdict
from pages.explore.interpreted import interpretation_map
from storage.store import Store

READ: dict[str, tuple[str, str]] = {
    "p1": ("Who played Maria in the 1961 film West Side Story?", "Natalie Wood"),
    "p2": ("Who played Maria in the 2021 film West Side Story?", "Rachel Zegler"),
}
FAILED = {"p3": "the endpoint <b>returned</b> *HTML*"}


class TableGenerator:
    name, about = "table", {"generator": "table"}

    def relax(self, query: str, run: Run) -> str:
        return query

    def interpret(self, query: str, passages: Sequence[t.Passage], run: Run) -> Iterator[tuple[int, t.Interpretation]]:
        for i, p in enumerate(passages):
            run.count(t.ModelCalled("interpret", 1, 0, 0, 0.0, FAILED.get(p.id, "")))
            if p.id in FAILED:
                yield i, t.Interpretation(p.id, failed=FAILED[p.id])
            elif p.id in READ and query in (READ[p.id][0], QUESTION):
                question, text = READ[p.id]
                start = p.text.find(text)
                evidence = t.Evidence(p.id, start, start + len(text), text)
                probability = 0.8 if p.id == "p1" else 0.7
                yield i, t.Interpretation(p.id, question, text, probability, evidence, verified=True)
            else:
                yield i, t.Interpretation(p.id, abstained="it is about a _rock_")

    def verify(self, claims: Sequence[Claim], run: Run) -> list[bool | None]:
        return [True] * len(claims)

    def answer(self, question: str, passages: Sequence[t.Passage], run: Run) -> str | None:
        return None


@pytest.fixture
def app(corpus: str, open_app: Open, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    monkeypatch.setenv("AMBISCOPE_SYSTEM", "verdict")
    status = SystemStatus("verdict", "grounded", (), "Lee et al. 2025", True)
    monkeypatch.setattr("pages.session.shared.systems", lambda: [status])

    def build(name: str, parts: Any, options: Any, own: Any) -> verdict.Verdict:
        return verdict.Verdict(parts, options, TableGenerator(), Consolidation(), own)

    monkeypatch.setattr(verdict, "build", build)
    st.cache_resource.clear()
    return open_app()


def test_interpretations_are_answers_like_any_other(app: AppTest, store: Store) -> None:
    assert app.number_input(key="explore.first.top_k.verdict.4").value == 4  # 20, and the corpus has 4
    shown = texts(fine(ask(app)))
    labels = [e.label.replace("\\", "") for e in app.expander]
    assert [label[:16] for label in labels if label.startswith("**")] == ["**Natalie Wood**", "**Rachel Zegler*"]
    parts = ("Passages read: 4", "2 answered", "1 no answer", "1 failed", "it is about a _rock_", "<b>returned</b> *HTML*")
    assert [part for part in parts if part not in shown] == []
    assert not any("Map of" in label for label in labels)  # of two points it says nothing
    raw = "\n".join(str(m.value) for m in (*app.markdown, *app.caption))
    assert "<b>returned" not in raw  # escaped, so nothing of it is markup
    assert not any(m.allow_html for m in app.markdown)
    assert ":orange-background[**Natalie Wood**]" in raw
    first = link(app)
    prediction = store.predictions.get_prediction(first).prediction
    assert [i.answer for i in prediction.interpretations] == ["Natalie Wood", "Rachel Zegler"]
    app.button(key=f"{first}.1.0.ask").click().run()
    assert not app.exception
    assert link(app) not in ("", first)
    assert app.text_input(key="explore.question").value == READ["p2"][0]
    assert "one meaning" in texts(app)


@pytest.mark.parametrize("count", [1, 3, 20])
def test_the_map_of_any_number(count: int) -> None:
    interpretations = [t.Interpretation(f"p{i}", f"Who <b>{i}</b>?", f"A&B {i}", 0.5) for i in range(count)]
    places = [t.InterpretationPlaced(i, float(i), 0.0, i % 10 - 1, i < 10) for i in range(count)]
    figure: Any = interpretation_map(places, interpretations)
    assert sum(len(trace.x) for trace in figure.data) == count
    hovers = [f"{name} {data}" for trace in figure.data for name, data in zip(trace.hovertext, trace.customdata)]
    assert all("A&amp;B" in h and "<b>0</b>?" not in h for h in hovers)
    stars = [trace for trace in figure.data if trace.marker.symbol == "star"]
    assert sum(len(trace.x) for trace in stars) == min(count, 10)


def test_a_model_that_fails_everywhere_is_an_error_and_no_answer(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    for passage_id, *_ in ROWS:
        monkeypatch.setitem(FAILED, passage_id, "the endpoint returned <b>HTTP 500</b>")
    ask(app)
    assert not app.exception
    (error,) = app.error
    assert "failed at 'interpret' (all of 4 calls): the endpoint returned <b>HTTP 500</b>" in error.value.replace("\\", "")
    shown = texts(app)
    assert "The run did not finish" in shown
    assert "4 of 4 calls of the model failed" in shown
    assert "No answer" not in shown
    assert "answers any meaning" not in shown
