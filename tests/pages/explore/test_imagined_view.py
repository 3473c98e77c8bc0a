"""Imagined questions, pruned passages and decisions on the explore page: drawn event by event."""

from __future__ import annotations

from page_helpers import TIMEOUT, texts
from streamlit.testing.v1 import AppTest

from core import types as t

QUESTIONS = ("Who played Maria in the *1961* film?", "Who played Maria on <b>Broadway</b>?", "Which rock cools quickly?")


def retrieved(query: str, *ids: str, title: str = "") -> t.PassagesRetrieved:
    passages = (t.Passage(i, title or f"Title {i}", f"Text of {i}.") for i in ids)
    return t.PassagesRetrieved(tuple(t.RetrievedPassage(p, rank, 1.0) for rank, p in enumerate(passages, 1)), 0.1, query)


def view() -> None:
    import streamlit as st

    from pages.ui.trace import TraceView

    trace = TraceView(st.container(), "Who played Maria?", system=st.session_state["system"])
    for event in st.session_state["events"]:
        trace.add(event)
    trace.close()


def drawn(*events: t.Event, system: str = "dtv") -> AppTest:
    app = AppTest.from_function(view, default_timeout=TIMEOUT)
    app.session_state["events"], app.session_state["system"] = events, system
    app.run()
    assert not app.exception
    assert not any(m.allow_html for m in app.markdown)
    return app


SEARCHED = (
    t.QuestionsImagined(QUESTIONS),
    retrieved(QUESTIONS[0], "a", "b"),
    retrieved(QUESTIONS[1], "b", "c"),
    retrieved(QUESTIONS[2], "d", title="<u>Basalt</u>"),
    t.PassagesPruned(("a", "b", "c"), ("d",), "the 3 nearest to the pseudo-interpretations"),
)


def test_each_passage_of_the_list_says_which_answers_it_supports() -> None:
    def step(number: int, text: str, *passages: str) -> t.StepFinished:
        evidence = tuple(t.Evidence(p, 0, 4, text) for p in passages)
        candidate = t.Candidate(text, 0.9)
        return t.StepFinished(t.Step(number, (), "", (candidate,), candidate, 0.0, 0.1), t.Answer(text, 0.9, evidence, number))

    app = drawn(
        retrieved("Who played Maria?", "a", "b", "c"),
        *(step(1, "Natalie *Wood*", "a", "a"), step(2, "Rita", "a", "b"), step(3, "Basalt", "c")),
        *(t.AnswerRejected("Basalt", "it is a rock"), t.Finished(1.0, "done")),
        system="one-pass",
    )
    labels = {e.label[:2]: e.label.replace("\\", "") for e in app.expander}
    assert labels["1."].endswith(":green-badge[supports Natalie *Wood*] :green-badge[supports Rita]")
    assert labels["2."].endswith(":green-badge[supports Rita]")
    assert "supports" not in labels["3."]
    assert [e.label for e in app.expander].count("3 passages retrieved in 100 ms") == 1  # drawn again in its place


def test_searched_pruned_and_verified() -> None:
    app = drawn(
        *SEARCHED,
        t.QuestionVerified(QUESTIONS[0], ("a",)),
        t.QuestionVerified(QUESTIONS[1], ()),
        t.QuestionVerified(QUESTIONS[2], (), "the language model failed"),
        t.PassagesPruned(("a",), (), "those verified to answer a question"),
    )
    shown = texts(app)
    assert all(f"1. {question}" in shown for question in QUESTIONS)
    assert "verified]: answered by Title a" in shown
    assert "rejected]: verification found no passage that answers it" in shown
    assert "it could not be verified, the language model failed" in shown
    assert "1 of 4 passages pruned. Kept: the 3 nearest to the pseudo-interpretations." in shown
    assert "0 of 1 passage pruned. Kept: those verified to answer a question." in shown
    assert not any("<b>Broadway" in str(m.value) for m in (*app.markdown, *app.caption))  # escaped
    labels = [e.label.replace("\\", "") for e in app.expander]
    assert f"2 passages retrieved in 100 ms for: {QUESTIONS[0]}" in labels
    assert [label for label in labels if "pruned" in label and "<u>Basalt</u>" in label]


def test_failed_calls_are_marked_once_for_each_reason() -> None:
    failed = t.ModelCalled("supporting", 2, 0, 0, 0.1, "HTTP 500: <html>*busy*</html>")
    shown = texts(drawn(t.ModelCalled("relax", 0, 9, 9, 0.1), failed, failed, t.ModelCalled("relax", 0, 0, 0, 0.1, "timeout")))
    assert "failed call] supporting (2 times): HTTP 500: <html>*busy*</html>" in shown
    assert "failed call] relax: timeout" in shown
    assert shown.count("failed call]") == 2


def test_a_failed_reading_is_told_by_its_passage_only() -> None:
    shown = texts(
        drawn(
            retrieved("Who played Maria?", "a"),
            t.ModelCalled("interpret", 1, 0, 0, 0.1, "no answer came"),
            t.InterpretationProposed(t.Interpretation("a", failed="no answer came")),
            system="verdict",
        )
    )
    assert "failed call]" not in shown
    assert "no answer came" in shown


def test_a_stored_trace_of_a_system_that_is_gone_is_drawn_line_by_line() -> None:
    shown = texts(
        drawn(
            retrieved("Who played Maria?", "a"),
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

    search, verify = retrieved("q", "a"), t.ModelCalled("verify", 1, 1, 1, 0.1)
    nodes = (node("*Wood*", True), node("Reed", False, "pruned: not supported"), node("Brook"), node("Hill", False))
    shown = texts(drawn(search, verify, *nodes))
    assert "verified] · ***Wood***: Who is *Wood*? · (Title a)" in shown
    assert "dropped] · **Reed**: Who is Reed? · (Title a) · pruned: not supported" in shown
    assert "not verified] · **Brook**" in shown
    assert "rejected] · **Hill**" in shown
    assert "not verified" not in texts(drawn(search, node("Brook")))  # nobody looked again


# ---------------------------------------------------------------- the journey
