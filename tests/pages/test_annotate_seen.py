"""The annotate page: what people see, in which order, and what a session keeps of its name."""

from __future__ import annotations

import people
import pytest
from annotate_helpers import click, find, fine, make_project, predict, read_something, write
from annotation_samples import do, single, take, validate
from page_helpers import QUESTION, Open, texts
from test_annotate import JUDGING, answered, keyed, sent

from pages.annotate.stage_info import remaining
from pages.manage.guidelines import template
from pages.ui.stages import by_stage
from storage.store import Store

pytestmark = pytest.mark.usefixtures("light")


def test_every_passage_of_an_answer_is_shown_whole(annotate: Open, store: Store) -> None:
    """The proof of an answer may be in its second passage, far from its name."""
    filler = "The team played again and again. " * 20
    rows = [
        ("m1", "World Cup 1970", f"Gerd Müller was the leading scorer with ten goals. {filler}"),
        ("m2", "World Cup 1974", f"Gerd Müller scored in the final. {filler} It proved to be the winning goal."),
        ("m3", "World Cup 1978", f"Gerd Müller was not there. {filler}"),
    ]
    app = answered(annotate, store, predict(QUESTION, ("Gerd Müller", "Nobody"), rows=rows), **JUDGING)
    second = next(m.value for m in app.markdown if m.value.startswith("**World Cup 1974")).replace("\\", "")
    assert "winning goal." in second
    assert ":orange-background[**Gerd Müller**]" in second
    assert "The system gave no passage for it." in texts(app)


def test_a_judge_searches_for_the_answers_that_are_missing(annotate: Open, store: Store) -> None:
    app = fine(read_something(answered(annotate, store, predict(QUESTION, ("Basalt",)), **JUDGING)))
    assert not [b for b in app.button if b.proto.shortcut == "B"]  # there it would mean the second set
    write(app, "Natalie Wood", "missing", 0)
    click(app, "answer", 0, "wrong")
    fine(click(app, "submit"))
    log = sent(store).log
    assert {e.query for e in log.events if e.query} == {"Maria West Side Story"}
    assert log.viewed_passage_ids


def test_nothing_to_judge_before_a_system_answered(annotate: Open, store: Store) -> None:
    make_project(store, stages=("judging",), systems=("scripted",))
    app = fine(annotate())
    assert "**Judging**: 2 waiting for a system's answer" in texts(app)
    assert "Thank you" not in texts(app)


def test_nothing_left_to_judge_is_said_when_all_is_judged(annotate: Open, store: Store) -> None:
    app = answered(annotate, store, predict(QUESTION, ("Basalt",)), annotators_per_item=2, **JUDGING)
    click(app, "answer", 0, "wrong")
    fine(click(app, "submit"))
    assert "There is nothing left for you" in texts(app)
    assert "**Judging**: 1 to judge, by other annotators" in texts(app)


def test_nothing_left_says_what_waits_for_whom(annotate: Open, store: Store) -> None:
    stages = ("generation", "validation", "judging")
    make_project(store, stages=stages, systems=("scripted",), annotators_per_item=2, thresholds={"must_read": 0})
    app = annotate("Ann")
    for _ in range(2):
        click(app, "kind", "none")
        click(app, "submit")
    shown = texts(fine(app))
    assert "**Writing**: 2 to write, by other annotators" in shown
    assert "**Validation**: 2 waiting for the previous stage" in shown
    assert "**Judging**: 4 to judge, by annotators" in shown


def test_nobody_is_to_write_what_was_validated(store: Store) -> None:
    stages = ("generation", "validation")
    project = make_project(store, stages=stages, questions=(QUESTION,), thresholds={"must_read": 0})
    item = do(store, project, "Ann", "x").item
    take(store, project, "Vera", "validation")
    validate(store, item, "Vera", single("x"))
    store.projects.update_project("me", project.id, 1, annotators_per_item=2)
    assert remaining(store.items.progress(project.id, "me")["generation"], 0, True) == "nothing"


# ---------------------------------------------------------------- names


def test_another_name_gets_nothing_of_the_last_ones_session(annotate: Open, store: Store) -> None:
    make_project(store, thresholds={"must_read": 0}, annotators_per_item=2)
    app = annotate("Val")
    click(app, "kind", "none")
    click(app, "submit")
    assert app.button(key="annotate.reopen")
    click(app, "kind", "single")
    write(app, "of Val", "answers", 0)
    fine(app.text_input(key="annotator").set_value("Ann").run())
    assert not keyed(app.button, "annotate.reopen")
    click(app, "kind", "single")
    assert find(app.text_input, "answers", 0).value == ""
    assert sent(store).annotator == "Val"


def test_the_name_survives_a_reload(annotate: Open, open_app: Open, store: Store) -> None:
    make_project(store)
    app = annotate("Val")
    assert app.query_params["me"] in ("Val", ["Val"])
    again = open_app("explore", me="Val")
    assert again.text_input(key="annotator").value == "Val"
    again.text_input(key="annotator").set_value("me").run()
    assert "me" not in again.query_params


def test_a_name_in_the_address_is_nothing_where_people_sign_in(open_app: Open, store: Store) -> None:
    people.manager(store, "Val")
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
    shown = texts(annotate(stage="judging"))
    assert shown.index("**Judging.**") < shown.index("**Writing answers.**")


def test_the_most_probable_suggestion_comes_first(annotate: Open, store: Store) -> None:
    app = answered(annotate, store, predict(QUESTION, probabilities=(0.2, 0.9, 0.5)))
    badges = [m.value for m in app.markdown if "gray-badge" in m.value]
    assert [score for badge in badges for score in ("0.90", "0.50", "0.20") if score in badge] == ["0.90", "0.50", "0.20"]
    click(app, "accept", 0)
    click(app, "read", 1)
    fine(click(app, "submit"))
    assert [(use.position, use.action) for use in sent(store).content.suggestions] == [(1, "accepted")]
