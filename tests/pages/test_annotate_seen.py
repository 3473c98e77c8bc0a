"""The annotate page: what people see, in which order, and what a session keeps of its name."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from annotate_helpers import SECOND, click, find, fine, make_project, predict, read_something, write
from page_helpers import QUESTION, texts
from streamlit.testing.v1 import AppTest

from pages.annotate.stage_info import by_stage
from pages.manage.guidelines import template
from storage.store import Store

pytestmark = pytest.mark.usefixtures("light")
Open = Callable[..., AppTest]


def test_every_passage_of_an_answer_is_shown_whole(annotate: Open, store: Store) -> None:
    """What proves an answer may stand in its second passage, far from its name."""
    filler = "The team played again and again. " * 20
    rows = [
        ("m1", "World Cup 1970", f"Gerd Müller was the leading scorer with ten goals. {filler}"),
        ("m2", "World Cup 1974", f"Gerd Müller scored in the final. {filler} It proved to be the winning goal."),
        ("m3", "World Cup 1978", f"Gerd Müller was not there. {filler}"),
    ]
    store.predictions.save_prediction(predict(QUESTION, ("Gerd Müller", "Nobody"), rows=rows))
    project = make_project(store, stages=("judging",), systems=("scripted",), questions=(QUESTION,))
    app = annotate(project=project.id)
    fine(app)
    second = next(m.value for m in app.markdown if m.value.startswith("**World Cup 1974")).replace("\\", "")
    assert "winning goal." in second
    assert ":orange-background[**Gerd Müller**]" in second
    assert "The system gave no passage for it." in texts(app)


def test_the_buttons_of_a_card_have_signs(annotate: Open, store: Store) -> None:
    store.predictions.save_prediction(predict(QUESTION))
    project = make_project(store, stages=("judging",), systems=("scripted",), questions=(QUESTION,))
    app = annotate(project=project.id)
    signs = {b.label.partition(" *")[0]: b.proto.icon for b in app.button if b.key and ".answer.0." in b.key}
    assert signs["Correct"] == ":material/check:"
    assert len(set(signs.values())) == len(signs) == 6


def test_a_judge_searches_for_the_answers_that_are_missing(annotate: Open, store: Store) -> None:
    store.predictions.save_prediction(predict(QUESTION, ("Basalt",)))
    project = make_project(store, stages=("judging",), systems=("scripted",), questions=(QUESTION,))
    app = annotate(project=project.id)
    read_something(app)
    fine(app)
    assert not [b for b in app.button if b.proto.shortcut == "B"]  # there it would mean the second set
    write(app, "Natalie Wood", "missing", 0)
    click(app, "answer", 0, "wrong")
    click(app, "submit")
    fine(app)
    (sent,) = store.submissions.submissions(project.id, "me")
    assert sent.log.used_queries == ("Maria West Side Story",)
    assert sent.log.viewed_passage_ids


def test_nothing_to_judge_before_a_system_answered(annotate: Open, store: Store) -> None:
    project = make_project(store, stages=("judging",), systems=("scripted",))
    app = annotate(project=project.id)
    fine(app)
    assert "**Judging**: 2 waiting for a system's answer" in texts(app)
    assert "Thank you" not in texts(app)


def test_nothing_left_to_judge_is_said_when_all_is_judged(annotate: Open, store: Store) -> None:
    store.predictions.save_prediction(predict(QUESTION, ("Basalt",)))
    project = make_project(store, stages=("judging",), systems=("scripted",), questions=(QUESTION,), annotators_per_item=2)
    app = annotate(project=project.id)
    click(app, "answer", 0, "wrong")
    click(app, "submit")
    fine(app)
    assert "There is nothing left for you" in texts(app)
    assert "**Judging**: 1 to judge, by other annotators" in texts(app)


def test_nothing_left_says_what_waits_for_whom(annotate: Open, store: Store) -> None:
    stages = ("generation", "validation", "judging")
    make_project(store, stages=stages, systems=("scripted",), annotators_per_item=2, thresholds={"must_read": 0})
    app = annotate("Ann")
    for _ in range(2):
        click(app, "kind", "none")
        click(app, "submit")
    fine(app)
    shown = texts(app)
    assert "**Writing**: 2 to write, by other annotators" in shown
    assert "**Validation**: 2 waiting for the previous stage" in shown
    assert "**Judging**: 4 to judge, by annotators" in shown


# ---------------------------------------------------------------- names


def test_another_name_gets_nothing_of_the_last_ones_session(annotate: Open, store: Store) -> None:
    project = make_project(store, questions=(QUESTION, SECOND), thresholds={"must_read": 0}, annotators_per_item=2)
    app = annotate("Val", project=project.id)
    click(app, "kind", "none")
    click(app, "submit")
    assert app.button(key="annotate.reopen")
    click(app, "kind", "single")
    write(app, "of Val", "answers", 0)
    app.text_input(key="annotator").set_value("Ann").run()
    fine(app)
    assert not [b for b in app.button if b.key == "annotate.reopen"]
    click(app, "kind", "single")
    assert find(app.text_input, "answers", 0).value == ""
    assert [s.annotator for s in store.submissions.submissions(project.id, "me")] == ["Val"]


def test_the_name_survives_a_reload(annotate: Open, open_app: Open, store: Store) -> None:
    project = make_project(store)
    app = annotate("Val", project=project.id)
    assert app.query_params["me"] in ("Val", ["Val"])
    again = open_app("explore", me="Val")
    assert again.text_input(key="annotator").value == "Val"
    again.text_input(key="annotator").set_value("me").run()
    assert "me" not in again.query_params


def test_a_name_in_the_address_is_nothing_where_people_sign_in(open_app: Open, store: Store) -> None:
    store.people.add_person("me", "Val", "manager", password="long enough password")
    app = open_app("explore", me="Val")
    assert "Sign in" in texts(app)
    assert app.session_state["annotator"] != "Val"
    assert "me" not in app.query_params


# ---------------------------------------------------------------- order


def test_the_guidelines_begin_with_the_part_of_the_stage(annotate: Open, store: Store) -> None:
    text = "For all.\n\n" + template(("generation", "validation", "judging"))
    own, rest = by_stage(text, "judging")
    assert own.startswith("For all.\n\n**Judging.**")
    assert rest.startswith("**Writing answers.**")
    own, rest = by_stage(text, "validation")
    assert "**Validating.**" in own
    assert "**Answers and their questions.**" in own
    assert "**Judging.**" in rest
    assert by_stage("# Look twice", "judging") == ("", "# Look twice")
    store.predictions.save_prediction(predict(QUESTION))
    make_project(store, guidelines=text, stages=("generation", "validation", "judging"), systems=("scripted",))
    app = annotate(stage="judging")
    shown = texts(app)
    assert shown.index("**Judging.**") < shown.index("**Writing answers.**")


def test_the_most_probable_suggestion_comes_first(annotate: Open, store: Store) -> None:
    store.predictions.save_prediction(predict(QUESTION, probabilities=(0.2, 0.9, 0.5)))
    project = make_project(store, systems=("scripted",))
    app = annotate(project=project.id)
    shown = [m.value for m in app.markdown if "gray-badge" in m.value]
    assert ["90" in shown[0], "50" in shown[1], "20" in shown[2]] == [True] * 3, shown
    click(app, "accept", 0)
    click(app, "read", 1)
    click(app, "submit")
    fine(app)
    (sent,) = store.submissions.submissions(project.id, "me")
    assert [(u.position, u.action) for u in sent.content.suggestions] == [(1, "accepted")]  # type: ignore[union-attr]
