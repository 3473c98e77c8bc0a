"""The manage page and signing in: what is shown and what is stored."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from typing import get_args

import people
import pytest
from annotate_helpers import SECOND, click, find, fine, make_project, predict
from annotation_samples import do, take, work
from page_helpers import QUESTION, Open, button, ended, texts
from storage_samples import known
from streamlit.testing.v1 import AppTest

from core.errors import InputError
from pages.manage.guidelines import example_of, first_examples, template
from pages.session.background import jobs_of
from storage.records.annotation import JudgedAnswer, JudgingWork, MissingAnswer
from storage.records.enumerations import WorkStage
from storage.records.projects import Guidelines, ItemSummary, Project
from storage.store import Store

pytestmark = pytest.mark.usefixtures("light")


def section(app: AppTest, name: str) -> AppTest:
    return fine(app.segmented_control(key="manage.section").set_value(name).run())


def choose_upload(app: AppTest, name: str = "mine") -> AppTest:
    """A new project of this name, whose questions come from a file."""
    app.text_input(key="manage.new.name").set_value(name)
    return app.radio(key="manage.new.source").set_value("Upload a file").run()


def upload(app: AppTest, name: str, content: str, key: str = "manage.new.file") -> AppTest:
    return app.file_uploader(key=key).set_value((name, content.encode(), "text/plain")).run()


def is_open(app: AppTest, label: str = "New project") -> bool:
    (expander,) = [e for e in app.expander if e.label == label]
    return bool(expander.proto.expanded)


def questions(store: Store, project: Project) -> list[str]:
    return [item.question for item in store.items.items(project.id, "me", stage="generation")]


def guidelines(store: Store, project: Project) -> Guidelines:
    latest = store.projects.guidelines(project.id)
    assert latest is not None
    return latest


@pytest.fixture
def one_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pages.manage.settings._names", lambda what: ["scripted"] if what == "systems" else ["small"])


def test_launches_and_makes_a_project_from_the_starter_questions(open_app: Open, store: Store) -> None:
    app = fine(open_app("manage"))
    app.text_input(key="manage.new.name").set_value("First **round**").run()
    app.number_input(key="manage.new.number").set_value(2).run()
    fine(click(app, "manage.new.make"))
    (project,) = store.projects.projects()
    assert (project.name, project.annotators_per_item, project.stages) == ("First **round**", 2, ("generation", "validation"))
    assert store.items.progress(project.id, "me")["generation"].items > 100
    assert "Search and read first" in guidelines(store, project).text
    assert len(guidelines(store, project).examples) == 3
    assert "First **round**" in app.success[0].value.replace("\\", "")


def test_an_upload_is_checked_whole(open_app: Open, store: Store) -> None:
    app = choose_upload(open_app("manage"))
    good, nameless = (json.dumps({"question": question, "answers": [["a"]]}) for question in (QUESTION, ""))
    upload(app, "q.jsonl", f"{good}\n{{broken\n{nameless}")
    click(app, "manage.new.make")
    assert "2 rows were not valid, so nothing was stored" in app.error[0].value
    assert list(app.dataframe[0].value["Line"]) == [2, 3]
    assert store.projects.projects() == []
    upload(app, "q.jsonl", good)
    fine(click(app, "manage.new.make"))
    (project,) = store.projects.projects()
    assert questions(store, project) == [QUESTION]


def test_more_questions_without_answers(open_app: Open, store: Store) -> None:
    project = make_project(store)
    app = open_app("manage")
    click(app, "manage.more.add")
    assert "no file is selected" in app.error[0].value
    assert is_open(app, "Add questions")
    upload(app, "q.txt", "Who wrote it?\n", "manage.more")
    app.checkbox(key="manage.more.gold").check().run()
    click(app, "manage.more.add")
    assert app.error  # a gold item needs its right answer
    assert is_open(app, "Add questions")
    app.checkbox(key="manage.more.gold").uncheck().run()
    fine(click(app, "manage.more.add"))
    assert "1 question added" in app.success[0].value
    assert not is_open(app, "Add questions")
    assert questions(store, project) == [QUESTION, SECOND, "Who wrote it?"]
    click(app, "manage.more.add")
    assert "no file is selected" in app.error[0].value  # the one that was used is not added again


def test_rows_pasted_from_a_spreadsheet_are_added_whole_or_not(open_app: Open, store: Store) -> None:
    project = make_project(store)
    known(store, "Ann")
    app = open_app("manage")
    field = "manage.more.pasted.0"
    app.text_area(key=field).set_value("question\tassignee\nWho ran?\tAnn\nWho won?\tZoe\n").run()
    click(app, "manage.more.add")
    (wrong,) = next(shown.value for shown in app.dataframe if "Row" in shown.value).to_dict("records")
    assert (wrong["Row"], wrong["Reason"][:15]) == (3, "column assignee")
    assert app.text_area(key=field).value.startswith("question")  # to be mended
    assert questions(store, project) == [QUESTION, SECOND]
    app.text_area(key=field).set_value("question\tassignee\nWho ran?\tAnn\nWho won?\n").run()
    fine(click(app, "manage.more.add"))
    assert questions(store, project) == [QUESTION, SECOND, "Who ran?", "Who won?"]
    assert app.text_area(key="manage.more.pasted.1").value == ""
    assigned = {item.question: item.assigned for item in store.items.items(project.id, "me", stage="generation")}
    assert assigned["Who ran?"] == ("Ann",)


def test_a_new_project_stays_open_and_keeps_what_is_in_it(one_system: None, open_app: Open, store: Store) -> None:
    """It closed at every error and at the click after it, and forgot the file once."""
    make_project(store)
    app = open_app("manage")
    assert not is_open(app)
    choose_upload(app, "")
    app.button_group(key="manage.new.stages").set_value(["judging"]).run()

    def refused(reason: str) -> None:
        click(app, "manage.new.make")
        assert reason in texts(app)
        assert is_open(app)
        app.run()
        assert is_open(app)

    refused("has no name")
    app.text_input(key="manage.new.name").set_value("Verdicts").run()
    refused("needs one or two systems")
    app.multiselect(key="manage.new.systems").set_value(["scripted"]).run()
    refused("no file is selected")
    upload(app, "wrong.json", '[{"question": 1}]')
    refused("1 row was not valid")
    upload(app, "right.txt", "Who wrote it?")
    app.text_input(key="manage.new.name").set_value("Musicals").run()
    refused("there is a project named")
    app.text_input(key="manage.new.name").set_value("Verdicts").run()
    # another source for a while, and another page: nothing is lost
    app.radio(key="manage.new.source").set_value("None yet").run()
    app.radio(key="manage.new.source").set_value("Upload a file").run()
    assert "right.txt uploaded" in texts(app).replace(":gray[", "")
    app.switch_page("pages/explore/page.py").run()
    app.switch_page("pages/manage/page.py").run()
    assert is_open(app)
    assert app.text_input(key="manage.new.name").value == "Verdicts"
    assert app.radio(key="manage.new.source").value == "Upload a file"
    assert app.multiselect(key="manage.new.systems").value == ["scripted"]
    assert "right.txt" in texts(app)
    fine(click(app, "manage.new.make"))
    assert not is_open(app)
    assert app.text_input(key="manage.new.name").value == ""
    assert "right.txt" not in texts(app)
    verdicts, other = store.projects.projects()
    assert (verdicts.name, other.name) == ("Verdicts", "Musicals")
    proposal = guidelines(store, verdicts)  # about what is done
    assert (proposal.text.strip(), proposal.examples) == (template(("judging",)).strip(), ())


def test_a_kept_file_can_be_removed(open_app: Open) -> None:
    app = upload(choose_upload(open_app("manage")), "q.txt", "Who?")
    app.radio(key="manage.new.source").set_value("None yet").run()
    app.radio(key="manage.new.source").set_value("Upload a file").run()
    assert "q.txt" in texts(app)
    click(app, "manage.new.file.remove")
    assert "q.txt" not in texts(app)


def test_at_most_two_systems_are_offered(open_app: Open) -> None:
    field = open_app("manage").multiselect(key="manage.new.systems")
    assert field.proto.max_selections == 2
    assert field.proto.select_all == 0  # 'Select all' was offered


def test_guidelines_have_versions_and_examples(open_app: Open, store: Store) -> None:
    project = make_project(store)
    app = section(open_app("manage"), "Guidelines")
    find(app.text_area, f"guide.{project.id}.0.text").set_value("Read **first**.").run()
    fine(click(app, "save"))
    first = guidelines(store, project)
    assert (first.version, first.text) == (1, "Read **first**.")
    key = f"guide.{project.id}.1"
    app.text_input(key=f"{key}.prompt").set_value("When did it come out?")
    app.text_area(key=f"{key}.pairs").set_value(
        "When did the book come out? → 1997\nWhen did the film come out? -> 2001 | in 2001"
    )
    fine(button(app, "Add example").click().run())
    second = guidelines(store, project)
    assert (second.version, second.examples[0].annotation.pairs[1].answers) == (2, ("2001", "in 2001"))
    assert "Earlier versions (1)" in [e.label for e in app.expander]
    find(app.text_area, f"guide.{project.id}.2.text").set_value("Typed, and not saved yet.").run()
    fine(click(app, "drop.0"))  # an example is deleted: what was typed above stays
    third = guidelines(store, project)
    assert (third.version, third.text, third.examples) == (3, "Typed, and not saved yet.", ())


def test_another_name_is_no_conflict_with_unsaved_guidelines(open_app: Open, store: Store) -> None:
    project = make_project(store)
    app = section(open_app("manage"), "Guidelines")
    find(app.text_area, f"guide.{project.id}.0.text").set_value("Typed, and not saved yet.").run()
    fine(app.text_input(key="annotator").set_value("somebody else").run())
    assert find(app.text_area, f"guide.{project.id}.0.text").value == "Typed, and not saved yet."
    assert not any("another window" in w.value for w in app.warning)


@pytest.mark.parametrize("stages", [c for n in (1, 2, 3) for c in combinations(get_args(WorkStage), n)])
def test_each_stage_has_its_part_of_the_guidelines(stages: tuple[WorkStage, ...]) -> None:
    text = template(stages)
    assert ("Search and read first" in text) is ("generation" in stages)
    assert ("Combine" in text) is ("validation" in stages)
    assert ("Unsupported" in text) is ("judging" in stages)
    assert ("Answers are short" in text) is (stages != ("judging",))
    assert ("Two annotations agree" in text) is (stages != ("judging",))
    assert bool(first_examples(stages)) is (stages != ("judging",))


def test_example_of() -> None:
    assert example_of(True, " q? ", "a | b", "").annotation.type == "single"
    assert example_of(False, "q?", "", "why").annotation.type == "none"
    with pytest.raises(InputError, match="no question"):
        example_of(True, " ", "a", "")
    with pytest.raises(InputError, match="line 2"):
        example_of(True, "q?", "Q? → a\nQ? → ", "")


def test_suggestions_in_the_background(corpus: str, open_app: Open, store: Store) -> None:
    project = make_project(store, systems=("scripted",))
    app = section(open_app("manage"), "Suggestions")
    app.checkbox(key="manage.pre.clarify").set_value(False).run()
    fine(ended(click(app, "manage.pre.go"), "preannotations"))
    run = jobs_of("preannotations")[project.id]
    assert [(r.answered, r.linked, run.error) for r in run.subject] == [(2, 2, None)]
    items = store.items.items(project.id, "me", stage="generation")
    for item in items:
        (linked,) = store.items.get_item(item.id, "me").predictions
        assert not store.predictions.get_prediction(linked.prediction_id).prediction.clarifications
    assert len(store.submissions.suggestions(items[0].id, "me")) == 3
    assert store.items.progress(project.id, "me")["generation"].submitted == 0
    click(app, "manage.close", project.id)
    ended(click(app, "manage.pre.go"), "preannotations")  # nothing is left to answer
    again = jobs_of("preannotations")[project.id]
    assert [(r.total, r.answered, again.error) for r in again.subject] == [(0, 0, None)]


def test_suggestions_of_several_systems_in_one_job(corpus: str, open_app: Open, store: Store) -> None:
    project = make_project(store, systems=("missing", "scripted"))  # the first one cannot run: the second does
    app = section(open_app("manage"), "Suggestions")
    app = ended(click(app, "manage.pre.go"), "preannotations")
    run = jobs_of("preannotations")[project.id]
    assert run.error is not None
    assert [r.answered for r in run.subject] == [0, 2]
    assert not app.exception
    items = store.items.items(project.id, "me", stage="generation")
    assert [p.system for item in items for p in store.items.get_item(item.id, "me").predictions] == ["scripted", "scripted"]


def test_what_is_done_with_selected_items(open_app: Open, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_project(store, questions=tuple(f"Who was number {i}?" for i in range(4)))
    people.add(store, people.manager(store), "Ann", "annotator")
    monkeypatch.setattr("pages.manage.items.selected", lambda chosen: [1, 2])  # AppTest selects no rows of a table
    app = fine(open_app("manage", store.people.sign_in("Mia", people.PASSWORD)))
    key = f"manage.selected.{project.id}.generation"

    def items() -> list[ItemSummary]:
        return store.items.items(project.id, "Mia", stage="generation")

    app.multiselect(key=f"{key}.people").set_value(["Ann"]).run()
    fine(click(app, f"{key}.assign"))
    assert [i.assigned for i in items()] == [(), ("Ann",), ("Ann",), ()]
    app.number_input(key=f"{key}.people_per_item").set_value(2).run()
    fine(click(app, f"{key}.slots"))
    assert [i.slots for i in items()] == [1, 2, 2, 1]
    take(store, project, "Ann")
    click(app, f"{key}.remove")
    assert "item 2 cannot be removed" in app.error[0].value
    store.queue.release_item(items()[1].id, "Ann", "generation")
    monkeypatch.setattr("pages.manage.items.selected", lambda chosen: [2])
    fine(click(app.run(), f"{key}.remove"))
    assert [i.position for i in items()] == [0, 1, 3]


def test_a_gold_item_by_hand_and_from_a_finished_item(open_app: Open, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_project(store, gold_rate=0.1, thresholds={"must_read": 0})
    task = take(store, project, "me")
    store.submissions.submit(task.item, "me", "generation", work("Natalie Wood"), seconds=1)
    monkeypatch.setattr("pages.manage.items.selected", lambda chosen: [0])
    app = fine(open_app("manage"))
    fine(click(app, f"manage.selected.{project.id}.generation.gold"))
    app.text_input(key="manage.gold.question").set_value("Who sang it?")
    app.text_area(key="manage.gold.answers").set_value("Marni Nixon\nJim Bryant")
    click(app, "manage.gold.add")
    assert "line 1 has no question" in app.error[0].value
    app.text_area(key="manage.gold.answers").set_value("Who sang Maria? -> Marni Nixon | Nixon\nWho sang Tony? -> Jim Bryant")
    fine(click(app, "manage.gold.add"))
    gold = [store.items.get_item(i.id, "me") for i in store.items.items(project.id, "me", stage="generation") if i.gold]
    assert [[pair.answers for pair in item.references[0].pairs] for item in gold] == [
        [("Natalie Wood",)],
        [("Marni Nixon", "Nixon"), ("Jim Bryant",)],
    ]


def test_settings_and_closing(open_app: Open, store: Store) -> None:
    project = make_project(store)
    app = section(open_app("manage"), "Settings")
    key = f"manage.set.{project.id}.1"
    app.number_input(key=f"{key}.number").set_value(3)
    app.text_input(key=f"{key}.name").set_value("Other")
    fine(click(app, f"{key}.save"))
    changed = store.projects.get_project(project.id)
    assert (changed.name, changed.annotators_per_item, changed.version) == ("Other", 3, 2)
    click(app, f"manage.set.{project.id}.2.state")
    assert store.projects.get_project(project.id).state == "closed"


def test_items_filters_and_activity(open_app: Open, store: Store) -> None:
    make_project(store)
    app = fine(open_app("manage"))
    assert list(app.dataframe[1].value["Question"]) == [QUESTION, SECOND]
    app.text_input(key="manage.text").set_value("opened nowhere").run()
    assert "No item matches" in texts(app)
    section(app, "Activity")
    assert "items added" in list(app.dataframe[1].value["Action"])


def test_another_search_begins_with_its_first_page(open_app: Open, store: Store) -> None:
    make_project(store, questions=tuple(f"Who was number {i}?" for i in range(55)))
    app = open_app("manage")
    (page,) = (key for key in app.session_state if key.startswith("manage.page"))  # AppTest has no pagination
    app.session_state[page] = 2
    assert len(app.run().dataframe[1].value) == 5
    app.text_input(key="manage.text").set_value("number 7").run()
    assert list(app.dataframe[1].value["Question"]) == ["Who was number 7?"]


def judged_item(open_app: Open, store: Store, monkeypatch: pytest.MonkeyPatch, *systems: str) -> AppTest:
    """The page with the only item chosen, whose answers were judged in a shuffled order."""
    for system in systems:
        store.predictions.save_prediction(predict(QUESTION, system=system))
    project = make_project(store, stages=("judging",), systems=systems, questions=(QUESTION,))
    item = take(store, project, "me", "judging").item
    correct = [
        JudgedAnswer(a.prediction_id, a.position, "correct", "fits", "a *note*" if a.position == 2 else "")
        for side in store.reviews.judging_sheet(item, "me").sides
        for a in sorted(side.answers, key=lambda a: -a.position)
    ]
    answers = tuple(a if a.position else replace(a, verdict="wrong") for a in correct)
    missing = (MissingAnswer("Isabella *Boylston*", ("Boylston",)),)
    work = JudgingWork(answers, missing, "tie" if len(systems) > 1 else None)
    store.submissions.submit(item, "me", "judging", work, seconds=5)
    monkeypatch.setattr("pages.manage.items.selected", lambda chosen: [0])  # AppTest selects no rows of a table
    return fine(open_app("manage"))


def test_what_judges_said(open_app: Open, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """It said `3: correct; 1: wrong; ...`, shuffled."""
    app = judged_item(open_app, store, monkeypatch, "scripted")
    lines = [x.strip() for x in texts(app).splitlines()]
    answers = [x for x in lines if x[:3] in ("1. ", "2. ", "3. ")]
    names = ["1. **Natalie Wood**", "2. **Rachel Zegler**", "3. **Carol Lawrence**"]
    assert [a.split(":")[0].strip() for a in answers] == names
    assert [":red-badge[wrong]" in a for a in answers] == [True, False, False]
    assert all("question fits" in a for a in answers)
    assert any("Note: a *note*" in x for x in lines)
    assert "- Isabella *Boylston* | Boylston" in lines
    assert r"Isabella \*Boylston\*" in "".join(m.value for m in app.markdown)


def test_what_judges_said_of_two_systems(open_app: Open, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = texts(judged_item(open_app, store, monkeypatch, "other", "scripted"))
    assert shown.index("Answers of **other**") < shown.index("Answers of **scripted**")
    assert shown.count("**Natalie Wood**") == 2
    assert "Both sets are equally good" in shown


def test_a_manager_is_told_of_items_that_cannot_be_judged_yet(open_app: Open, store: Store) -> None:
    store.predictions.save_prediction(predict(QUESTION))
    project = make_project(store, stages=("judging",), systems=("scripted",))
    app = fine(open_app("manage"))
    assert "Run scripted on 1 of 2 questions before judging" in texts(app)
    progress, items = (d.value for d in app.dataframe)
    assert list(progress["No prediction"]) == [1]
    assert list(items["State"]) == ["open", "no prediction"]
    click(app, "manage.bare.go")
    assert app.segmented_control(key="manage.section").value == "Suggestions"
    assert "1 of 2 questions" in texts(app)
    store.predictions.save_prediction(predict(SECOND, ()))
    store.intake.link_predictions("me", project.id)
    app.run()
    assert not app.warning
    assert "No prediction" not in app.dataframe[0].value


def test_columns_that_say_nothing_are_hidden(open_app: Open, store: Store) -> None:
    """`margin` and `disagreement` were None everywhere, and explained; they pushed others out of sight."""
    project = make_project(store, annotators_per_item=2, thresholds={"must_read": 0})
    app = open_app("manage")
    assert list(app.dataframe[1].value) == ["No.", "Question", "State", "Submitted", "In progress"]
    assert "Margin" not in texts(app)
    for person, answer in (("me", "a"), ("Ann", "b")):
        do(store, project, person, answer)
    app.run()
    items = next(d.value for d in app.dataframe if "Question" in d.value)
    assert "Disagreement" in items
    assert "Margin" not in items
    assert "Disagreement" in texts(app)


def test_a_project_is_exported_where_it_is_managed(open_app: Open, store: Store) -> None:
    project = make_project(store)
    make_project(store, name="Another")
    app = section(open_app("manage"), "Export")
    fine(app.selectbox(key="manage.project").set_value(project.id).run())
    fine(ended(button(app, "Take snapshot").click().run(), "snapshots"))
    (snapshot,) = store.exports.snapshots()
    assert snapshot.filters["project"] == project.id
