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

from core import types as t
from core.engine import SystemStatus
from core.models.language import prompted
from core.models.language.prompted import PromptedGenerator
from core.models.language.scripted import ScriptedLanguageModel, passages_of, question_of
from core.retrieval.library import CorpusLibrary
from core.settings import Settings
from pages.explore.imagined import Imagined, outcome, title_with_ranks
from storage.store import Store

QUESTIONS = ("Who played Maria in the *1961* film?", "Who played Maria on <b>Broadway</b>?", "Which rock cools quickly?")


def found(passage_id: str, rank: int, title: str = "") -> t.RetrievedPassage:
    return t.RetrievedPassage(t.Passage(passage_id, title or f"Title {passage_id}", f"Text of {passage_id}."), rank, 1.0)


# ---------------------------------------------------------------- parts

PASSAGES = {p.passage.id: p for p in (found("a", 1, "_A_ film"), found("b", 2), found("c", 1))}


@pytest.mark.parametrize(
    ("one", "name", "words"),
    [
        (Imagined("q"), "waiting", "waiting"),
        (Imagined("q", ()), "nothing found", "the corpus has no passage for it"),
        (Imagined("q", ("a",)), "searched", "1 passage found"),
        (Imagined("q", ("a", "b"), 1, "the 4 nearest"), "kept", "1 of its 2 passages read on"),
        (Imagined("q", ("a", "b"), 0, "the *4* nearest"), "pruned", r"2 passages found, none of them among the \*4\* nearest"),
        (
            Imagined("q", ("a",), decision=t.QuestionVerified("q", ("a",))),
            "verified",
            r"answered by \_A\_ film :gray-badge[rank 1]",
        ),
        (Imagined("q", ("a",), 1, decision=t.QuestionVerified("q", ())), "rejected", "no passage that answers it"),
        (Imagined("q", decision=t.QuestionVerified("q", ("a",), "it <i>fell</i> over")), "failed", r"it \<i\>fell\<\/i\> over"),
    ],
)
def test_what_became_of_a_question(one: Imagined, name: str, words: str) -> None:
    found = outcome(one, PASSAGES, {i: {p.rank} for i, p in PASSAGES.items()})
    assert found[0] == name
    assert words in found[1]


def test_a_run_that_ended_says_what_it_never_searched() -> None:
    assert outcome(Imagined("q"), {}, {}, ended=True)[0] == "not searched"


def test_ranks_are_those_of_every_search() -> None:
    ranks = {"a": {3, 1}, "b": {1}}
    assert title_with_ranks("a", PASSAGES, ranks) == r"\_A\_ film :gray-badge[ranks 1, 3]"
    assert title_with_ranks("gone", PASSAGES, ranks) == "gone :gray-badge[not retrieved]"


# ---------------------------------------------------------------- the drawing of events


def view() -> None:
    import streamlit as st

    from pages.explore.trace import TraceView

    drawn = TraceView(st.container(), "Who played Maria?", "test", system=st.session_state.get("system", "dtv"))
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
        t.PassagesPruned(("a",), ("b", "c"), "those verified to answer a question"),
    )
    shown = texts(at)
    assert "3 questions · 1 verified · 1 rejected · 1 failed" in shown
    for number, question in enumerate(QUESTIONS, 1):
        assert f"{number}. {question}" in shown
    assert "answered by Title a :gray-badge[rank 1]" in shown
    assert "it could not be verified, the language model failed" in shown
    raw = "\n".join(str(m.value) for m in (*at.markdown, *at.caption))
    assert "<b>Broadway" not in raw  # escaped
    labels = [e.label.replace("\\", "") for e in at.expander]
    assert f"2 passages retrieved in 100 ms for: {QUESTIONS[0]}" in labels
    assert {"1 of 4 passages pruned", "2 of 3 passages pruned"} <= set(labels)
    assert "- <u>Basalt</u> :gray-badge[rank 1]" in shown
    assert "- Title b :gray-badge[ranks 1, 2]\n- Title c :gray-badge[rank 2]" in shown
    assert "Kept: the 3 nearest to the pseudo-interpretations. Pruned because they are not among these:" in shown


def test_without_verification_kept_and_pruned_is_the_last_word() -> None:
    shown = texts(drawn(*SEARCHED, system="dtv-unverified"))
    assert "3 questions · 2 kept · 1 pruned" in shown
    assert "1 passage found, none of them among the 3 nearest to the pseudo-interpretations" in shown


def test_a_run_that_was_stopped_and_one_with_its_own_passages() -> None:
    shown = texts(drawn(*SEARCHED[:2]))
    assert "3 questions · 1 searched · 2 not searched" in shown
    own = t.PassagesRetrieved((found("a", 1), found("b", 2)), 0.1, "Who played Maria?")
    assert "3 questions · 3 searched" in texts(drawn(SEARCHED[0], own))


def test_nothing_pruned_and_a_question_nobody_imagined() -> None:
    at = drawn(
        t.PassagesRetrieved((found("a", 1),), 0.1, "Who played Maria?"),
        t.PassagesPruned(("a",), (), "all that answer"),
        t.QuestionVerified("Who else?", ("a",)),
    )
    shown = texts(at)
    assert "None of 1 passage pruned. Kept: all that answer." in shown
    assert "Who else? :green[:material/check_circle: verified]: answered by Title a" in shown


def test_failed_calls_are_marked_once_for_each_reason() -> None:
    failed = t.ModelCalled("supporting", 2, 0, 0, 0.1, "HTTP 500: <html>*busy*</html>")
    shown = texts(drawn(t.ModelCalled("relax", 0, 9, 9, 0.1), failed, failed, t.ModelCalled("relax", 0, 0, 0, 0.1, "timeout")))
    assert "failed call] supporting (2 times): HTTP 500: <html>*busy*</html>" in shown
    assert "failed call] relax: timeout" in shown
    assert shown.count("failed call]") == 2


def test_a_failed_reading_of_the_grid_is_told_by_its_cell_only() -> None:
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
    assert "passages read" not in shown  # no grid


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
        monkeypatch.setattr(prompted, "load", lambda _: PromptedGenerator(model))
        st.cache_resource.clear()
        app = open_app()
        keys = [n.key for n in app.number_input if n.key and n.key.startswith("explore.first.top_k")]
        app.number_input(key=keys[0]).set_value(6)
        return app

    return open_it


def saved(app: AppTest) -> str:
    named: Any = app.query_params["prediction"]
    return str(named if isinstance(named, str) else named[0])


def test_dtv_is_watched_stored_and_opened_again(
    scripted_app: Callable[..., AppTest], open_app: Callable[..., AppTest], store: Store
) -> None:
    app = ask(scripted_app("dtv"))
    assert not app.exception
    assert not app.error, [e.value for e in app.error]
    again = open_app(prediction=saved(app))
    assert not again.exception
    asked = [q.replace("<", "‹").replace(">", "›") for q in QUESTIONS]  # core.models.language.prompts.as_data
    for page in (app, again):
        shown = texts(page)
        assert "3 questions · 2 verified · 1 failed" in shown
        assert all(q in shown for q in asked)
        assert "answered by West Side Story (1961 film) :gray-badge[rank" in shown
        assert "answered by West Side Story (musical) :gray-badge[rank" in shown
        assert "it could not be verified, the language model failed" in shown
        assert "failed call] supporting" in shown
        assert "Pruned because they are not among these:" in shown
        labels = [e.label.replace("\\", "") for e in page.expander]
        assert any(label.endswith(f"for: {asked[1]}") for label in labels)
        assert {"1 of 7 passages pruned", "4 of 6 passages pruned"} <= set(labels)
    stored = store.predictions.get_prediction(saved(app)).prediction
    assert {"QuestionsImagined", "PassagesPruned", "QuestionVerified"} <= {type(e).__name__ for e in stored.events}
    assert [a.text for a in stored.answers] == ["Natalie Wood", "Carol Lawrence"]
