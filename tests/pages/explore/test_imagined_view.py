"""Imagined questions, pruned passages and decisions on the explore page: drawn event by event, while a run lasts, and from a stored trace."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from page_helpers import ROWS, ask, texts, tsv
from streamlit.testing.v1 import AppTest
from test_explore import link

from core import types as t
from core.engine import SystemStatus
from core.models.language import loading
from core.models.language.scripted import ScriptedLanguageModel, passages_of, question_of
from core.retrieval.library import CorpusLibrary
from core.settings import Settings
from storage.store import Store

QUESTIONS = ("Who played Maria in the *1961* film?", "Who played Maria on <b>Broadway</b>?", "Which rock cools quickly?")


def found(passage_id: str, rank: int, title: str = "") -> t.RetrievedPassage:
    return t.RetrievedPassage(t.Passage(passage_id, title or f"Title {passage_id}", f"Text of {passage_id}."), rank, 1.0)


# ---------------------------------------------------------------- the drawing of events


def view() -> None:
    import streamlit as st

    from pages.explore.trace import TraceView

    drawn = TraceView(st.container(), "Who played Maria?", system=st.session_state.get("system", "dtv"))
    for event in st.session_state["events"]:
        drawn.add(event)
    drawn.close()


def drawn(*events: t.Event, system: str = "dtv") -> AppTest:
    at = AppTest.from_function(view)
    at.session_state["events"], at.session_state["system"] = events, system
    at.run()
    assert not at.exception
    assert not any(m.allow_html for m in at.markdown)
    return at


SEARCHED = (
    t.QuestionsImagined(QUESTIONS),
    t.PassagesRetrieved((found("a", 1), found("b", 2)), 0.1, QUESTIONS[0]),
    t.PassagesRetrieved((found("b", 1), found("c", 2)), 0.1, QUESTIONS[1]),
    t.PassagesRetrieved((found("d", 1, "<u>Basalt</u>"),), 0.1, QUESTIONS[2]),
    t.PassagesPruned(("a", "b", "c"), ("d",), "the 3 nearest to the pseudo-interpretations"),
)


def test_each_passage_of_the_list_says_which_answers_it_supports() -> None:
    def step(number: int, text: str, *passages: str) -> t.StepFinished:
        evidence = tuple(t.Evidence(p, 0, 4, text) for p in passages)
        candidate = t.Candidate(text, 0.9)
        return t.StepFinished(t.Step(number, (), "", (candidate,), candidate, 0.0, 0.1), t.Answer(text, 0.9, evidence, number))

    searched = t.PassagesRetrieved((found("a", 1), found("b", 2), found("c", 3)), 0.1, "Who played Maria?")
    events = (searched, step(1, "Natalie *Wood*", "a", "a"), step(2, "Rita", "a", "b"), step(3, "Basalt", "c"))
    at = drawn(*events, t.AnswerRejected("Basalt", "it is a rock"), t.Finished(1.0, "done"), system="one-pass")
    labels = {e.label[:2]: e.label.replace("\\", "") for e in at.expander}
    assert labels["1."].endswith(":green-badge[supports Natalie *Wood*] :green-badge[supports Rita]")
    assert labels["2."].endswith(":green-badge[supports Rita]")
    assert "supports" not in labels["3."]
    assert [e.label for e in at.expander].count("3 passages retrieved in 100 ms") == 1  # drawn again in its place


def test_searched_pruned_and_verified() -> None:
    at = drawn(
        *SEARCHED,
        t.QuestionVerified(QUESTIONS[0], ("a",)),
        t.QuestionVerified(QUESTIONS[1], ()),
        t.QuestionVerified(QUESTIONS[2], (), "the language model failed"),
        t.PassagesPruned(("a",), (), "those verified to answer a question"),
    )
    shown = texts(at)
    for question in QUESTIONS:
        assert f"1. {question}" in shown
    assert "verified]: answered by Title a" in shown
    assert "rejected]: verification found no passage that answers it" in shown
    assert "it could not be verified, the language model failed" in shown
    assert "1 of 4 passages pruned. Kept: the 3 nearest to the pseudo-interpretations." in shown
    assert "0 of 1 passage pruned. Kept: those verified to answer a question." in shown
    raw = "\n".join(str(m.value) for m in (*at.markdown, *at.caption))
    assert "<b>Broadway" not in raw  # escaped
    labels = [e.label.replace("\\", "") for e in at.expander]
    assert f"2 passages retrieved in 100 ms for: {QUESTIONS[0]}" in labels
    assert [label for label in labels if "pruned" in label and "<u>Basalt</u>" in label]


def test_failed_calls_are_marked_once_for_each_reason() -> None:
    failed = t.ModelCalled("supporting", 2, 0, 0, 0.1, "HTTP 500: <html>*busy*</html>")
    shown = texts(drawn(t.ModelCalled("relax", 0, 9, 9, 0.1), failed, failed, t.ModelCalled("relax", 0, 0, 0, 0.1, "timeout")))
    assert "failed call] supporting (2 times): HTTP 500: <html>*busy*</html>" in shown
    assert "failed call] relax: timeout" in shown
    assert shown.count("failed call]") == 2


def test_a_failed_reading_is_told_by_its_passage_only() -> None:
    at = drawn(
        t.PassagesRetrieved((found("a", 1),), 0.1, "Who played Maria?"),
        t.ModelCalled("interpret", 1, 0, 0, 0.1, "no answer came"),
        t.InterpretationProposed(t.Interpretation("a", failed="no answer came")),
        system="verdict",
    )
    assert "failed call]" not in texts(at)
    assert "no answer came" in texts(at)


def test_a_stored_trace_of_a_system_that_is_gone_is_drawn_line_by_line() -> None:
    shown = texts(
        drawn(
            t.PassagesRetrieved((found("a", 1),), 0.1, "Who played Maria?"),
            t.InterpretationProposed(t.Interpretation("a", "Who else?", "Wood")),
            system="verdict-of-old",
        )
    )
    assert "**Wood**: Who else?" in shown
    assert "Passages read" not in shown


def test_the_nodes_of_a_tree_with_their_decisions() -> None:
    def node(answer: str, verified: bool | None = None, abstained: str = "") -> t.InterpretationProposed:
        return t.InterpretationProposed(
            t.Interpretation("a", f"Who is {answer}?", answer, verified=verified, abstained=abstained)
        )

    events = (t.PassagesRetrieved((found("a", 1),), 0.1, "q"), t.ModelCalled("verify", 1, 1, 1, 0.1))
    shown = texts(
        drawn(*events, node("*Wood*", True), node("Reed", False, "pruned: not supported"), node("Brook"), node("Hill", False))
    )
    assert "verified] · ***Wood***: Who is *Wood*? · (Title a)" in shown
    assert "dropped] · **Reed**: Who is Reed? · (Title a) · pruned: not supported" in shown
    assert "not verified] · **Brook**" in shown
    assert "rejected] · **Hill**" in shown
    assert "not verified" not in texts(drawn(events[0], node("Brook")))  # nobody looked again


# ---------------------------------------------------------------- the journey


def supporting(request: Any) -> str:
    """A question that the model is asked has no angle brackets left."""
    held = {"1961": "Natalie Wood", "Broadway": "Carol Lawrence"}
    name = next((name for word, name in held.items() if word in question_of(request)), "")
    return json.dumps({"passages": [n for n, _, text in passages_of(request) if name in text]}) if name else "half an obj{"


RULES: dict[str, Any] = {"pseudo_interpretations": json.dumps({"questions": QUESTIONS}), "supporting": supporting}


@pytest.fixture
def scripted_app(
    settings: Settings, tmp_path: Path, open_app: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., AppTest]:
    """scripted_app(system, **rules): the explore page over a language model that answers from rules."""
    path = tmp_path / "small.tsv"
    more = [(f"r{i}", f"Rock {i}", "A rock cools quickly.") for i in range(3)]
    path.write_text(tsv([*ROWS, *more]), encoding="utf-8")
    CorpusLibrary(settings).create("small", [path])

    def open_it(system: str, **rules: Any) -> AppTest:
        monkeypatch.setenv("AMBISCOPE_SYSTEM", system)
        monkeypatch.setenv("AMBISCOPE_LM_URL", "scripted:")
        monkeypatch.setattr(
            "pages.session.shared.systems", lambda: [SystemStatus(system, "grounded", (), "Lee et al. 2025", True)]
        )
        model = ScriptedLanguageModel({**RULES, **rules})
        monkeypatch.setattr(loading, "_model", lambda _: model)
        st.cache_resource.clear()
        app = open_app()
        keys = [n.key for n in app.number_input if n.key and n.key.startswith("explore.first.top_k")]
        app.number_input(key=keys[0]).set_value(6)
        return app

    return open_it


def test_dtv_is_watched_stored_and_opened_again(
    scripted_app: Callable[..., AppTest], open_app: Callable[..., AppTest], store: Store
) -> None:
    app = ask(scripted_app("dtv"))
    assert not app.exception
    assert not app.error, [e.value for e in app.error]
    again = open_app(prediction=link(app))
    assert not again.exception
    asked = [q.replace("<", "‹").replace(">", "›") for q in QUESTIONS]  # core.models.language.prompts.as_data
    for page in (app, again):
        shown = texts(page)
        assert all(q in shown for q in asked)
        assert "answered by West Side Story (1961 film)" in shown
        assert "answered by West Side Story (musical)" in shown
        assert "it could not be verified, the language model failed" in shown
        assert "failed call] supporting" in shown
        assert "1 of 7 passages pruned" in shown
        assert "4 of 6 passages pruned" in shown
        labels = [e.label.replace("\\", "") for e in page.expander]
        assert any(label.endswith(f"for: {asked[1]}") for label in labels)
    stored = store.predictions.get_prediction(link(app)).prediction
    assert {"QuestionsImagined", "PassagesPruned", "QuestionVerified"} <= {type(e).__name__ for e in stored.events}
    assert [a.text for a in stored.answers] == ["Natalie Wood", "Carol Lawrence"]
