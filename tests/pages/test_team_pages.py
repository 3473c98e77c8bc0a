"""A team's work on the pages: assigning, commenting, error labels, gold items among the work, adding a result to a project."""

from __future__ import annotations

from dataclasses import replace

import people
import pytest
from annotate_helpers import click, fine, make_project, predict
from annotation_samples import judge_all
from page_helpers import QUESTION, TIMEOUT, Open, texts
from streamlit.testing.v1 import AppTest
from test_annotate import sent

from core import types as t
from core.errors import InputError
from pages.manage.assignments import numbers
from storage.records.projects import Project
from storage.store import Store

pytestmark = pytest.mark.usefixtures("light")


def test_items_are_assigned_and_shared_out(open_app: Open, store: Store) -> None:
    project = make_project(store)
    for name in ("Ada", "Bob"):
        store.people.add_person("me", name, "annotator")
    app = open_app("manage")
    key = f"manage.assign.{project.id}.generation"
    app.text_input(key=f"{key}.items").set_value("1-2").run()
    app.multiselect(key=f"{key}.people").set_value(["Ada", "Bob"]).run()
    fine(click(app, f"{key}.go"))
    assigned = [i.assigned for i in store.items.items(project.id, "me", stage="generation")]
    assert assigned == [("Ada",), ("Bob",)]
    app.text_input(key=f"{key}.items").set_value("x").run()
    click(app, f"{key}.go")
    assert app.error


def test_item_numbers() -> None:
    assert numbers("2, 1\u20133") == [1, 0, 2]
    for wrong in ("", "a", "0", "3-1", "1-", "1-99999"):
        with pytest.raises(InputError):
            numbers(wrong)


def test_a_warning_says_who_cannot_do_what_was_assigned(open_app: Open, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_project(store)
    store.people.add_person("me", "Ada", "annotator")
    store.assignments.assign("me", project.id, "generation", {0: ["Ada"]})
    people = [replace(person, works=False) for person in store.assignments.progress_by_person(project.id, "me")]
    monkeypatch.setattr("storage.annotation.assignments.Assignments.progress_by_person", lambda *_: people)
    app = open_app("manage")
    assert any("Ada" in w.value for w in app.warning)
    fine(click(app, "manage.team.lost.Ada"))
    assert not any(i.assigned for i in store.items.items(project.id, "me", stage="generation"))


def test_comments_error_labels_and_gold_on_the_annotate_page(annotate: Open, store: Store) -> None:
    store.predictions.save_prediction(predict(QUESTION))
    values = {"stages": ("judging",), "systems": ["scripted"], "error_labels": ["wrong film"], "gold_rate": 0.1}
    project = make_project(store, questions=(), **values)
    reference = t.Annotation("single", (t.QAPair("", ("Natalie Wood",)),))
    store.intake.add_items("me", project.id, [t.ReferenceQuestion("", QUESTION, (reference,))], gold=True)
    (item,) = (i.id for i in store.items.items(project.id, "me", stage="judging"))
    app = fine(annotate(project=project.id, stage="judging", item=item))
    assert "gold" not in texts(app).casefold()
    app.text_area(key=f"comments.{item}.me.text").set_value("Does the **film** of 2021 count?").run()
    fine(click(app, f"comments.{item}.add"))
    assert [c.text for c in store.comments.thread(item, "me").comments] == ["Does the **film** of 2021 count?"]
    assert "film of 2021" in texts(app).replace("*", "")
    pills = [p for p in app.pills if p.key and ".errors." in p.key]
    assert len(pills) == 3
    pills[0].set_value(["wrong film"]).run()
    for number in range(3):
        click(app, "answer", number, "correct")
        click(app, "question", number, "fits")
    fine(click(app, "submit"))
    assert not any(word in texts(app).casefold() for word in ("gold", "right answer"))
    submission = sent(store)
    assert sorted(a.errors for a in submission.content.answers) == [(), (), ("wrong film",)]
    assert submission.score == pytest.approx(1 / 3)


def test_a_result_is_added_to_a_project(store: Store, open_app: Open) -> None:
    saved = store.predictions.save_prediction(predict("Who sang it?", ("a", "b")))
    project = make_project(store, questions=())

    def script(saved: str) -> None:
        from pages.explore import to_project
        from pages.explore.corrections import PredictionCorrections

        to_project.draw(saved, "explore.x", PredictionCorrections(frozenset({1}), ("c",)))

    app = fine(AppTest.from_function(script, default_timeout=TIMEOUT, kwargs={"saved": saved}).run())
    fine(click(app, "explore.x.project.add"))
    (item,) = (i.id for i in store.items.items(project.id, "me", stage="generation"))
    assert [s.text for s in store.submissions.suggestions(item, "me")] == ["a", "c"]


def test_a_new_comment_is_told_read_answered_and_resolved(open_app: Open, store: Store) -> None:
    project = make_project(store)
    people.add(store, people.manager(store), "Ann", "annotator")
    task = store.queue.next_item(project.id, "Ann", "generation")
    assert task is not None
    store.comments.comment(task.item, "Ann", "Does the film count, @Mia?")
    mia = store.people.sign_in("Mia", people.PASSWORD)
    assert "1 new comment in Musicals, 1 mention of you" in links(fine(open_app("explore", mia)))
    app = fine(open_app("manage", mia, project=project.id))
    assert "Does the film count" in texts(app)
    assert ":orange-badge[for you]" in texts(app)
    assert not links(app.run())  # it was read
    app.text_area(key=f"comments.{task.item}.Mia.text").set_value("Yes.").run()
    fine(click(app, f"comments.{task.item}.add"))
    fine(click(app, "resolve", store.comments.thread(task.item, "Mia").comments[0].id))
    assert "resolved by Mia" in texts(app)

    ann = store.people.sign_in("Ann", people.PASSWORD)
    assert "1 new comment in Musicals" in links(open_app("explore", ann))
    assert "Yes." in texts(fine(open_app("annotate", ann, view="mine")))


def test_a_run_that_is_judged_blind_opens_on_explore_when_ones_own_judging_is_final(open_app: Open, store: Store) -> None:
    saved = store.predictions.save_prediction(predict(QUESTION))
    values = {"stages": ("judging",), "systems": ["scripted"], "annotators_per_item": 2, "questions": (QUESTION,)}
    project = make_project(store, **values)
    people.manager(store)
    for name in ("Ann", "Ben"):
        people.add(store, "Mia", name, "annotator")
    judge(store, project, "Ben")
    ann = store.people.sign_in("Ann", people.PASSWORD)
    app = open_app("explore", ann, prediction=saved)
    assert "judged blind" in app.error[0].value
    assert not app.exception
    assert "Ben" not in texts(app)
    assert not [b for b in app.button if b.key == "explore.blind.show"]
    judge(store, project, "Ann")
    app = open_app("explore", ann, prediction=saved)
    app.button(key="explore.blind.show").click().run()
    assert "Ben: **correct**" in texts(fine(app))


def judge(store: Store, project: Project, name: str) -> None:
    task = store.queue.next_item(project.id, name, "judging")
    assert task is not None
    sheet = store.reviews.judging_sheet(task.item, name)
    store.submissions.submit(task.item, name, "judging", judge_all(sheet), seconds=1)


def links(app: AppTest) -> list[str]:
    return [link.proto.label for link in app.get("page_link") if " in " in link.proto.label]
