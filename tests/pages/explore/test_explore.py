"""The explore page: what is shown and what is stored."""

from __future__ import annotations

import dataclasses
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import streamlit as st
from annotate_helpers import fine, predict
from page_helpers import ANSWERS, QUESTION, TIMEOUT, Open, ask, button, texts, tsv
from serving import until
from storage_samples import earlier_labels
from streamlit.testing.v1 import AppTest

from core import types as t
from core.engine import Engine, SystemStatus
from core.errors import CancelledError, CheckpointError, StorageError
from core.models.scheduling.turns import LINE
from core.retrieval.library import CorpusLibrary
from core.settings import Settings
from core.systems import SYSTEMS
from core.trace import prediction_from_json
from pages.explore import live
from pages.explore.options import made_with
from pages.explore.rows import distinction
from pages.explore.runner import Plan, QuestionRun
from pages.ui.trace import source_link
from storage.results.predictions import Predictions
from storage.store import Store


def link(app: AppTest, name: str = "prediction") -> str:
    value = app.query_params.get(name, "")
    return value[0] if isinstance(value, list) else value


def rows(app: AppTest) -> list[str]:
    """The folded answers, in the order of the page."""
    return [e.label.replace("\\", "") for e in app.expander if e.label.startswith(("**", "~~"))]


def verdict(app: AppTest, position: int) -> Any:
    return app.segmented_control(key=f"label.{link(app)}.{position}.choice")


# ---------------------------------------------------------------- launch


def test_says_what_a_system_needs(app: AppTest) -> None:
    assert "Needs" in texts(app)
    assert app.selectbox(key="explore.first.system").value == "scripted"
    assert "scripted" not in app.selectbox(key="explore.first.system").options


def test_examples_belong_to_the_starter_corpus(app: AppTest) -> None:
    def examples() -> list[str]:
        return [b.label.replace("\\", "") for b in app.button if b.key and b.key.startswith("explore.example")]

    assert not examples()
    app.selectbox(key="explore.corpus").set_value("starter").run()
    rows = json.loads((Settings().starter_dir / "questions.json").read_text(encoding="utf-8"))
    several = {row["question"] for row in rows if any(len(a.get("qaPairs", ())) > 1 for a in row["annotations"])}
    assert len(examples()) >= 4
    assert set(examples()) <= several
    first = examples()[0]
    app.button(key="explore.example.0").click().run()
    assert app.text_input(key="explore.question").value == first
    assert link(app)


# ---------------------------------------------------------------- the journey


def test_ask_judge_and_open_again(app: AppTest, open_app: Open, store: Store) -> None:
    shown = texts(fine(ask(app)))
    assert "3 answers" in shown
    assert "**How the answers were found**" in shown
    assert [label.partition("**")[2].partition("**")[0] for label in rows(app)] == list(reversed(ANSWERS))  # by probability
    assert ":orange-background[**Natalie Wood**]" in shown
    assert len(app.status) == 4  # three answers, and the step that ended the run
    assert not any(t.EOI in text for text in (shown, *(s.label for s in app.status)))

    stored = store.predictions.get_prediction(link(app)).prediction
    assert stored.question.text == QUESTION
    assert [a.text for a in stored.answers] == list(ANSWERS)
    assert all(c.question or c.label or c.why for c in stored.clarifications)

    verdict(app, 1).set_value("wrong").run()
    app.text_area(key=f"label.{link(app)}.1.note").set_value("**not** asked for").run()
    (judged,) = store.labels.judgments(link(app))
    assert (judged.position, judged.annotator, judged.verdict, judged.note) == (1, "me", "wrong", "**not** asked for")
    verdict(app, 1).set_value("correct").run()
    assert [r.verdict for r in earlier_labels(store, link(app), 1, "me")] == ["wrong", "wrong"]

    again = open_app(prediction=link(app))
    assert not again.exception
    assert "3 answers" in texts(again)
    assert verdict(again, 1).value == "correct"
    assert "Your note: **not** asked for" in texts(again)
    assert store.maintenance.counts()["prediction"] == 1


def chips(app: AppTest) -> Any:
    """The meanings to choose from; None where the page does not ask."""
    return next((b for b in app.button_group if str(b.key).endswith(".meaning")), None)


def rewritten(*questions: str, passed: bool = True, returned: tuple[str, ...] = ()) -> t.Prediction:
    """A prediction with a rewritten question for each of the first ANSWERS; an empty one is none."""
    clarifications = tuple(
        t.Clarification(answer, question, passed and bool(question), 1, returned)
        for answer, question in zip(ANSWERS, questions)
    )
    return dataclasses.replace(predict(QUESTION, ANSWERS[: len(questions)]), clarifications=clarifications)


IN_1961, IN_2021 = (f"Who played Maria in the {year} film West Side Story?" for year in (1961, 2021))


def test_a_meaning_narrows_the_result_and_stands_in_the_address(open_app: Open, store: Store) -> None:
    app = open_app(prediction=store.predictions.save_prediction(rewritten(IN_1961, IN_2021, "")))
    assert "which of these do you mean?" in texts(app)
    assert len(chips(app).options) == 2  # the third has no question of its own: it is in the list only
    assert len(rows(app)) == 3
    key = chips(app).key
    app.button_group(key=key).set_value(ANSWERS[1]).run()
    assert not app.exception
    assert [ANSWERS[1] in row for row in rows(app)] == [True]
    assert app.query_params["meaning"] == ANSWERS[1]
    assert app.text_input(key="explore.question").value == IN_2021
    app.button_group(key=key).set_value(None).run()
    assert len(rows(app)) == 3
    assert "meaning" not in app.query_params


@pytest.mark.parametrize(
    "prediction",
    [
        rewritten("", "", ""),
        rewritten(IN_1961, "", ""),
        rewritten(IN_1961, IN_1961),
        rewritten(IN_1961, IN_2021, passed=False, returned=ANSWERS),
    ],
    ids=["no questions", "one question", "the same question", "refuted questions"],
)
def test_a_list_is_shown_as_a_list(open_app: Open, store: Store, prediction: t.Prediction) -> None:
    app = open_app(prediction=store.predictions.save_prediction(prediction))
    assert chips(app) is None
    assert app.subheader[0].value == f"{len(prediction.answers)} answers"


def test_meanings_that_begin_alike_have_a_chip_each(open_app: Open, store: Store) -> None:
    films = ("1961", "the remake " + "of the remake " * 4)
    prediction = rewritten(*(f"Which actress was it who played Maria in {film}?" for film in films))
    app = open_app(prediction=store.predictions.save_prediction(prediction))
    assert len(set(chips(app).options)) == 2
    chips(app).set_value(ANSWERS[0]).run()
    assert [ANSWERS[0] in row for row in rows(app)] == [True]


def test_documents_that_disagree_and_a_section_are_shown(open_app: Open, store: Store) -> None:
    passages = [t.Passage("p1", "Bridge", "To cross: go in 1891. Pay at once."), t.Passage("p2", "Bridge", "Go in 1893.")]
    answers = tuple(
        t.Answer(year, 0.5, (t.Evidence(p.id, p.text.index(year), p.text.index(year) + 4, year),))
        for year, p in zip(("1891", "1893"), passages)
    )
    retrieved = tuple(t.RetrievedPassage(p, n, 1.0) for n, p in enumerate(passages, 1))
    question, finished = t.Question("How do I cross the Bridge?"), t.Finished(1.0, "one pass")
    prediction = t.Prediction(question, t.SystemInfo("scripted"), answers, (), (), retrieved, 1.0, (finished,))
    app = open_app(prediction=store.predictions.save_prediction(prediction))
    assert not app.exception
    assert "These documents disagree" in texts(app)
    assert chips(app) is None
    assert r"Pay at once\." in [m.value for m in app.markdown]


def test_verdicts_belong_to_the_name(app: AppTest, store: Store) -> None:
    ask(app)
    verdict(app, 0).set_value("correct").run()
    app.text_input(key="annotator").set_value("Ada").run()
    app.run()
    assert verdict(app, 0).value is None
    assert "Other people's labels: me: **correct**" in texts(app)
    verdict(app, 0).set_value("wrong").run()
    assert {(j.annotator, j.verdict) for j in store.labels.judgments(link(app))} == {("me", "correct"), ("Ada", "wrong")}


def test_the_address_keeps_the_name_during_a_run(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reload in the middle does not go on under another name."""
    app.text_input(key="annotator").set_value("Ada").run()
    addresses, watch = [], live.watch

    def noted(running: Any) -> None:
        addresses.append(st.query_params.to_dict())
        watch(running)

    monkeypatch.setattr(live, "watch", noted)
    ask(ask(app))
    assert addresses == [{"me": "Ada"}] * 2


def continues(app: AppTest) -> bool:
    return any(b.key == f"{link(app)}.run_on" for b in app.button)


def test_a_wrong_answer_is_struck_out_and_excluded(app: AppTest, store: Store) -> None:
    ask(app)
    first = link(app)
    verdict(app, 1).set_value("wrong").run()
    assert any("~~Rachel Zegler~~" in label for label in rows(app))
    assert app.subheader[0].value.startswith("2 answers")
    app.button(key=f"{first}.run_on").click().run()
    assert not app.exception
    assert link(app) != first
    stored = store.predictions.get_prediction(link(app)).prediction
    assert (stored.question.pinned, stored.question.banned) == (("Natalie Wood",), ("Rachel Zegler",))
    assert [a.text for a in stored.answers] == ["Natalie Wood", "Carol Lawrence"]
    assert [(j.position, j.verdict) for j in store.labels.judgments(first)] == [(1, "wrong")]
    assert not store.labels.judgments(link(app))  # what was kept is not judged


@pytest.mark.parametrize("by_bar", [False, True])
def test_one_click_takes_it_back(app: AppTest, store: Store, by_bar: bool) -> None:
    ask(app)
    app.text_area(key=f"label.{link(app)}.0.note").set_value("look again").run()
    verdict(app, 0).set_value("wrong").run()
    assert continues(app)
    if by_bar:
        app.button(key=f"{link(app)}.undo").click().run()
    else:
        verdict(app, 0).set_value(None).run()
    assert not continues(app)
    assert [(j.verdict, j.note) for j in store.labels.judgments(link(app))] == [(None, "look again")]


def test_add_an_answer_and_run_on(app: AppTest, store: Store) -> None:
    ask(app)
    app.text_input(key=f"{link(app)}.new").set_value("  Rita   Moreno ").run()
    assert not continues(app)  # before the button
    app.button(key=f"{link(app)}.add").click().run()
    assert app.text_input(key=f"{link(app)}.new").value == ""
    assert app.session_state[f"{link(app)}.adder"] is False  # it would cover the button that continues
    assert "**Rita Moreno**" in texts(app)
    assert app.subheader[0].value.startswith("4 answers")
    app.button(key=f"{link(app)}.run_on").click().run()
    stored = store.predictions.get_prediction(link(app)).prediction
    assert (stored.question.pinned, stored.question.added) == ((*ANSWERS, "Rita Moreno"), ("Rita Moreno",))
    assert [a.text for a in stored.answers] == [*ANSWERS, "Rita Moreno"]
    assert [(j.position, j.verdict) for j in store.labels.judgments(link(app))] == [(3, "correct")]
    assert [("added by you" in row, "by you" in row) for row in rows(app)] == [(False, False)] * 3 + [(True, True)]


def test_none_of_these_searches_further_without_them(app: AppTest, store: Store) -> None:
    ask(app)
    app.number_input(key="explore.first.top_k.4").set_value(1).run()
    ask(app)
    app.button(key=f"{link(app)}.none").click().run()
    stored = store.predictions.get_prediction(link(app)).prediction
    assert set(ANSWERS) >= set(stored.question.banned) != set()
    assert stored.system.settings["top_k"] == 2
    assert not set(stored.question.banned) & {a.text for a in stored.answers}


def test_an_edited_question_is_asked(app: AppTest, store: Store) -> None:
    ask(app)
    first = link(app)
    app.text_input(key=f"{first}.0.0.edit").set_value("Basalt forms when?").run()
    app.button(key=f"{first}.0.0.edited").click().run()
    assert app.text_input(key="explore.question").value == "Basalt forms when?"
    assert store.predictions.get_prediction(link(app)).prediction.question.text == "Basalt forms when?"


def test_a_link_restores_comparison_corpus_and_options(app: AppTest, open_app: Open, store: Store) -> None:
    app.toggle(key="explore.compare").set_value(True).run()
    app.number_input(key="explore.second.max_answers").set_value(1)
    app.toggle(key="explore.first.stopping").set_value(True).run()
    app.slider(key="explore.first.stop_above").set_value(0.95).run()
    shown = texts(fine(ask(app)))
    assert "3 answers" in shown
    assert "1 answer\n" in shown
    assert [sum(badge in label for label in rows(app)) for badge in ("· both", "· only here")] == [2, 2]
    assert "Found by both: 1." in shown
    assert store.maintenance.counts()["prediction"] == 2
    again = open_app(prediction=link(app), other=link(app, "other"))
    assert not again.exception
    assert rows(again) == rows(app)
    assert again.toggle(key="explore.compare").value
    assert again.number_input(key="explore.second.max_answers").value == 1
    assert again.slider(key="explore.first.stop_above").value == 0.95
    assert again.selectbox(key="explore.corpus").value == "small"
    assert again.text_input(key="explore.question").value == QUESTION
    once = open_app(prediction=link(app), other=link(app))  # copied twice by hand
    assert not once.exception
    assert len(rows(once)) == 3


def test_a_result_can_be_downloaded(app: AppTest, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    files: dict[str, Any] = {}
    monkeypatch.setattr("streamlit.download_button", lambda label, data, *args, **kw: files.update({label: data}))
    ask(app)
    assert set(files) == {"Trace", "Markdown", "Card (PNG)"}
    assert prediction_from_json(json.loads(files["Trace"]())) == store.predictions.get_prediction(link(app)).prediction


def test_recent_predictions_and_their_filter(app: AppTest) -> None:
    ask(app)
    ask(app, "Basalt forms when?")

    def labels() -> list[str]:
        return [x.replace("\\", "") for e in app.sidebar.get("page_link") if (x := e.proto.label)]

    assert labels()[:2] == ["Basalt forms when?", QUESTION]
    app.text_input(key="explore.filter").set_value("MARIA").run()
    assert labels() == [QUESTION]


def trace(*events: t.Event) -> str:
    """The trace of these events as it is shown."""

    def script() -> None:
        import streamlit as st

        from pages.ui.trace import TraceView

        view = TraceView(st.container(), st.session_state["question"])
        for event in st.session_state["events"]:
            view.add(event)

    app = AppTest.from_function(script, default_timeout=TIMEOUT)
    app.session_state["question"], app.session_state["events"] = QUESTION, events
    return texts(fine(app.run()))


def clarified(question: str, *returned: str, passed: bool = False, **fields: Any) -> t.QuestionClarified:
    return t.QuestionClarified(t.Clarification(ANSWERS[0], question, passed, 1, returned, **fields), 0.1)


def test_an_answer_without_a_question_of_its_own_is_in_the_list_and_nothing_is_struck_through() -> None:
    steps = [t.StepFinished(t.Step(n, (), "", (), None, 0.1, 0.1), t.Answer(text, 0.5)) for n, text in enumerate(ANSWERS, 1)]
    shown = trace(*steps, clarified("", why="nothing distinguishes it", label="1961 film"))
    assert "~~" not in shown
    assert all(part in shown for part in (f"**{ANSWERS[0]}**", "nothing distinguishes it", "1961 film"))
    assert "stays as it is" not in trace(steps[0], clarified("", ANSWERS[0], why="the question stays as it is"))


def test_of_a_rewritten_question_the_page_says_what_it_returned() -> None:
    alone = trace(clarified(IN_1961, ANSWERS[0], passed=True))
    assert "this answer alone" in alone
    assert "Cillian Murphy" in trace(clarified(IN_1961, ANSWERS[0], "Cillian Murphy", passed=True))
    refuted = trace(clarified(IN_1961, ANSWERS[1], why="it returns another answer"))
    assert all(part in refuted for part in (ANSWERS[1], "it returns another answer"))
    unchecked = trace(clarified(IN_1961, why="written by the model; not verified"))
    assert "not verified" in unchecked
    assert not any("returned this answer" in text for text in (refuted, unchecked))


def test_the_label_of_an_answer_does_not_contradict_its_question() -> None:
    prediction = rewritten("Who played Maria in West Side Story in 1502?")
    labelled = dataclasses.replace(prediction.clarifications[0], label="in 1509")
    shown = distinction(dataclasses.replace(prediction, clarifications=(labelled,)), prediction.answers[0])
    assert shown == "in 1502"


def test_steps_of_a_how_to_answer_are_in_the_order_of_the_document(open_app: Open, store: Store) -> None:
    passage = t.Passage("p1", "Guide", "First open the file. Then press save. Last close it.")
    spans = [
        (text, passage.text.index(text), p) for text, p in (("press save", 0.9), ("close it", 0.8), ("open the file", 0.3))
    ]
    answers = tuple(t.Answer(x, p, (t.Evidence("p1", start, start + len(x), x),)) for x, start, p in spans)
    prediction = t.Prediction(
        t.Question("How do I keep a file?"),
        t.SystemInfo("scripted"),
        answers,
        (),
        (),
        (t.RetrievedPassage(passage, 1, 1.0),),
        1.0,
        (t.Finished(1.0, "one pass"),),
    )
    app = open_app(prediction=store.predictions.save_prediction(prediction))
    assert [row.split("**")[1] for row in rows(app)] == ["open the file", "press save", "close it"]


def test_a_comparison_begins_with_another_system(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    statuses = [SystemStatus(name, "", (), "", True) for name in ("ambigprompt", "one-pass")]
    monkeypatch.setattr("pages.session.shared.systems", lambda: statuses)
    app.toggle(key="explore.compare").set_value(True).run()
    assert app.selectbox(key="explore.second.system").value != app.selectbox(key="explore.first.system").value


def test_a_system_is_found_by_its_name(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = [SystemStatus(name, "", (), "", True) for name, entry in SYSTEMS.items() if not entry.hidden]
    monkeypatch.setattr("pages.session.shared.systems", lambda: shown)
    options = app.run().selectbox(key="explore.first.system").options
    assert [option.partition(":")[0] for option in options[1:]] == [s.name for s in shown]


# ---------------------------------------------------------------- bad input


def test_a_refused_question_is_told_and_the_next_one_is_answered(app: AppTest, store: Store) -> None:
    ask(app, "x" * 10_000)
    assert not app.exception
    assert "10000 characters" in app.error[0].value.replace("\\", "")
    assert store.maintenance.counts()["prediction"] == 0
    ask(app)
    assert not app.error


def test_the_check_of_what_the_corpus_covers_can_be_left_out(app: AppTest) -> None:
    not_covered = "Who played Maria in 1875?"
    assert not rows(ask(app, not_covered))
    app.toggle(key="explore.first.check_coverage").set_value(False).run()
    assert rows(ask(app, not_covered))


def test_more_passages_than_the_corpus_has(app: AppTest, store: Store) -> None:
    read = app.number_input(key="explore.first.top_k.4")
    assert (read.value, read.max, read.help) == (4, 4, "The corpus has 4 passages.")
    ask(app)
    stored = store.predictions.get_prediction(link(app)).prediction
    assert (len(stored.passages), stored.system.settings["top_k"]) == (4, 4)


def test_a_stored_run_over_a_corpus_that_became_smaller(corpus: str) -> None:
    """Running on reads what there is."""
    info = t.SystemInfo("scripted", {"top_k": 50, "max_answers": 3}, corpus)
    assert made_with(info).top_k == 4


def test_unknown_link(open_app: Open, corpus: str) -> None:
    app = open_app(prediction="f" * 32)
    assert not app.exception
    assert "there is no prediction" in app.error[0].value
    ask(app)
    assert not app.error


@pytest.mark.parametrize(
    ("place", "error", "shown", "hidden"),
    [
        ("core.systems.scripted.build", CheckpointError("checkpoint x is damaged"), "checkpoint x is damaged", "The log"),
        ("core.retrieval.library.Corpus.search", ZeroDivisionError("secret"), "ZeroDivisionError", "secret"),
    ],
    ids=["known", "unexpected"],
)
def test_only_of_a_known_error_the_message_is_shown(
    app: AppTest, monkeypatch: pytest.MonkeyPatch, place: str, error: Exception, shown: str, hidden: str
) -> None:
    monkeypatch.setattr(place, Mock(side_effect=error))
    ask(app)
    assert shown in app.error[0].value
    assert hidden not in app.error[0].value


def test_a_full_disk_keeps_the_result_on_the_page(app: AppTest, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as full:
        full.setattr(Predictions, "save_prediction", Mock(side_effect=StorageError("the disk is full; free some space")))
        ask(app)
    assert "the disk is full" in app.error[0].value
    assert "3 answers" in texts(app)
    assert store.maintenance.counts()["prediction"] == 0
    button(app, "Try to save again").click().run()
    assert not app.error
    assert store.maintenance.counts()["prediction"] == 1
    assert link(app)


def test_a_result_that_is_not_saved_stays_beside_one_that_is(
    app: AppTest, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while the person looks at another page."""
    app.toggle(key="explore.compare").set_value(True).run()
    save = Predictions.save_prediction

    def last_save(*args: Any, **kw: Any) -> str:
        full.setattr(Predictions, "save_prediction", Mock(side_effect=StorageError("the disk is full; free some space")))
        return save(*args, **kw)

    with monkeypatch.context() as full:
        full.setattr(Predictions, "save_prediction", last_save)
        ask(app)
    app.query_params.clear()
    app.switch_page("pages/corpora/page.py").run().switch_page("pages/explore/page.py").run()
    button(app, "Try to save again").click().run()
    assert store.maintenance.counts()["prediction"] == 2
    assert link(app, "other")


def test_wrong_setting(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMBISCOPE_TOP_K", "many")
    app = open_app()
    assert not app.exception
    assert "AMBISCOPE_TOP_K" in app.error[0].value.replace("\\", "")


def test_payloads_of_a_corpus_are_text(settings: Settings, tmp_path: Path, open_app: Open) -> None:
    nasty = "<script>alert(1)</script> $x$ :red[r] **b** ![](x) [a](javascript:alert(1)) :smile:"
    path = tmp_path / "nasty.tsv"
    path.write_text(tsv([("n1", nasty, f"Alpha Beta {nasty} Gamma Delta")]), encoding="utf-8")
    CorpusLibrary(settings).create("small", [path])
    app = ask(open_app(), f"Alpha {nasty}?")
    assert not app.exception
    drawn = [str(e.value) for kind in (app.markdown, app.caption, app.subheader) for e in kind]
    drawn += [e.label for kind in (app.expander, app.status, app.button) for e in kind]
    for text in drawn:
        for bare in (r"<script", r"\$x\$", r":red\[", r"\*\*b\*\*", r"!\[\]\(", r"\]\(javascript", r":smile:"):
            assert not re.search(r"(?<!\\)" + bare, text), text
    assert any("alert" in text for text in drawn)


# ---------------------------------------------------------------- other questions first


@pytest.fixture
def another() -> Iterator[threading.Event]:
    """Another question that is being answered until the event is set."""
    taken, over = threading.Event(), threading.Event()

    def answer() -> None:
        with LINE.place() as place:
            assert list(place.wait(lambda: False)) == []
            taken.set()
            over.wait(TIMEOUT)

    thread = threading.Thread(target=answer)
    thread.start()
    assert taken.wait(TIMEOUT)
    yield over
    over.set()
    thread.join(TIMEOUT)


@pytest.fixture
def waiting(corpus: str, settings: Settings, another: threading.Event) -> QuestionRun:
    run = QuestionRun(Engine(settings), Plan(t.Question(QUESTION), "scripted", corpus)).start()
    until(lambda: run.waits)
    return run


def test_a_run_that_waits_says_so_and_goes_on_in_its_turn(waiting: QuestionRun, another: threading.Event) -> None:
    until(lambda: "1" in waiting.stage)
    assert waiting.prediction() is None  # nothing of it to keep
    another.set()
    assert waiting.wait(TIMEOUT)
    prediction = waiting.prediction()
    assert prediction is not None
    assert [a.text for a in prediction.answers] == list(ANSWERS)
    assert not [e for e in waiting.events if isinstance(e, t.QuestionQueued)]


def test_a_run_that_waits_can_be_cancelled(waiting: QuestionRun) -> None:
    waiting.stop()
    assert waiting.wait(TIMEOUT)
    assert isinstance(waiting.error, CancelledError)
    assert waiting.events == []


def drawn(text: str, *answers: str) -> AppTest:
    """A passage with these answers marked."""

    def script() -> None:
        import streamlit as st

        from pages.ui.trace import draw_text

        draw_text(st.session_state["text"], st.session_state["spans"])

    app = AppTest.from_function(script, default_timeout=TIMEOUT)
    app.session_state["text"] = text
    app.session_state["spans"] = [(text.index(answer), text.index(answer) + len(answer)) for answer in answers]
    return fine(app.run())


def test_a_listing_of_a_passage_stays_code() -> None:
    listing = '[tool.x]\npython = ">=3.10"\n[tool.x.deep]\n  a = 1'
    assert [c.value for c in drawn(listing).code] == [listing]
    app = drawn(f"Put this into the file:\n{listing}\nThen the tool starts with these settings.", "3.10", "settings")
    assert [c.value for c in app.code] == [listing]
    shown = texts(app)
    assert [shown.count(part) for part in ("**3.10**", "**settings**", "Put this into the file:")] == [1, 1, 1]
    assert drawn("One line. Another one.", "Another").code.values == []


def test_a_source_is_linked_to_its_place(settings: Settings, tmp_path: Path, open_app: Open) -> None:
    path = tmp_path / "films.tsv"
    sections = ("a.md#first", "a.md#second", "b.md#first")
    path.write_text(
        tsv([(i, f"Films > {i}", f"{name} played Maria in West Side Story.") for i, name in zip(sections, ANSWERS)]),
        encoding="utf-8",
    )
    CorpusLibrary(settings).create("small", [path])
    app = ask(open_app())
    links = [e.proto for e in app.get("page_link") if e.proto.label == "In its document"]
    assert len(links) == len(ANSWERS)
    app.query_params["corpus"], app.query_params["passage"] = "small", sections[1]
    shown = texts(fine(app.switch_page("pages/corpora/page.py").run()))
    assert [f"{name} played Maria" in shown for name in ANSWERS] == [True, True, False]
    app.query_params["passage"] = "gone"
    assert "no passage gone" in texts(fine(app.run()))


def test_a_passage_that_stands_alone_has_no_such_link(app: AppTest) -> None:
    ask(app)
    assert not [e for e in app.get("page_link") if e.proto.label == "In its document"]


def test_only_a_web_address_becomes_a_link() -> None:
    assert source_link("https://example.org/a#b").endswith("(https://example.org/a#b)")
    for text in ("guide.md#install", "javascript:alert(1)", "https://x.org/) [b](javascript:1", "https://x.org/a b"):
        assert "](" not in source_link(text).replace("\\](", "")
